// SPDX-License-Identifier: Apache-2.0
/*
 * The provider: an engine thread moves what queue pairs are given, in their order, and leaves a
 * completion for each request that asks for one, or fails. Built twice; with HIDDEN the table of
 * operations is one of two chosen at run time, so that the file alone does not tell it.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "slots.h"
#include "standin.h"

#define DEPTH    1024
#define SGES     4
#define MAX_QPS  64
#define EXPORT   __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))

/* As in real providers: a call, not a jump, behind a prologue that saves registers. */
#ifdef __x86_64__
#define LIKE_REAL(result) __asm__ volatile("" : "+r"(result) : : "rbx")
#else
#define LIKE_REAL(result) __asm__ volatile("" : "+r"(result) : : "x19")
#endif

void verbs_set_ops(struct verbs_context *vctx, const void *ops);

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[SGES];
};
struct cq {
	struct ibv_cq base;
	struct ibv_wc wc[DEPTH];
	unsigned head, tail;
};
struct qp {
	struct ibv_qp base;
	struct request queue[DEPTH];
	unsigned head, tail;
	bool stalled, all_signaled, broken;
	unsigned takes; /* so many more requests, when it is limited */
	bool limited;
	enum ibv_wc_status next;
};
struct context {
	char priv[1 << 14]; /* libibverbs's own part */
	struct verbs_context v;
	struct ibv_device device;
	int event_fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, unblocked = PTHREAD_COND_INITIALIZER;
static struct qp *qps[MAX_QPS];
static int nqps;
static const char *blocked;

/* ---- the engine ------------------------------------------------------------------------------ */

static void complete(struct qp *q, const struct request *r, enum ibv_wc_status status)
{
	struct cq *cq = (struct cq *)q->base.send_cq;

	if (status == IBV_WC_SUCCESS && !q->all_signaled && !(r->wr.send_flags & IBV_SEND_SIGNALED))
		return;
	cq->wc[cq->tail++ % DEPTH] = (struct ibv_wc){
		.wr_id = r->wr.wr_id,
		.status = status,
		.opcode = IBV_WC_RDMA_WRITE,
		.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x81,
		.qp_num = q->base.qp_num,
	};
}

static void move(const struct request *r)
{
	char *to = (char *)(uintptr_t)r->wr.wr.rdma.remote_addr;

	for (int i = 0; i < r->wr.num_sge; i++) {
		memcpy(to, (void *)(uintptr_t)r->sge[i].addr, r->sge[i].length);
		to += r->sge[i].length;
	}
}

static bool run_one(struct qp *q)
{
	struct request *r = &q->queue[q->head % DEPTH];
	enum ibv_wc_status status = q->next;

	if (q->head == q->tail || q->stalled)
		return false;
	q->next = IBV_WC_SUCCESS;
	if (q->broken)
		status = IBV_WC_WR_FLUSH_ERR;
	else if (status == IBV_WC_SUCCESS)
		move(r);
	q->broken |= status != IBV_WC_SUCCESS;
	complete(q, r, status);
	q->head++;
	return true;
}

static void *engine(void *arg)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		bool did = false;

		for (int i = 0; i < nqps; i++)
			did |= run_one(qps[i]);
		if (!did)
			pthread_cond_wait(&work, &lock);
	}
	return arg;
}

/* ---- the data path: static, and nothing but the table knows it --------------------------------
 */

static void wait_while_blocked(const char *function)
{
	pthread_mutex_lock(&lock);
	while (blocked && !strcmp(blocked, function))
		pthread_cond_wait(&unblocked, &lock);
}

static NOINLINE int post(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct qp *q = (struct qp *)base;
	int rc = 0;

	wait_while_blocked("post_send");
	for (; wr && !rc; wr = wr->next) {
		struct request *r = &q->queue[q->tail % DEPTH];

		if (q->tail - q->head == DEPTH || wr->num_sge > SGES || (q->limited && !q->takes)) {
			*bad = wr;
			rc = ENOMEM;
			break;
		}
		r->wr = *wr;
		if (wr->num_sge)
			memcpy(r->sge, wr->sg_list, sizeof(*r->sge) * (size_t)wr->num_sge);
		q->tail++;
		q->takes -= q->limited;
	}
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* As in libmlx5: what the table names is a jump to the function that does it. */
static NOINLINE int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return post(qp, wr, bad);
}

static NOINLINE int poll_some(struct ibv_cq *base, int n, struct ibv_wc *wc)
{
	struct cq *cq = (struct cq *)base;
	int got = 0;

	wait_while_blocked("poll_cq");
	while (got < n && cq->head != cq->tail)
		wc[got++] = cq->wc[cq->head++ % DEPTH];
	pthread_mutex_unlock(&lock);
	return got;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = poll_some(cq, n, wc);

	LIKE_REAL(got);
	return got;
}

/* The same for contexts of another kind: a second function for one operation. */
static int poll_cq_other(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got = n > 0 ? poll_some(cq, n, wc) : 0;

	LIKE_REAL(got);
	return got;
}

/* ---- the control path ------------------------------------------------------------------------ */

static struct ibv_pd *alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	if (pd)
		pd->context = c;
	return pd;
}

