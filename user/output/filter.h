/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the model's alerts a person asked for. The model tells every change, whatever its
 * confidence; a `stuck` line is wanted once per life and cause, when its confidence first reaches
 * the minimum, and a `recovered` line only after a `stuck` line. Shared by watch and replay, so
 * that both print the same lines. Processes in which nothing was attached come and go unsaid.
 */
#ifndef SP_OUTPUT_FILTER_H
#define SP_OUTPUT_FILTER_H

#include <stdbool.h>

#include "model/model.h"

struct filter;
/* verbose: let `ended` lines and all processes pass */
struct filter *filter_new(enum sp_confidence min, bool verbose);
void filter_free(struct filter *f);
bool filter_wants(struct filter *f, const struct model_alert *a);

#endif
