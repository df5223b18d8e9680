// SPDX-License-Identifier: Apache-2.0
/*
 * Where each version keeps what. Measured with offsetof() on the headers of
 * CPython 3.10.13, 3.11.7, 3.12.1 and 3.13.0 (64-bit, with the GIL): scripts/py-offsets.c prints
 * such a table from the headers of any version. The layout of a minor version does not change
 * between its releases.
 */
#include <stddef.h>

#include "python/runtime.h"

#define NONE PY_NO_OFFSET

static const struct py_layout layouts[] = {
	{
		.minor = 10,
		.attrs = PY_ATTRS_DICTOFFSET,
		.runtime = {.interpreters_head = 32},
		.interp = {.next = 0, .threads_head = 8, .modules = 856, .sysdict = 872},
		.thread = {.next = 8,
			   .interp = 16,
			   .cframe = NONE,
			   .frame = 24,
			   .thread_id = 176,
			   .native_id = NONE},
		.cframe_frame = NONE,
		.frame = {.code = 32,
			  .back = 24,
			  .locals = 352,
			  .owner = NONE,
			  .lasti = 96,
			  .obj = NONE},
		.code = {.name = 112,
			 .qualname = NONE,
			 .filename = 104,
			 .firstlineno = 40,
			 .linetable = 120,
			 .localnames = 72,
			 .code_start = NONE,
			 .cellvars = 88,
			 .freevars = 80},
		.str = {.ascii_data = 48, .compact_data = 72},
		.heap_cached_keys = 872,
		.keys_nentries = 32,
		.keys_indices = 40,
	},
	{
		.minor = 11,
		.attrs = PY_ATTRS_311,
		.runtime = {.interpreters_head = 40},
		.interp = {.next = 0, .threads_head = 16, .modules = 888, .sysdict = 904},
		.thread = {.next = 8,
			   .interp = 16,
			   .cframe = 56,
			   .frame = NONE,
			   .thread_id = 152,
			   .native_id = 160},
		.cframe_frame = 8,
		.frame =
			{.code = 32, .back = 48, .locals = 72, .owner = 69, .lasti = 56, .obj = 40},
		.code = {.name = 120,
			 .qualname = 128,
			 .filename = 112,
			 .firstlineno = 72,
			 .linetable = 136,
			 .localnames = 96,
			 .code_start = 184,
			 .cellvars = NONE,
			 .freevars = NONE},
		.str = {.ascii_data = 48, .compact_data = 72},
		.heap_cached_keys = 872,
		.keys_nentries = 24,
		.keys_indices = 32,
	},
	{
		.minor = 12,
		.attrs = PY_ATTRS_312,
		.runtime = {.interpreters_head = 40},
		.interp = {.next = 0, .threads_head = 72, .modules = 944, .sysdict = 352},
		.thread = {.next = 8,
			   .interp = 16,
			   .cframe = 56,
			   .frame = NONE,
			   .thread_id = 136,
			   .native_id = 144},
		.cframe_frame = 0,
		.frame = {.code = 0, .back = 8, .locals = 72, .owner = 70, .lasti = 56, .obj = 48},
		.code = {.name = 120,
			 .qualname = 128,
			 .filename = 112,
			 .firstlineno = 68,
			 .linetable = 136,
			 .localnames = 96,
			 .code_start = 192,
			 .cellvars = NONE,
			 .freevars = NONE},
		.str = {.ascii_data = 40, .compact_data = 56},
		.heap_cached_keys = 880,
		.keys_nentries = 24,
		.keys_indices = 32,
		.int_tagged = true,
		.owner_skip = 3, /* FRAME_OWNED_BY_CSTACK */
	},
	{
		/* The debug offsets at _PyRuntime overrule what they name: see locate.c. */
		.minor = 13,
		.attrs = PY_ATTRS_313,
		.runtime = {.interpreters_head = 632},
		.interp = {.next = 7264, .threads_head = 7344, .modules = 7656, .sysdict = 7640},
		.thread = {.next = 8,
			   .interp = 16,
			   .cframe = NONE,
			   .frame = 72,
			   .thread_id = 152,
			   .native_id = 160},
		.cframe_frame = NONE,
		.frame = {.code = 0, .back = 8, .locals = 72, .owner = 70, .lasti = 56, .obj = 48},
		.code = {.name = 120,
			 .qualname = 128,
			 .filename = 112,
			 .firstlineno = 68,
			 .linetable = 136,
			 .localnames = 96,
			 .code_start = 200,
			 .cellvars = NONE,
			 .freevars = NONE},
		.str = {.ascii_data = 40, .compact_data = 56},
		.heap_cached_keys = 880,
		.keys_nentries = 24,
		.keys_indices = 32,
		.values_header = 8,
		.int_tagged = true,
		.owner_skip = 3,
	},
};

const struct py_layout *py_layout(int minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}
