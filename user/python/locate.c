// SPDX-License-Identifier: Apache-2.0
/* Where the interpreter of a process is, and which one it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/maps.h"
#include "python/pyelf.h"
#include "python/raw.h"
#include "util/cleanup.h"

struct found {
	struct pyelf elf;
	uint64_t bias; /* what the loader added to the file's addresses */
};

/* ---- which file ------------------------------------------------------------------------------ */

static int try_file(pid_t pid, const struct map_file *f, struct found *out, char *why, size_t len)
{
	__closefd int fd = maps_open(pid, f, why, len);
	int err;

	if (fd < 0)
		return fd;
	err = pyelf_read(fd, &out->elf);
	if (!err)
		out->bias = f->start - out->elf.exec_start;
	else
		snprintf(why, len, "%s", err == -ENOENT ? "no _PyRuntime in it" : strerror(-err));
	return err;
}

static bool is_exe(pid_t pid, const struct map_file *f)
{
	char link[64], path[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return false;
	path[n] = 0;
	return !strncmp(path, f->path, strlen(f->path)) &&
	       (!path[strlen(f->path)] || !strcmp(path + strlen(f->path), " (deleted)"));
}

/* In one file; words for the last that failed. */
struct search {
	struct found *out;
	char *file;
	size_t len;
	char tried[300];
};

static int search_file(struct search *s, pid_t pid, const struct map_file *f)
{
	char why[200] = "";
	int err = try_file(pid, f, s->out, why, sizeof(why));

	if (err)
		snprintf(s->tried, sizeof(s->tried), ": %.80s: %s", f->base, why);
	else
		snprintf(s->file, s->len, "%s", f->path);
	return err;
}

/* The library first: a launcher named python has no interpreter in it. */
static int find_file(pid_t pid, struct search *s, struct sp_err *err)
{
	struct map_files m;
	int rc = maps_read(pid, &m);

	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: its maps cannot be read: %s%s", pid, strerror(-rc),
				  rc == -EPERM ? ": CAP_SYS_PTRACE is missing: run as root" : "");
	rc = -ENOENT;
	for (int i = 0; i < m.n && rc; i++)
		if (!strncmp(m.file[i].base, "libpython", 9))
			rc = search_file(s, pid, &m.file[i]);
	for (int i = 0; i < m.n && rc; i++)
		if (is_exe(pid, &m.file[i]))
			rc = search_file(s, pid, &m.file[i]);
	maps_free(&m);
	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc == -EPERM ? rc : -ENOENT,
				  "process %d: no Python interpreter in its executable or a "
				  "libpython%s",
				  pid, s->tried);
	return 0;
}

/* ---- which version --------------------------------------------------------------------------- */

/* _Py_DebugOffsets of 3.13 (Include/internal/pycore_runtime.h), as words: groups, each headed by
 * the size of what it describes. */
struct debug_offsets {
	char cookie[8];
	uint64_t version, free_threaded;
	struct {
		uint64_t size, finalizing, interpreters_head;
	} runtime;
	struct {
		uint64_t size, id, next, threads_head, gc, modules, sysdict, builtins, ceval_gil,
			gil[4];
	} interp;
	struct {
		uint64_t size, prev, next, interp, current_frame, thread_id, native_id, chunk,
			status;
	} thread;
	struct {
		uint64_t size, previous, executable, instr_ptr, localsplus, owner;
	} frame;
	struct {
		uint64_t size, filename, name, qualname, linetable, firstlineno, argcount,
			localsplusnames, localspluskinds, code_adaptive;
	} code;
};
#define COOKIE "xdebugpy"

static void take(uint16_t *to, uint64_t from, bool *bad)
{
	if (from >= PY_NO_OFFSET)
		*bad = true;
	*to = (uint16_t)from;
}

/* A frame is read in one piece, up to its locals. */
static bool frame_fits(const struct py_layout *l)
{
	unsigned end = l->frame.locals < PY_FRAME_RAW ? l->frame.locals : PY_FRAME_RAW;

	return l->frame.code + 8u <= end && l->frame.back + 8u <= end &&
	       l->frame.lasti + 8u <= end && l->frame.owner < end;
}

