// SPDX-License-Identifier: Apache-2.0
/*
 * Poll functions, multipart messages and socket calls on the running kernel: what the kernel side
 * tells, what it keeps to itself, and for how long. Run as root; SILENTPIN_UPROBE as in
 * attach_smoke.
 */
#include <dirent.h>
#include <bpf/bpf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach_rig.h"
#include "collect/collect.h"
#include "model/model.h"
#include "targets/smoke_lib.h"
#include "util/clock.h"

static const char *const smoke_libs[] = {"libsmoke.so", NULL};

static struct rig rig;
static struct target target;

static int clean(void **state)
{
	rig_detach(&rig, &target);
	return 0;
}

/* ---- polls ----------------------------------------------------------------------------------- */

static const char polls_yaml[] =
	RIG_YAML "      - name: made\n        library: smoke\n        symbol: smoke_make\n"
		 "        on: ret\n"
		 "        args:\n"
		 "          - {name: op, fetch: \"+0($arg2)\", type: x64}\n"
		 "          - {name: rc, fetch: $retval, type: s32}\n"
		 "        event: {role: post, error: rc}\n"
		 "      - name: polled\n        library: smoke\n        symbol: smoke_status\n"
		 "        on: ret\n        on_change: op\n"
		 "        args:\n"
		 "          - {name: op, fetch: $arg1, type: x64}\n"
		 "          - {name: rc, fetch: $retval, type: s32}\n"
		 "        event: {role: status, status: rc}\n"
		 "      - name: released\n        library: smoke\n        symbol: smoke_release\n"
		 "        on: entry\n"
		 "        args:\n"
		 "          - {name: op, fetch: $arg1, type: x64}\n"
		 "        event: {role: close}\n";

static void test_on_change(void **state)
{
	struct sp_poll poll;
	uint64_t op;

	target_run(&target, NULL, smoke_libs);
	rig_open(&rig, polls_yaml);
	rig_add(&rig, target.pid, 3);
	target_say(&target, "polls 100 1 1");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "polled"), 1);
	op = rig_val(&rig, rig_hit(&rig, "polled", 0), "op");
	assert_true(attach_last_poll(rig.attach, (uint32_t)target.pid, op, &poll));
	assert_int_equal(poll.count, 100);
	assert_int_equal(poll.answer, 1);
	assert_int_equal(poll.tid, target.pid);
	rig_clear(&rig);
	target_say(&target, "polls 50 0 0"); /* another answer */
	target_say(&target, "polls 50 0 0");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "polled"), 1);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "polled", 0), "rc"), 0);
	rig_clear(&rig);
	target_say(&target, "polls 5 0 1"); /* the handle is made anew: the same answer is news */
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "polled"), 1);
	target_say(&target, "polls 5 0 2"); /* and released */
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "released"), 1);
	assert_false(attach_last_poll(rig.attach, (uint32_t)target.pid, op, &poll));
}

/* ---- frames ---------------------------------------------------------------------------------- */

static const char frames_yaml[] = RIG_YAML
	"      - name: received\n        library: zmq\n        symbol: zmq_msg_recv\n"
	"        on: return\n        skip_negative: true\n"
	"        args:\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"
	"          - {name: sock, fetch: $arg2, type: x64}\n"
	"        frame: frame\n        socket: sock\n"
	"        messages:\n"
	"          - name: guard\n"
	"            frames: [Guard, \"{room}\", \"{ip:ip}\", \"{n:len}\", \"*\", \"{agent}\"]\n"
	"            event: {role: announce, peer: \"{ip}\"}\n"
	"          - name: abort\n"
	"            frames: [ABORT, \"{room}\"]\n"
	"            event: {role: abort}\n"
	"      - name: sent\n        library: zmq\n        symbol: zmq_msg_send\n"
	"        on: entry\n"
	"        args:\n"
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"
	"          - {name: sock, fetch: $arg2, type: x64}\n"
	"          - {name: flags, fetch: $arg3, type: u32}\n"
	"        frame: frame\n        socket: sock\n"
	"        more: {arg: flags, mask: 2}\n"
	"        messages:\n"
	"          - name: abort\n"
	"            frames: [ABORT, \"{room}\"]\n"
	"            event: {role: control, kind: abort}\n";

