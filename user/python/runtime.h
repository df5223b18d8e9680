/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of a process: where it is, which version, and how that version lays its objects
 * out. A version without a table is refused by name, never guessed.
 */
#ifndef SP_PYTHON_RUNTIME_H
#define SP_PYTHON_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/mem.h"

/* How instances keep their attributes. */
enum py_attrs {
	PY_ATTRS_DICTOFFSET, /* 3.10: a dict at tp_dictoffset */
	PY_ATTRS_311,        /* values pointer at -32, else dict at -24 */
	PY_ATTRS_312,        /* tagged word at -24 */
	PY_ATTRS_313,        /* inline values behind the object, else dict at -24 */
};

/* Offsets in bytes; one table per minor version in layout.c, with its source. 0xffff: no such
 * field. */
#define PY_NO_OFFSET 0xffff
struct py_layout {
	uint8_t minor; /* 3.minor */
	enum py_attrs attrs;
	struct {
		uint16_t interpreters_head;
	} runtime;
	struct {
		uint16_t next, threads_head, modules, sysdict;
	} interp;
	struct {
		uint16_t next, interp, cframe, frame, thread_id, native_id;
	} thread; /* cframe: pointer to a struct whose .frame is the frame; else thread.frame */
	uint16_t cframe_frame;
	struct {
		uint16_t code, back, locals, owner, lasti, obj, state;
	} frame; /* lasti: instruction pointer, or for 3.10 the index (f_lasti); state: 3.10 */
	struct {
		uint16_t name, qualname, filename, firstlineno, linetable, localnames, code_start;
		uint16_t cellvars, freevars; /* 3.10: names of the cells behind the locals */
	} code;
	struct {
		uint16_t ascii_data, compact_data;
	} str;
	uint16_t heap_cached_keys;
	uint16_t keys_nentries, keys_indices;
	uint16_t values_header;
	bool int_tagged;    /* 3.12+: lv_tag */
	uint8_t owner_skip; /* frame owner that is no Python frame, 0 none */
};

struct py_runtime {
	struct pymem *mem;    /* not owned */
	pid_t pid;            /* 0: an image */
	struct py_layout lay; /* a copy, corrected by the debug offsets of 3.13 */
	uint64_t addr;        /* of _PyRuntime in the target */
	/* Exact built-in types, which live as long as the process; 0: not met yet. */
	struct {
		uint64_t code, int_, str, dict;
	} type;
	char version[32]; /* "3.11.2" */
	char file[256];   /* the file that holds the interpreter, for people */
};

/*
 * Find the interpreter of pid: _PyRuntime by .dynsym, .symtab or the section .PyRuntime, in the
 * executable or a libpython it has mapped, opened through /proc/PID so that containers and deleted
 * files work. -ENOENT: no Python in it (err says so); -ENOTSUP: a Python that cannot be read (other
 * version, free-threaded build: err names it); -EAGAIN: it is still starting; -EPERM.
 */
int py_locate(pid_t pid, struct pymem *mem, struct py_runtime *rt, struct sp_err *err);
/* The table of 3.minor; NULL: not known. */
const struct py_layout *py_layout(int minor);
/* For tests on images: a runtime at addr with the table of that version. */
int py_runtime_at(struct pymem *mem, int minor, uint64_t addr, struct py_runtime *rt);
/* What py_locate() checks of a place and a table: 3.13's debug offsets, then that sys.hexversion,
 * reached through them, says that very version. Return codes as py_locate(). */
int py_runtime_check(struct py_runtime *rt, struct sp_err *err);

#endif
