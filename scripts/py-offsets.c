// SPDX-License-Identifier: Apache-2.0
/*
 * Prints the table of user/python/layout.c for one version of CPython, from its headers:
 *
 *   V=3.12; I=$(python$V -c 'import sysconfig; print(sysconfig.get_path("include"))')
 *   gcc -w -DPy_BUILD_CORE -I$I -I$I/internal scripts/py-offsets.c -o /tmp/py-offsets &&
 * /tmp/py-offsets
 *
 * then what the readers take to be the same in every version, which ends with an error if it is
 * not.
 */
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include "structmember.h"
#if PY_VERSION_HEX >= 0x030B0000
#include "internal/pycore_frame.h"
#include "internal/pycore_dict.h"
#else
#include "frameobject.h"
#endif
#include "internal/pycore_interp.h"
#include "internal/pycore_moduleobject.h"
#include "internal/pycore_pystate.h"
#include "internal/pycore_runtime.h"

#define FIELD(name, type, member) printf("  %-28s %zu\n", name, offsetof(type, member))
#define NONE(name)                printf("  %-28s none\n", name)

static int wrong;

static void same(const char *what, size_t is, size_t taken)
{
	if (is == taken)
		return;
	printf("  DIFFERENT: %s is %zu, taken to be %zu\n", what, is, taken);
	wrong = 1;
}
#define SAME(type, member, taken) same(#type "." #member, offsetof(type, member), taken)

static void runtime(void)
{
	FIELD("runtime.interpreters_head", _PyRuntimeState, interpreters.head);
	FIELD("interp.next", PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030B0000
	FIELD("interp.threads_head", PyInterpreterState, threads.head);
#else
	FIELD("interp.threads_head", PyInterpreterState, tstate_head);
#endif
#if PY_VERSION_HEX >= 0x030C0000
	FIELD("interp.modules", PyInterpreterState, imports.modules);
#else
	FIELD("interp.modules", PyInterpreterState, modules);
#endif
	FIELD("interp.sysdict", PyInterpreterState, sysdict);
	FIELD("thread.next", PyThreadState, next);
	FIELD("thread.interp", PyThreadState, interp);
	FIELD("thread.thread_id", PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030D0000
	NONE("thread.cframe");
	FIELD("thread.frame", PyThreadState, current_frame);
	FIELD("thread.native_id", PyThreadState, native_thread_id);
#elif PY_VERSION_HEX >= 0x030B0000
	FIELD("thread.cframe", PyThreadState, cframe);
	FIELD("cframe_frame", _PyCFrame, current_frame);
	FIELD("thread.native_id", PyThreadState, native_thread_id);
#else
	NONE("thread.cframe");
	FIELD("thread.frame", PyThreadState, frame);
	NONE("thread.native_id");
#endif
}

static void frame(void)
{
#if PY_VERSION_HEX >= 0x030B0000
#if PY_VERSION_HEX >= 0x030D0000
	FIELD("frame.code", _PyInterpreterFrame, f_executable);
	FIELD("frame.lasti", _PyInterpreterFrame, instr_ptr);
#else
	FIELD("frame.code", _PyInterpreterFrame, f_code);
	FIELD("frame.lasti", _PyInterpreterFrame, prev_instr);
#endif
	FIELD("frame.back", _PyInterpreterFrame, previous);
	FIELD("frame.locals", _PyInterpreterFrame, localsplus);
	FIELD("frame.owner", _PyInterpreterFrame, owner);
	FIELD("frame.obj", _PyInterpreterFrame, frame_obj);
	FIELD("code.qualname", PyCodeObject, co_qualname);
	FIELD("code.localnames", PyCodeObject, co_localsplusnames);
	FIELD("code.code_start", PyCodeObject, co_code_adaptive);
#else
	FIELD("frame.code", PyFrameObject, f_code);
	FIELD("frame.back", PyFrameObject, f_back);
	FIELD("frame.locals", PyFrameObject, f_localsplus);
	FIELD("frame.lasti", PyFrameObject, f_lasti);
	FIELD("frame.state", PyFrameObject, f_state);
	FIELD("code.localnames", PyCodeObject, co_varnames);
	FIELD("code.cellvars", PyCodeObject, co_cellvars);
	FIELD("code.freevars", PyCodeObject, co_freevars);
#endif
	FIELD("code.name", PyCodeObject, co_name);
	FIELD("code.filename", PyCodeObject, co_filename);
	FIELD("code.firstlineno", PyCodeObject, co_firstlineno);
	FIELD("code.linetable", PyCodeObject, co_linetable);
}

static void objects(void)
{
	printf("  %-28s %zu\n", "str.ascii_data", sizeof(PyASCIIObject));
	printf("  %-28s %zu\n", "str.compact_data", sizeof(PyCompactUnicodeObject));
	FIELD("heap_cached_keys", PyHeapTypeObject, ht_cached_keys);
#if PY_VERSION_HEX >= 0x030B0000
	FIELD("keys_nentries", struct _dictkeysobject, dk_nentries);
	FIELD("keys_indices", struct _dictkeysobject, dk_indices);
	FIELD("values_header", PyDictValues, values);
	SAME(struct _dictkeysobject, dk_log2_size, 8);
	SAME(struct _dictkeysobject, dk_log2_index_bytes, 9);
	SAME(struct _dictkeysobject, dk_kind, 10);
	same("PyDictKeyEntry", sizeof(PyDictKeyEntry), 24);
	same("PyDictUnicodeEntry", sizeof(PyDictUnicodeEntry), 16);
#else
	printf("  %-28s 32\n  %-28s 40\n", "keys_nentries", "keys_indices"); /* in dictobject.c */
#endif
#if PY_VERSION_HEX >= 0x030D0000
	SAME(PyDictValues, valid, 3);
#endif
}

static void constants(void)
{
	SAME(PyObject, ob_type, 8);
	SAME(PyVarObject, ob_size, 16);
	SAME(PyTypeObject, tp_name, 24);
	SAME(PyTypeObject, tp_basicsize, 32);
	SAME(PyTypeObject, tp_flags, 168);
	SAME(PyTypeObject, tp_members, 240);
	SAME(PyTypeObject, tp_base, 256);
	SAME(PyTypeObject, tp_dictoffset, 288);
	SAME(PyTypeObject, tp_mro, 344);
	SAME(PyListObject, ob_item, 24);
	SAME(PyListObject, allocated, 32);
	SAME(PyTupleObject, ob_item, 24);
	SAME(PyBytesObject, ob_sval, 32);
	SAME(PyDictObject, ma_used, 16);
	SAME(PyDictObject, ma_keys, 32);
	SAME(PyDictObject, ma_values, 40);
	SAME(PyASCIIObject, length, 16);
	SAME(PyASCIIObject, state, 32);
	SAME(PyModuleObject, md_dict, 16);
	SAME(PyCellObject, ob_ref, 16);
	same("PyMemberDef", sizeof(PyMemberDef), 40);
	SAME(PyMemberDef, type, 8);
	SAME(PyMemberDef, offset, 16);
#if PY_VERSION_HEX >= 0x030C0000
	SAME(PyLongObject, long_value.lv_tag, 16);
	SAME(PyLongObject, long_value.ob_digit, 24);
#else
	SAME(PyLongObject, ob_digit, 24);
#endif
}

int main(void)
{
	printf("CPython %s\n", PY_VERSION);
	runtime();
	frame();
	objects();
	constants();
	return wrong;
}
