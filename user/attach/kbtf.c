// SPDX-License-Identifier: Apache-2.0
/* Format: Documentation/bpf/btf.rst. */
#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/kbtf.h"
#include "util/cleanup.h"

#define MAX_MEMBERS 32
#define MAX_DEPTH   8 /* structs in structs, modifiers of modifiers */

struct kernel {
	const struct btf_header *hdr;
	const uint8_t *types;
	const char *str;
	uint32_t *at; /* offset of each type, by id; [0] is void */
	uint32_t n;
};

static const struct btf_type *type_of(const struct kernel *k, uint32_t id)
{
	return id && id < k->n ? (const struct btf_type *)(k->types + k->at[id]) : NULL;
}

static const char *name_of(const struct kernel *k, uint32_t off)
{
	return off < k->hdr->str_len ? k->str + off : "";
}

/* Bytes behind the common part of a type; SIZE_MAX: an unknown kind. */
static size_t extra(const struct btf_type *t)
{
	size_t n = btf_vlen(t);

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return n * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return n * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return n * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return n * sizeof(struct btf_var_secinfo);
	default:
		return SIZE_MAX;
	}
}

static int index_types(struct kernel *k)
{
	uint32_t len = k->hdr->type_len, pos = 0;

	/* no type is shorter than its common part */
	k->at = malloc((len / sizeof(struct btf_type) + 1) * sizeof(*k->at));
	if (!k->at)
		return -ENOMEM;
	k->n = 1;
	while (len - pos >= sizeof(struct btf_type)) {
		size_t more = extra((const struct btf_type *)(k->types + pos));

		if (more > len - pos - sizeof(struct btf_type))
			return -EINVAL;
		k->at[k->n++] = pos;
		pos += sizeof(struct btf_type) + (uint32_t)more;
	}
	return pos == len ? 0 : -EINVAL;
}

static int parse(struct kernel *k, const void *data, size_t len)
{
	const struct btf_header *h = data;
	size_t room;

	if (len < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len < sizeof(*h) ||
	    h->hdr_len > len)
		return -EINVAL;
	room = len - h->hdr_len;
	if (h->type_off % 4 || h->type_off > room || h->type_len > room - h->type_off ||
	    h->str_off > room || h->str_len > room - h->str_off || !h->str_len)
		return -EINVAL;
	k->hdr = h;
	k->types = (const uint8_t *)data + h->hdr_len + h->type_off;
	k->str = (const char *)data + h->hdr_len + h->str_off;
	if (k->str[h->str_len - 1])
		return -EINVAL;
	return index_types(k);
}

static bool is_composite(const struct btf_type *t)
{
	return t && btf_is_composite(t);
}

static uint32_t skip_mods(const struct kernel *k, uint32_t id)
{
	const struct btf_type *t = type_of(k, id);

	for (int i = 0; i < MAX_DEPTH && t && (btf_is_mod(t) || btf_is_typedef(t)); i++) {
		id = t->type;
		t = type_of(k, id);
	}
	return id;
}

/* ---- a member by its name, also inside members without one ------------------------------- */

struct found {
	uint32_t type, bit, bits;
};

static bool find_member(const struct kernel *k, const struct btf_type *t, const char *name,
			uint32_t base, int depth, struct found *out)
{
	const struct btf_member *m = btf_members(t);

	if (depth > MAX_DEPTH)
		return false;
	for (unsigned i = 0; i < btf_vlen(t); i++) {
		uint32_t bit = base + btf_member_bit_offset(t, i);
		const char *own = name_of(k, m[i].name_off);
		const struct btf_type *in;

		if (own[0] && !strcmp(own, name)) {
			*out = (struct found){m[i].type, bit, btf_member_bitfield_size(t, i)};
			return true;
		}
		in = own[0] ? NULL : type_of(k, skip_mods(k, m[i].type));
		if (is_composite(in) && find_member(k, in, name, bit, depth + 1, out))
			return true;
	}
	return false;
}

/* ---- the small copy ---------------------------------------------------------------------- */

static int add_struct(const struct kernel *k, uint32_t id, const struct btf *local, uint32_t as,
		      int depth, struct btf *out);

