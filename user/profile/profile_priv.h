/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. See profile.h for what others may use. */
#ifndef SP_PROFILE_PRIV_H
#define SP_PROFILE_PRIV_H

#include "profile/profile.h"
#include "profile/yaml_tree.h"

#define TALLIES_MAX  64 /* of a profile */
#define NAME_MAX_LEN 31 /* names of profiles, libraries and probes */

/* ---- where the reader stands: passed down, never global ------------------------------------- */
struct reader {
	const char *file; /* name in messages */
	struct sp_err *err;
	struct profile *profile; /* being read */
	const char *group;       /* whose probes are being read; NULL: the profile's own */
	int status;              /* how codes read that a probe does not read for itself */
};

/* "FILE:LINE:COL: ..." into the error, exit code 2; returns -EINVAL. */
int bad_at(const struct reader *r, struct profile_mark mark, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int no_memory(const struct reader *r); /* -ENOMEM */

/* ---- reading one node (reader.c); each says what is wrong and returns 0 or -errno ------------ */
/* All keys of a map are in the NULL-terminated list, none twice. what: "a profile" in messages. */
int read_keys(const struct reader *r, const struct ynode *map, const char *what,
	      const char *const allowed[]);
int need_map(const struct reader *r, const struct ynode *n, const char *what);
int need_list(const struct reader *r, const struct ynode *n, const char *what, size_t max);
/* Value of a key that must be there. */
int need_key(const struct reader *r, const struct ynode *map, const char *what, const char *key,
	     struct ynode **out);
int read_text(const struct reader *r, const struct ynode *n, const char *what, const char **out);
int read_copy(const struct reader *r, const struct ynode *n, const char *what, char **out);
int read_bool(const struct reader *r, const struct ynode *n, const char *what, bool *out);
int read_u64(const struct reader *r, const struct ynode *n, const char *what, uint64_t max,
	     uint64_t *out);
int read_s64(const struct reader *r, const struct ynode *n, const char *what, int64_t *out);
/* A name: letters, digits, "_", "-", "."; at most NAME_MAX_LEN. */
int read_name(const struct reader *r, const struct ynode *n, const char *what, const char **out);
int read_glob(const struct reader *r, const struct ynode *n, const char *what, char **out);
/* One of the words (NULL-terminated): its index. */
int read_word(const struct reader *r, const struct ynode *n, const char *what,
	      const char *const words[], unsigned *out);
/* "did you mean X?" when one of the words is near, else "use A, B or C". */
void suggest(const char *word, const char *const words[], char *buf, size_t len);
bool name_ok(const char *s, size_t len);           /* a C identifier that fits PAT_NAME_MAX */
bool number_parse(const char *text, int64_t *out); /* the whole text, decimal or 0x */

/* ---- the parts of a profile ------------------------------------------------------------------ */
int read_settings(const struct reader *r, const struct ynode *map); /* all but the probes */
/* `libraries:` of the profile, or of a group that it uses: of the same name only the same. */
int read_libraries(const struct reader *r, const struct ynode *map);
int lib_by_id(const struct profile *p, const char *id); /* -1: none */
int read_probes(const struct reader *r, const struct ynode *list);
/* `groups:` of the file are well-formed; then their probes for `uses:` of a profile (groups.c). */
int check_groups(const struct reader *r, const struct ynode *groups);
int use_groups(const struct reader *r, const struct ynode *groups, const struct ynode *uses);
/* Of those that no profile uses: what can be said without one. */
int check_unused(const struct reader *r, const struct ynode *groups, const struct profile_file *pf);
/* What a probe gives to the calls inside it, and asks of those around it (scope.c). */
int read_scope(const struct reader *r, const struct ynode *map, struct profile_probe *p);
void set_scopes(struct profile *p);
int read_status(const struct reader *r, const struct ynode *map, struct status_spec *s);
struct status_spec *
status_add(struct profile *p); /* one more, with the defaults; NULL: no memory */
int read_probe(const struct reader *r, const struct ynode *map, struct profile_probe *p);
/* The i-th of a list; with `instead_of` what it does not say is as in that one (instead.c). */
int read_instead(const struct reader *r, const struct ynode *list, size_t i,
		 struct profile_probe *p);
int read_args(const struct reader *r, const struct ynode *list, struct profile_probe *p);
int read_python(const struct reader *r, const struct ynode *map); /* `python:` */
/* `sockets:`, after the probes: each entry becomes one more of them. */
int read_sockets(const struct reader *r, const struct ynode *list);
void sockets_clear(struct profile_sockets *s); /* NULL is fine */
/* `event:` of a probe or of an alternative: ev holds the inherited one on entry. */
int read_event(const struct reader *r, const struct ynode *map, struct evt_spec *ev);
int read_match(const struct reader *r, const struct ynode *n, struct profile_probe *p);
int read_messages(const struct reader *r, const struct ynode *n, struct profile_probe *p);
/* An effective event (m NULL: of a probe without alternatives) makes sense for the probe. */
int check_event(const struct reader *r, const struct profile_probe *p, const struct evt_match *m,
		const struct evt_spec *ev);
/* Is there an argument or a capture of that name? */
bool event_known(const struct profile_probe *p, const struct evt_match *m, const char *name,
		 size_t len);
const struct evt_field *event_field(const struct evt_spec *ev, const char *name); /* or NULL */
void event_free(struct evt_spec *ev);
int event_copy(struct evt_spec *to, const struct evt_spec *from);
/* A message of a probe for another probe. What it holds of `to` when it fails is match_clear's. */
int message_copy(struct evt_match *to, const struct evt_match *from);
void match_clear(struct evt_match *m);
/* Its events can have a room or an operation of their own. */
bool event_gives(const struct profile_probe *p, const struct evt_match *m,
		 const struct evt_spec *ev);
void lib_clear(struct profile_lib *lib);
void profile_clear(struct profile *p);
void probe_clear(struct profile_probe *p);

/* ---- `sockets:` with decode: http (sockhttp.c) --------------------------------------------- */

int sockhttp_read(const struct reader *r, const struct ynode *map, struct sock_entry *e,
		  struct profile_probe *probe);

/* ---- `sockets:`, the probe that an entry is besides (sockprobe.c) ---------------------------- */
/* One more probe at the end of the profile's, without a meaning yet; NULL: no memory. */
struct profile_probe *sockprobe_add(struct profile *p, const char *name, struct profile_mark mark);
/* Compile it as one that takes the frames of a stream. */
void sockprobe_frames(struct profile_probe *p);
/* Its messages are those of another, which takes frames too. n: where the profile says so. */
int sockprobe_same(const struct reader *r, const struct ynode *n, struct profile_probe *p,
		   const struct profile_probe *from);

/* ---- fetch expressions --------------------------------------------------------------------- */

/* Which elements an expression may start from. */
enum fetch_each {
	EACH_NONE,
	EACH_ONE,   /* $each */
	EACH_INNER, /* an inner level's own expressions: $each, $outer: the outer element */
	EACH_TWO,   /* $each: the inner one, $outer */
};
struct fetch_where {
	bool at_return;
	enum fetch_each each;
};
int fetch_compile_in(const char *expr, const char *type, uint16_t max,
		     const struct fetch_where *where, struct sp_fetch *f, char *why,
		     size_t why_len);
/* Where the arguments of a probe are evaluated. */
struct fetch_where probe_where(const struct profile_probe *p);
/* An expression that gives a number (u64 without a suffix). */
int read_scalar(const struct reader *r, const struct ynode *n, const char *what,
		const struct fetch_where *where, struct sp_fetch *f);
/* EXPR, or {fetch: EXPR, mask: N}: holds when it is not zero. */
int read_condition(const struct reader *r, const struct ynode *n, const char *what,
		   const struct fetch_where *where, struct sp_fetch *f);

/* ---- probes of several elements (each.c) --------------------------------------------------- */
int read_each(const struct reader *r, const struct ynode *map, struct profile_probe *p);
/* only, events, tally: after the arguments. */
int read_each_more(const struct reader *r, const struct ynode *map, struct profile_probe *p);
/* Whether an expression starts from the result. */
bool fetch_uses_result(const struct sp_fetch *f);

/* `pointer:` (pointerspec.c) */
int read_pointers(const struct reader *r, const struct ynode *n, struct profile_probe *p);

/* The argument that a key names. composite: which of the two kinds it must be. The kernel side
 * needs its value before the record is made, and takes no alternatives there. */
int read_arg_ref(const struct reader *r, const struct ynode *n, const char *what,
		 const struct profile_probe *p, bool composite, uint8_t *out);
int arg_by_name(const struct profile_probe *p, const char *name); /* -1: none */
const char *pattern_shape_name(enum pat_shape shape);
size_t pattern_element(enum pat_shape shape); /* bytes of an array's element; 0: no array */
bool pattern_ip_char(unsigned char c);
bool pattern_is_array(const struct pat_part *part);
/* A length or an array: it is a frame of messages, not a text. */
bool pattern_is_whole(const struct pattern *p);

/* ---- `python:`, paths (pypath.c) ------------------------------------------------------------- */
/* "queue._buf[*]": a local variable, then steps; at most one object, no [*] or {}. */
int read_py_path(const struct reader *r, const struct ynode *n, const char *what,
		 struct py_path *out);
/* "PATH -> {FIELD: PATH, ...}" with the fields of the list; needed: bits 1 << enum py_what. The
 * short form PATH.NAME stands for PATH -> {room: NAME}. */
int read_py_query(const struct reader *r, const struct ynode *n, const char *what, unsigned allowed,
		  unsigned needed, struct py_query *out);

/* ---- fetch types ----------------------------------------------------------------------------- */
struct type_info {
	const char *name;
	uint8_t type; /* enum sp_type */
	uint8_t size; /* scalars: bytes */
	bool is_signed, is_hex, is_composite;
	uint16_t max; /* composites: bytes copied unless the profile says otherwise; 0: it must */
};
const struct type_info *type_by_name(const char *name, size_t len); /* NULL: unknown */
void type_names(char *buf, size_t len);                             /* "u8, u16, ..." */

#endif
