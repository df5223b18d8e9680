// SPDX-License-Identifier: Apache-2.0
/* The probes file as a whole: finding it, reading it, parsing it, freeing it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

#define FILE_BYTES_MAX 1048576 /* 1 MiB; the shipped file has a few KiB */
#define PROFILES_MAX   32

/* ---- parsing --------------------------------------------------------------------------------- */

int read_probes(const struct reader *r, const struct ynode *list)
{
	struct profile *p = r->profile;
	struct profile_probe *grown;
	int rc = need_list(r, list, "probes", SP_MAX_PROBES);

	if (rc)
		return rc;
	if (list->n > (size_t)(SP_MAX_PROBES - p->nprobes))
		return bad_at(
			r, list->item[SP_MAX_PROBES - p->nprobes]->mark,
			"more than %d probes in profile %s, with those of its groups: split it",
			SP_MAX_PROBES, p->name);
	grown = realloc(p->probes, sizeof(*grown) * ((size_t)p->nprobes + list->n));
	if (!grown)
		return no_memory(r);
	p->probes = grown;
	memset(&grown[p->nprobes], 0, sizeof(*grown) * list->n);
	for (size_t i = 0; !rc && i < list->n; i++) {
		struct profile_probe *probe = &p->probes[p->nprobes++];

		rc = read_instead(r, list, i, probe);
		for (int k = 0; !rc && k < p->nprobes - 1; k++)
			if (!strcmp(p->probes[k].name, probe->name))
				rc = bad_at(r, probe->mark, "probe \"%s\" a second time%s%s",
					    probe->name, r->group ? ": used with group " : "",
					    r->group ? r->group : "");
	}
	return rc;
}

static int read_profile(struct reader *r, const struct ynode *map, const struct ynode *groups)
{
	static const char *const keys[] = {"name",    "match",  "room", "stages",    "delayed",
					   "done",    "status", "uses", "libraries", "probes",
					   "sockets", "python", NULL};
	struct ynode *n, *python, *sockets, *uses;
	const char *name;
	int rc = need_map(r, map, "a profile");

	r->profile->mark = map->mark;
	if (!rc)
		rc = read_keys(r, map, "a profile", keys);
	if (!rc)
		rc = need_key(r, map, "the profile", "name", &n);
	if (!rc)
		rc = read_name(r, n, "a profile's name", &name);
	if (!rc)
		rc = read_copy(r, n, "name", &r->profile->name);
	if (!rc)
		rc = read_settings(r, map);
	python = ynode_get(map, "python");
	sockets = ynode_get(map, "sockets");
	uses = ynode_get(map, "uses");
	n = ynode_get(map, "probes");
	/* the server's own view alone is enough, or its sockets, or groups */
	if (!rc && !n && !python && !sockets && !uses)
		rc = need_key(r, map, "the profile", "probes", &n);
	if (!rc && n && !((python || sockets || uses) && n->kind == YNODE_LIST && !n->n))
		rc = read_probes(r, n);
	if (!rc && uses)
		rc = use_groups(r, groups, uses);
	r->profile->nuprobes = r->profile->nprobes;
	if (!rc && sockets)
		rc = read_sockets(r, sockets);
	if (!rc && python)
		rc = read_python(r, python);
	if (!rc)
		set_scopes(r->profile);
	return rc;
}

static int read_file(struct reader *r, const struct ynode *root, struct profile_file *pf)
{
	static const char *const keys[] = {"version", "groups", "profiles", NULL};
	struct ynode *n, *groups = ynode_get(root, "groups");
	int64_t version;
	int rc = need_map(r, root, "a probes file");

	if (!rc)
		rc = read_keys(r, root, "a probes file", keys);
	if (!rc)
		rc = need_key(r, root, "the file", "version", &n);
	if (!rc)
		rc = read_s64(r, n, "version", &version);
	if (!rc && version != 1)
		rc = bad_at(r, n->mark, "version %lld is unknown: this program reads version 1",
			    (long long)version);
	if (!rc && groups)
		rc = check_groups(r, groups);
	if (!rc)
		rc = need_key(r, root, "the file", "profiles", &n);
	if (!rc)
		rc = need_list(r, n, "profiles", PROFILES_MAX);
	if (rc)
		return rc;
	pf->profiles = calloc(n->n, sizeof(*pf->profiles));
	if (!pf->profiles)
		return no_memory(r);
	for (size_t i = 0; !rc && i < n->n; i++) {
		r->profile = &pf->profiles[pf->nprofiles++];
		rc = read_profile(r, n->item[i], groups);
		for (int k = 0; !rc && k < pf->nprofiles - 1; k++)
			if (!strcmp(pf->profiles[k].name, r->profile->name))
				rc = bad_at(r, r->profile->mark, "profile \"%s\" a second time",
					    r->profile->name);
	}
	if (!rc && groups)
		rc = check_unused(r, groups, pf);
	return rc;
}

/* What libyaml would only describe by its bytes. */
static int refuse_text(const char *name, const char *text, size_t len, struct sp_err *err)
{
	size_t blank = 0;

	while (blank < len && strchr(" \t\r\n", text[blank]) && text[blank])
		blank++;
	if (blank == len)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "%s: is empty: a probes file begins with \"version: 1\"", name);
	if (memchr(text, '\0', len))
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "%s: is a binary file: a probes file is YAML text", name);
	if (len > FILE_BYTES_MAX)
		return sp_err_set(err, SP_EXIT_USAGE, -EFBIG,
				  "%s: is larger than 1 MiB: is it a probes file?", name);
	return 0;
}

