/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets' part of loading the BPF object: bpfload.c only. */
#ifndef SP_ATTACH_BPFLOAD_SOCK_H
#define SP_ATTACH_BPFLOAD_SOCK_H

#include "attach/attach.h"
#include "attach/bpfload_late.h"
#include "attach/kbtf.h"

struct silentpin_bpf;

struct sock_load {
	enum attach_sockets how;
	struct kbtf_func func[LATE_MAX]; /* of the kernel, that programs are attached to */
	struct kbtf_enum kind[2];        /* of struct iov_iter: list of segments, and one */
	struct kbtf_find find;           /* of these, what is wanted */
};

/* How socket calls will be seen: SOCKETS_NONE when nobody asked for it. */
enum attach_sockets sock_how(const struct profile *p, const struct attach_opts *o);
/* Say what has to be looked up in the kernel's types: s->find. */
void sock_wants(struct sock_load *s);
/* And when that was left to libbpf. */
void sock_wants_libbpf(struct sock_load *s);
/* The map of connections, made ahead; its descriptor or negative. */
int sock_make_conns(void);
/* Before the load: which programs, which maps. s: the functions looked up (0: not found). */
int sock_configure(struct silentpin_bpf *skel, const struct sock_load *s, const struct profile *p,
		   enum attach_backend backend);
/* After it: the rules. */
int sock_fill(const struct silentpin_bpf *skel, enum attach_sockets how, const struct profile *p);

#endif
