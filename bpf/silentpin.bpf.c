// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The kernel side: one program for every uprobe and every uretprobe (and one more, each.bpf.h, for
 * those that look at several elements). What to do at a site is in the
 * cookie of its attachment (SP_COOKIE) and in the map sp_probes; nothing here knows any library.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#include "sp_shared.h"
#include "maps.bpf.h"
#include "ids.bpf.h"
#include "regs.bpf.h"
#include "saved.bpf.h"
#include "scope.bpf.h"
#include "arrive.bpf.h"
#include "fetch.bpf.h"
#include "frames.bpf.h"
#include "polls.bpf.h"
#include "emit.bpf.h"
#include "each.bpf.h"

#define SP_STEP_FN __noinline
#include "sp_zmtp_step.h"
#include "sp_http_step.h"
#include "sock_maps.bpf.h"
#include "process.bpf.h"
#include "sock_find.bpf.h"
#include "sock_emit.bpf.h"
#include "sock_zmtp.bpf.h"
#include "sock_http.bpf.h"
#include "sock_read.bpf.h"
#include "sock_conn.bpf.h"
#include "sock_data.bpf.h"
#include "sock_calls.bpf.h"
#include "sock_libc.bpf.h"
#include "sock_sys.bpf.h"
#include "sock_tcp.bpf.h"
#include "sock_state.bpf.h"
#include "sock_iter.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The arguments are known: what the probe's flags ask for, then the record. */
static __always_inline int sp_event(const struct sp_probe *p, __u32 idx, struct sp_call *c,
				    __u64 pid_tgid, bool at_return)
{
	struct sp_frame fr = {};

	if (p->flags & SP_P_CLEAR_POLL)
		sp_poll_clear(p, c, pid_tgid);
	if (p->flags & SP_P_ON_CHANGE && at_return && !sp_poll_changed(p, c, pid_tgid))
		return 0;
	if (p->flags & SP_P_FRAMES && !sp_frame_next(p, c, (__u32)pid_tgid, idx, &fr))
		return 0;
	sp_emit(p, idx, c, pid_tgid, &fr);
	return 0;
}

SEC("uprobe")
int hit(struct pt_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx), pid_tgid = sp_pid_tgid();
	__u32 idx = SP_COOKIE_PROBE(cookie);
	const struct sp_probe *p = bpf_map_lookup_elem(&sp_probes, &idx);
	struct sp_call c = {};

	if (!p || sp_arrive(ctx, p, cookie, &c, pid_tgid, false) != SP_TURN_EVENT)
		return 0;
	return sp_event(p, idx, &c, pid_tgid, SP_COOKIE_SITE(cookie) >= SP_SITE_RETURN);
}
