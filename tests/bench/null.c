// SPDX-License-Identifier: Apache-2.0
/*
 * usage: null OBJECT PID FILE OFFSET [RETURN]
 * The null program on one place of a file for one process, and on the return of the function that
 * begins at RETURN, by the kind of link that silentpin uses (multi, else perf). Says "multi" or
 * "perf" when it is in place, and removes it at the end of stdin.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/plan.h"
#include "attach/uprobe.h"

/* The links live until the exit. */
static const char *attach(struct bpf_program *prog, bool multi, int pid, const char *file,
			  size_t offset, const char *function)
{
	int (*link)(int, int, pid_t, struct uprobe_kind, const struct plan_site *, int,
		    struct links *) = multi ? uprobe_multi_link : uprobe_perf_link;
	struct plan_site site = {.offset = offset};
	struct plan_site begin = {.at_return = true,
				  .offset = function ? strtoul(function, NULL, 0) : 0};
	static struct links links;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0 ||
	    link(bpf_program__fd(prog), fd, pid, (struct uprobe_kind){0}, &site, 1, &links))
		return NULL;
	if (function && link(bpf_program__fd(prog), fd, pid,
			     (struct uprobe_kind){.at_return = true}, &begin, 1, &links)) {
		links_close(&links);
		return NULL;
	}
	return multi ? "multi" : "perf";
}

static int load(const char *object, enum bpf_attach_type type, struct bpf_program **prog)
{
	struct bpf_object *obj = bpf_object__open_file(object, NULL);

	*prog = obj ? bpf_object__find_program_by_name(obj, "null_hit") : NULL;
	if (!*prog)
		return -1;
	bpf_program__set_expected_attach_type(*prog, type);
	return bpf_object__load(obj);
}

int main(int argc, char **argv)
{
	struct bpf_program *prog;
	const char *how = NULL, *function = argc == 6 ? argv[5] : NULL;
	size_t offset;
	int pid;

	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: null OBJECT PID FILE OFFSET [RETURN]\n");
		return 2;
	}
	pid = atoi(argv[2]);
	offset = strtoul(argv[4], NULL, 0);
	if (!load(argv[1], SP_BPF_TRACE_UPROBE_MULTI, &prog))
		how = attach(prog, true, pid, argv[3], offset, function);
	if (!how && !load(argv[1], 0, &prog))
		how = attach(prog, false, pid, argv[3], offset, function);
	if (!how) {
		fprintf(stderr, "null: cannot attach: %s\n", strerror(errno));
		return 1;
	}
	puts(how);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
