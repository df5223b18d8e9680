// SPDX-License-Identifier: Apache-2.0
/*
 * Python module _nixl_standin over libnixl.so. The GIL is released during every call; a negative
 * status and a C++ exception become Python exceptions here, outside the library's frames, as in the
 * real binding. A transfer handle is a Python object: dropping the last reference releases it.
 */
#include "binding.h"

namespace
{
struct AgentObject {
	PyObject ob_base;
	nixlAgent *agent;
	PyObject *name;
};
struct DlistObject {
	PyObject ob_base;
	AgentObject *owner;
	nixlDlistH *handle;
};
struct HandleObject {
	PyObject ob_base;
	AgentObject *owner;
	nixlXferReqH *handle;
};

/* ---- prepared lists and handles -------------------------------------------------------------- */
void dlist_dealloc(PyObject *self)
{
	auto *d = reinterpret_cast<DlistObject *>(self);

	if (d->handle)
		d->owner->agent->releasedDlistH(d->handle);
	Py_XDECREF(d->owner);
	Py_TYPE(self)->tp_free(self);
}

void handle_dealloc(PyObject *self)
{
	auto *h = reinterpret_cast<HandleObject *>(self);
	PyObject *type, *value, *trace;

	PyErr_Fetch(&type, &value, &trace);
	if (h->handle) {
		unlocked([&] { h->owner->agent->releaseXferReq(h->handle); });
		if (PyErr_Occurred())
			PyErr_WriteUnraisable(self);
	}
	PyErr_Restore(type, value, trace);
	Py_XDECREF(h->owner);
	Py_TYPE(self)->tp_free(self);
}

PyObject *handle_address(PyObject *self, void *)
{
	return PyLong_FromVoidPtr(reinterpret_cast<HandleObject *>(self)->handle);
}

PyGetSetDef handle_getset[] = {{"address", handle_address, nullptr, nullptr, nullptr},
			       {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject dlist_type = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject handle_type = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject agent_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject *new_handle(AgentObject *owner, nixlXferReqH *handle)
{
	auto *h = PyObject_New(HandleObject, &handle_type);

	if (!h)
		return nullptr;
	Py_INCREF(owner);
	h->owner = owner;
	h->handle = handle;
	return reinterpret_cast<PyObject *>(h);
}

/* ---- the agent ------------------------------------------------------------------------------- */
int agent_init(PyObject *self, PyObject *args, PyObject *)
{
	auto *a = reinterpret_cast<AgentObject *>(self);
	PyObject *name;

	if (a->agent) {
		PyErr_SetString(PyExc_RuntimeError, "already initialised");
		return -1;
	}
	if (!PyArg_ParseTuple(args, "U", &name))
		return -1;
	a->agent = made_by([&] { return new nixlAgent(PyUnicode_AsUTF8(name)); });
	if (!a->agent)
		return -1;
	Py_INCREF(name);
	a->name = name;
	return 0;
}

void agent_dealloc(PyObject *self)
{
	auto *a = reinterpret_cast<AgentObject *>(self);

	delete a->agent;
	Py_XDECREF(a->name);
	Py_TYPE(self)->tp_free(self);
}

AgentObject *ready(PyObject *self)
{
	auto *a = reinterpret_cast<AgentObject *>(self);

	if (!a->agent)
		PyErr_SetString(PyExc_RuntimeError, "not initialised");
	return a->agent ? a : nullptr;
}

PyObject *agent_name(PyObject *self, void *)
{
	auto *a = ready(self);

	return a ? Py_NewRef(a->name) : nullptr;
}

PyObject *register_memory(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	unsigned long long addr, len;

	if (!a || !PyArg_ParseTuple(args, "KK", &addr, &len))
		return nullptr;
	a->agent->registerMem(static_cast<uintptr_t>(addr), static_cast<size_t>(len));
	Py_RETURN_NONE;
}

PyObject *get_agent_metadata(PyObject *self, PyObject *)
{
	auto *a = ready(self);
	std::string md;

	if (!a)
		return nullptr;
	a->agent->getLocalMD(md);
	return PyBytes_FromStringAndSize(md.data(), static_cast<Py_ssize_t>(md.size()));
}

PyObject *add_remote_agent(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	const char *md;
	Py_ssize_t len;
	std::string name;
	int rc = 0;

	if (!a || !PyArg_ParseTuple(args, "y#", &md, &len))
		return nullptr;
	std::string text(md, static_cast<size_t>(len));

	if (!unlocked([&] { rc = a->agent->loadRemoteMD(text, name); }))
		return nullptr;
	return rc < 0 ? raise_status("loadRemoteMD", rc) : PyUnicode_FromString(name.c_str());
}

PyObject *prep_xfer_dlist(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	const char *peer;
	PyObject *list;
	nixl_xfer_dlist_t descs;
	nixlDlistH *handle = nullptr;
	int rc;

	if (!a || !PyArg_ParseTuple(args, "sO", &peer, &list) || !descs_from(list, descs))
		return nullptr;
	rc = a->agent->prepXferDlist(peer, descs, handle);
	if (rc < 0)
		return raise_status("prepXferDlist", rc);
	auto *d = PyObject_New(DlistObject, &dlist_type);

	if (!d) {
		a->agent->releasedDlistH(handle);
		return nullptr;
	}
	Py_INCREF(a);
	d->owner = a;
	d->handle = handle;
	return reinterpret_cast<PyObject *>(d);
}

/* make_prepped_xfer(local, local_indices, remote, remote_indices, notif) -> handle */
PyObject *make_prepped_xfer(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	PyObject *local, *remote, *local_idx, *remote_idx;
	std::vector<int> from, to;
	nixlXferReqH *handle = nullptr;
	nixl_opt_args_t extra;
	const char *notif;
	int rc = 0;

	if (!a ||
	    !PyArg_ParseTuple(args, "O!OO!Oy", &dlist_type, &local, &local_idx, &dlist_type,
			      &remote, &remote_idx, &notif) ||
	    !ints_from(local_idx, from) || !ints_from(remote_idx, to))
		return nullptr;
	extra.notif = notif;
	auto *mine = reinterpret_cast<DlistObject *>(local)->handle;
	auto *peers = reinterpret_cast<DlistObject *>(remote)->handle;

	if (!unlocked([&] {
#ifdef NIXL_SPAN /* a list of several goes by the older form, as other programs call it */
		    if (from.size() == 1) {
			    rc = a->agent->makeXferReq(NIXL_WRITE, *mine, from, *peers, to, handle,
						       &extra);
			    return;
		    }
#endif
		    rc = a->agent->makeXferReq(NIXL_WRITE, mine, from, peers, to, handle, &extra);
	    }))
		return nullptr;
	return rc < 0 ? raise_status("makeXferReq", rc) : new_handle(a, handle);
}

/* initialize_xfer(local, remote, peer, notif) -> handle */
PyObject *initialize_xfer(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	PyObject *local, *remote;
	nixl_xfer_dlist_t from, to;
	nixlXferReqH *handle = nullptr;
	nixl_opt_args_t extra;
	const char *peer, *notif;
	int rc = 0;

	if (!a || !PyArg_ParseTuple(args, "OOsy", &local, &remote, &peer, &notif) ||
	    !descs_from(local, from) || !descs_from(remote, to))
		return nullptr;
	extra.notif = notif;
	std::string name(peer);

	if (!unlocked([&] {
		    rc = a->agent->createXferReq(NIXL_WRITE, from, to, name, handle, &extra);
	    }))
		return nullptr;
	return rc < 0 ? raise_status("createXferReq", rc) : new_handle(a, handle);
}

PyObject *state_of(const char *call, int rc)
{
	if (rc < 0)
		return raise_status(call, rc);
	return PyUnicode_FromString(rc == NIXL_SUCCESS ? "DONE" : "PROC");
}

PyObject *transfer(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	PyObject *h;
	int rc = 0;

	if (!a || !PyArg_ParseTuple(args, "O!", &handle_type, &h))
		return nullptr;
	if (!unlocked([&] {
		    rc = a->agent->postXferReq(reinterpret_cast<HandleObject *>(h)->handle);
	    }))
		return nullptr;
	return state_of("postXferReq", rc);
}

PyObject *check_xfer_state(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	PyObject *h;
	int rc = 0;

	if (!a || !PyArg_ParseTuple(args, "O!", &handle_type, &h))
		return nullptr;
	if (!unlocked([&] {
		    rc = a->agent->getXferStatus(reinterpret_cast<HandleObject *>(h)->handle);
	    }))
		return nullptr;
	return state_of("getXferStatus", rc);
}

/* Releases now, with the outcome visible, instead of when the object goes. */
PyObject *release_xfer_handle(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	HandleObject *h;
	int rc = 0;

	if (!a || !PyArg_ParseTuple(args, "O!", &handle_type, &h))
		return nullptr;
	if (!unlocked([&] { rc = a->agent->releaseXferReq(h->handle); }))
		return nullptr;
	if (rc < 0)
		return raise_status("releaseXferReq", rc);
	h->handle = nullptr;
	Py_RETURN_NONE;
}

/* get_new_notifs() -> {peer: [bytes]} */
PyObject *get_new_notifs(PyObject *self, PyObject *)
{
	auto *a = ready(self);
	nixl_notifs_t notifs;
	PyObject *all;
	int rc = 0;

	if (!a || !unlocked([&] { rc = a->agent->getNotifs(notifs); }))
		return nullptr;
	if (rc < 0)
		return raise_status("getNotifs", rc);
	all = PyDict_New();
	for (auto it = notifs.begin(); all && it != notifs.end(); ++it) {
		PyObject *list = list_of(it->second, [](auto &text) {
			return PyBytes_FromStringAndSize(text.data(),
							 static_cast<Py_ssize_t>(text.size()));
		});

		if (!list || PyDict_SetItemString(all, it->first.c_str(), list))
			Py_CLEAR(all);
		Py_XDECREF(list);
	}
	return all;
}

PyObject *send_notif(PyObject *self, PyObject *args)
{
	auto *a = ready(self);
	const char *peer, *text;
	int rc = 0;

	if (!a || !PyArg_ParseTuple(args, "sy", &peer, &text))
		return nullptr;
	std::string to(peer), msg(text);

	if (!unlocked([&] { rc = a->agent->genNotif(to, msg); }))
		return nullptr;
	if (rc < 0)
		return raise_status("genNotif", rc);
	Py_RETURN_NONE;
}

PyObject *progress(PyObject *self, PyObject *args)
{
	auto *a = ready(self);

	return a ? progress_of(*a->agent, args) : nullptr;
}

PyObject *set_rate(PyObject *self, PyObject *args)
{
	auto *a = ready(self);

	return a ? with_number(args, [&](uint64_t rate) { a->agent->setRate(rate); }) : nullptr;
}

/* ops() -> [(peer, notif, bytes, sent, status)] of what is posted and not complete */
PyObject *agent_ops(PyObject *self, PyObject *)
{
	auto *a = ready(self);
	std::vector<nixlOpView> ops;

	if (!a || !unlocked([&] { ops = a->agent->ops(); }))
		return nullptr;
	return list_of(ops, [](auto &o) {
		return Py_BuildValue("(ssKKi)", o.peer.c_str(), o.notif.c_str(),
				     static_cast<unsigned long long>(o.bytes),
				     static_cast<unsigned long long>(o.sent), o.status);
	});
}

PyMethodDef agent_methods[] = {
	{"register_memory", register_memory, METH_VARARGS, "(address, length)"},
	{"get_agent_metadata", get_agent_metadata, METH_NOARGS, "bytes for add_remote_agent"},
	{"add_remote_agent", add_remote_agent, METH_VARARGS, "(metadata) -> name"},
	{"prep_xfer_dlist", prep_xfer_dlist, METH_VARARGS, "(peer or '', [(address, length)])"},
	{"make_prepped_xfer", make_prepped_xfer, METH_VARARGS,
	 "(local, indices, remote, indices, notif) -> handle"},
	{"initialize_xfer", initialize_xfer, METH_VARARGS,
	 "([(address, length)], [(address, length)], peer, notif) -> handle"},
	{"transfer", transfer, METH_VARARGS, "(handle) -> DONE or PROC"},
	{"check_xfer_state", check_xfer_state, METH_VARARGS, "(handle) -> DONE or PROC"},
	{"release_xfer_handle", release_xfer_handle, METH_VARARGS, "(handle)"},
	{"get_new_notifs", get_new_notifs, METH_NOARGS, "{peer: [bytes]}"},
	{"send_notif", send_notif, METH_VARARGS, "(peer, bytes)"},
	{"progress", progress, METH_VARARGS, "(timeout_ms=0)"},
	{"set_rate", set_rate, METH_VARARGS, "(bytes_per_s): receiving, 0 for no limit"},
	{"ops", agent_ops, METH_NOARGS, "[(peer, notif, bytes, sent, status)]"},
	{nullptr, nullptr, 0, nullptr}};
PyGetSetDef agent_getset[] = {{"name", agent_name, nullptr, nullptr, nullptr},
			      {nullptr, nullptr, nullptr, nullptr, nullptr}};

/* ---- the module ------------------------------------------------------------------------------ */
PyObject *mod_throw(PyObject *, PyObject *args)
{
	return arm_throw(args, nixl_test_throw, "function");
}

PyObject *mod_error(PyObject *, PyObject *args)
{
	const char *prefix;
	int status;

	if (!PyArg_ParseTuple(args, "si", &prefix, &status))
		return nullptr;
	nixl_test_error(prefix, status);
	Py_RETURN_NONE;
}

PyMethodDef module_methods[] = {
	{"test_throw", mod_throw, METH_VARARGS, "(function or None): make that call throw"},
	{"test_error", mod_error, METH_VARARGS, "(notif prefix, status): inject, 0 ends it"},
	{nullptr, nullptr, 0, nullptr}};
PyModuleDef module_def = {PyModuleDef_HEAD_INIT,
			  "_nixl_standin",
			  "Binding of the stand-in transfer library.",
			  -1,
			  module_methods,
			  nullptr,
			  nullptr,
			  nullptr,
			  nullptr};

PyObject *new_error(PyObject *m, const char *name, PyObject *base)
{
	std::string full = std::string("_nixl_standin.") + name;
	PyObject *e = PyErr_NewException(full.c_str(), base, nullptr);

	if (e && PyModule_AddObjectRef(m, name, e))
		Py_CLEAR(e);
	return e;
}
} // namespace

PyMODINIT_FUNC PyInit__nixl_standin()
{
	PyObject *m;

	agent_type.tp_new = PyType_GenericNew;
	agent_type.tp_init = agent_init;
	agent_type.tp_methods = agent_methods;
	agent_type.tp_getset = agent_getset;
	handle_type.tp_getset = handle_getset;
	if (!type_ready(dlist_type, "_nixl_standin.Dlist", sizeof(DlistObject), dlist_dealloc) ||
	    !type_ready(handle_type, "_nixl_standin.Handle", sizeof(HandleObject),
			handle_dealloc) ||
	    !type_ready(agent_type, "_nixl_standin.Agent", sizeof(AgentObject), agent_dealloc))
		return nullptr;
	m = PyModule_Create(&module_def);
	if (!m)
		return nullptr;
	err_base = new_error(m, "nixlError", PyExc_RuntimeError);
	err_disconnect = new_error(m, "nixlRemoteDisconnectError", err_base);
	err_backend = new_error(m, "nixlBackendError", err_base);
	err_canceled = new_error(m, "nixlCancelledError", err_base);
	if (!err_base || !err_disconnect || !err_backend || !err_canceled ||
	    PyModule_AddObjectRef(m, "Agent", reinterpret_cast<PyObject *>(&agent_type))) {
		Py_DECREF(m);
		return nullptr;
	}
	return m;
}
