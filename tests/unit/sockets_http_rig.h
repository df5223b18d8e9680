/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-fed records of HTTP requests and replies; see sockets_rig.h. */
#ifndef SOCKETS_HTTP_RIG_H
#define SOCKETS_HTTP_RIG_H

#include "sockets_rig.h"

#include "collect/conns.h"
#include "collect/http.h"
#include "event/id.h"
#include "sp_id.h"

#define CONN 1
#define NONE 0xffff /* index of a value that is in no list */
#define LIST 0xfffe

static __attribute__((unused)) struct sp_rec_http rec_of(uint64_t ns, uint64_t conn, uint32_t req,
							 int what)
{
	return (struct sp_rec_http){
		.h = {.ns = ns, .pid = FRONT, .tid = 21, .type = SP_REC_HTTP, .probe = P_HTTP},
		.conn = conn,
		.num = req,
		.req = req,
		.what = (uint16_t)what};
}

static __attribute__((unused)) void feed(struct rig *r, const struct sp_rec_http *rec)
{
	sockets_record(r->s, rec, sizeof(*rec));
}

static __attribute__((unused)) void text(struct sp_rec_http *rec, const char *s)
{
	rec->num = SP_ID_START;
	for (const char *at = s; *at; at++)
		rec->num = sp_id_step(rec->num, (uint8_t)*at);
	rec->len = (uint8_t)(strlen(s) < sizeof(rec->text) ? strlen(s) : sizeof(rec->text));
	memcpy(rec->text, s, rec->len);
}

static __attribute__((unused)) void head(struct rig *r, uint64_t conn, uint32_t req,
					 const char *line)
{
	struct sp_rec_http rec = rec_of(1, conn, req, SP_HTTP_REQUEST);

	text(&rec, line);
	feed(r, &rec);
}

static __attribute__((unused)) void number(struct rig *r, uint64_t conn, uint32_t req, int key,
					   int index, uint64_t num)
{
	struct sp_rec_http rec = rec_of(2, conn, req, SP_HTTP_VALUE);

	rec.key = (uint16_t)key;
	rec.index = (uint16_t)index;
	rec.is_num = 1;
	rec.num = num;
	feed(r, &rec);
}

static __attribute__((unused)) void string(struct rig *r, uint64_t conn, uint32_t req, int key,
					   int index, const char *s)
{
	struct sp_rec_http rec = rec_of(2, conn, req, SP_HTTP_VALUE);

	rec.key = (uint16_t)key;
	rec.index = (uint16_t)index;
	text(&rec, s);
	feed(r, &rec);
}

static __attribute__((unused)) void list(struct rig *r, uint64_t conn, uint32_t req, int key)
{
	struct sp_rec_http rec = rec_of(2, conn, req, SP_HTTP_VALUE);

	rec.key = (uint16_t)key;
	rec.index = LIST;
	feed(r, &rec);
}

static __attribute__((unused)) void is(struct rig *r, uint64_t ns, uint64_t conn, uint32_t req,
				       int what, int code)
{
	struct sp_rec_http rec = rec_of(ns, conn, req, what);

	rec.code = (uint16_t)code;
	feed(r, &rec);
}

/* A whole request with one room, its arrival not looked at. */
static __attribute__((unused)) void request(struct rig *r, uint64_t conn, uint32_t req,
					    uint64_t room, const char *rid)
{
	head(r, conn, req, "POST /generate");
	number(r, conn, req, SOCK_KEY_ROOM, NONE, room);
	if (rid[0])
		string(r, conn, req, SOCK_KEY_RID, NONE, rid);
	is(r, 3, conn, req, SP_HTTP_REQUEST_END, 0);
	rig_expect(r, ROLE_ARRIVE, "");
}

static __attribute__((unused)) struct sp_event told(struct rig *r, enum sp_role role,
						    const char *kind, const char *room)
{
	struct sp_event ev = rig_expect(r, role, kind);

	assert_string_equal(ev.room, room);
	assert_int_equal(ev.pid, PID); /* the owner's, not the front's */
	assert_int_equal(ev.tid, 0);
	assert_int_equal(ev.probe, P_HTTP);
	return ev;
}

static __attribute__((unused)) int setup(void **state)
{
	rig_setup(state);
	conn_opens(*state, 1, FRONT, CONN, S_HTTP);
	rig_none(*state); /* an HTTP client is no peer */
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)

#endif
