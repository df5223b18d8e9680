// SPDX-License-Identifier: Apache-2.0
/* Preloaded into silentpin: it may look at another process, but not into its memory, as under a
 * security module. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/uio.h>

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long nlocal,
			 const struct iovec *remote, unsigned long nremote, unsigned long flags)
{
	(void)pid, (void)local, (void)nlocal, (void)remote, (void)nremote, (void)flags;
	errno = EPERM;
	return -1;
}

int open(const char *path, int flags, ...)
{
	size_t len = strlen(path);
	int (*next)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (len > 4 && !strncmp(path, "/proc/", 6) && !strcmp(path + len - 4, "/mem")) {
		errno = EACCES;
		return -1;
	}
	return next(path, flags, mode);
}