int profile_parse(const char *name, const char *text, size_t len, struct profile_file **out,
		  struct sp_err *err)
{
	struct reader r = {.file = name, .err = err};
	struct profile_file *pf;
	struct ytree tree = {0};
	int rc = refuse_text(name, text, len, err);

	*out = NULL;
	if (rc)
		return rc;
	pf = calloc(1, sizeof(*pf));
	if (!pf)
		return no_memory(&r);
	pf->path = strdup(name);
	pf->text = strndup(text, len);
	rc = pf->path && pf->text ? ytree_parse(&tree, name, text, len, err) : no_memory(&r);
	if (!rc && !tree.root)
		rc = sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				"%s: holds only comments: a probes file begins with "
				"\"version: 1\"",
				name);
	if (!rc)
		rc = read_file(&r, tree.root, pf);
	ytree_free(&tree);
	if (rc) {
		profile_free(pf);
		return rc;
	}
	*out = pf;
	return 0;
}

static void status_clear(struct status_spec *s)
{
	for (int i = 0; i < s->nnames; i++)
		free(s->names[i].text);
	free(s->names);
}

void profile_clear(struct profile *p)
{
	for (int i = 0; i < p->nprobes; i++)
		probe_clear(&p->probes[i]);
	free(p->probes);
	for (int i = 0; i < p->nlibs; i++)
		lib_clear(&p->libs[i]);
	free(p->libs);
	for (int i = 0; i < p->nuses; i++)
		free(p->uses[i]);
	for (int i = 0; i < p->nstatuses; i++)
		status_clear(&p->statuses[i]);
	free(p->statuses);
	free(p->tallies);
	for (int i = 0; i < p->nfake_hosts; i++)
		free(p->fake_hosts[i]);
	sockets_clear(p->sockets);
	free(p->match_cmdline);
	free(p->python);
	free(p->name);
}

void profile_free(struct profile_file *pf)
{
	if (!pf)
		return;
	for (int i = 0; i < pf->nprofiles; i++)
		profile_clear(&pf->profiles[i]);
	free(pf->profiles);
	free(pf->path);
	free(pf->text);
	free(pf);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int cannot_read(const char *path, int why, struct sp_err *err)
{
	const char *todo = why == ENOENT   ? "check the path"
			   : why == EACCES ? "check the file's permissions"
			   : why == EISDIR ? "name the file itself, for example probes.yaml in it"
					   : "give a readable file";

	return sp_err_set(err, SP_EXIT_USAGE, -why, "%s: %s: %s", path, strerror(why), todo);
}

/* O_NONBLOCK: a FIFO without a writer must not hang us. Size 0 may be a file of /proc. */
static int slurp(const char *path, char **text, size_t *len, struct sp_err *err)
{
	__closefd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	__free char *buf = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return cannot_read(path, errno, err);
	if (S_ISDIR(st.st_mode))
		return cannot_read(path, EISDIR, err);
	if (!S_ISREG(st.st_mode))
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "%s: not a regular file: save the profile to a file first", path);
	if (st.st_size > FILE_BYTES_MAX)
		return sp_err_set(err, SP_EXIT_USAGE, -EFBIG,
				  "%s: has %lld MiB: is it a probes file? (at most 1 MiB)", path,
				  (long long)st.st_size >> 20);
	buf = malloc(FILE_BYTES_MAX + 1);
	if (!buf)
		return sp_err_set(err, SP_EXIT_FAIL, -ENOMEM, "%s: out of memory", path);
	for (*len = 0; *len <= FILE_BYTES_MAX;) {
		ssize_t n = read(fd, buf + *len, FILE_BYTES_MAX + 1 - *len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cannot_read(path, errno, err);
		if (!n)
			break;
		*len += (size_t)n;
	}
	*text = buf;
	buf = NULL;
	return 0;
}

int profile_load(const char *path, struct profile_file **out, struct sp_err *err)
{
	__free char *text = NULL;
	char buf[PATH_MAX];
	size_t len = 0;
	int rc;

	*out = NULL;
	if (!path)
		path = profile_default_path(buf, sizeof(buf));
	if (!path)
		return sp_err_set(err, SP_EXIT_USAGE, -ENOENT,
				  "probes.yaml: not found beside the program, above it, nor in "
				  "../share/silentpin: give the file, or set SILENTPIN_PROBES");
	if (!*path)
		return sp_err_set(err, SP_EXIT_USAGE, -EINVAL,
				  "\"\": not a file's name: name a probes file");
	rc = slurp(path, &text, &len, err);
	if (rc || !text)
		return rc;
	return profile_parse(path, text, len, out, err);
}

/* DIR/FILE into buf; false when it does not exist or does not fit. */
static bool try_path(char *buf, size_t len, const char *dir, const char *file)
{
	int n = snprintf(buf, len, "%s/%s", dir, file);

	return n > 0 && (size_t)n < len && !access(buf, F_OK);
}

const char *profile_default_path(char *buf, size_t len)
{
	const char *env = secure_getenv("SILENTPIN_PROBES");
	char exe[PATH_MAX];
	ssize_t n;

	if (env && *env) {
		n = snprintf(buf, len, "%s", env);
		return n > 0 && (size_t)n < len ? buf : NULL;
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	/* side by side; build/silentpin; bin/silentpin with share/silentpin/probes.yaml */
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(exe, '/');

		if (!slash)
			return NULL;
		*slash = '\0';
		if (try_path(buf, len, exe, "probes.yaml"))
			return buf;
	}
	return try_path(buf, len, exe, "share/silentpin/probes.yaml") ? buf : NULL;
}