static int apply_debug_offsets(const struct debug_offsets *d, struct py_layout *l)
{
	bool bad = false;

	take(&l->runtime.interpreters_head, d->runtime.interpreters_head, &bad);
	take(&l->interp.next, d->interp.next, &bad);
	take(&l->interp.threads_head, d->interp.threads_head, &bad);
	take(&l->interp.modules, d->interp.modules, &bad);
	take(&l->interp.sysdict, d->interp.sysdict, &bad);
	take(&l->thread.next, d->thread.next, &bad);
	take(&l->thread.interp, d->thread.interp, &bad);
	take(&l->thread.frame, d->thread.current_frame, &bad);
	take(&l->thread.thread_id, d->thread.thread_id, &bad);
	take(&l->thread.native_id, d->thread.native_id, &bad);
	take(&l->frame.back, d->frame.previous, &bad);
	take(&l->frame.code, d->frame.executable, &bad);
	take(&l->frame.lasti, d->frame.instr_ptr, &bad);
	take(&l->frame.locals, d->frame.localsplus, &bad);
	take(&l->frame.owner, d->frame.owner, &bad);
	take(&l->code.filename, d->code.filename, &bad);
	take(&l->code.name, d->code.name, &bad);
	take(&l->code.qualname, d->code.qualname, &bad);
	take(&l->code.linetable, d->code.linetable, &bad);
	take(&l->code.firstlineno, d->code.firstlineno, &bad);
	take(&l->code.localnames, d->code.localsplusnames, &bad);
	take(&l->code.code_start, d->code.code_adaptive, &bad);
	return bad || !frame_fits(l) ? -ENOTSUP : 0;
}

static int refuse(struct py_runtime *rt, struct sp_err *err, const char *why)
{
	return sp_err_set(err, SP_EXIT_NOATTACH, -ENOTSUP,
			  "process %d: %s: Python %s: %s: versions 3.10 to 3.13 with the GIL can "
			  "be read",
			  rt->pid, rt->file, rt->version, why);
}

static int read_debug_offsets(struct py_runtime *rt, struct sp_err *err)
{
	struct debug_offsets d;
	int rc = pymem_read(rt->mem, rt->addr, &d, sizeof(d));

	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: %s: _PyRuntime cannot be read: %s", rt->pid,
				  rt->file, strerror(-rc));
	if (memcmp(d.cookie, COOKIE, sizeof(d.cookie)) != 0)
		return refuse(rt, err, "its debug offsets are missing");
	if (d.free_threaded)
		return refuse(rt, err, "a free-threaded build lays its objects out in another way");
	if (apply_debug_offsets(&d, &rt->lay))
		return refuse(rt, err, "its debug offsets make no sense");
	return 0;
}

/* PY_VERSION_HEX: 0x030b02f0 is 3.11.2 final */
static void version_text(uint64_t hex, char *buf, size_t len)
{
	unsigned level = (hex >> 4) & 15, serial = hex & 15;
	char tail[8] = "";

	if (level != 15)
		snprintf(tail, sizeof(tail), "%s%u",
			 level == 10   ? "a"
			 : level == 11 ? "b"
				       : "rc",
			 serial);
	snprintf(buf, len, "%u.%u.%u%s", (unsigned)(hex >> 24) & 255, (unsigned)(hex >> 16) & 255,
		 (unsigned)(hex >> 8) & 255, tail);
}

/* The exact built-in types, so that not every object's type has to be looked up. */
static void learn_type(struct py_runtime *rt, uint64_t obj, const char *want, uint64_t *type)
{
	struct py_typeinfo ti;
	uint64_t addr;
	char name[8];

	if (!pymem_u64(rt->mem, obj + PY_OB_TYPE, &addr) && !py_typeinfo(rt, addr, &ti) &&
	    !py_typename(rt, &ti, name, sizeof(name)) && !strcmp(name, want) &&
	    !(ti.flags & PY_TP_HEAPTYPE))
		*type = addr;
}

/*
 * The proof that the place and the table are right: the first thread points back to its
 * interpreter, and sys.hexversion, found through them, says that very version. -EAGAIN: not filled
 * in yet.
 */
static int read_hexversion(struct py_runtime *rt, uint64_t *hex)
{
	const struct py_layout *l = &rt->lay;
	uint64_t interp, thread, back, sys, value;
	int64_t v;
	int err = pymem_u64(rt->mem, rt->addr + l->runtime.interpreters_head, &interp);

	if (err || !interp)
		return err ? err : -EAGAIN;
	err = pymem_u64(rt->mem, interp + l->interp.threads_head, &thread);
	if (err || !thread)
		return err ? err : -EAGAIN;
	err = pymem_u64(rt->mem, thread + l->thread.interp, &back);
	if (err || back != interp)
		return err ? err : -EINVAL;
	err = pymem_u64(rt->mem, interp + l->interp.sysdict, &sys);
	if (err || !sys)
		return err ? err : -EAGAIN;
	err = py_dict_find(rt, sys, "hexversion", &value);
	if (!err)
		err = py_int(rt, value, &v, NULL);
	if (err)
		return err == -ENODATA ? -EAGAIN : err;
	*hex = (uint64_t)v;
	learn_type(rt, sys, "dict", &rt->type.dict);
	learn_type(rt, value, "int", &rt->type.int_);
	if (!py_dict_find(rt, sys, "version", &value))
		learn_type(rt, value, "str", &rt->type.str);
	return 0;
}

