// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel side says of sockets, record by record: usage: sock_smoke PROBES.yaml PID...
 * Prints a line for each record, "." after a line read from standard input (all records of what
 * happened before it are out by then), "counters ..." when it is "counters". Ends with its input.
 */
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/attach.h"
#include "sp_sock.h"
#include "util/log.h"

static const struct profile *profile;

static const char *const whats[] = {"?",          "open", "kind",   "trust", "lost",
				    "unreadable", "eof",  "closed", "reset"};
static const char *const whys[SP_WHY_MAX] = {
	"none",    "gap", "sendfile", "fault",   "bad",  "race",   "curve",   "mechanism",
	"version", "tls", "encoded",  "upgrade", "long", "before", "nothing", "open-end"};
static const char *const https[] = {"?", "request", "value", "request_end", "reply", "reply_end"};

static void print_address(const uint8_t *a, int family, unsigned port)
{
	if (family == 2)
		printf(" %u.%u.%u.%u:%u", a[0], a[1], a[2], a[3], port);
	else if (family == 10)
		printf(" [%02x%02x::%x]:%u", a[0], a[1], a[15], port);
	else
		printf(" unix");
}

static void print_conn(const struct sp_rec_conn *r)
{
	printf("conn %s id=%llu pid=%u dir=%s why=%s num=%llu decode=%u rule=%d",
	       whats[r->what < 9 ? r->what : 0], r->conn, r->h.pid, r->dir ? "out" : "in",
	       whys[r->why < SP_WHY_MAX ? r->why : 0], r->num, r->decode,
	       r->rule == 0xff ? -1 : r->rule);
	print_address(r->laddr, r->family, r->lport);
	print_address(r->raddr, r->family, r->rport);
	printf("\n");
}

static void print_http(const struct sp_rec_http *r)
{
	printf("http %s id=%llu pid=%u req=%u", https[r->what < 6 ? r->what : 0], r->conn, r->h.pid,
	       r->req);
	if (r->what == SP_HTTP_REPLY)
		printf(" code=%u chunked=%u", r->code, r->chunked);
	if (r->what == SP_HTTP_VALUE)
		printf(" key=%u index=%d num=%llu", r->key, (int16_t)r->index,
		       r->is_num ? r->num : 0);
	printf(" text=%.*s\n", r->len, r->text);
}

static void print_hit(const struct sp_rec_hit *r)
{
	const struct sp_probe *p = &profile->probes[r->h.probe].prog;
	const char *data = r->data + p->fetch[0].data_at;
	int arg = p->frame_arg;

	printf("frame %d id=%llu pid=%u tid=%u probe=%u dir=%s more=%d size=%llu len=%d data=",
	       r->h.frame, r->val[p->sock_arg], r->h.pid, r->h.tid, r->h.probe,
	       r->h.flags & SP_RF_OUT ? "out" : "in", r->h.flags & SP_RF_MORE, r->val[arg],
	       r->len[arg]);
	for (int i = 0; i < r->len[arg]; i++)
		printf("%02x", (unsigned char)data[i]);
	printf("\n");
}

static int on_record(void *ctx, void *data, size_t len)
{
	const struct sp_rec *r = data;

	if (r->type == SP_REC_CONN)
		print_conn(data);
	else if (r->type == SP_REC_HTTP)
		print_http(data);
	else if (r->type == SP_REC_HIT && r->probe < profile->nprobes)
		print_hit(data);
	else
		attach_record(ctx, data);
	return 0;
}

static void on_notice(void *ctx, const struct attach_notice *n)
{
	fprintf(stderr, "notice %d pid %u: %s\n", n->what, n->pid, n->text);
}

static void answer(struct attach *a, struct ring_buffer *ring, const char *line)
{
	uint64_t c[SP_C_MAX];

	ring_buffer__consume(ring);
	if (!strcmp(line, "counters\n") && !attach_counters(a, c)) {
		printf("counters");
		for (int i = 0; i < SP_C_MAX; i++)
			printf(" %llu", (unsigned long long)c[i]);
		printf("\n");
	}
	printf(".\n");
}

static int watch(struct attach *a)
{
	struct ring_buffer *ring = ring_buffer__new(attach_ring_fd(a), on_record, a, NULL);
	struct pollfd in = {.fd = 0, .events = POLLIN};
	char line[64];

	if (!ring)
		return -errno;
	printf("ready %d\n", attach_probes(a));
	for (;;) {
		ring_buffer__consume(ring);
		attach_tick(a);
		if (poll(&in, 1, 10) <= 0)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			break;
		answer(a, ring, line);
	}
	ring_buffer__free(ring);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = getenv("SILENTPIN_SOCKETS"), *log = getenv("SOCK_SMOKE_LOG");
	struct attach_opts opts = {.no_uprobes = true, .ring_bytes = 4u << 20};
	struct profile_file *pf = NULL;
	struct attach *a = NULL;
	struct sp_err err = {0};
	int rc;

	if (argc < 3)
		return 2;
	if (log)
		sp_verbosity = (enum sp_level)atoi(log);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = SOCKETS_LIBC; how && i <= SOCKETS_TCP; i++)
		if (!strcmp(how, attach_sockets_name((enum attach_sockets)i)))
			opts.sock_force = (enum attach_sockets)i;
	rc = profile_load(argv[1], &pf, &err);
	if (!rc) {
		profile = &pf->profiles[0];
		rc = attach_open(profile, &opts, on_notice, NULL, &a, &err);
	}
	for (int i = 2; !rc && i < argc; i++)
		if (attach_add(a, atoi(argv[i]), &err) < 0)
			rc = -ESRCH;
	if (rc)
		fprintf(stderr, "sock_smoke: %s\n", err.text);
	else
		rc = watch(a);
	if (a)
		attach_close(a);
	profile_free(pf);
	return rc ? 1 : 0;
}
