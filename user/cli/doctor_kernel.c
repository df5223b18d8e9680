// SPDX-License-Identifier: Apache-2.0
/* What the kernel offers, and which rights there are to use it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/utsname.h>

#include "cli/doctor.h"
#include "util/cleanup.h"

/* First line of a small file; "" when it cannot be read. */
static void first_line(const char *path, char *buf, size_t len)
{
	__closefd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, len - 1) : 0;

	buf[n > 0 ? n : 0] = 0;
	buf[strcspn(buf, "\n")] = 0;
}

static void say_lockdown(void)
{
	char line[80];

	first_line("/sys/kernel/security/lockdown", line, sizeof(line));
	if (strstr(line, "[confidentiality]"))
		doctor_say(BAD, "lockdown is in confidentiality mode, which forbids BPF to read "
				"memory: boot "
				"with lockdown=integrity or none");
}

/* What else may stand in the way of perf uprobes. */
static void say_perf_setting(void)
{
	char line[80];

	first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	if (line[0])
		doctor_say(NOTICE, "kernel.perf_event_paranoid is %s: CAP_SYS_ADMIN overrides it",
			   line);
}

/* How the calls on sockets can be seen, and by which way they will be. */
static void say_sockets(const struct attach_features *f, enum attach_sockets force)
{
	bool ok = force == SOCKETS_TCP       ? f->sock_tcp
		  : force == SOCKETS_SYSCALL ? f->sock_syscall
					     : f->sock_libc;

	doctor_say(f->sock_libc ? FINE : NOTICE, "sockets through libc's calls%s",
		   f->sock_libc ? " (the default: other processes pay nothing)"
				: ": neither kind of uprobe works");
	doctor_say(f->sock_syscall ? FINE : NOTICE,
		   "sockets through system calls (SILENTPIN_SOCKETS=syscall: also programs without "
		   "libc)%s%s",
		   f->sock_syscall ? "" : ": ", f->why_sock_syscall);
	doctor_say(f->sock_tcp ? FINE : NOTICE,
		   "sockets through the kernel's TCP functions (SILENTPIN_SOCKETS=tcp)%s%s",
		   f->sock_tcp ? "" : ": ", f->why_sock_tcp);
	if (force)
		doctor_say(ok ? FINE : BAD,
			   "sockets will be watched as SILENTPIN_SOCKETS=%s asks%s",
			   attach_sockets_name(force),
			   ok ? "" : ": they cannot be: unset it, or choose a way that works");
	doctor_say(f->sock_state ? FINE : NOTICE, "ends of connections%s%s",
		   f->sock_state ? "" : ": ", f->why_sock_state);
}

/* The calls that a return probe sees, and where its ret instructions must do. */
static void say_returns(const struct attach_features *f, enum attach_returns force)
{
	if (force == RETURNS_NEVER)
		doctor_say(NOTICE, "return probes: none, as SILENTPIN_RETURNS=ret asks: the "
				   "functions' ret instructions are probed instead");
	else if (force == RETURNS_UNFILTERED)
		doctor_say(NOTICE,
			   "return probes: not in processes with a seccomp filter, as "
			   "SILENTPIN_RETURNS=unfiltered asks: there ret instructions are probed");
	else if (f->returns == RETURNS_UNFILTERED)
		doctor_say(NOTICE,
			   "return probes: not in processes with a seccomp filter: %s: there ret "
			   "instructions are probed",
			   f->why_returns);
	else if (f->returns == RETURNS_FINE)
		doctor_say(FINE, "return probes, also in processes with a seccomp filter");
}

int doctor_kernel(struct doctor *d)
{
	struct attach_features *f = &d->features;
	struct utsname un;
	int rc = attach_features(f);
	/* one of the two kinds is enough */
	const char *missing = f->multi || f->perf ? NOTICE : BAD;

	uname(&un);
	printf("kernel %s (%s)\n", un.release, un.machine);
	doctor_say(
		f->btf ? FINE : BAD, "type information%s",
		f->btf ? ""
		       : ": /sys/kernel/btf/vmlinux is missing: CONFIG_DEBUG_INFO_BTF is needed");
	doctor_say(rc ? BAD : FINE, "BPF tracing programs%s%s", rc ? ": " : "", f->why_bpf);
	if (rc) {
		say_lockdown();
		return rc;
	}
	doctor_say(f->multi ? FINE : missing, "uprobe_multi (attach and detach at once)%s%s",
		   f->multi ? "" : ": ", f->why_multi);
	doctor_say(f->perf ? FINE : missing, "perf uprobes (the older way, slow to detach)%s%s",
		   f->perf ? "" : ": ", f->why_perf);
	if (!f->perf && !f->multi)
		say_perf_setting();
	if (f->multi || f->perf)
		doctor_say(FINE, "probes will be attached by %s",
			   f->multi ? "uprobe_multi" : "perf uprobes");
	else
		doctor_say(BAD, "neither kind of uprobe works: give the rights named above, or use "
				"Linux 6.6 or newer");
	say_returns(f, d->forced.returns);
	say_sockets(f, d->forced.sock_force);
	doctor_say(f->seq ? FINE : NOTICE, "sequence numbers%s",
		   f->seq ? ": a lost record marks the rooms that were open at that moment"
			  : ": not before Linux 5.18 on this machine: a lost record marks all open "
			    "rooms");
	if (f->pidns)
		doctor_say(NOTICE,
			   "silentpin runs in a pid namespace of its own: it sees the processes in "
			   "it, under the numbers they have there");
	say_lockdown();
	return f->multi || f->perf ? 0 : -EOPNOTSUPP;
}

static bool has_cap(cap_value_t cap)
{
	cap_t caps = cap_get_proc();
	cap_flag_value_t v = CAP_CLEAR;

	if (caps) {
		cap_get_flag(caps, cap, CAP_EFFECTIVE, &v);
		cap_free(caps);
	}
	return v == CAP_SET;
}

static void say_cap(bool ok, const char *names, const char *with, const char *without)
{
	if (ok)
		doctor_say(FINE, "%s: %s", names, with);
	else
		doctor_say(BAD, "%s: %s", names, without);
}

void doctor_rights(const struct doctor *d)
{
	bool admin = has_cap(CAP_SYS_ADMIN);

	printf("rights\n");
	say_cap(admin || (has_cap(CAP_BPF) && has_cap(CAP_PERFMON)), "CAP_BPF and CAP_PERFMON",
		"BPF programs, uprobe_multi", "no probes at all: run as root, or give both");
	if (!d->features.why_bpf[0] && !d->features.multi)
		say_cap(admin, "CAP_SYS_ADMIN", "perf uprobes",
			"no perf uprobes, the only kind that this kernel has: run as root");
	say_cap(has_cap(CAP_SYS_PTRACE), "CAP_SYS_PTRACE",
		"processes of other users, and the server's own view",
		"only your own processes, and no view into the server");
	say_cap(has_cap(CAP_DAC_READ_SEARCH) || has_cap(CAP_DAC_OVERRIDE), "CAP_DAC_READ_SEARCH",
		"libraries in folders of other users",
		"only libraries in folders that you may read");
	say_cap(admin || has_cap(CAP_CHECKPOINT_RESTORE), "CAP_CHECKPOINT_RESTORE",
		"libraries whose file is deleted or replaced",
		"no libraries whose file is deleted or replaced");
}
