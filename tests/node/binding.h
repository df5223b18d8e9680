/* SPDX-License-Identifier: Apache-2.0 */
/* Between Python and the library: errors, the GIL, lists of numbers. */
#ifndef NODE_BINDING_H
#define NODE_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>

#include "nixl.h"

namespace
{
PyObject *err_base, *err_disconnect, *err_backend, *err_canceled;

PyObject *raise_status(const char *call, int status)
{
	PyObject *type = status == NIXL_ERR_REMOTE_DISCONNECT ? err_disconnect
			 : status == NIXL_ERR_BACKEND         ? err_backend
			 : status == NIXL_ERR_CANCELED        ? err_canceled
							      : err_base;

	PyErr_Format(type, "%s: status %d", call, status);
	return nullptr;
}

/* Runs f without the GIL. False, with a Python error set, when f threw. */
template <class F> bool unlocked(F f)
{
	std::string what;
	bool threw = false;

	Py_BEGIN_ALLOW_THREADS
	try {
		f();
	} catch (const std::exception &e) {
		what = e.what();
		threw = true;
	}
	Py_END_ALLOW_THREADS if (threw) PyErr_SetString(PyExc_RuntimeError, what.c_str());
	return !threw;
}

bool descs_from(PyObject *list, nixl_xfer_dlist_t &to)
{
	PyObject *fast = PySequence_Fast(list, "descriptors: a sequence of (address, length)");

	if (!fast)
		return false;
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
		unsigned long long addr, len;

		if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(fast, i), "KK", &addr, &len)) {
			Py_DECREF(fast);
			return false;
		}
		to.descs.push_back({static_cast<uintptr_t>(addr), static_cast<size_t>(len), 0});
	}
	Py_DECREF(fast);
	return true;
}

bool ints_from(PyObject *list, std::vector<int> &to)
{
	PyObject *fast = PySequence_Fast(list, "indices: a sequence of int");

	if (!fast)
		return false;
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
		long v = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast, i));

		if (v == -1 && PyErr_Occurred()) {
			Py_DECREF(fast);
			return false;
		}
		to.push_back(static_cast<int>(v));
	}
	Py_DECREF(fast);
	return true;
}
} // namespace

#endif
