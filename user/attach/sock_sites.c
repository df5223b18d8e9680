// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/sock_sites.h"
#include "sp_sock.h"
#include "util/cleanup.h"

#define ERROR_EXITS 8 /* conditional jumps behind the system calls of one function */

const struct sock_func sock_funcs[] = {
	{"read", SP_CALL_READ, false, true},
	{"recv", SP_CALL_RECV, false, true},
	{"recvfrom", SP_CALL_RECV, false, true},
	{"readv", SP_CALL_READV, false, true},
	{"recvmsg", SP_CALL_RECVMSG, false, true},
	{"recvmmsg", SP_CALL_RECVMMSG, false, true},
	{"write", SP_CALL_WRITE, false, true},
	{"send", SP_CALL_SEND, false, true},
	{"sendto", SP_CALL_SEND, false, true},
	{"writev", SP_CALL_WRITEV, false, true},
	{"sendmsg", SP_CALL_SENDMSG, false, true},
	{"sendmmsg", SP_CALL_SENDMMSG, false, true},
	{"sendfile", SP_CALL_SENDFILE, false, false},
	{"sendfile64", SP_CALL_SENDFILE, false, false},
	{"splice", SP_CALL_SPLICE, false, false},
	{"accept", SP_CALL_ACCEPT, false, false},
	{"accept4", SP_CALL_ACCEPT, false, false},
	{"connect", SP_CALL_CONNECT, false, false},
	{"close", SP_CALL_CLOSE, true, false},
	{"shutdown", SP_CALL_SHUTDOWN, false, false},
};
const int sock_nfuncs = ARRAY_SIZE(sock_funcs);

/* What one pass over the function finds. */
struct look {
	enum insn_machine m;
	const struct insn_part *parts;
	int nparts;
	struct sock_sites *out;
	uint8_t call;
	/* since the last system call */
	bool intact; /* none of its registers was written to */
	uint64_t syscall_at;
	int nsyscalls;
	/* since the last call or system call */
	uint64_t called_at;
	bool result; /* its result is still in its register */
	bool passed; /* and in the first argument's too */
	bool flows;  /* the instruction before runs into this one */
	bool literals;
	uint64_t error_to[ERROR_EXITS]; /* where jumps behind system calls lead */
	int nerrors;
};

static bool inside(const struct look *l, uint64_t addr)
{
	for (int i = 0; i < l->nparts; i++)
		if (addr >= l->parts[i].addr && addr < l->parts[i].addr + l->parts[i].len)
			return true;
	return false;
}

static int add_site(struct sock_sites *out, uint64_t addr, uint8_t call, enum sp_sock_site site)
{
	if (out->n == SOCK_MAX_SITES)
		return -E2BIG;
	out->site[out->n++] = (struct sock_site){addr, SP_SOCK_COOKIE(call, site)};
	return 0;
}

/* ---- behind the system call ------------------------------------------------------------------ */

/* Every libc compares with -4095 or -4096 there, so that a system call made for something else on
 * the way is told apart. */
static bool asks_for_error(const struct insn_part *part, size_t at)
{
	static const uint8_t cmp[] = {0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff}; /* cmp $-4096,%rax */
	const uint8_t *b;

	if (at < sizeof(cmp))
		return false;
	b = part->code + at - sizeof(cmp);
	return !memcmp(b, cmp, 2) && (b[2] & ~1) == cmp[2] && !memcmp(b + 3, cmp + 3, 3);
}

static int note_after(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	struct look *l = ctx;
	uint64_t addr = part->addr + at;

	if (in->kind == INSN_SYSCALL) {
		l->nsyscalls++;
		l->intact = true;
		l->syscall_at = addr;
		return 0;
	}
	if (!l->intact)
		return 0;
	if (in->kind == INSN_BRANCH) {
		l->intact = false;
		if (l->nerrors < ERROR_EXITS)
			l->error_to[l->nerrors++] = part->addr + in->target;
		if (in->emulated && l->m == MACHINE_X86_64 && asks_for_error(part, at) &&
		    insn_straight(l->m, l->parts, l->nparts, l->syscall_at, addr))
			return add_site(l->out, addr, l->call, SP_SOCK_AFTER);
		return 0;
	}
	/* arm64: the result is looked at where it is, or after a copy */
	if (in->kind != INSN_PLAIN && in->kind != INSN_NOP &&
	    !(in->kind == INSN_SPOILS && l->m == MACHINE_ARM64))
		l->intact = false;
	if (in->writes & (INSN_W_SYSCALL | INSN_W_RESULT))
		l->intact = false;
	return 0;
}

/* ---- the ways out ---------------------------------------------------------------------------- */

static bool error_exit(const struct look *l, uint64_t addr)
{
	for (int i = 0; i < l->nerrors; i++)
		if (l->error_to[i] == addr)
			return true;
	return false;
}

/* The result on its way to the one argument of the function that is jumped to. */
static bool passes_result(const struct look *l, const struct insn_part *part, size_t at,
			  const struct insn *in)
{
	static const uint8_t mov_rax_rdi[] = {0x48, 0x89, 0xc7};

	return l->m == MACHINE_ARM64 ||
	       (in->len == sizeof(mov_rax_rdi) && !memcmp(part->code + at, mov_rax_rdi, in->len));
}

