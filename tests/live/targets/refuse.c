// SPDX-License-Identifier: Apache-2.0
/*
 * refuse NUMBER COMMAND...: the command and all its children find this system call refused, in
 * whoever's name it is made. So it is for return probes on the kernels that ask a process's seccomp
 * filter about them (x86-64, number 335). Exit code: the command's.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define CALL ((void *)offsetof(struct user_regs_struct, orig_rax))

#define FOLLOW                                                                                     \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
	 PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)

/* The signal to be passed on. */
static int stopped(pid_t pid, int status, long refused)
{
	int sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80)) {
		if (ptrace(PTRACE_PEEKUSER, pid, CALL, NULL) == refused) {
			fprintf(stderr, "refused: %ld in %d\n", refused, pid);
			ptrace(PTRACE_POKEUSER, pid, CALL, -1L); /* no call: -ENOSYS */
		}
		return 0;
	}
	/* an event, or the first stop of a new thread */
	return status >> 16 || sig == SIGSTOP ? 0 : sig;
}

static int follow(pid_t command, long refused)
{
	int status, rc = 1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status))
			ptrace(PTRACE_SYSCALL, pid, NULL, (long)stopped(pid, status, refused));
		else if (pid == command)
			rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return rc;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 2 ? fork() : -1;
	int status;

	if (pid < 0)
		return 2;
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || ptrace(PTRACE_SETOPTIONS, pid, NULL, FOLLOW))
		return 2;
	ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	return follow(pid, strtol(argv[1], NULL, 0));
}
#else
int main(void)
{
	return 2;
}
#endif
