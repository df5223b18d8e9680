// SPDX-License-Identifier: Apache-2.0
/* The words for causes, confidences and outcomes: a contract (docs/model.md). */
#include <string.h>

#include "model/model.h"

static const char *const cause_names[CAUSE_MAX] = {
	[CAUSE_NONE] = "none",
	[CAUSE_THREAD_DIED] = "thread-died",
	[CAUSE_TRANSFER_ERROR] = "transfer-error",
	[CAUSE_QUEUED_BEHIND] = "queued-behind",
	[CAUSE_TRANSFER_STALLED] = "transfer-stalled",
	[CAUSE_CONTROL_LOST] = "control-lost",
	[CAUSE_STATUS_LOST] = "status-lost",
	[CAUSE_ROOM_REUSED] = "room-reused",
	[CAUSE_SEND_INCOMPLETE] = "send-incomplete",
	[CAUSE_AUX_MISSING] = "aux-missing",
	[CAUSE_DONE_NOT_RELEASED] = "done-not-released",
	[CAUSE_ABORT_NOT_REAPED] = "abort-not-reaped",
	[CAUSE_NEVER_SENT] = "never-sent",
	[CAUSE_ABORT_BEFORE_OPEN] = "abort-before-open",
	[CAUSE_QUORUM_INCOMPLETE] = "quorum-incomplete",
	[CAUSE_DECODE_ABSENT] = "decode-absent",
	[CAUSE_PEER_GONE] = "peer-gone",
	[CAUSE_RANK_DIVERGED] = "rank-diverged",
	[CAUSE_PEER_NOT_TOLD] = "peer-not-told",
	[CAUSE_FAKE_ROOM] = "fake-room",
	[CAUSE_BACKPRESSURE] = "backpressure",
};

static const char *const confidence_names[] = {
	[CONF_NONE] = "none",
	[CONF_POSSIBLE] = "possible",
	[CONF_LIKELY] = "likely",
	[CONF_CERTAIN] = "certain",
};

static const char *const outcome_names[] = {
	[OUTCOME_NONE] = "none",
	[OUTCOME_DONE] = "done",
	[OUTCOME_FAILED] = "failed",
	[OUTCOME_MOVING] = "moving",
};

const char *sp_cause_name(enum sp_cause c)
{
	return (unsigned int)c < CAUSE_MAX ? cause_names[c] : "none";
}

const char *sp_confidence_name(enum sp_confidence c)
{
	return (unsigned int)c <= CONF_CERTAIN ? confidence_names[c] : "none";
}

enum sp_confidence sp_confidence_parse(const char *name)
{
	for (int c = CONF_POSSIBLE; c <= CONF_CERTAIN; c++)
		if (!strcmp(name, confidence_names[c]))
			return c;
	return CONF_NONE;
}

const char *sp_outcome_name(enum sp_outcome o)
{
	return (unsigned int)o <= OUTCOME_MOVING ? outcome_names[o] : "none";
}
