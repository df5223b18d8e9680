/* SPDX-License-Identifier: Apache-2.0 */
/* What the file of an interpreter says about itself. */
#ifndef SP_PYTHON_PYELF_H
#define SP_PYTHON_PYELF_H

#include <stdint.h>

/* Addresses are the file's own; 0: it has none. */
struct pyelf {
	uint64_t runtime;    /* _PyRuntime, or the section .PyRuntime */
	uint64_t version;    /* Py_Version (3.11 and later), an unsigned long */
	uint64_t exec_start; /* the page that its first executable mapping begins with */
	int minor;           /* 9 where "python3.9" is a string of its read-only data; 0: no such
				string, or several that contradict each other */
};

/* -ENOENT: an ELF file without an interpreter; -ENOEXEC: no ELF file of 64 bits, or a torn one. */
int pyelf_read(int fd, struct pyelf *out);

#endif
