/* SPDX-License-Identifier: Apache-2.0 */
/* What every binding here needs: calls without the GIL, lists of numbers, types. */
#ifndef NODE_PYCALL_H
#define NODE_PYCALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <string>
#include <vector>

namespace
{
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

/* False, with a Python error set, when it is no sequence of int. */
template <class T> bool ints_from(PyObject *list, std::vector<T> &to)
{
	PyObject *fast = PySequence_Fast(list, "numbers: a sequence of int");

	if (!fast)
		return false;
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
		long long v = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));

		if (v == -1 && PyErr_Occurred()) {
			Py_DECREF(fast);
			return false;
		}
		to.push_back(static_cast<T>(v));
	}
	Py_DECREF(fast);
	return true;
}

/* A list of what one(element) makes of each; nullptr, with a Python error set. */
template <class All, class F> PyObject *list_of(const All &all, F one)
{
	PyObject *list = PyList_New(0);

	for (auto it = all.begin(); list && it != all.end(); ++it) {
		PyObject *made = one(*it);

		if (!made || PyList_Append(list, made))
			Py_CLEAR(list);
		Py_XDECREF(made);
	}
	return list;
}

/* For what takes one number and answers nothing. */
template <class F> PyObject *with_number(PyObject *args, F f)
{
	unsigned long long n;

	if (!PyArg_ParseTuple(args, "K", &n))
		return nullptr;
	f(n);
	Py_RETURN_NONE;
}

/* progress(timeout_ms=0) of an engine or an agent. */
template <class T> PyObject *progress_of(T &of, PyObject *args)
{
	int timeout_ms = 0;

	if (!PyArg_ParseTuple(args, "|i", &timeout_ms) ||
	    !unlocked([&] { of.progress(timeout_ms); }))
		return nullptr;
	Py_RETURN_NONE;
}

/* test_throw(name or None): arm says not 0 when nothing has that name. */
template <class F> PyObject *arm_throw(PyObject *args, F arm, const char *what)
{
	const char *name;

	if (!PyArg_ParseTuple(args, "z", &name))
		return nullptr;
	if (arm(name)) {
		PyErr_Format(PyExc_ValueError, "no probed %s '%s'", what, name);
		return nullptr;
	}
	Py_RETURN_NONE;
}

/* An engine or an agent, made on the heap; nullptr, with a Python error set. */
template <class F> auto made_by(F make) -> decltype(make())
{
	try {
		return make();
	} catch (const std::exception &e) {
		PyErr_SetString(PyExc_OSError, e.what());
		return nullptr;
	}
}

[[maybe_unused]] bool type_ready(PyTypeObject &t, const char *name, size_t size, destructor dealloc)
{
	t.tp_name = name;
	t.tp_basicsize = static_cast<Py_ssize_t>(size);
	t.tp_dealloc = dealloc;
	t.tp_flags = Py_TPFLAGS_DEFAULT;
	return PyType_Ready(&t) == 0;
}
} // namespace

#endif
