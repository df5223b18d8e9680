/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: what to probe in which library, how to fetch arguments, and what each probe means.
 * Parsed from probes.yaml (grammar: docs/profiles.md). Everything is owned by struct profile_file
 * and freed with it. Names use the words of docs/architecture.md.
 */
#ifndef SP_PROFILE_H
#define SP_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sp_shared.h"
#include "event/event.h"
#include "profile/python.h"
#include "profile/sockets.h"
#include "util/err.h"

struct profile_mark {
	int line, col; /* 1-based place in the file */
};

/* ---- patterns: "{room}_kv_{chunk}_{last}_{rank}" ------------------------------------------- */

/* Shape of a capture: {name}, {name:shape}, or {:shape} and {} to match without keeping. Without a
 * shape: flag for last; u64 for the other numeric standard fields (room of a u64 profile, chunk,
 * rank, part, parts, need); else token. "{{" and "}}" are literal braces. */
enum pat_shape {
	PAT_U64,   /* 1-20 digits, canonical (no leading zeros but "0"), value < 2^64 */
	PAT_FLAG,  /* 0, 1, True, False; num is 0 or 1 */
	PAT_IP,    /* dotted quad, or IPv6 text (hex digits, colons, a zone) */
	PAT_TOKEN, /* 1+ printable bytes, as few as let the rest match (the last: all that is left)
		    */
	PAT_LEN,   /* frames only, alone: captures the length of the frame, any content */
	PAT_U64S,  /* frames only, alone: an array of little-endian 64-bit numbers, as far as copied
		    */
	PAT_S32S,  /* the same of 32-bit numbers */
};

#define PAT_MAX_PARTS 16
#define PAT_NAME_MAX  24

struct pat_part {
	bool is_capture;
	enum pat_shape shape;
	char name[PAT_NAME_MAX]; /* capture's name; "" = matched, not kept */
	char *literal;           /* when not a capture */
	size_t literal_len;
};

struct pattern {
	struct pat_part part[PAT_MAX_PARTS];
	int nparts;
	bool any;       /* "*": any content, nothing captured */
	bool ambiguous; /* a first, greedy pass does not decide (internal) */
};

/* Named values of one event while it is decoded: captures, scalar arguments, constants. */
#define CAP_MAX       32
#define CAP_VALUE_MAX 96
struct capture {
	char name[PAT_NAME_MAX];
	char text[CAP_VALUE_MAX]; /* always set, NUL-terminated, cut at CAP_VALUE_MAX-1 */
	uint64_t num;             /* set when is_num; of arrays: bytes of the whole frame */
	bool is_num;
	/* Arrays (PAT_U64S, PAT_S32S): their bytes as far as they were copied, a whole number of
	 * elements, little-endian, not aligned. In the frame that was matched: valid as long as it.
	 * Cut when raw_len < num. NULL for all other shapes.
	 * The same of a token that text has no room for. */
	const char *raw;
	size_t raw_len;
	bool cut; /* a token: there is more, which was not copied */
};
struct captures {
	struct capture cap[CAP_MAX];
	int n;
};

/* Compile a pattern. room_u64: whether {room} defaults to PAT_U64. 0, or -EINVAL with the reason in
 * why (a static string or a formatted one, at most why_len bytes). */
int pattern_compile(struct pattern *p, const char *text, bool room_u64, char *why, size_t why_len);
/* Match the whole of [s, s+len). full_len: the real length, larger when [s, s+len) was cut; a cut
 * text matches only "*", PAT_LEN, and a pattern whose last part is a token. On success appends the
 * captures to caps (when not NULL) and returns true; else leaves it as is. */
bool pattern_match(const struct pattern *p, const char *s, size_t len, size_t full_len,
		   struct captures *caps);
/* Could the whole text, of which [s, s+len) is the beginning, match? Also true in doubt. */
bool pattern_may_match(const struct pattern *p, const char *s, size_t len);
void pattern_free(struct pattern *p);
/* As it was written, with every shape spelled out. */
void pattern_print(const struct pattern *p, char *buf, size_t len);
const struct capture *captures_find(const struct captures *caps, const char *name);

/* ---- what an event is made of ------------------------------------------------------------- */

#define EVT_MAX_FIELDS 16
/* field = a constant, or a template over captures and arguments: "{ip}:{port}". A bare word that is
 * the name of an argument or of a capture means its value. */
