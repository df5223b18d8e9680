/* SPDX-License-Identifier: Apache-2.0 */
/* For the attach smoke test: a target that obeys lines, an attached silentpin, the records. */
#ifndef ATTACH_RIG_H
#define ATTACH_RIG_H

#include <bpf/libbpf.h>
#include <stdio.h>

#include "attach/attach.h"

/* The head of a probes file for the smoke libraries, and the event of a probe. */
#define RIG_YAML                                                                                   \
	"version: 1\n"                                                                             \
	"profiles:\n"                                                                              \
	"  - name: smoke\n"                                                                        \
	"    match: {cmdline: \"*smoke_target*\"}\n"                                               \
	"    room: {type: u64}\n"                                                                  \
	"    libraries:\n"                                                                         \
	"      smoke: {file: \"libsmoke*.so\"}\n"                                                  \
	"      zmq: {file: \"libzmq*.so*\"}\n"                                                     \
	"    probes:\n"
#define RIG_CALL "        event: {role: call}\n"

#define RIG_RECORDS 8192
#define RIG_NOTICES 64

struct target {
	pid_t pid;
	FILE *to, *from;
	char answer[256]; /* the last line it said */
};

union rig_record {
	struct sp_rec_hit hit;
	char bytes[sizeof(struct sp_rec_hit) + SP_DATA_LARGE + SP_DATA_SLACK];
};

struct rig {
	struct profile_file *pf;
	const struct profile *profile;
	struct attach *attach;
	struct ring_buffer *ring;
	union rig_record rec[RIG_RECORDS];
	int nrec;
	struct attach_notice notice[RIG_NOTICES];
	int nnotice;
	enum attach_returns returns; /* set before rig_open; RETURNS_UNKNOWN: by trial */
	uint32_t ring_bytes;         /* set before rig_open; 0: 1 MiB */
	uint64_t counted[SP_C_MAX];  /* at rig_start */
};

/* Folder of this program, where the targets and libraries are too. */
const char *rig_dir(void);
/* $SILENTPIN_UPROBE: perf or multi. */
enum attach_backend rig_backend(void);

/* Start it with libraries open and wait until it is ready. prefix: the command instead of the
 * program, which must end with it; NULL: the program itself. */
void target_run(struct target *t, const char *prefix[], const char *const libs[]);
const char *target_say(struct target *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void target_end(struct target *t);

void rig_open(struct rig *r, const char *yaml);
/* Attaches; the number of probes in place must be n. */
void rig_add(struct rig *r, pid_t pid, int n);
void rig_close(struct rig *r);
/* One attach for all tests of a program (with perf uprobes a detach takes seconds): target_run with
 * libs, rig_open and rig_add; and the end of both, whatever became of them. */
void rig_attach(struct rig *r, struct target *t, const char *const libs[], const char *yaml, int n);
void rig_detach(struct rig *r, struct target *t);
/* Take what is in the ring; FORK, EXEC and EXIT records go to attach. */
void rig_pump(struct rig *r);
/* Pump and tick until cond, or fail. */
void rig_until(struct rig *r, bool (*cond)(struct rig *r, long arg), long arg, const char *what);
/* Forget the records seen so far. */
void rig_clear(struct rig *r);
/* The same, as a test begins; and what a counter has gained since. */
void rig_start(struct rig *r);
int rig_gained(const struct rig *r, enum sp_counter c);

int rig_probe(const struct rig *r, const char *name);
/* The i-th hit of a probe since rig_clear, NULL when there is none. */
const struct sp_rec_hit *rig_hit(const struct rig *r, const char *probe, int i);
int rig_count(const struct rig *r, const char *probe);
uint64_t rig_counter(const struct rig *r, enum sp_counter c);
int rig_arg(const struct rig *r, const char *probe, const char *arg);
uint64_t rig_val(const struct rig *r, const struct sp_rec_hit *h, const char *arg);
int rig_len(const struct rig *r, const struct sp_rec_hit *h, const char *arg);
/* The bytes copied for an argument, NUL-terminated, in a buffer that the next calls reuse. */
const char *rig_text(const struct rig *r, const struct sp_rec_hit *h, const char *arg);
bool rig_noticed(const struct rig *r, enum attach_what what, pid_t pid);

#endif