#ifdef __NR_poll
#define NR_POLL __NR_poll
#else
#define NR_POLL __NR_ppoll /* arm64 has no other */
#endif

/* Is one of its threads in poll(2)? Only zmq_msg_recv waits there. */
static bool is_in_poll(pid_t pid)
{
	char path[300];
	struct dirent *e;
	bool found = false;
	long nr;
	FILE *f;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	assert_non_null(d);
	while (!found && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/syscall", pid, e->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		/* of one that runs it says "running" */
		found = fscanf(f, "%ld", &nr) == 1 && (nr == NR_POLL || nr == __NR_ppoll);
		fclose(f);
	}
	closedir(d);
	return found;
}

/* Its reader waits inside the call before a probe can be there. */
static void start_zmq(void)
{
	static const char *const libs[] = {"libzmq.so.5", NULL};
	int left = 6000;

	target_run(&target, NULL, libs);
	assert_string_equal(target_say(&target, "zmq"), "ok");
	while (!is_in_poll(target.pid)) {
		assert_true(left-- > 0);
		usleep(10000);
	}
}

static bool has_received(struct rig *r, long n)
{
	return rig_count(r, "received") >= n;
}

static bool has_dropped(struct rig *r, long n)
{
	return rig_counter(r, SP_C_FRAMES_DROPPED) >= (uint64_t)n;
}

static void assert_frame(const char *probe, int i, int index, int flags, const char *text)
{
	const struct sp_rec_hit *h = rig_hit(&rig, probe, i);

	assert_non_null(h);
	assert_int_equal(h->h.frame, index);
	assert_int_equal(h->h.flags, flags);
	if (text)
		assert_string_equal(rig_text(&rig, h, "frame"), text);
	else
		assert_int_equal(rig_len(&rig, h, "frame"), SP_LEN_UNSET);
}

static void test_frames(void **state)
{
	start_zmq();
	rig_open(&rig, frames_yaml);
	rig_add(&rig, target.pid, 2);
	/* The reader was inside the call before its probe was there: frame 0 is not seen. */
	target_say(&target, "send Guard|123|10.0.0.1|*500|*70|agent-1");
	rig_until(&rig, has_received, 5, "the rest of the first message");
	assert_frame("received", 0, 0, SP_RF_CUT | SP_RF_MORE, "123");
	assert_frame("received", 1, 1, SP_RF_CUT | SP_RF_MORE, "10.0.0.1");
	assert_frame("received", 2, 2, SP_RF_CUT | SP_RF_MORE, NULL);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "received", 2), "frame"), 500);
	assert_frame("received", 3, 3, SP_RF_CUT | SP_RF_MORE, NULL); /* over 64 bytes */
	assert_frame("received", 4, 4, SP_RF_CUT, "agent-1");
	rig_clear(&rig);
	/* Then the beginning is known. */
	target_say(&target, "send Guard|456|10.0.0.2|*33|secret words|agent-2");
	rig_until(&rig, has_received, 6, "the second message");
	assert_frame("received", 0, 0, SP_RF_MORE, "Guard");
	assert_frame("received", 1, 1, SP_RF_MORE, "456");
	assert_frame("received", 2, 2, SP_RF_MORE, "10.0.0.2");
	assert_frame("received", 3, 3, SP_RF_MORE, NULL); /* only its length is wanted */
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "received", 3), "frame"), 33);
	assert_frame("received", 4, 4, SP_RF_MORE, NULL);
	assert_frame("received", 5, 5, 0, "agent-2");
	assert_int_equal(rig_count(&rig, "sent"), 0); /* none of them was an ABORT */
}

