// SPDX-License-Identifier: Apache-2.0
/*
 * A program of Mooncake's C API: what befalls a batch, one case after the other.
 *
 * usage: mooncake_app LIBRARY
 *
 * Says "ready", waits for a line (attach meanwhile), then opens a segment that is there and one
 * that is not, makes a batch that is written, one of two requests, one that fails, one that is
 * refused, and lets each function throw, with a call that works after it. Prints what happened:
 * {"segment": NAME, "batches": [[id, outcome, bytes or code]], "opened": [..], "thrown": N}.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace
{
struct request {
	int opcode;
	void *source;
	int32_t target_id;
	uint32_t file_id;
	uint64_t target_offset;
	uint64_t length;
};

struct status {
	int status;
	uint64_t transferred_bytes;
};

constexpr int write_opcode = 1, completed = 4, failed = 6; /* of Transport */
constexpr int throws = 20;

template <class F> F *function(void *library, const char *name)
{
	void *f = dlsym(library, name);

	if (!f)
		throw std::runtime_error(name);
	return reinterpret_cast<F *>(f);
}

struct Api {
	explicit Api(void *so)
	    : create(function<void *(const char *, const char *, const char *, uint64_t, int)>(
		      so, "createTransferEngine")),
	      where(function<int(void *, char *, size_t)>(so, "getLocalIpAndPort")),
	      add(function<int(void *, void *, size_t, const char *, int)>(so,
									   "registerLocalMemory")),
	      open(function<int32_t(void *, const char *)>(so, "openSegment")),
	      allocate(function<uint64_t(void *, size_t)>(so, "allocateBatchID")),
	      submit(function<int(void *, uint64_t, request *, size_t)>(so, "submitTransfer")),
	      ask(function<int(void *, uint64_t, size_t, status *)>(so, "getTransferStatus")),
	      free_batch(function<int(void *, uint64_t)>(so, "freeBatchID")),
	      progress(function<void(void *, int)>(so, "mooncake_test_progress")),
	      fail(function<void()>(so, "mooncake_test_fail")),
	      arm(function<int(const char *)>(so, "mooncake_test_throw"))
	{
	}
	void *(*create)(const char *, const char *, const char *, uint64_t, int);
	int (*where)(void *, char *, size_t);
	int (*add)(void *, void *, size_t, const char *, int);
	int32_t (*open)(void *, const char *);
	uint64_t (*allocate)(void *, size_t);
	int (*submit)(void *, uint64_t, request *, size_t);
	int (*ask)(void *, uint64_t, size_t, status *);
	int (*free_batch)(void *, uint64_t);
	void (*progress)(void *, int);
	void (*fail)();
	int (*arm)(const char *);
};

char memory[4096];

struct Pair {
	explicit Pair(void *so)
	    : api(so), writer(api.create("P2PHANDSHAKE", "127.0.0.1", "", 0, 0)),
	      reader(api.create("P2PHANDSHAKE", "127.0.0.1", "", 0, 0))
	{
		char name[64];

		api.add(writer, memory, 1024, "*", 1);
		api.add(reader, memory + 2048, 1024, "*", 1);
		api.where(reader, name, sizeof(name));
		segment = name;
	}

	/* Prints the batch, and what has become of it. */
	void batch(size_t requests, bool registered = true)
	{
		std::vector<request> all(requests);
		uint64_t id = api.allocate(writer, requests);
		status s = {};
		int code;

		for (size_t i = 0; i < requests; i++)
			all[i] = {write_opcode,
				  memory + (registered ? 0 : 2048) + 16 * i,
				  target,
				  0,
				  reinterpret_cast<uintptr_t>(memory + 2048 + 16 * i),
				  16};
		code = api.submit(writer, id, all.data(), requests);
		for (size_t i = 0; !code && i < requests; i++)
			do {
				api.ask(writer, id, i, &s);
				api.progress(reader, 0);
			} while (s.status != completed && s.status != failed);
		api.free_batch(writer, id);
		printf("%s[%llu, \"%s\", %d]", first ? "" : ", ",
		       static_cast<unsigned long long>(id),
		       code                    ? "refused"
		       : s.status == completed ? "written"
					       : "failed",
		       code);
		first = false;
	}

	template <class F> int thrown(const char *name, F call)
	{
		int n = 0;

		for (int i = 0; i < throws; i++) {
			call();
			api.arm(name);
			try {
				call();
			} catch (const std::runtime_error &e) {
				n += std::string(e.what()).find(name) != std::string::npos;
			}
			api.arm(nullptr);
			call();
		}
		return n;
	}

	Api api;
	void *writer, *reader;
	std::string segment;
	int32_t target = -1;
	bool first = true;
};

void run(Pair &p)
{
	int32_t absent = p.api.open(p.writer, "nowhere");
	uint64_t id;
	int thrown;

	p.target = p.api.open(p.writer, p.segment.c_str());
	printf("{\"segment\": \"%s\", \"opened\": [%d, %d], \"batches\": [", p.segment.c_str(),
	       absent, p.target);
	p.batch(1);
	p.batch(2);
	p.api.fail();
	p.batch(1);
	p.batch(1);
	p.batch(1, false); /* in the place of one that was fine */
	thrown = p.thrown("openSegment", [&] { p.api.open(p.writer, p.segment.c_str()); });
	id = p.api.allocate(p.writer, 0);
	thrown += p.thrown("submitTransfer", [&] { p.api.submit(p.writer, id, nullptr, 0); });
	thrown += p.thrown("freeBatchID", [&] {
		p.api.free_batch(p.writer, id);
		id = p.api.allocate(p.writer, 0);
	});
	printf("], \"thrown\": %d}\n", thrown);
}
} // namespace

int main(int argc, char **argv)
{
	void *so = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
	char line[8];

	if (!so) {
		fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: mooncake_app LIBRARY");
		return 2;
	}
	Pair pair(so);

	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	run(pair);
	return 0;
}