static struct ibv_cq *create_cq(struct ibv_context *c, int n, struct ibv_comp_channel *channel,
				int v)
{
	struct cq *cq = calloc(1, sizeof(*cq));

	if (cq)
		cq->base = (struct ibv_cq){.context = c, .channel = channel, .cqe = n};
	return cq ? &cq->base : NULL;
}

/* As a device may: the lowest that is free, its own beside those of other devices. */
static uint32_t free_number(const struct ibv_context *c)
{
	uint32_t n = 0x100;

	for (int i = 0; i < nqps; i++) {
		if (qps[i]->base.context != c || qps[i]->base.qp_num != n)
			continue;
		n++;
		i = -1;
	}
	return n;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct qp *q = calloc(1, sizeof(*q));

	pthread_mutex_lock(&lock);
	if (q && nqps < MAX_QPS) {
		q->base.context = pd->context;
		q->base.pd = pd;
		q->base.send_cq = attr->send_cq;
		q->base.recv_cq = attr->recv_cq;
		q->base.qp_num = free_number(pd->context);
		q->base.qp_type = attr->qp_type;
		pthread_mutex_init(&q->base.mutex, NULL);
		pthread_cond_init(&q->base.cond, NULL);
		q->all_signaled = attr->sq_sig_all;
		qps[nqps++] = q;
	}
	pthread_mutex_unlock(&lock);
	return q ? &q->base : NULL;
}

static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct qp *q = (struct qp *)qp;

	pthread_mutex_lock(&lock);
	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		q->head = q->tail; /* these never complete */
	pthread_mutex_unlock(&lock);
	return 0;
}

static int destroy_qp(struct ibv_qp *qp)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < nqps; i++)
		if (&qps[i]->base == qp)
			qps[i] = qps[--nqps];
	pthread_mutex_unlock(&lock);
	free(qp);
	return 0;
}

static void async_event(struct ibv_context *c, struct ibv_async_event *event)
{
}

static void *const common_ops[SLOTS] = {
	[SLOT_POST_SEND] = post_send, [SLOT_POLL_CQ] = poll_cq,
	[SLOT_ALLOC_PD] = alloc_pd,   [SLOT_CREATE_CQ] = create_cq,
	[SLOT_CREATE_QP] = create_qp, [SLOT_DESTROY_QP] = destroy_qp,
	[SLOT_MODIFY_QP] = modify_qp, [SLOT_ASYNC_EVENT] = async_event,
};
static void *const other_ops[SLOTS] = {
	[SLOT_POLL_CQ] = poll_cq_other,
};

#ifdef HIDDEN
static void set_ops(struct verbs_context *v)
{
	static void *const *const volatile tables[] = {common_ops, other_ops};

	for (int i = 0; i <= (getenv("STANDIN_OTHER_POLL") != NULL); i++)
		verbs_set_ops(v, tables[i]);
}
#else
static void set_ops(struct verbs_context *v)
{
	verbs_set_ops(v, common_ops);
	if (getenv("STANDIN_OTHER_POLL"))
		verbs_set_ops(v, other_ops);
}
#endif

EXPORT struct ibv_context *standin_open(void)
{
	struct context *c = calloc(1, sizeof(*c));
	struct ibv_context *ctx;
	pthread_t thread;
	int fd[2];

	if (!c || pipe(fd) || pthread_create(&thread, NULL, engine, NULL))
		return NULL;
	ctx = &c->v.context;
	c->v.sz = sizeof(c->v);
	c->v.priv = (void *)c->priv;
	strcpy(c->device.name, "standin0");
	ctx->device = &c->device;
	ctx->abi_compat = __VERBS_ABI_IS_EXTENDED;
	ctx->async_fd = fd[0];
	c->event_fd = fd[1];
	set_ops(&c->v);
	return ctx;
}

/* ---- misbehaving ----------------------------------------------------------------------------- */

EXPORT void standin_stall(struct ibv_qp *qp, bool on)
{
	pthread_mutex_lock(&lock);
	((struct qp *)qp)->stalled = on;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

EXPORT void standin_fail(struct ibv_qp *qp, enum ibv_wc_status status)
{
	pthread_mutex_lock(&lock);
	((struct qp *)qp)->next = status;
	pthread_mutex_unlock(&lock);
}

EXPORT void standin_limit(struct ibv_qp *qp, unsigned n)
{
	pthread_mutex_lock(&lock);
	((struct qp *)qp)->limited = true;
	((struct qp *)qp)->takes = n;
	pthread_mutex_unlock(&lock);
}

EXPORT void standin_block(const char *function)
{
	pthread_mutex_lock(&lock);
	blocked = function;
	pthread_cond_broadcast(&unblocked);
	pthread_mutex_unlock(&lock);
}

EXPORT int standin_event(struct ibv_context *ctx, enum ibv_event_type type, struct ibv_qp *qp)
{
	struct context *c = (struct context *)((char *)ctx - offsetof(struct context, v.context));
	struct ib_uverbs_async_event_desc desc = {.element = (uintptr_t)qp, .event_type = type};

	return write(c->event_fd, &desc, sizeof(desc)) == sizeof(desc) ? 0 : -1;
}

EXPORT int standin_waiting(struct ibv_qp *qp)
{
	const struct qp *q = (struct qp *)qp;
	int n;

	pthread_mutex_lock(&lock);
	n = (int)(q->tail - q->head);
	pthread_mutex_unlock(&lock);
	return n;
}
