// SPDX-License-Identifier: Apache-2.0
/*
 * Python module mooncake.engine, with the library linked into it as in the wheel. The GIL is
 * released during every call, and a synchronous transfer polls on the calling thread until it has
 * ended, or until its time is up: 30 s, or MC_TRANSFER_TIMEOUT, and 1 ns a byte.
 */
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "mooncake.h"
#include "mooncake_hooks.h"
#include "pycall.h"

namespace
{
using mooncake::Transport;
using Clock = std::chrono::steady_clock;

struct Caller {
	mooncake::TransferEngine engine;
	std::mutex lock;
	std::map<std::string, uint64_t> handles; /* of the segments opened before */
	std::chrono::nanoseconds timeout{std::chrono::seconds(30)};
	std::chrono::microseconds poll_sleep{60}; /* the real one spins */
};
struct EngineObject {
	PyObject ob_base;
	Caller *caller;
};
PyTypeObject engine_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

bool segment_of(Caller &c, const std::string &target, uint64_t &handle)
{
	std::lock_guard<std::mutex> hold(c.lock);
	auto known = c.handles.find(target);

	if (known != c.handles.end()) {
		handle = known->second;
		return true;
	}
	handle = c.engine.openSegment(target);
	if (handle == static_cast<uint64_t>(-1))
		return false;
	c.handles[target] = handle;
	return true;
}

/* 0 done, -1 failed or too late. A batch that is not over when it is freed stays busy. */
int wait_for(Caller &c, uint64_t batch, size_t requests, uint64_t bytes)
{
	auto end = Clock::now() + c.timeout + std::chrono::nanoseconds(bytes);
	Transport::TransferStatus status = {};

	while (Clock::now() < end) {
		if (requests == 1)
			c.engine.getTransferStatus(batch, 0, status);
		else
			c.engine.getBatchTransferStatus(batch, status);
		if (status.s == Transport::COMPLETED || status.s == Transport::FAILED)
			break;
		std::this_thread::sleep_for(c.poll_sleep);
	}
	c.engine.freeBatchID(batch);
	return status.s == Transport::COMPLETED ? 0 : -1;
}

int write_sync(Caller &c, const std::string &target, const std::vector<uint64_t> &from,
	       const std::vector<uint64_t> &to, const std::vector<uint64_t> &lengths)
{
	std::vector<Transport::TransferRequest> entries(from.size());
	uint64_t handle, batch, bytes = 0;

	if (from.size() != to.size() || from.size() != lengths.size() ||
	    !segment_of(c, target, handle))
		return -1;
	for (size_t i = 0; i < entries.size(); i++) {
		entries[i].opcode = Transport::TransferRequest::WRITE;
		entries[i].source = reinterpret_cast<void *>(from[i]);
		entries[i].target_id = handle;
		entries[i].target_offset = to[i];
		entries[i].length = lengths[i];
		bytes += lengths[i];
	}
	batch = c.engine.allocateBatchID(entries.size());
	if (!c.engine.submitTransfer(batch, entries).ok()) {
		c.engine.freeBatchID(batch);
		return -1;
	}
	return wait_for(c, batch, entries.size(), bytes);
}

Caller *ready(PyObject *self)
{
	return reinterpret_cast<EngineObject *>(self)->caller;
}

int engine_init(PyObject *self, PyObject *, PyObject *)
{
	auto *e = reinterpret_cast<EngineObject *>(self);
	const char *seconds = getenv("MC_TRANSFER_TIMEOUT");

	if (e->caller) {
		PyErr_SetString(PyExc_RuntimeError, "already initialised");
		return -1;
	}
	e->caller = made_by([] { return new Caller(); });
	if (!e->caller)
		return -1;
	if (seconds)
		e->caller->timeout = std::chrono::seconds(atoi(seconds));
	return 0;
}

void engine_dealloc(PyObject *self)
{
	delete reinterpret_cast<EngineObject *>(self)->caller;
	Py_TYPE(self)->tp_free(self);
}

/* initialize(host name, metadata server, protocol, device): all that is needed exists already */
PyObject *initialize(PyObject *, PyObject *)
{
	return PyLong_FromLong(0);
}

PyObject *get_rpc_port(PyObject *self, PyObject *)
{
	return PyLong_FromLong(ready(self)->engine.rpcPort());
}

PyObject *register_memory(PyObject *self, PyObject *args)
{
	unsigned long long addr, len;

	if (!PyArg_ParseTuple(args, "KK", &addr, &len))
		return nullptr;
	return PyLong_FromLong(
		ready(self)->engine.registerLocalMemory(reinterpret_cast<void *>(addr), len));
}

PyObject *transfer(PyObject *self, const char *target, const std::vector<uint64_t> &from,
		   const std::vector<uint64_t> &to, const std::vector<uint64_t> &lengths)
{
	std::string peer(target);
	int rc = -1;

	if (!unlocked([&] { rc = write_sync(*ready(self), peer, from, to, lengths); }))
		return nullptr;
	return PyLong_FromLong(rc);
}

PyObject *transfer_sync_write(PyObject *self, PyObject *args)
{
	unsigned long long from, to, len;
	const char *target;

	if (!PyArg_ParseTuple(args, "sKKK", &target, &from, &to, &len))
		return nullptr;
	return transfer(self, target, {from}, {to}, {len});
}

PyObject *batch_transfer_sync_write(PyObject *self, PyObject *args)
{
	std::vector<uint64_t> from, to, lengths;
	PyObject *a, *b, *c;
	const char *target;

	if (!PyArg_ParseTuple(args, "sOOO", &target, &a, &b, &c) || !ints_from(a, from) ||
	    !ints_from(b, to) || !ints_from(c, lengths))
		return nullptr;
	return transfer(self, target, from, to, lengths);
}

PyObject *open_segment(PyObject *self, PyObject *args)
{
	const char *target;
	uint64_t handle = 0;

	if (!PyArg_ParseTuple(args, "s", &target))
		return nullptr;
	std::string name(target);

	if (!unlocked([&] { handle = ready(self)->engine.openSegment(name); }))
		return nullptr;
	return PyLong_FromUnsignedLongLong(handle);
}

PyObject *progress(PyObject *self, PyObject *args)
{
	return progress_of(ready(self)->engine, args);
}

PyObject *set_rate(PyObject *self, PyObject *args)
{
	return with_number(args, [&](uint64_t rate) { ready(self)->engine.setRate(rate); });
}

/* pending() -> [(peer, bytes, sent)] of what is submitted and not complete */
PyObject *pending(PyObject *self, PyObject *)
{
	std::vector<mooncake::TransferEngine::Pending> all;

	if (!unlocked([&] { all = ready(self)->engine.pending(); }))
		return nullptr;
	return list_of(all, [](auto &p) {
		return Py_BuildValue("(sKK)", p.peer.c_str(),
				     static_cast<unsigned long long>(p.bytes),
				     static_cast<unsigned long long>(p.sent));
	});
}

PyMethodDef engine_methods[] = {
	{"initialize", initialize, METH_VARARGS, "(host name, metadata server, protocol, device)"},
	{"get_rpc_port", get_rpc_port, METH_NOARGS, "the port of its segment"},
	{"register_memory", register_memory, METH_VARARGS, "(address, length)"},
	{"transfer_sync_write", transfer_sync_write, METH_VARARGS,
	 "(segment, from, to, length) -> 0 or -1"},
	{"batch_transfer_sync_write", batch_transfer_sync_write, METH_VARARGS,
	 "(segment, [from], [to], [length]) -> 0 or -1"},
	{"open_segment", open_segment, METH_VARARGS, "(segment) -> id, without the cache"},
	{"progress", progress, METH_VARARGS, "(timeout_ms=0)"},
	{"set_rate", set_rate, METH_VARARGS, "(bytes_per_s): receiving, 0 for no limit"},
	{"pending", pending, METH_NOARGS, "[(peer, bytes, sent)]"},
	{nullptr, nullptr, 0, nullptr}};

PyObject *mod_throw(PyObject *, PyObject *args)
{
	return arm_throw(args, mooncake_test_throw, "method");
}

PyObject *mod_room(PyObject *, PyObject *args)
{
	return with_number(args, mooncake_test_room);
}

PyObject *mod_batches(PyObject *, PyObject *)
{
	return list_of(mooncake::test_batches(), [](auto &b) {
		return Py_BuildValue("(KK)", static_cast<unsigned long long>(b.batch_id),
				     static_cast<unsigned long long>(b.room));
	});
}

PyObject *mod_fail(PyObject *, PyObject *)
{
	mooncake_test_fail();
	Py_RETURN_NONE;
}

PyObject *mod_copy(PyObject *, PyObject *args)
{
	return with_number(args, mooncake_test_copy);
}

PyObject *mod_block(PyObject *, PyObject *)
{
	mooncake_test_block();
	Py_RETURN_NONE;
}

PyObject *mod_unblock(PyObject *, PyObject *)
{
	mooncake_test_unblock();
	Py_RETURN_NONE;
}

PyMethodDef module_methods[] = {
	{"test_throw", mod_throw, METH_VARARGS, "(method or None): make that call throw"},
	{"test_room", mod_room, METH_VARARGS, "(room): this thread's next submissions are of it"},
	{"test_batches", mod_batches, METH_NOARGS, "[(batch, room)] of the last submissions"},
	{"test_fail", mod_fail, METH_NOARGS, "this thread's next submission fails"},
	{"test_copy", mod_copy, METH_VARARGS, "(bytes): this thread's next submission copies them"},
	{"test_block", mod_block, METH_NOARGS, "this thread's next submission blocks"},
	{"test_unblock", mod_unblock, METH_NOARGS, "what blocks goes on"},
	{nullptr, nullptr, 0, nullptr}};
PyModuleDef module_def = {PyModuleDef_HEAD_INIT,
			  "engine",
			  "Binding of the stand-in transfer engine.",
			  -1,
			  module_methods,
			  nullptr,
			  nullptr,
			  nullptr,
			  nullptr};
} // namespace

PyMODINIT_FUNC PyInit_engine()
{
	PyObject *m;

	engine_type.tp_new = PyType_GenericNew;
	engine_type.tp_init = engine_init;
	engine_type.tp_methods = engine_methods;
	if (!type_ready(engine_type, "mooncake.engine.TransferEngine", sizeof(EngineObject),
			engine_dealloc))
		return nullptr;
	m = PyModule_Create(&module_def);
	if (m &&
	    PyModule_AddObjectRef(m, "TransferEngine", reinterpret_cast<PyObject *>(&engine_type)))
		Py_CLEAR(m);
	return m;
}