struct evt_field {
	char name[PAT_NAME_MAX]; /* role's fields: kind, op, chunk... (docs/profiles.md), created */
	char *value;             /* created: "true" */
	struct profile_mark mark;
};
struct evt_spec {
	enum sp_role role;
	struct evt_field field[EVT_MAX_FIELDS];
	int nfields;
	char covers[4][16]; /* kinds of `needs` ("kv.last") that this also satisfies */
	int ncovers;
	char dummy[4][PAT_NAME_MAX]; /* dummy_if_empty: PAT_LEN captures; all zero: peer takes no
					data */
	int ndummy;
	struct profile_mark mark;
};

/* One alternative of `match:` (patterns over arguments) or of `messages:` (patterns over frames).
 */
struct evt_match {
	char *name; /* messages: for people, NULL when not given */
	struct {
		int arg; /* index of the argument */
		struct pattern pat;
	} on[SP_MAX_ARGS];
	int non;
	struct pattern *frames; /* messages: one per frame */
	int nframes;
	bool frames_open;      /* ended with "...": more frames may follow */
	struct evt_spec event; /* the probe's event, overridden by the alternative's own */
	struct profile_mark mark;
};

/* ---- probes --------------------------------------------------------------------------------*/

enum probe_on { ON_ENTRY, ON_RETURN, ON_RET };

struct profile_arg {
	char name[PAT_NAME_MAX];
	uint8_t type; /* enum sp_type of its first alternative */
	bool is_signed, is_hex, is_composite;
};

struct status_range {
	int64_t lo, hi; /* inclusive; lo above hi: no code */
};
#define STATUS_NO_CODE ((struct status_range){1, 0})
struct status_name {
	int64_t code;
	char *text;
};

/* How codes read: `status:` of a profile, of a group, or of a probe. */
struct status_spec {
	struct status_range done, busy, error;
	struct status_name *names;
	int nnames;
};

/* Which room a call without one of its own belongs to: `scope:`. */
enum probe_scope {
	SCOPE_NONE,   /* the process's */
	SCOPE_CALL,   /* the room of the call that encloses it on its thread */
	SCOPE_THREAD, /* that, else the room that the thread works for between two events with
			 work: begin and work: end */
};

/* A function that no symbol names: found through a pointer, in one of these ways. */
#define PROBE_MAX_POINTERS 4
struct probe_pointer {
	bool at_call;   /* else: static, from the file itself */
	int library;    /* of the function that is named here */
	char *function; /* at_call: a pointer to the probe's function can be read when it returns;
			   static: a table of pointers is passed to it */
	struct sp_fetch fetch; /* at_call: the pointer, $argN and $retval */
	int argument;          /* static: which argument the table is (from 1) */
	/* static: where in its first argument the function copies the pointer: tells the slot; 0:
	 * not given. Below 0: counted from the end of what the function fills there (a struct that
	 * grows at its beginning). */
	int64_t copied_to;
	int64_t slot; /* static: offset in the table, when the code does not tell; -1: none */
	struct profile_mark mark;
};

struct profile_probe {
	char *name;
	int library;  /* index into libs; -1: an entry of sockets: (no symbol, no uprobe) */
	int socket;   /* index into sockets->entry; -1: a uprobe */
	char *symbol; /* glob over .dynsym and .symtab; NULL for a socket, and with pointers */
	struct probe_pointer *pointer;
	int npointers;
	enum probe_scope scope;
	bool off;            /* enabled: false, or --disable: not attached */
	bool waits;          /* to be in this call for long is its nature (a receive) */
	const char *group;   /* name of the group it comes from, NULL: the profile's own */
	int status;          /* index into the profile's statuses */
	struct sp_each each; /* prog.flags & SP_P_EACH */
	enum probe_on on;    /* return = uretprobe; ret = a probe on each ret instruction */
	bool nothrow;
	bool required; /* default true */
	/* Index + 1 of the probe whose place it takes in a file that has its function; 0: none. */
	int instead_of;
	struct profile_arg args[SP_MAX_ARGS];
	int nargs;
	struct evt_match *match; /* alternatives, tried in order; none: every hit is the event */
	int nmatch;
	bool is_frames; /* match[] are messages */
	struct evt_spec event;
	struct sp_probe prog; /* compiled for the kernel */
	struct profile_mark mark;
};

