// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

#include "attach/bpfload.h"
#include "attach/bpfload_calls.h"
#include "silentpin.skel.h"

uint8_t calls_fetch_of(const struct sp_probe *p, uint8_t arg)
{
	for (uint8_t i = 0; i < p->nfetch; i++)
		if (p->fetch[i].arg == arg && !(p->fetch[i].flags & SP_F_COND))
			return i;
	return SP_MAX_FETCH;
}

static uint32_t flags_of(const struct profile *p)
{
	uint32_t flags = 0;

	for (int i = 0; i < p->nprobes; i++)
		if (!p->probes[i].off)
			flags |= p->probes[i].prog.flags;
	return flags;
}

bool calls_want_each(const struct profile *p)
{
	return flags_of(p) & SP_P_EACH;
}

int calls_configure(struct silentpin_bpf *skel, const struct profile *p,
		    enum attach_backend backend)
{
	uint32_t flags = flags_of(p);
	int err = 0;

	skel->rodata->sp_have_scopes = flags & SP_P_SCOPE;
	if (!(flags & SP_P_SCOPE))
		err = bpf_map__set_max_entries(skel->maps.sp_scopes, 1);
	if (flags & SP_P_EACH) {
		if (backend == BACKEND_MULTI)
			bpf_program__set_expected_attach_type(skel->progs.hit_each,
							      SP_BPF_TRACE_UPROBE_MULTI);
		return err;
	}
	err = err ? err : bpf_program__set_autoload(skel->progs.hit_each, false);
	err = err ? err : bpf_map__set_max_entries(skel->maps.sp_each_of, 1);
	return err ? err : bpf_map__set_max_entries(skel->maps.sp_tallies, 1);
}

int calls_fill(const struct silentpin_bpf *skel, const struct profile *p)
{
	int fd = bpf_map__fd(skel->maps.sp_each_of);

	for (uint32_t i = 0; i < (uint32_t)p->nprobes; i++) {
		struct sp_each each = p->probes[i].each;

		if (p->probes[i].off || !(p->probes[i].prog.flags & SP_P_EACH))
			continue;
		each.tally_fetch = calls_fetch_of(&p->probes[i].prog, each.tally_arg);
		each.within_fetch = calls_fetch_of(&p->probes[i].prog, each.within_arg);
		if (bpf_map_update_elem(fd, &i, &each, BPF_ANY))
			return -errno;
	}
	return 0;
}

static bool saved_of(const void *key, const void *pid)
{
	return ((const struct sp_saved_key *)key)->pid_tgid >> 32 == *(const uint32_t *)pid;
}

static bool scopes_of(const void *key, const void *pid)
{
	return *(const uint64_t *)key >> 32 == *(const uint32_t *)pid;
}

static bool tally_of(const void *key, const void *pid)
{
	return ((const struct sp_tally_key *)key)->pid == *(const uint32_t *)pid;
}

void calls_forget(const struct silentpin_bpf *skel, uint32_t pid, bool ended)
{
	bpfload_delete_if(bpf_map__fd(skel->maps.sp_tallies), tally_of, &pid);
	/* A new program may have entered calls already. */
	if (!ended)
		return;
	bpfload_delete_if(bpf_map__fd(skel->maps.sp_saved), saved_of, &pid);
	bpfload_delete_if(bpf_map__fd(skel->maps.sp_scopes), scopes_of, &pid);
}
