// SPDX-License-Identifier: Apache-2.0
/*
 * Where the installed libibverbs has its operations in the table that a provider passes to
 * verbs_set_ops: found by passing it a table of numbered functions and looking which one is called.
 * Prints the header that the stand-in providers are built with.
 */
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <unistd.h>

#define SLOTS 160

/* libibverbs has this for its providers; no public header has. */
void verbs_set_ops(struct verbs_context *vctx, const void *ops);

static int called;

#define FUNCTION(n)                                                                                \
	static void *function_##n(void)                                                            \
	{                                                                                          \
		called = n;                                                                        \
		return NULL;                                                                       \
	}
#define ENTRY(n)  (void *)function_##n,
#define TEN(m, t) m(t##0) m(t##1) m(t##2) m(t##3) m(t##4) m(t##5) m(t##6) m(t##7) m(t##8) m(t##9)
/* clang-format off */
#define ALL(m)                                                                                     \
	TEN(m, ) TEN(m, 1) TEN(m, 2) TEN(m, 3) TEN(m, 4) TEN(m, 5) TEN(m, 6) TEN(m, 7)             \
	TEN(m, 8) TEN(m, 9) TEN(m, 10) TEN(m, 11) TEN(m, 12) TEN(m, 13) TEN(m, 14) TEN(m, 15)
/* clang-format on */

ALL(FUNCTION)
static void *const table[SLOTS] = {ALL(ENTRY)};

static int told = 1;

static void tell(const char *name)
{
	printf("#define SLOT_%s %d\n", name, called);
	told &= called >= 0;
	called = -1;
}

int main(void)
{
	static char priv[1 << 14];
	static struct verbs_context v;
	struct ibv_context *c = &v.context;
	struct ib_uverbs_async_event_desc desc = {.event_type = IBV_EVENT_DEVICE_FATAL};
	struct ibv_qp_init_attr attr = {0};
	struct ibv_pd pd = {.context = c};
	struct ibv_async_event event;
	struct ibv_cq cq = {.context = c};
	struct ibv_qp qp = {.context = c};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	int fd[2];

	v.sz = sizeof(v);
	v.priv = (void *)priv;
	c->abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs_set_ops(&v, table);
	called = -1;
	ibv_post_send(&qp, NULL, NULL);
	tell("POST_SEND");
	ibv_poll_cq(&cq, 0, NULL);
	tell("POLL_CQ");
	ibv_alloc_pd(c);
	tell("ALLOC_PD");
	ibv_create_cq(c, 1, NULL, NULL, 0);
	tell("CREATE_CQ");
	ibv_create_qp(&pd, &attr);
	tell("CREATE_QP");
	ibv_modify_qp(&qp, &reset, IBV_QP_STATE);
	tell("MODIFY_QP");
	ibv_destroy_qp(&qp);
	tell("DESTROY_QP");
	if (pipe(fd) || write(fd[1], &desc, sizeof(desc)) != sizeof(desc))
		return 1;
	c->async_fd = fd[0];
	ibv_get_async_event(c, &event);
	tell("ASYNC_EVENT");
	printf("#define SLOTS %d\n", SLOTS);
	return !told;
}