#define LIB_MAX_FILES 16
struct profile_lib {
	char *id;
	char *file[LIB_MAX_FILES]; /* globs over the base name of mapped files: any of them */
	int nfiles;
};

struct profile_tally {           /* `tally:`: probes with the same name share one */
	char name[PAT_NAME_MAX]; /* "queue pair" */
};

struct profile_need { /* one word of done.needs: "kv.last" or "aux" */
	char kind[16];
	bool last;
	bool once; /* "aux.once": from one peer, however many send */
};

#define PROFILE_MAX_FAKE   8
#define PROFILE_MAX_NEEDS  8
#define PROFILE_MAX_GROUPS 8
struct profile {
	char *name;
	char *match_cmdline; /* glob over the NUL-joined-by-space cmdline or the comm; NULL: none */
	struct {
		uint64_t lo, hi;
	} fake[PROFILE_MAX_FAKE];           /* inclusive; "<64" is 0..63 */
	char *fake_hosts[PROFILE_MAX_FAKE]; /* room.fake_hosts: bootstrap hosts of fake rooms */
	int nfake, nfake_hosts;
	uint64_t stage_ns[SP_STAGE_MAX]; /* indexed by enum sp_stage */
	char *uses[PROFILE_MAX_GROUPS];  /* groups whose probes it has beside its own */
	struct status_spec
		*statuses; /* [0]: the profile's own; default: 0 done, 1 busy, <0 error */
	struct profile_tally *tallies;
	struct profile_lib *libs;
	struct profile_probe *probes; /* uprobes first, then one for each entry of sockets: */
	int nuses, nstatuses, ntallies, nlibs, nprobes, nuprobes;
	struct profile_python *python;   /* the server's own view; NULL: none */
	struct profile_sockets *sockets; /* the transport's and the front's sockets; NULL: none */
	struct profile_mark mark;
	int nneeds;
	struct profile_need needs[PROFILE_MAX_NEEDS];
	bool room_u64;              /* else string */
	bool delayed[SP_STAGE_MAX]; /* what waits there for others is ended by the server itself */
};

struct profile_file {
	char *path;
	char *text; /* the whole file, kept in the recording */
	struct profile *profiles;
	int nprofiles;
};

/* path NULL: the file that came with the program (see profile_default_path). On error fills err
 * with "FILE:LINE:COL: what is wrong" (or "FILE: why: what to do") and exit code 2. */
int profile_load(const char *path, struct profile_file **out, struct sp_err *err);
/* The same from memory; name stands for the path in messages. */
int profile_parse(const char *name, const char *text, size_t len, struct profile_file **out,
		  struct sp_err *err);
void profile_free(struct profile_file *pf);
/* $SILENTPIN_PROBES, else probes.yaml in the executable's folder or the one above, else
 * ../share/silentpin/probes.yaml from there; buf holds the answer. NULL when none exists. */
const char *profile_default_path(char *buf, size_t len);

const struct profile *profile_by_name(const struct profile_file *pf, const char *name);
/* Does its match fit the command line (args joined by spaces)? Without one: no. */
bool profile_fits(const struct profile *p, const char *cmdline);
/* The first that fits, NULL if none. */
const struct profile *profile_by_cmdline(const struct profile_file *pf, const char *cmdline);
/* Turn a probe, or all those of a group, on or off. Error (exit code 2): none has that name. */
int profile_enable(struct profile *p, const char *name, bool on, struct sp_err *err);
bool profile_lib_fits(const struct profile_lib *lib, const char *base);
bool profile_room_is_fake(const struct profile *p, const char *room);
/* Is this the bootstrap host of fake rooms? host: as a request gives it. */
bool profile_host_is_fake(const struct profile *p, const char *host);

/* "30s", "500ms", "2m", "1h", "250us" -> ns; -EINVAL. A bare number is refused. */
int duration_parse(const char *text, uint64_t *ns);

/* Compile one fetch expression ("+24($arg7)") of a type ("stdstring") into f; -EINVAL + why. */
int fetch_compile(const char *expr, const char *type, uint16_t max, bool at_return,
		  struct sp_fetch *f, char *why, size_t why_len);
/* "x64" and so on; is_hex: the x of two types of one size. "?": unknown. */
const char *type_name(uint8_t type, bool is_hex);
/* The ops in words, for `silentpin check`. */
void fetch_print(const struct sp_fetch *f, char *buf, size_t len);

#endif
