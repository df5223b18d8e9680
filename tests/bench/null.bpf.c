// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The least that a BPF program on a probe can do: what a hit costs whoever listens. */
#define SEC(name) __attribute__((section(name), used))

SEC("uprobe")
int null_hit(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
