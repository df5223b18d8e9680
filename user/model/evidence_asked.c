// SPDX-License-Identifier: Apache-2.0
/* What sockets add to the evidence: the request, its answer, its peers' connections. */
#include "model/asked.h"
#include "model/facts.h"

static void say_request(struct scene *s)
{
	const struct life *l = s->l;
	const struct rare *r = l->rare;

	if (!l->asked_ns) {
		if (s->m->cfg.sees_arrive && !l->late && l->stage <= STAGE_READY && !seen_listed(l))
			say(s, true, "no client's request for it was seen to arrive");
		return;
	}
	if (r && r->reply_ns)
		say(s, false, "its client was answered at +%.1f s (status %d)",
		    scene_at(s, r->reply_ns), r->reply_code);
	else if (l->tracked)
		say(s, false,
		    "its client's request arrived at +%.1f s and has not been answered to the end",
		    scene_at(s, l->asked_ns));
	else
		say(s, false, "its client's request arrived at +%.1f s", scene_at(s, l->asked_ns));
	if (r && r->first_ns && !r->reply_ns)
		say(s, r->answering, "the answer to its client has begun at +%.1f s",
		    scene_at(s, r->first_ns));
	if (r && r->client_gone_ns)
		say(s, false,
		    "the client closed at +%.1f s before it was answered: no answer is to be seen "
		    "any more",
		    scene_at(s, r->client_gone_ns));
}

static void say_shared(struct scene *s)
{
	const struct life *l = s->l;

	if (l->shared && l->elsewhere)
		say(s, true,
		    "the request came to a front of several processes, and its room has shown "
		    "itself in another one");
	else if (l->shared)
		say(s, s->c->conf == CONF_POSSIBLE,
		    "the request came to a front of several processes, and its room has shown "
		    "itself in none");
}

static void say_peers(struct scene *s)
{
	const struct life *l = s->l;
	const struct rare *r = l->rare;
	const struct proc *p = l->proc;
	uint64_t gone = life_gone_ns(l);
	char name[96];

	if (r && r->unread_ns)
		say(s, false,
		    "a metadata message of %s is on the wire since +%.1f s: the server has not "
		    "taken it",
		    r->unread_peer[0] ? r->unread_peer : "a peer", scene_at(s, r->unread_ns));
	if (gone)
		say(s, life_gone_well(l), "the connection of a peer ended at +%.1f s%s",
		    scene_at(s, gone),
		    life_gone_well(l) ? ": it does so while its rooms go on" : "");
	for (uint32_t i = 0; i < l->npeers; i++) {
		if (!l->peers[i].agent->dim)
			continue;
		agent_words(l->peers[i].agent, name, sizeof(name));
		say(s, true, "the stream of its peer %s was not readable to the end", name);
		return;
	}
	if (l->stage == STAGE_BOOTSTRAP && proc_deaf(s->m, p) && proc_dim(p, l->opened_ns))
		say(s, true,
		    "the stream of %s could not be read from its start to now: an announcement "
		    "may have gone by in it",
		    p->dim_last[0] ? p->dim_last : "a peer");
}

void evidence_asked(struct scene *s)
{
	const struct life *l = s->l;

	say_shared(s);
	say_request(s);
	say_peers(s);
	if (s->m->pulls && l->stage != STAGE_BOOTSTRAP)
		say(s, true, "its peer reads for itself: how much it has read cannot be seen");
	else if (proc_blind(s->m, l->proc) && l->stage != STAGE_BOOTSTRAP)
		say(s, true,
		    "what is sent cannot be seen: only the transport's sockets are watched");
	if (s->c->conf != CONF_POSSIBLE || !l->tracked || seen_listed(l))
		return;
	if (loop_unseen(s->m, l, l->progress_ns, s->now))
		say(s, true,
		    "the server may be in another room's forward pass and not have looked since");
}