/* 0, -EAGAIN, -ESRCH, -EPERM, else: this is not that version's memory. */
static int try_layout(struct py_runtime *rt)
{
	uint64_t hex = 0;
	int rc = -EAGAIN;

	for (int i = 0; i < PY_TRIES && rc == -EAGAIN; i++)
		rc = read_hexversion(rt, &hex);
	if (rc)
		return rc;
	if ((hex >> 24 & 255) != 3 || (hex >> 16 & 255) != rt->lay.minor) {
		memset(&rt->type, 0, sizeof(rt->type));
		return -EINVAL;
	}
	version_text(hex, rt->version, sizeof(rt->version));
	return 0;
}

static int verify(struct py_runtime *rt, struct sp_err *err)
{
	int rc = try_layout(rt);

	if (rc == -ESRCH || rc == -EPERM)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: %s: its memory cannot be read: %s", rt->pid,
				  rt->file, strerror(-rc));
	if (rc == -EAGAIN)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: %s: Python %s is still starting", rt->pid, rt->file,
				  rt->version);
	if (rc)
		return refuse(rt, err, "its memory is not laid out as that version's is");
	return 0;
}

static int known_version(struct py_runtime *rt, uint64_t hex, struct sp_err *err)
{
	const struct py_layout *lay = hex >> 24 == 3 ? py_layout((int)(hex >> 16 & 255)) : NULL;

	version_text(hex, rt->version, sizeof(rt->version));
	if (!lay)
		return refuse(rt, err, "its layout is not known");
	rt->lay = *lay;
	return py_runtime_check(rt, err);
}

/*
 * No Py_Version: older than 3.11, or stripped of its symbols. From 3.13 on _PyRuntime says the
 * version itself; else the right table is the one through which sys.hexversion says so.
 */
static int unknown_version(struct py_runtime *rt, int minor, struct sp_err *err)
{
	struct {
		char cookie[8];
		uint64_t version;
	} d;
	int rc = pymem_read(rt->mem, rt->addr, &d, sizeof(d));

	if (!rc && !memcmp(d.cookie, COOKIE, sizeof(d.cookie)))
		return known_version(rt, d.version, err);
	for (int m = 12; m >= 10; m--) {
		rt->lay = *py_layout(m);
		rc = try_layout(rt);
		if (!rc)
			return 0;
		if (rc == -ESRCH || rc == -EPERM)
			return verify(rt, err);
	}
	if (!minor)
		return refuse(rt, err, "it does not say which it is");
	snprintf(rt->version, sizeof(rt->version), "3.%d", minor);
	if (minor < 10 || minor > 12)
		return refuse(rt, err, "its layout is not known");
	rt->lay = *py_layout(minor);
	return verify(rt, err);
}

static int choose(struct py_runtime *rt, const struct found *f, struct sp_err *err)
{
	uint64_t hex = 0;
	int rc;

	snprintf(rt->version, sizeof(rt->version), "(unknown)");
	if (!f->elf.version)
		return unknown_version(rt, f->elf.minor, err);
	rc = pymem_u64(rt->mem, f->bias + f->elf.version, &hex);
	if (rc)
		return sp_err_set(err, SP_EXIT_NOATTACH, rc,
				  "process %d: %s: Py_Version cannot be read: %s", rt->pid,
				  rt->file, strerror(-rc));
	return known_version(rt, hex, err);
}

int py_runtime_check(struct py_runtime *rt, struct sp_err *err)
{
	int rc = rt->lay.minor >= 13 ? read_debug_offsets(rt, err) : 0;

	return rc ? rc : verify(rt, err);
}

static int find(pid_t pid, struct pymem *mem, struct py_runtime *rt, struct found *f,
		struct sp_err *err)
{
	struct search s = {.out = f, .file = rt->file, .len = sizeof(rt->file)};

	memset(rt, 0, sizeof(*rt));
	memset(f, 0, sizeof(*f));
	rt->mem = mem;
	rt->pid = pid;
	return find_file(pid, &s, err);
}

int py_locate(pid_t pid, struct pymem *mem, struct py_runtime *rt, struct sp_err *err)
{
	struct found f, again;
	struct py_runtime scratch;
	int rc = find(pid, mem, rt, &f, err);

	for (int i = 0; i < PY_TRIES && !rc; i++) {
		rt->addr = f.bias + f.elf.runtime;
		rc = choose(rt, &f, err);
		if (rc != -ENOTSUP && rc != -EFAULT)
			return rc;
		/* Was it an exec between the look at the maps and the look at the memory? */
		if (find(pid, mem, &scratch, &again, NULL) ||
		    (again.bias == f.bias && again.elf.runtime == f.elf.runtime))
			return rc;
		rc = find(pid, mem, rt, &f, err);
	}
	return rc;
}

int py_runtime_at(struct pymem *mem, int minor, uint64_t addr, struct py_runtime *rt)
{
	const struct py_layout *lay = py_layout(minor);

	memset(rt, 0, sizeof(*rt));
	if (!lay)
		return -ENOTSUP;
	rt->mem = mem;
	rt->addr = addr;
	rt->lay = *lay;
	snprintf(rt->version, sizeof(rt->version), "3.%d", minor);
	snprintf(rt->file, sizeof(rt->file), "image");
	return 0;
}
