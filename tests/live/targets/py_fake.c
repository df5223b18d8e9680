// SPDX-License-Identifier: Apache-2.0
/* A process that claims to be a CPython of version FAKE_VERSION (the number PY_VERSION_HEX),
 * free-threaded if FAKE_FREE_THREADED, by what CPython from 3.11 and 3.13 on exports. Nothing else
 * of it is there to be read. */
#include <stdint.h>
#include <stdio.h>

const unsigned long Py_Version = FAKE_VERSION;

/* the head of _Py_DebugOffsets in CPython 3.13 (Include/internal/pycore_runtime.h) */
__attribute__((section(".PyRuntime"))) struct {
	char cookie[8];
	uint64_t version, free_threaded;
	char rest[4096];
} _PyRuntime = {"xdebugpy", FAKE_VERSION, FAKE_FREE_THREADED, {0}};

int main(void)
{
	puts("ready");
	fflush(stdout);
	return getchar() == EOF;
}