static void test_frames_dropped(void **state)
{
	uint64_t before;

	start_zmq();
	rig_open(&rig, frames_yaml);
	rig_add(&rig, target.pid, 2);
	target_say(&target, "send whatever|first");
	rig_until(&rig, has_dropped, 2 + 1, "the first message, half seen, and what was sent");
	before = rig_counter(&rig, SP_C_FRAMES_DROPPED);
	/* A room number first is a prompt's business now that the boundary is known. */
	target_say(&target, "send 12345|prompt|Guard|77");
	target_say(&target, "send ABORT|99");
	rig_until(&rig, has_received, 2, "the abort");
	assert_int_equal(rig_count(&rig, "received"), 2);
	assert_frame("received", 0, 0, SP_RF_MORE, "ABORT");
	assert_frame("received", 1, 1, 0, "99");
	assert_int_equal(rig_count(&rig, "sent"), 2);
	assert_frame("sent", 1, 1, 0, "99");
	assert_int_equal(rig_counter(&rig, SP_C_FRAMES_DROPPED) - before, 8);
	for (int i = 0; i < rig.nrec; i++)
		assert_null(memmem(rig.rec[i].hit.data, 64, "prompt", 6));
}

/* A cut message's words that could be anybody's text do not leave the target. */
static void test_frames_cut_private(void **state)
{
	start_zmq();
	rig_open(&rig, frames_yaml);
	rig_add(&rig, target.pid, 2);
	target_say(&target, "send Guard|123|tell me a story|ok_word");
	rig_until(&rig, has_received, 3, "the cut message");
	assert_frame("received", 0, 0, SP_RF_CUT | SP_RF_MORE, "123");
	assert_frame("received", 1, 1, SP_RF_CUT | SP_RF_MORE, NULL);
	assert_int_equal(rig_val(&rig, rig_hit(&rig, "received", 1), "frame"), 15);
	assert_frame("received", 2, 2, SP_RF_CUT, "ok_word");
	for (int i = 0; i < rig.nrec; i++)
		assert_null(memmem(rig.rec[i].hit.data, 64, "story", 5));
	target_say(&target, "empty 1000");
	rig_pump(&rig);
	assert_int_equal(rig_count(&rig, "received"), 3);
}

/* ---- frames that cannot be read -------------------------------------------------------------- */

#define FRAMES_OF(name, more, first, event)                                                        \
	"      - name: " name "\n        library: smoke\n        symbol: smoke_" name "\n"         \
	"        on: entry\n"                                                                      \
	"        args:\n"                                                                          \
	"          - {name: frame, fetch: \"+0($arg1)\", type: zmqmsg, max: 64}\n"                 \
	"          - {name: sock, fetch: $arg2, type: x64}\n"                                      \
	"          - {name: flags, fetch: $arg3, type: u32}\n"                                     \
	"        frame: frame\n        socket: sock\n" more "        messages:\n"                  \
	"          - name: one\n"                                                                  \
	"            frames: [" first "\"{room}\", \"{ip:ip}\"]\n"                                 \
	"            event: " event "\n"
#define ANNOUNCE "{role: announce, peer: \"{ip}\"}"

static const char hidden_yaml[] = RIG_YAML FRAMES_OF("heard", "", "Guard, ", ANNOUNCE)
	FRAMES_OF("said", "        more: {arg: flags, mask: 2}\n", "Guard, ", ANNOUNCE)
		FRAMES_OF("number", "", "", ANNOUNCE);

/* What comes of the records: announced rooms in order, losses; and a model that hears it all. */
struct heard {
	struct model *model;
	char rooms[64], kind[32];
	long lost;
	size_t doubted; /* rooms that the last loss made uncertain */
};

static void on_event(void *ctx, const struct sp_event *ev)
{
	struct heard *h = ctx;
	size_t at = strlen(h->rooms);

	if (ev->role == ROLE_ANNOUNCE)
		snprintf(h->rooms + at, sizeof(h->rooms) - at, "%s ", ev->room);
	if (ev->role == ROLE_LOSS) {
		h->lost += ev->code;
		snprintf(h->kind, sizeof(h->kind), "%s", ev->kind);
	}
	assert_int_equal(model_event(h->model, ev), 0);
}

static void on_alert(void *ctx, const struct model_alert *a)
{
	struct heard *h = ctx;

	if (a->type == ALERT_LOSS)
		h->doubted = a->total_rooms;
}

