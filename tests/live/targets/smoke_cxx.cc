// SPDX-License-Identifier: Apache-2.0
// C++ functions that the attach smoke test probes: one takes strings, one throws.
#include <optional>
#include <stdexcept>
#include <string>

static volatile long sink;

struct SmokeOptions {
	long pad;
	std::optional<std::string> note;
};

__attribute__((noinline)) long smoke_string(const std::string &s, const SmokeOptions *o)
{
	sink += static_cast<long>(s.size());
	return o && o->note ? static_cast<long>(o->note->size()) : -1;
}

__attribute__((noinline)) long smoke_throw(long n)
{
	sink += n;
	if (n % 2)
		throw std::runtime_error("odd");
	return n / 2;
}

extern "C" long smoke_call_string(const char *s, const char *note)
{
	SmokeOptions o{7, std::nullopt};

	if (note)
		o.note = note;
	return smoke_string(s, &o);
}

// Catches what it throws: 1 when it has thrown.
extern "C" int smoke_call_throw(long n)
{
	try {
		smoke_throw(n);
		return 0;
	} catch (const std::runtime_error &) {
		return 1;
	}
}
