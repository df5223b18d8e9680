/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's types, cut down to what the BPF side reads. libbpf needs them to fill in offsets
 * (CO-RE) and would index all 130,000 types and look through them once for each struct: most of the
 * time between the start of silentpin and its first probe.
 */
#ifndef SP_ATTACH_KBTF_H
#define SP_ATTACH_KBTF_H

#include <bpf/btf.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All structs of local that the kernel (raw BTF: data, len) has too, with those of their members
 * that are in local, at the kernel's offsets. *out: to be freed with btf__free. -errno: the data is
 * damaged, or of a kind not known here; whoever asks then lets libbpf do it alone.
 */
int kbtf_cut(const void *data, size_t len, const struct btf *local, struct btf **out);
/* A function of the kernel by its name: what a program is attached to. id: 0 when there is none. */
struct kbtf_func {
	const char *name; /* NULL: not looked for */
	uint32_t id;
};
/* A constant of one of its enums. */
struct kbtf_enum {
	const char *name;
	int32_t value; /* -1: there is none */
};
/* What is looked up by name. */
struct kbtf_find {
	struct kbtf_func *func;
	int nfunc;
	struct kbtf_enum *constant;
	int nconstant;
};
int kbtf_look_up(const void *data, size_t len, const struct kbtf_find *find);
/* Both from the running kernel, for the BPF object in elf. The types as a file: a descriptor of a
 * memfd, the caller's to close. find may be NULL. */
int kbtf_open(const void *elf, size_t elf_len, const struct kbtf_find *find);

#endif