/* A type of the kernel, as deep as the local one of the same member goes. Its id, or -errno. */
static int add_type(const struct kernel *k, uint32_t id, const struct btf *local, uint32_t as,
		    int depth, struct btf *out)
{
	const struct btf_type *t, *l;
	int32_t like;
	int elem;

	id = skip_mods(k, id);
	t = type_of(k, id);
	like = btf__resolve_type(local, as);
	l = like > 0 ? btf__type_by_id(local, (uint32_t)like) : NULL;
	if (!t || depth > MAX_DEPTH)
		return -EINVAL;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(out, name_of(k, t->name_off), t->size, btf_int_encoding(t));
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return btf__add_int(out, "int", t->size, BTF_INT_SIGNED);
	case BTF_KIND_PTR:
		return btf__add_ptr(out, 0);
	case BTF_KIND_ARRAY:
		if (!l || !btf_is_array(l))
			return -EINVAL;
		elem = add_type(k, btf_array(t)->type, local, btf_array(l)->type, depth + 1, out);
		if (elem < 0)
			return elem;
		return btf__add_array(out, elem, elem, btf_array(t)->nelems);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		if (!is_composite(l))
			return -EINVAL;
		return add_struct(k, id, local, (uint32_t)like, depth + 1, out);
	default:
		return -EINVAL;
	}
}

static int add_struct(const struct kernel *k, uint32_t id, const struct btf *local, uint32_t as,
		      int depth, struct btf *out)
{
	const struct btf_type *t = type_of(k, id), *l = btf__type_by_id(local, as);
	struct found f[MAX_MEMBERS];
	const char *name[MAX_MEMBERS];
	int type[MAX_MEMBERS], n = 0, made;

	if (depth > MAX_DEPTH || btf_vlen(l) > MAX_MEMBERS)
		return -EINVAL;
	/* the types of its members come before it */
	for (unsigned i = 0; i < btf_vlen(l); i++) {
		name[n] = btf__name_by_offset(local, btf_members(l)[i].name_off);
		if (!find_member(k, t, name[n], 0, 0, &f[n]))
			continue; /* another kernel: libbpf says what lacks */
		type[n] = add_type(k, f[n].type, local, btf_members(l)[i].type, depth, out);
		if (type[n] < 0)
			return type[n];
		n++;
	}
	made = btf_is_union(t) ? btf__add_union(out, name_of(k, t->name_off), t->size)
			       : btf__add_struct(out, name_of(k, t->name_off), t->size);
	for (int i = 0; i < n && made > 0; i++) {
		int rc = btf__add_field(out, name[i], type[i], f[i].bit, f[i].bits);

		if (rc)
			return rc;
	}
	return made;
}

/* The local struct of this name, 0: none. */
static uint32_t local_named(const struct btf *local, const char *name)
{
	int32_t id = name[0] ? btf__find_by_name_kind(local, name, BTF_KIND_STRUCT) : -ENOENT;

	return id > 0 ? (uint32_t)id : 0;
}

/* Worth a look-up by name? Few of the kernel's 10,000 structs have a hash that one of ours has. */
#define HASHES 65536
static unsigned hash_of(const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return (h ^ h >> 16) % HASHES;
}

static bool *local_hashes(const struct btf *local)
{
	bool *ours = calloc(HASHES, sizeof(*ours));

	for (uint32_t i = 1; ours && i < btf__type_cnt(local); i++) {
		const struct btf_type *t = btf__type_by_id(local, i);

		if (btf_is_struct(t))
			ours[hash_of(btf__name_by_offset(local, t->name_off))] = true;
	}
	return ours;
}

static int cut(const struct kernel *k, const struct btf *local, struct btf **out)
{
	__free bool *ours = local_hashes(local);
	struct btf *small = btf__new_empty();
	int rc = small && ours ? 0 : -ENOMEM;

	for (uint32_t id = 1; id < k->n && !rc; id++) {
		const struct btf_type *t = type_of(k, id);
		const char *name = btf_is_struct(t) ? name_of(k, t->name_off) : "";
		uint32_t as = name[0] && ours[hash_of(name)] ? local_named(local, name) : 0;
		int made = as ? add_struct(k, id, local, as, 0, small) : 0;

		if (made < 0)
			rc = made;
	}
	if (rc)
		btf__free(small);
	else
		*out = small;
	return rc;
}

int kbtf_cut(const void *data, size_t len, const struct btf *local, struct btf **out)
{
	struct kernel k = {0};
	int rc = parse(&k, data, len);

	rc = rc ? rc : cut(&k, local, out);
	free(k.at);
	return rc;
}

/* ---- by name ----------------------------------------------------------------------------- */

