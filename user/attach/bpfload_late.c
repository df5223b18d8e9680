// SPDX-License-Identifier: Apache-2.0
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/bpfload_late.h"
#include "util/cleanup.h"
#include "util/log.h"

#define LICENSE   "Dual BSD/GPL"
#define LOG_BYTES (1u << 20)
#define KEPT      12

struct program {
	struct bpf_insn *insn;
	size_t n;
	void *func_info; /* which functions are global: without it the verifier takes none */
	struct bpf_prog_load_opts opts;
	int fd; /* or -errno */
};

struct late {
	struct program prog[LATE_MAX];
	uint32_t id[LATE_MAX];
	pthread_t thread;
	bool running, started;
	pthread_mutex_t lock; /* of ndone */
	pthread_cond_t more;
	int ndone; /* programs that have been tried, in their order */
	int kept[KEPT], nkept;
};

static const struct {
	const char *name, *function;
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
} late_progs[LATE_MAX] = {
	[LATE_EACH] = {"hit_each", NULL, BPF_PROG_TYPE_KPROBE, 0},
	[LATE_LIBC] = {"sock_libc", NULL, BPF_PROG_TYPE_KPROBE, 0},
	[LATE_SYS] = {"sock_sys", NULL, BPF_PROG_TYPE_RAW_TRACEPOINT, 0},
	[LATE_ITER] = {"sock_iter", "bpf_iter_task_file", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER},
	/* the ends first: an end without its beginning is passed over */
	[LATE_TCP] = {"tcp_in", "tcp_recvmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
	{"tcp_out", "tcp_sendmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
	{"unix_in", "unix_stream_recvmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
	{"unix_out", "unix_stream_sendmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
	{"tcp_in_enter", "tcp_recvmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY},
	{"tcp_out_enter", "tcp_sendmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY},
	{"unix_in_enter", "unix_stream_recvmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY},
	{"unix_out_enter", "unix_stream_sendmsg", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY},
	{"unix_accepted", "unix_accept", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
	{"unix_connected", "unix_stream_connect", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT},
};

const char *late_function(enum late_prog which)
{
	return late_progs[which].function;
}

/* Of the object that is being opened and loaded: libbpf's handlers have no context of their own.
 * Objects are loaded one after the other. */
static struct late *present;

static void *copy_of(const void *from, size_t n)
{
	void *to = malloc(n);

	return to ? memcpy(to, from, n) : NULL;
}

static int number_of(const char *name)
{
	for (int i = 0; i < LATE_MAX; i++)
		if (!strcmp(late_progs[i].name, name))
			return i;
	return -1;
}

/*
 * libbpf has the program ready and is about to load it: it is taken aside, and libbpf loads one
 * that does nothing. So libbpf need not know either what an iterator is attached to: it would index
 * all of the kernel's types to find one function.
 */
static int take(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	int which = number_of(bpf_program__name(prog));
	struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	struct program *p = present && which >= 0 ? &present->prog[which] : NULL;

	if (!p)
		return -EINVAL;
	p->n = bpf_program__insn_cnt(prog);
	p->insn = copy_of(bpf_program__insns(prog), p->n * sizeof(*p->insn));
	p->func_info =
		copy_of(opts->func_info, (size_t)opts->func_info_cnt * opts->func_info_rec_size);
	if (!p->insn || !p->func_info)
		return -ENOMEM;
	p->opts = *opts;
	p->opts.func_info = p->func_info;
	p->opts.line_info_cnt = 0;
	p->opts.line_info = NULL;
	if (late_progs[which].function) {
		p->opts.expected_attach_type = late_progs[which].attach;
		p->opts.attach_btf_id = present->id[which];
	}
	opts->func_info_cnt = 0;
	opts->line_info_cnt = 0;
	return bpf_program__set_insns(prog, nothing, sizeof(nothing) / sizeof(nothing[0]));
}

static void teach_libbpf(void)
{
	/* as far as libbpf knows, none is attached to a function, see take() */
	static const struct {
		const char *section;
		enum bpf_prog_type type;
	} known[] = {
		{"sp_uprobe", BPF_PROG_TYPE_KPROBE},
		{"sp_raw_tp", BPF_PROG_TYPE_RAW_TRACEPOINT},
		{"sp_iter", BPF_PROG_TYPE_RAW_TRACEPOINT},
		{"sp_fentry", BPF_PROG_TYPE_RAW_TRACEPOINT},
		{"sp_fexit", BPF_PROG_TYPE_RAW_TRACEPOINT},
	};
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts);
	static bool done;

	opts.prog_prepare_load_fn = take;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && !done; i++)
		if (libbpf_register_prog_handler(known[i].section, known[i].type, 0, &opts) < 0)
			pr_debug("sockets: libbpf takes no section %s", known[i].section);
	done = true;
}

struct late *late_open(const struct kbtf_func func[LATE_MAX])
{
	struct late *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	for (int i = 0; i < LATE_MAX; i++) {
		l->prog[i].fd = -EOPNOTSUPP;
		l->id[i] = func[i].id;
	}
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, NULL);
	present = l;
	teach_libbpf();
	return l;
}

/* Again, for the kernel's reason: its last lines. */
static void say_why(struct program *p, int which)
{
	__free char *log = malloc(LOG_BYTES);
	int fd;

	if (!log || sp_verbosity < SP_DEBUG)
		return;
	log[0] = 0;
	p->opts.log_buf = log;
	p->opts.log_size = LOG_BYTES;
	p->opts.log_level = 1;
	fd = bpf_prog_load(late_progs[which].type, late_progs[which].name, LICENSE, p->insn, p->n,
			   &p->opts);
	if (fd >= 0)
		close(fd);
	for (char *line = strtok(log, "\n"); line; line = strtok(NULL, "\n"))
		pr_debug("%s: %s", late_progs[which].name, line);
}

static void load_one(struct program *p, int which)
{
	if (!p->n)
		return;
	p->fd = bpf_prog_load(late_progs[which].type, late_progs[which].name, LICENSE, p->insn,
			      p->n, &p->opts);
	if (p->fd >= 0)
		return;
	p->fd = -errno;
	pr_debug("%s: %s", late_progs[which].name, strerror(-p->fd));
	say_why(p, which);
}

static void *load_all(void *arg)
{
	struct late *l = arg;

	for (int i = 0; i < LATE_MAX; i++) {
		load_one(&l->prog[i], i);
		pthread_mutex_lock(&l->lock);
		l->ndone = i + 1;
		pthread_cond_broadcast(&l->more);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

void late_start(struct late *l)
{
	if (present == l)
		present = NULL;
	l->started = true;
	l->running = !pthread_create(&l->thread, NULL, load_all, l);
	if (!l->running)
		load_all(l);
}

static void finish(struct late *l)
{
	if (l->running)
		pthread_join(l->thread, NULL);
	l->running = false;
}

int late_fd(struct late *l, enum late_prog which)
{
	if (!l)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&l->lock);
	while (l->started && l->ndone <= (int)which)
		pthread_cond_wait(&l->more, &l->lock);
	pthread_mutex_unlock(&l->lock);
	return l->prog[which].fd;
}

int late_keep(struct late *l, int fd)
{
	if (l->nkept < KEPT)
		l->kept[l->nkept++] = fd;
	else
		close(fd);
	return 0;
}

void late_close(struct late *l)
{
	if (!l)
		return;
	if (present == l)
		present = NULL;
	finish(l);
	pthread_cond_destroy(&l->more);
	pthread_mutex_destroy(&l->lock);
	for (int i = 0; i < l->nkept; i++)
		close(l->kept[i]);
	for (int i = 0; i < LATE_MAX; i++) {
		if (l->prog[i].fd >= 0)
			close(l->prog[i].fd);
		free(l->prog[i].insn);
		free(l->prog[i].func_info);
	}
	free(l);
}
