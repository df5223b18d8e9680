// SPDX-License-Identifier: Apache-2.0
/*
 * Calls under way. The kernel side notes entry and return; what an exception or longjmp has ended
 * looks as if it were still under way. So each is verified by what the target's stack says.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/inside.h"
#include "attach/watched.h"
#include "util/cleanup.h"

#define BATCH    512 /* entries read at once; no bucket of the map can hold more */
#define OVER_MAX 128

#if defined(__x86_64__)
#define X86 true
#else
#define X86 false
#endif

struct inside_over {
	struct {
		struct sp_saved_key key;
		uint64_t ns;
	} call[OVER_MAX];
	unsigned next;
};

struct inside_over *inside_over_new(void)
{
	return calloc(1, sizeof(struct inside_over));
}

static bool is_over(const struct inside_over *o, const struct sp_saved_key *key, uint64_t ns)
{
	for (int i = 0; i < OVER_MAX; i++)
		if (o->call[i].ns == ns && !memcmp(&o->call[i].key, key, sizeof(*key)))
			return true;
	return false;
}

static void set_over(struct inside_over *o, const struct sp_saved_key *key, uint64_t ns)
{
	o->call[o->next].key = *key;
	o->call[o->next].ns = ns;
	o->next = (o->next + 1) % OVER_MAX;
}

/* "running", "-1 0xSP 0xPC", or "NR" and six arguments, then SP and PC (fs/proc/base.c). */
int inside_stack_pointer(const char *text, uint64_t *sp)
{
	uint64_t word[9];
	long nr;
	int n = 0, at = 0, used;

	if (!strncmp(text, "running", 7))
		return -EAGAIN;
	if (sscanf(text, "%ld%n", &nr, &at) != 1)
		return -EINVAL;
	while (n < 9 && sscanf(text + at, " 0x%" SCNx64 "%n", &word[n], &used) == 1) {
		at += used;
		n++;
	}
	if (n != (nr < 0 ? 2 : 8))
		return -EINVAL;
	*sp = word[n - 2];
	return 0;
}

enum inside_is inside_judge(const struct inside_known *k, uint64_t entry_sp, bool x86)
{
	if (k->has_word && !k->word_holds)
		return INSIDE_NO;
	if (k->has_sp) {
		/* The return pops the return address on x86; on arm64 the stack pointer is then
		 * what it was at the entry, and may be inside, too. */
		if (k->sp > entry_sp)
			return INSIDE_NO;
		return x86 || k->sp < entry_sp ? INSIDE_YES : INSIDE_UNSURE;
	}
	return k->has_word && k->returns_by_trap ? INSIDE_YES : INSIDE_UNSURE;
}

/* Where the functions with a return probe return to: in the page [uprobes]. */
static uint64_t find_trampoline(pid_t pid)
{
	char path[32], line[512];
	__fclose FILE *f = NULL;
	uint64_t start;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, " [uprobes]\n") && sscanf(line, "%" SCNx64, &start) == 1)
			return start;
	return 0;
}

static bool is_trampoline(struct watched *w, uint64_t word)
{
	if (!w->trampoline)
		w->trampoline = find_trampoline(w->id.pid);
	return w->trampoline && word - w->trampoline < (uint64_t)sysconf(_SC_PAGESIZE);
}

static void look_at_word(struct watched *w, const struct sp_saved *s, struct inside_known *k)
{
	uint64_t word = 0;
	struct iovec to = {&word, sizeof(word)};
	struct iovec from = {(void *)(uintptr_t)s->sp, sizeof(word)};
	ssize_t n;

	if (!X86)
		return;
	n = process_vm_readv(w->id.pid, &to, 1, &from, 1, 0);
	if (n < 0 && errno != EFAULT)
		return; /* not allowed */
	k->has_word = true;
	k->word_holds = n == sizeof(word) && ((s->ra && word == s->ra) || is_trampoline(w, word));
}

/* -ESRCH: the thread has ended. */
static int look_at_thread(pid_t pid, uint32_t tid, struct inside_known *k)
{
	char path[64], text[256];
	__closefd int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/syscall", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? -ESRCH : 0;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return errno == ESRCH ? -ESRCH : 0;
	text[n] = 0;
	k->has_sp = !inside_stack_pointer(text, &k->sp);
	return 0;
}

struct round {
	const struct attach *a;
	uint64_t older;
	attach_inside_fn fn;
	void *ctx;
	int fd;
};

static void tell(const struct round *r, const struct sp_saved_key *key, const struct sp_saved *s,
		 bool unsure)
{
	const struct profile_probe *pp = &r->a->profile->probes[key->probe];
	struct attach_inside in = {
		.pid = (uint32_t)(key->pid_tgid >> 32),
		.tid = (uint32_t)key->pid_tgid,
		.probe = (int)key->probe,
		.enter_ns = s->ns,
		.scope_ns = s->scope_ns,
		.bad = s->bad,
		.nargs = pp->prog.nsaved < SP_MAX_SAVED ? pp->prog.nsaved : SP_MAX_SAVED,
		.unsure = unsure,
	};

	memcpy(in.arg, s->arg, sizeof(in.arg));
	r->fn(r->ctx, &in);
}

static void look(const struct round *r, const struct sp_saved_key *key, const struct sp_saved *s)
{
	struct watched *w = watched_find(r->a, (uint32_t)(key->pid_tgid >> 32));
	struct inside_known known = {0};
	enum inside_is is;
	struct sp_saved again;

	if (!w || !s->sp || s->ns >= r->older || s->ns < w->born_ns ||
	    key->probe >= (uint32_t)r->a->pointers.given || is_over(r->a->over, key, s->ns))
		return;
	known.returns_by_trap = r->a->profile->probes[key->probe].on == ON_RETURN && !w->no_return;
	look_at_word(w, s, &known);
	if (look_at_thread(w->id.pid, (uint32_t)key->pid_tgid, &known))
		return;
	is = inside_judge(&known, s->sp, X86);
	/* What was read may have been half of one call and half of the next, or have returned by
	 * now. */
	if (bpf_map_lookup_elem(r->fd, key, &again) || memcmp(&again, s, sizeof(again)))
		return;
	if (is == INSIDE_NO)
		set_over(r->a->over, key, s->ns);
	else
		tell(r, key, s, is == INSIDE_UNSURE);
}

int attach_inside(const struct attach *a, uint64_t older_than_ns, attach_inside_fn fn, void *ctx)
{
	struct round r = {a, older_than_ns, fn, ctx, bpfload_saved_fd(&a->bpf)};
	__free struct sp_saved_key *key = NULL;
	__free struct sp_saved *saved = NULL;
	uint64_t at;
	bool more = r.fd >= 0, begun = false;

	if (!more)
		return 0;
	key = calloc(BATCH, sizeof(*key));
	saved = calloc(BATCH, sizeof(*saved));
	if (!key || !saved)
		return -ENOMEM;
	while (more) {
		uint32_t n = BATCH;
		int rc = bpf_map_lookup_batch(r.fd, begun ? &at : NULL, &at, key, saved, &n, NULL);

		if (rc && rc != -ENOENT)
			return rc;
		more = !rc;
		begun = true;
		for (uint32_t i = 0; i < n; i++)
			look(&r, &key[i], &saved[i]);
	}
	return 0;
}
