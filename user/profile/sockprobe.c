// SPDX-License-Identifier: Apache-2.0
/* The probe that an entry of `sockets:` is besides: its frames take the way of a uprobe's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"

#define FRAME_ARG 0
#define SOCK_ARG  1

_Static_assert(SP_ZMTP_PART <= SP_DATA_SMALL, "a frame fits the smallest record with data");

struct profile_probe *sockprobe_add(struct profile *p, const char *name, struct profile_mark mark)
{
	struct profile_probe *probe = realloc(p->probes, sizeof(*probe) * (size_t)(p->nprobes + 1));

	if (!probe)
		return NULL;
	p->probes = probe;
	probe += p->nprobes;
	memset(probe, 0, sizeof(*probe));
	probe->name = strdup(name);
	if (!probe->name)
		return NULL;
	probe->library = -1;
	probe->socket = p->nprobes - p->nuprobes;
	probe->on = ON_ENTRY;
	probe->mark = mark;
	/* what an HTTP front tells about a room first; messages have events of their own */
	probe->event.role = ROLE_ARRIVE;
	probe->event.mark = mark;
	p->nprobes++;
	return probe;
}

/* The records look like those of a receive: the frame, then which socket. Nothing is fetched from
 * registers: the programs say only what the arguments are and where the bytes lie. */
void sockprobe_frames(struct profile_probe *p)
{
	struct sp_probe *prog = &p->prog;

	p->args[FRAME_ARG] =
		(struct profile_arg){.name = "frame", .type = SP_T_ZMQMSG, .is_composite = true};
	p->args[SOCK_ARG] = (struct profile_arg){.name = "sock", .type = SP_T_U64, .is_hex = true};
	p->nargs = 2;
	p->is_frames = true;
	memset(&p->event, 0, sizeof(p->event));
	prog->fetch[FRAME_ARG] = (struct sp_fetch){
		.op = {{.code = SP_OP_ARG, .n = 1}},
		.nops = 1,
		.type = SP_T_ZMQMSG,
		.arg = FRAME_ARG,
		.max = SP_ZMTP_PART,
	};
	prog->fetch[SOCK_ARG] = (struct sp_fetch){
		.op = {{.code = SP_OP_ARG, .n = 2}},
		.nops = 1,
		.type = SP_T_U64,
		.arg = SOCK_ARG,
	};
	prog->nfetch = prog->nargs = 2;
	prog->frame_arg = FRAME_ARG;
	prog->sock_arg = SOCK_ARG;
	prog->flags = SP_P_FRAMES;
	prog->size_class = SP_CLASS_SMALL;
}

/* A uprobe may copy more of a frame than a socket does. */
static bool too_long(const struct evt_match *m)
{
	for (int i = 0; i < m->nframes; i++)
		for (int k = 0; k < m->frames[i].nparts; k++)
			if (!m->frames[i].part[k].is_capture &&
			    m->frames[i].part[k].literal_len > SP_ZMTP_PART)
				return true;
	return false;
}

int sockprobe_same(const struct reader *r, const struct ynode *n, struct profile_probe *p,
		   const struct profile_probe *from)
{
	struct reader quiet = *r;

	p->match = calloc((size_t)from->nmatch, sizeof(*p->match));
	if (!p->match)
		return no_memory(r);
	memcpy(p->prog.head, from->prog.head, sizeof(p->prog.head));
	p->prog.nheads = from->prog.nheads;
	quiet.err = NULL; /* its words would be about the other probe's place */
	for (int i = 0; i < from->nmatch; i++) {
		struct evt_match *m = &p->match[i];
		const char *name = from->match[i].name ? from->match[i].name : "without a name";

		p->nmatch++;
		if (message_copy(m, &from->match[i]))
			return no_memory(r);
		if (check_event(&quiet, p, m, &m->event))
			return bad_at(r, n->mark,
				      "same_as: message %s of %s takes a value from the call's "
				      "arguments, which a socket does not have: write the messages "
				      "here",
				      name, from->name);
		if (too_long(m))
			return bad_at(r, n->mark,
				      "same_as: message %s of %s compares more than the %d bytes "
				      "that a socket copies of a frame: write the messages here",
				      name, from->name, SP_ZMTP_PART);
	}
	return 0;
}
