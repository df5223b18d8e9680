/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider of verbs without a device: queue pairs of one process that write into its own memory.
 * Its data path is static, as in a real provider; this is what the driver program has to make it
 * misbehave.
 */
#ifndef VERBS_STANDIN_H
#define VERBS_STANDIN_H

#include <infiniband/verbs.h>
#include <stdbool.h>

/* A context whose operations point into the provider. */
struct ibv_context *standin_open(void);
/* What is posted to this queue pair waits: neither moved nor completed. */
void standin_stall(struct ibv_qp *qp, bool on);
/* The next request fails with this status; all that come behind it are flushed. */
void standin_fail(struct ibv_qp *qp, enum ibv_wc_status status);
/* It takes n requests more, and refuses all behind them. */
void standin_limit(struct ibv_qp *qp, unsigned n);
/* Calls of "post_send" or "poll_cq" do not return; NULL: they do again. */
void standin_block(const char *function);
/* An event for ibv_get_async_event. 0, or -1. */
int standin_event(struct ibv_context *c, enum ibv_event_type type, struct ibv_qp *qp);
/* Requests that the engine has not yet moved. */
int standin_waiting(struct ibv_qp *qp);

#endif