/* Offset of a whole string, 0: not there. Comparing offsets spares a look at 60,000 names. */
static uint32_t string_at(const struct kernel *k, const char *name)
{
	size_t n = strlen(name) + 1;
	const char *end = k->str + k->hdr->str_len, *s = k->str;

	while ((s = memmem(s, (size_t)(end - s), name, n))) {
		if (s > k->str && !s[-1])
			return (uint32_t)(s - k->str);
		s++;
	}
	return 0;
}

static void find_func(const struct kernel *k, struct kbtf_func *f)
{
	uint32_t off = f->name ? string_at(k, f->name) : 0;

	f->id = 0;
	for (uint32_t id = 1; off && id < k->n && !f->id; id++) {
		const struct btf_type *t = type_of(k, id);

		if (t->name_off == off && btf_is_func(t))
			f->id = id;
	}
}

static void find_constant(const struct kernel *k, struct kbtf_enum *c)
{
	uint32_t off = string_at(k, c->name);

	c->value = -1;
	for (uint32_t id = 1; off && id < k->n && c->value < 0; id++) {
		const struct btf_type *t = type_of(k, id);

		for (unsigned i = 0; btf_is_enum(t) && i < btf_vlen(t); i++)
			if (btf_enum(t)[i].name_off == off)
				c->value = btf_enum(t)[i].val;
	}
}

static void look_up(const struct kernel *k, const struct kbtf_find *find)
{
	for (int i = 0; i < find->nfunc; i++)
		find_func(k, &find->func[i]);
	for (int i = 0; i < find->nconstant; i++)
		find_constant(k, &find->constant[i]);
}

int kbtf_look_up(const void *data, size_t len, const struct kbtf_find *find)
{
	struct kernel k = {0};
	int rc = parse(&k, data, len);

	if (!rc)
		look_up(&k, find);
	free(k.at);
	return rc;
}

/* ---- of the running kernel --------------------------------------------------------------- */

/* mmap from 6.16 on; else a page a read. */
static void *read_all(int fd, size_t len, bool *mapped)
{
	void *p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	size_t have = 0;

	*mapped = p != MAP_FAILED;
	if (*mapped)
		return p;
	p = malloc(len);
	while (p && have < len) {
		ssize_t n = read(fd, (char *)p + have, len - have);

		if (n <= 0) {
			free(p);
			return NULL;
		}
		have += (size_t)n;
	}
	return p;
}

static struct btf *elf_btf(const void *image, size_t len)
{
	struct btf *btf = NULL;
	Elf_Scn *scn = NULL;
	size_t names;
	Elf *elf;

	if (elf_version(EV_CURRENT) == EV_NONE)
		return NULL;
	elf = elf_memory((char *)image, len); /* only read */
	if (!elf || elf_getshdrstrndx(elf, &names))
		goto out;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		Elf_Data *d;
		const char *name;

		if (!gelf_getshdr(scn, &sh))
			break;
		name = elf_strptr(elf, names, sh.sh_name);
		d = name && !strcmp(name, ".BTF") ? elf_getdata(scn, NULL) : NULL;
		if (d)
			btf = btf__new(d->d_buf, (uint32_t)d->d_size);
	}
out:
	elf_end(elf);
	return btf;
}

static int to_memfd(const struct btf *btf)
{
	__u32 len;
	const void *data = btf__raw_data(btf, &len);
	int fd = memfd_create("silentpin-btf", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (!data || write(fd, data, len) != (ssize_t)len) {
		close(fd);
		return -EIO;
	}
	return fd;
}

int kbtf_open(const void *elf, size_t elf_len, const struct kbtf_find *find)
{
	struct btf *local = elf_btf(elf, elf_len), *small = NULL;
	struct kernel k = {0};
	__closefd int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	void *data = NULL;
	bool mapped;
	struct stat st;
	int rc = -ENOENT;

	if (local && fd >= 0 && !fstat(fd, &st))
		data = read_all(fd, (size_t)st.st_size, &mapped);
	if (data) {
		rc = parse(&k, data, (size_t)st.st_size);
		rc = rc ? rc : cut(&k, local, &small);
		if (!rc && find)
			look_up(&k, find);
		free(k.at);
		if (mapped)
			munmap(data, (size_t)st.st_size);
		else
			free(data);
	}
	if (!rc)
		rc = to_memfd(small);
	btf__free(small);
	btf__free(local);
	return rc;
}
