/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a libc's socket functions to probe. Pure: code in, places out.
 *
 * After: on the conditional jump behind each `syscall`. The kernel emulates it, the arguments are
 * still in the system call's registers and the result is in rax, so that one cheap hit tells all,
 * also of a call that had begun before the attach.
 * Around: where there is no such place, one probe that keeps the arguments at the entry, and one on
 * every way out. No return probe: these functions are cancellation points, and a forced unwind
 * through a return probe kills the process.
 */
#ifndef SP_ATTACH_SOCK_SITES_H
#define SP_ATTACH_SOCK_SITES_H

#include "attach/insn.h"

/* One function of the socket interface. */
struct sock_func {
	const char *name;
	uint8_t call;    /* enum sp_sock_call */
	bool entry_only; /* its result does not matter */
	bool needed; /* it moves bytes: a libc in which it cannot be probed is not watched at all */
};
extern const struct sock_func sock_funcs[];
extern const int sock_nfuncs;

enum sock_way {
	SOCK_WAY_NONE = 0,
	SOCK_WAY_AFTER,
	SOCK_WAY_AROUND,
	SOCK_WAY_ENTRY,
	SOCK_WAY_LEADS, /* it only jumps to another function, at `leads`: that one is to be probed
			 */
};

#define SOCK_MAX_SITES (INSN_MAX_RETS + 1)
struct sock_site {
	uint64_t addr;
	uint64_t cookie; /* SP_SOCK_COOKIE */
};
struct sock_sites {
	enum sock_way way;
	struct sock_site site[SOCK_MAX_SITES];
	int n;
	uint64_t leads;
	bool emulated;          /* all of its places */
	char where[64];         /* "2 after syscall", "entry, push; 2 ret" */
	char why[INSN_WHY_LEN]; /* SOCK_WAY_NONE: the reason */
};

/* The parts are those of the whole function f. 0, or -errno with way NONE and why. */
int sock_sites(enum insn_machine m, const struct insn_part *parts, int nparts,
	       const struct sock_func *f, struct sock_sites *out);

#endif
