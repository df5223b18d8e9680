// SPDX-License-Identifier: Apache-2.0
/*
 * The program that the tests and benchmarks of verbs watch: everything goes through the real
 * <infiniband/verbs.h>. Steps of its threads (steps.h):
 *   open FILE                 load a provider, and open its device
 *   qp N                      make queue pair N (0 to 7); its number
 *   destroy N, reset N        and destroy it, or reset its state
 *   write N COUNT [BYTES [quiet]]  COUNT requests in one call; quiet: only the last one asks for a
 *                             completion; result of the call
 *   poll, drain COUNT         ibv_poll_cq once; until so many have come: status of each
 *   fill, arrived             fresh bytes; 1 when the last writes' bytes are all there
 *   stall N, release N, fail N STATUS, limit N COUNT, block FUNCTION, unblock, waiting N  standin.h
 *   event TYPE N, async       an asynchronous event for queue pair N; fetch one: its type
 *   send ROOM ... leave       what is between runs inside the transport's call
 *   announce ROOM, close OP, status OP ANSWER   of the transport; OP 0: this thread's last one
 *   burst CALLS REPEATS PAUSE_MS poll | write N   the least ns that a call took
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "standin.h"
#include "steps.h"

#define MAX_QPS   8
#define MAX_LIST  32
#define MAX_BYTES 4096

/* The provider, as the program finds it. */
static __typeof__(standin_open) *dev_open;
static __typeof__(standin_stall) *dev_stall;
static __typeof__(standin_fail) *dev_fail;
static __typeof__(standin_limit) *dev_limit;
static __typeof__(standin_block) *dev_block;
static __typeof__(standin_event) *dev_event;
static __typeof__(standin_waiting) *dev_waiting;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qps[MAX_QPS];
static char from[MAX_QPS][MAX_LIST][MAX_BYTES], to[MAX_QPS][MAX_LIST][MAX_BYTES];

static int do_open(const char *file)
{
	void *lib = dlopen(file, RTLD_NOW);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	dev_open = dlsym(lib, "standin_open");
	dev_stall = dlsym(lib, "standin_stall");
	dev_fail = dlsym(lib, "standin_fail");
	dev_limit = dlsym(lib, "standin_limit");
	dev_block = dlsym(lib, "standin_block");
	dev_event = dlsym(lib, "standin_event");
	dev_waiting = dlsym(lib, "standin_waiting");
	ctx = dev_open();
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	cq = pd ? ibv_create_cq(ctx, 256, NULL, NULL, 0) : NULL;
	return cq ? 0 : -1;
}

static int make_qp(struct worker *w, unsigned n)
{
	struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};

	qps[n] = ibv_create_qp(pd, &attr);
	if (!qps[n])
		return -1;
	say(w, " %u", qps[n]->qp_num);
	return 0;
}

static int post(unsigned n, unsigned count, unsigned bytes, bool quiet)
{
	struct ibv_send_wr wr[MAX_LIST], *bad;
	struct ibv_sge sge[MAX_LIST];

	for (unsigned i = 0; i < count; i++) {
		sge[i] =
			(struct ibv_sge){.addr = (uintptr_t)from[n][i], .length = bytes, .lkey = 1};
		wr[i] = (struct ibv_send_wr){
			.wr_id = n << 8 | i,
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = quiet && i + 1 < count ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {.remote_addr = (uintptr_t)to[n][i], .rkey = 1},
		};
	}
	return ibv_post_send(qps[n], wr, &bad);
}

static void drain(struct worker *w, int count)
{
	struct ibv_wc wc[MAX_LIST];

	while (count > 0) {
		int got = ibv_poll_cq(cq, MAX_LIST, wc);

		for (int i = 0; i < got; i++)
			say(w, " %d", wc[i].status);
		count -= got;
		if (!got)
			sched_yield();
	}
}

static int burst(struct worker *w, const char *text)
{
	unsigned calls, repeats, pause, n = 0;
	double least = 1e18;
	struct ibv_wc wc;
	char what[16];

	if (sscanf(text, "burst %u %u %u %15s %u", &calls, &repeats, &pause, what, &n) < 4 ||
	    !calls)
		return -1;
	for (unsigned r = 0; r < repeats; r++) {
		uint64_t start = now_ns();
		double each;

		for (unsigned i = 0; i < calls; i++) {
			if (!strcmp(what, "poll"))
				ibv_poll_cq(cq, 1, &wc);
			else
				post(n, 1, 8, true);
		}
		each = (double)(now_ns() - start) / calls;
		least = each < least ? each : least;
		if (strcmp(what, "poll"))
			for (unsigned got = 0; got < calls;)
				got += (unsigned)ibv_poll_cq(cq, 1, &wc);
		usleep(pause * 1000);
	}
	say(w, " %.2f", least);
	return 0;
}