/*
 * A jump out of the function. musl ends `call __syscall_cp; mov %rax,%rdi; jmp __syscall_ret`, the
 * last of which only turns -errno into -1: there the raw result is at hand. Where only failed
 * system calls leave (arm64: `b __syscall_error`), nothing was moved.
 */
static int leave(struct look *l, uint64_t addr, const struct insn *in)
{
	if (in->kind == INSN_JUMP && l->result && l->passed && in->emulated &&
	    insn_straight(l->m, l->parts, l->nparts, l->called_at, addr))
		return add_site(l->out, addr, l->call, SP_SOCK_RET);
	if (in->kind == INSN_JUMP && !l->flows && error_exit(l, addr))
		return 0;
	return -ELOOP;
}

static int note_exit(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	struct look *l = ctx;
	uint64_t addr = part->addr + at;
	int rc = 0;

	if (in->kind == INSN_CALL || in->kind == INSN_SYSCALL) {
		l->called_at = addr;
		l->result = true;
		l->passed = l->m == MACHINE_ARM64;
	} else if (in->writes & INSN_W_RESULT) {
		l->result = false;
	} else if (passes_result(l, part, at, in)) {
		l->passed = true;
	}
	if (in->kind == INSN_RET)
		rc = add_site(l->out, addr, l->call, SP_SOCK_RET);
	else if (in->kind == INSN_RET_AUTH || in->kind == INSN_INDIRECT)
		rc = -EOPNOTSUPP;
	else if (insn_is_direct(in) && !inside(l, part->addr + in->target))
		rc = leave(l, addr, in);
	l->literals |= in->kind == INSN_LITERAL;
	l->flows = in->kind != INSN_RET && in->kind != INSN_JUMP && in->kind != INSN_STOP;
	if (!l->flows)
		l->result = false;
	return rc;
}

static int add_exits(struct look *l)
{
	struct sock_sites *out = l->out;
	uint64_t rets[INSN_MAX_RETS];
	int n = insn_rets(l->m, l->parts, l->nparts, rets, out->why), rc = 0;

	for (int i = 0; i < n && !rc; i++)
		rc = add_site(out, rets[i], l->call, SP_SOCK_RET);
	if (n >= 0 || (n != -ELOOP && n != -ENOENT))
		return n < 0 ? n : rc;
	rc = insn_walk(l->m, l->parts, l->nparts, note_exit, l);
	if (rc || l->literals || out->n < 2)
		return rc ? rc : n; /* with the reason of insn_rets */
	out->why[0] = 0;
	return 0;
}

/* ---- a function ------------------------------------------------------------------------------ */

/* Does it only lead elsewhere? musl: recv is `xor %r9d,%r9d; xor %r8d,%r8d; jmp recvfrom`. */
static int note_lead(void *ctx, const struct insn_part *part, size_t at, const struct insn *in)
{
	struct look *l = ctx;

	if (in->kind == INSN_PLAIN || in->kind == INSN_SPOILS || in->kind == INSN_LANDING)
		return 0;
	if (in->kind == INSN_JUMP && !inside(l, part->addr + in->target))
		l->out->leads = part->addr + in->target;
	return 1;
}

static void around(struct look *l, bool entry_only)
{
	struct sock_sites *out = l->out;
	struct insn_site entry;
	int rc;

	insn_entry(l->m, l->parts, l->nparts, true, &entry);
	rc = add_site(out, entry.addr, l->call, SP_SOCK_ENTRY);
	if (!rc && !entry_only)
		rc = add_exits(l);
	if (rc) {
		out->n = 0;
		return;
	}
	out->way = entry_only ? SOCK_WAY_ENTRY : SOCK_WAY_AROUND;
	out->emulated = entry.emulated && (entry_only || l->m == MACHINE_ARM64);
	if (entry_only)
		snprintf(out->where, sizeof(out->where), "%.40s", entry.where);
	else
		snprintf(out->where, sizeof(out->where), "%.40s; %d ret", entry.where, out->n - 1);
}

int sock_sites(enum insn_machine m, const struct insn_part *parts, int nparts,
	       const struct sock_func *f, struct sock_sites *out)
{
	struct look l = {.m = m, .parts = parts, .nparts = nparts, .out = out, .call = f->call};

	memset(out, 0, sizeof(*out));
	if (insn_walk(m, parts, nparts, note_after, &l) == -EILSEQ) {
		snprintf(out->why, sizeof(out->why), "its code cannot be decoded");
		return -EILSEQ;
	}
	if (!f->entry_only && l.nsyscalls && out->n == l.nsyscalls) {
		out->way = SOCK_WAY_AFTER;
		out->emulated = true;
		snprintf(out->where, sizeof(out->where), "%d after syscall", out->n);
		return 0;
	}
	out->n = 0;
	insn_walk(m, parts, 1, note_lead, &l);
	if (out->leads) {
		out->way = SOCK_WAY_LEADS;
		return 0;
	}
	around(&l, f->entry_only);
	return out->way ? 0 : -ENOENT;
}