/* "Guard+ 11+h": words of smoke_lib.h; + more follow; h, b, d: head, block, data are hidden. */
static void say_frames(const char *script, long to)
{
	static const char *const words[] = SMOKE_WORDS;
	char text[128], *at = text, *word;

	snprintf(text, sizeof(text), "%s", script);
	while ((word = strsep(&at, " "))) {
		const char *marks = NULL;
		long how = to;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (!strncmp(word, words[i], strlen(words[i]))) {
				how |= (long)i;
				marks = word + strlen(words[i]);
			}
		assert_non_null(marks);
		how |= strchr(marks, '+') ? SMOKE_MORE : 0;
		how |= strchr(marks, 'h') ? SMOKE_HEAD : 0;
		how |= strchr(marks, 'b') ? SMOKE_BLOCK : 0;
		how |= strchr(marks, 'd') ? SMOKE_DATA : 0;
		target_say(&target, "call smoke_frame %ld", how);
	}
}

static const struct {
	const char *script, *rooms;
	long to;
	int lost;
} hidden[] = {
	/* the first that is ever seen of a socket: nothing is known */
	{"11+h 10.0.0.1 Guard+ 11+ 10.0.0.1", "11 ", 0, 1},
	/* the last frame: whether more follow is not known; the next message is still one */
	{"Guard+ 22+ 10.0.0.1h Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	{"Guard+ 22+ 10.0.0.1b Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	{"Guard+ 22+ 10.0.0.1d Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	/* in the middle: told once, and what follows is neither a message nor the rest of one */
	{"Guard+ 22+h 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	{"Guard+ 22+b 10.0.0.1+ 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	{"Guard+h 22+ 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	{"Guard+b 22+ 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	{"Guard+d 22+ 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", 0, 1},
	/* of a message that nobody wants */
	{"other+ 22+b 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", 0, 0},
	{"other+ 22+ 10.0.0.1h Guard+ 33+ 10.0.0.1", "33 ", 0, 0},
	/* whether more follow is told by an argument */
	{"Guard+ 22+ 10.0.0.1h Guard+ 33+ 10.0.0.1", "33 ", SMOKE_SAID, 1},
	{"Guard+ 22+h 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", SMOKE_SAID, 1},
	{"Guard+h 22+ 10.0.0.1 Guard+ 33+ 10.0.0.1", "33 ", SMOKE_SAID, 1},
	/* digits begin a message, or are the rest of the one before: nobody knows */
	{"11+ 10.0.0.1", "11 ", SMOKE_NUMBER, 0},
	{"11+ 10.0.0.1h 22+ 10.0.0.1 33+ 10.0.0.1", "33 ", SMOKE_NUMBER, 2},
	{"11+ 10.0.0.1b 22+ 10.0.0.1", "22 ", SMOKE_NUMBER, 1},
};

/* Each loss is told, once, makes what is open uncertain, and leaves the next message as it is. */
static void test_frames_hidden(void **state)
{
	static const struct collect_ops heard_ops = {.event = on_event};
	static const struct model_ops model_says = {.alert = on_alert};
	struct model_cfg cfg = {0};
	struct heard h = {0};
	struct collect *c;
	struct sp_err err;

	rig_attach(&rig, &target, smoke_libs, hidden_yaml, 3);
	cfg.profile = rig.profile;
	memcpy(cfg.stage_ns, rig.profile->stage_ns, sizeof(cfg.stage_ns));
	h.model = model_new(&cfg, &model_says, &h);
	assert_int_equal(collect_open(rig.profile, false, &heard_ops, &h, &c, &err), 0);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		h.rooms[0] = h.kind[0] = 0;
		h.lost = 0;
		h.doubted = 0;
		rig_clear(&rig);
		say_frames(hidden[i].script, hidden[i].to);
		rig_pump(&rig);
		for (int k = 0; k < rig.nrec; k++)
			collect_record(c, &rig.rec[k], sizeof(rig.rec[k]));
		collect_release(c, mono_ns());
		if (strcmp(h.rooms, hidden[i].rooms) || h.lost != hidden[i].lost)
			fail_msg("%s: rooms %s, %ld lost", hidden[i].script, h.rooms, h.lost);
		assert_string_equal(h.kind, hidden[i].lost ? "read-fault" : "");
		if (i == 1 || i == 2) /* room 11, then 33; and so they stay */
			assert_int_equal(h.doubted, 1);
	}
	collect_close(c);
	model_free(h.model);
}

/* ---- socket calls that never end ------------------------------------------------------------- */

static const char calls_yaml[] =
	RIG_YAML "      - name: text\n        library: smoke\n        symbol: smoke_text\n"
		 "        args: [{name: at, fetch: $arg1, type: x64}]\n" RIG_CALL "    sockets:\n"
		 "      - name: in\n        process: self\n        when: {bytes: zmtp}\n"
		 "        decode: zmtp\n        direction: in\n"
		 "        messages:\n"
		 "          - name: abort\n            frames: [ABORT, \"{room}\"]\n"
		 "            event: {role: abort}\n";

/* Of those that this program holds, the only one of its name. */
static int map_named(const char *name)
{
	for (int fd = 3; fd < 1024; fd++) {
		struct bpf_map_info info = {0};
		uint32_t len = sizeof(info);

		if (!bpf_obj_get_info_by_fd(fd, &info, &len) && !strcmp(info.name, name))
			return fd;
	}
	fail_msg("no map %s", name);
	return -1;
}

/* Threads of the process that are kept as being in a call; all: its first thread too. */
static int in_calls(pid_t pid, bool all)
{
	int fd = map_named("sp_sock_saved"), n = 0;
	uint64_t key;
	bool more = !bpf_map_get_next_key(fd, NULL, &key);

	for (; more; more = !bpf_map_get_next_key(fd, &key, &key))
		n += key >> 32 == (uint64_t)pid && (all || (uint32_t)key != (uint32_t)pid);
	return n;
}

static bool has_calls(struct rig *r, long n)
{
	return in_calls(target.pid, false) == n;
}

static bool has_none_of(struct rig *r, long pid)
{
	return in_calls((pid_t)pid, true) == 0;
}

static void call_of(pid_t pid, pid_t tid)
{
	uint64_t key = (uint64_t)pid << 32 | (uint32_t)tid, value[5] = {0};

	assert_int_equal(bpf_map_update_elem(map_named("sp_sock_saved"), &key, value, BPF_ANY), 0);
}

/* A libc that is probed around its calls: of a thread that ends inside one nothing is kept. */
static void test_calls_without_end(void **state)
{
	static const char *const libs[] = {"libsmoke.so", "libc.musl-smoke.so", NULL};
	pid_t pid;

	rig_attach(&rig, &target, libs, calls_yaml, 2); /* the sockets count as one */
	for (int i = 0; i < 3; i++)
		target_say(&target, "thread smoke_wait 0");
	rig_until(&rig, has_calls, 3, "three threads in a call");
	target_say(&target, "exec %s/smoke_target", rig_dir());
	assert_string_equal(target.answer, "ready");
	rig_until(&rig, has_calls, 0, "the end of the threads, by another program");
	/* Whoever it is: of an HTTP front only the sockets are watched. */
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	call_of(pid, pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rig_until(&rig, has_none_of, pid, "the end of a process that is no target");
	/* Of a thread whose end was not seen, with its process. */
	call_of(target.pid, 1 << 30);
	pid = target.pid;
	target_end(&target);
	rig_until(&rig, has_none_of, pid, "the end of the process");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_on_change, clean),
		cmocka_unit_test_teardown(test_frames, clean),
		cmocka_unit_test_teardown(test_frames_dropped, clean),
		cmocka_unit_test_teardown(test_frames_cut_private, clean),
		cmocka_unit_test_teardown(test_frames_hidden, clean),
		cmocka_unit_test_teardown(test_calls_without_end, clean),
	};

	return cmocka_run_group_tests_name("attach_messages", tests, NULL, NULL);
}