static void fill(void)
{
	static unsigned char next;

	memset(to, 0, sizeof(to));
	memset(from, ++next | 1, sizeof(from));
}

static bool arrived(unsigned n, unsigned count, unsigned bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (memcmp(from[n][i], to[n][i], bytes))
			return false;
	return true;
}

static int fetch_event(struct worker *w)
{
	struct ibv_async_event event;

	if (ibv_get_async_event(ctx, &event))
		return -1;
	say(w, " %d", event.event_type);
	ibv_ack_async_event(&event);
	return 0;
}

static int do_verbs(struct worker *w, const char *text)
{
	unsigned n = 0, count = 1, bytes = 64;
	char word[256] = "";
	struct ibv_wc wc;

	if (sscanf(text, "open %255s", word) == 1)
		return do_open(word);
	if (!strcmp(text, "fill")) {
		fill();
		return 0;
	}
	if (!ctx ||
	    (strpbrk(text, "01234567") && sscanf(strpbrk(text, "01234567"), "%u", &n) == 1 &&
	     n >= MAX_QPS && strncmp(text, "drain", 5) && strncmp(text, "event", 5)))
		return -1;
	if (sscanf(text, "qp %u", &n) == 1)
		return make_qp(w, n);
	if (sscanf(text, "destroy %u", &n) == 1) {
		say(w, " %d", ibv_destroy_qp(qps[n]));
		qps[n] = NULL;
		return 0;
	}
	if (sscanf(text, "reset %u", &n) == 1) {
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

		say(w, " %d", ibv_modify_qp(qps[n], &attr, IBV_QP_STATE));
		return 0;
	}
	if (sscanf(text, "write %u %u %u %7s", &n, &count, &bytes, word) >= 1) {
		if (!qps[n] || count > MAX_LIST || bytes > MAX_BYTES)
			return -1;
		say(w, " %d", post(n, count, bytes, !strcmp(word, "quiet")));
	} else if (!strcmp(text, "poll")) {
		say(w, " %d", ibv_poll_cq(cq, 1, &wc));
	} else if (sscanf(text, "drain %u", &count) == 1) {
		drain(w, (int)count);
	} else if (sscanf(text, "arrived %u %u %u", &n, &count, &bytes) >= 1) {
		say(w, " %d", arrived(n, count, bytes));
	} else if (!strcmp(text, "async")) {
		return fetch_event(w);
	} else {
		return -1;
	}
	return 0;
}

static int do_control(struct worker *w, const char *text)
{
	unsigned n, code;
	char word[32];

	if (sscanf(text, "stall %u", &n) == 1)
		dev_stall(qps[n], true);
	else if (sscanf(text, "release %u", &n) == 1)
		dev_stall(qps[n], false);
	else if (sscanf(text, "fail %u %u", &n, &code) == 2)
		dev_fail(qps[n], code);
	else if (sscanf(text, "limit %u %u", &n, &code) == 2)
		dev_limit(qps[n], code);
	else if (sscanf(text, "block %31s", word) == 1)
		dev_block(!strcmp(word, "poll_cq") ? "poll_cq" : "post_send");
	else if (!strcmp(text, "unblock"))
		dev_block(NULL);
	else if (sscanf(text, "waiting %u", &n) == 1)
		say(w, " %d", dev_waiting(qps[n]));
	else if (sscanf(text, "event %u %u", &code, &n) == 2)
		return dev_event(ctx, code, qps[n]);
	else
		return -1;
	return 0;
}

/* Up to `leave`, or the end. */
void run_steps(void *arg)
{
	struct worker *w = arg;

	while (w->at < w->nsteps) {
		const char *text = w->step[w->at++];

		if (!strcmp(text, "leave"))
			return;
		if (!strncmp(text, "burst ", 6)
			    ? burst(w, text)
			    : do_transport(w, text) && do_control(w, text) && do_verbs(w, text))
			say(w, " what?");
	}
}

int worker_init(struct worker *w)
{
	return 0;
}

int main(void)
{
	return serve();
}
