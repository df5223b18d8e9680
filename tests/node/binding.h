/* SPDX-License-Identifier: Apache-2.0 */
/* Between Python and libnixl.so: errors, descriptors. */
#ifndef NODE_BINDING_H
#define NODE_BINDING_H

#include "nixl.h"
#include "pycall.h"

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

} // namespace

#endif
