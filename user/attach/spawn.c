// SPDX-License-Identifier: Apache-2.0
/* A command started under watch: it waits for its probes before its exec. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach.h"

/* In the child: wait for the word, become the command, or say why not. */
static void run_child(char *const argv[], int go, int status)
{
	sigset_t none;
	char c;
	int err;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	if (read(go, &c, 1) != 1)
		_exit(127); /* silentpin has given up */
	execvp(argv[0], argv);
	err = errno;
	if (write(status, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* 0 or errno */
static int may_run(const char *file)
{
	struct stat st;

	if (access(file, X_OK) || stat(file, &st))
		return errno;
	return S_ISREG(st.st_mode) ? 0 : EACCES;
}

/* Is there a file that execvp would take? 0, or an errno as it would give. */
static int find_program(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	int why = ENOENT;

	if (strchr(name, '/'))
		return may_run(name);
	if (!*name)
		return ENOENT;
	for (const char *end; path; path = end) {
		end = strchrnul(path, ':');
		snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - path), path,
			 end > path ? "/" : "", name);
		switch (may_run(file)) {
		case 0:
			return 0;
		case EACCES:
			why = EACCES;
			break;
		default:
			break;
		}
		end = *end ? end + 1 : NULL;
	}
	return getenv("PATH") ? why : 0;
}

int target_spawn(char *const argv[], struct target_child *c, struct sp_err *err)
{
	int go[2], status[2], why = find_program(argv[0]);
	pid_t pid;

	if (why)
		return sp_err_set(err, SP_EXIT_USAGE, -why, "%s: cannot be started: %s", argv[0],
				  strerror(why));
	if (pipe2(go, O_CLOEXEC))
		return sp_err_set(err, SP_EXIT_FAIL, -errno, "%s: cannot be started: %s", argv[0],
				  strerror(errno));
	if (pipe2(status, O_CLOEXEC)) {
		int rc = -errno;

		close(go[0]);
		close(go[1]);
		return sp_err_set(err, SP_EXIT_FAIL, rc, "%s: cannot be started: %s", argv[0],
				  strerror(-rc));
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(status[0]);
		run_child(argv, go[0], status[1]);
	}
	close(go[0]);
	close(status[1]);
	if (pid < 0) {
		int rc = -errno;

		close(go[1]);
		close(status[0]);
		return sp_err_set(err, SP_EXIT_FAIL, rc, "%s: cannot be started: %s", argv[0],
				  strerror(-rc));
	}
	*c = (struct target_child){.pid = pid, .go_fd = go[1], .status_fd = status[0]};
	return 0;
}

int target_go(struct target_child *c, const char *name, struct sp_err *err)
{
	int why = 0;
	ssize_t n;

	n = write(c->go_fd, "g", 1);
	close(c->go_fd);
	c->go_fd = -1;
	/* Nothing comes when the exec closes the pipe. */
	if (n == 1)
		do
			n = read(c->status_fd, &why, sizeof(why));
		while (n < 0 && errno == EINTR);
	else
		why = errno;
	close(c->status_fd);
	c->status_fd = -1;
	if (n == sizeof(why) || n < 0) {
		waitpid(c->pid, NULL, 0);
		return sp_err_set(err, SP_EXIT_USAGE, -why, "%s: cannot be started: %s", name,
				  strerror(why));
	}
	return 0;
}
