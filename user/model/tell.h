/* SPDX-License-Identifier: Apache-2.0 */
/* What the model tells its caller (struct model_ops). Included by lives.h, whose types it uses. */
#ifndef SP_MODEL_TELL_H
#define SP_MODEL_TELL_H

void life_view(struct model *m, struct life *l, struct model_life *v);
void tell_taken(struct model *m, const struct sp_event *ev, struct life *l);
void tell_changed(struct model *m, struct life *l);
void tell_stuck(struct model *m, struct life *l, uint64_t ns);
void tell_recovered(struct model *m, struct life *l, enum sp_outcome outcome);
void tell_ended(struct model *m, struct life *l, enum sp_outcome outcome);
void tell_target(struct model *m, const struct sp_event *ev, const char *what);
void tell_peer(struct model *m, const struct sp_event *ev, const char *what);
void tell_loss(struct model *m, const struct sp_event *ev);

#endif
