// SPDX-License-Identifier: Apache-2.0
/* `libraries:` of a profile, and of the groups that it uses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

#define LIBRARIES_MAX 64

int lib_by_id(const struct profile *p, const char *id)
{
	for (int i = 0; i < p->nlibs; i++)
		if (p->libs[i].id && !strcmp(p->libs[i].id, id))
			return i;
	return -1;
}

static int read_file(const struct reader *r, const struct ynode *n, struct profile_lib *lib)
{
	char **file = &lib->file[lib->nfiles];
	int rc = read_glob(r, n, "file", file);

	if (rc)
		return rc;
	lib->nfiles++;
	if (strchr(*file, '/'))
		return bad_at(r, n->mark,
			      "file is a glob over the file's own name, without folders: drop all "
			      "up to the last \"/\"");
	for (int i = 0; i < lib->nfiles - 1; i++)
		if (!strcmp(lib->file[i], *file))
			return bad_at(r, n->mark, "\"%s\" a second time in file", *file);
	return 0;
}

static int read_library(const struct reader *r, const struct ynode *key, const struct ynode *map,
			struct profile_lib *lib)
{
	static const char *const keys[] = {"file", NULL};
	const char *id;
	struct ynode *file;
	int rc = read_name(r, key, "a library's name", &id);

	if (!rc)
		rc = need_map(r, map, "a library");
	if (!rc)
		rc = read_keys(r, map, "a library", keys);
	if (!rc)
		rc = need_key(r, map, "the library", "file", &file);
	if (rc)
		return rc;
	lib->id = strdup(id);
	if (!lib->id)
		return no_memory(r);
	if (file->kind != YNODE_LIST)
		return read_file(r, file, lib);
	rc = need_list(r, file, "file", LIB_MAX_FILES);
	for (size_t i = 0; !rc && i < file->n; i++)
		rc = read_file(r, file->item[i], lib);
	return rc;
}

void lib_clear(struct profile_lib *lib)
{
	free(lib->id);
	for (int i = 0; i < lib->nfiles; i++)
		free(lib->file[i]);
	memset(lib, 0, sizeof(*lib));
}

static bool same_files(const struct profile_lib *a, const struct profile_lib *b)
{
	if (a->nfiles != b->nfiles)
		return false;
	for (int i = 0; i < a->nfiles; i++)
		if (strcmp(a->file[i], b->file[i]) != 0)
			return false;
	return true;
}

/* The one just read is new, or the one that another part of the profile has too. */
static int share(const struct reader *r, const struct ynode *key)
{
	struct profile *p = r->profile;
	struct profile_lib *lib = &p->libs[p->nlibs - 1];
	int old = lib_by_id(p, lib->id); /* the first of that name */

	if (old == p->nlibs - 1)
		return 0;
	if (!r->group)
		return bad_at(r, key->mark, "library \"%s\" a second time", lib->id);
	if (!same_files(&p->libs[old], lib))
		return bad_at(r, key->mark,
			      "library \"%s\" of group %s is another one in profile %s: give it "
			      "another name, or the same files",
			      lib->id, r->group, p->name);
	lib_clear(lib);
	p->nlibs--;
	return 0;
}

int read_libraries(const struct reader *r, const struct ynode *map)
{
	struct profile *p = r->profile;
	struct profile_lib *grown;
	int rc = need_map(r, map, "libraries");

	if (rc)
		return rc;
	if (!map->n)
		return bad_at(r, map->mark, "libraries: empty: name at least one");
	if (map->n > (size_t)(LIBRARIES_MAX - p->nlibs))
		return bad_at(r, ynode_key(map, (size_t)(LIBRARIES_MAX - p->nlibs))->mark,
			      "libraries: more than %d in one profile", LIBRARIES_MAX);
	grown = realloc(p->libs, sizeof(*grown) * ((size_t)p->nlibs + map->n));
	if (!grown)
		return no_memory(r);
	p->libs = grown;
	memset(&grown[p->nlibs], 0, sizeof(*grown) * map->n);
	for (size_t i = 0; !rc && i < map->n; i++) {
		/* counted first: what a failed one holds is freed too */
		rc = read_library(r, ynode_key(map, i), ynode_value(map, i), &p->libs[p->nlibs++]);
		if (!rc)
			rc = share(r, ynode_key(map, i));
	}
	return rc;
}
