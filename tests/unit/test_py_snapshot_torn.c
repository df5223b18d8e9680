// SPDX-License-Identifier: Apache-2.0
/*
 * Snapshots of memory that changes under the reader's eyes, that cannot be read here and there, or
 * that is plain garbage: what is called stable is what was there; nothing crashes, everything ends
 * within its budget.
 */
#include "py_server.h"

/* A recorded image with some words that are not what they were. */
struct torn {
	struct pymem mem;
	struct pymem *image;
	struct {
		uint64_t addr, value;
		unsigned from; /* number of the call from which on it holds */
		bool drifts;   /* another value at each read */
		unsigned reads;
	} word[12];
	int n;
	unsigned calls;
	uint64_t hole; /* a page that cannot be read */
};

static void put_word(struct pymem_span *s, uint64_t addr, uint64_t value)
{
	for (int i = 0; i < 8; i++) {
		uint64_t at = addr + (uint64_t)i - s->addr;

		if (addr + (uint64_t)i >= s->addr && at < s->len)
			((uint8_t *)s->buf)[at] = (uint8_t)(value >> (8 * i));
	}
}

static bool touches(const struct pymem_span *s, uint64_t addr)
{
	return addr + 7 >= s->addr && addr < s->addr + s->len;
}

static int torn_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct torn *t = ctx;
	int err;

	pymem_budget(t->image, 0, 0);
	err = pymem_readv(t->image, span, n);
	t->calls++;
	for (size_t i = 0; i < n && !err; i++) {
		if (t->hole && span[i].addr >> 12 <= t->hole >> 12 &&
		    (span[i].addr + span[i].len - 1) >> 12 >= t->hole >> 12)
			span[i].rc = -EFAULT;
		for (int k = 0; k < t->n && !span[i].rc; k++) {
			if (!touches(&span[i], t->word[k].addr) || t->calls < t->word[k].from)
				continue;
			if (t->word[k].drifts)
				t->word[k].reads++;
			put_word(&span[i], t->word[k].addr,
				 t->word[k].value ^ t->word[k].reads % 16 << 4);
		}
	}
	return err;
}

static struct pyreader *torn_open(struct torn *t, int minor, const struct profile *p)
{
	struct py_runtime rt;
	struct pyreader *r;

	memset(t, 0, sizeof(*t));
	t->image = server_load(minor, &rt);
	t->mem.readv = torn_readv;
	t->mem.ctx = t;
	assert_int_equal(pyreader_at(&t->mem, minor, rt.addr, p, &r), 0);
	return r;
}

static void torn_close(struct torn *t, struct pyreader *r)
{
	pyreader_close(r);
	pymem_close(t->image);
}

/* ---- places ------------------------------------------------------------------------------------
 */

struct place {
	uint64_t addr, value; /* a word, and what it becomes */
};
enum { P_SIZE, P_ITEM, P_TYPE, P_DICT, PLACES };

/* The inflight list's size, its first element, that one's type, and where it keeps its
 * attributes. */
static void find_places(struct pyreader *r, struct place p[PLACES])
{
	uint64_t list, items = inflight(r, &list), first, second;

	first = word_at(r, items);
	second = word_at(r, items + 8);
	p[P_SIZE] = (struct place){list + PY_OB_SIZE, word_at(r, list + PY_OB_SIZE) - 1};
	p[P_ITEM] = (struct place){items, second};
	p[P_TYPE] = (struct place){first + PY_OB_TYPE, word_at(r, r->root.obj + PY_OB_TYPE)};
	/* its dict: at 16 in 3.10 (or its own words before it later) becomes the second's */
	if (r->rt.lay.minor == 10)
		p[P_DICT] = (struct place){first + 16, word_at(r, second + 16)};
	else
		p[P_DICT] = (struct place){first - 24, word_at(r, second - 24)};
}

/* ---- what never holds still --------------------------------------------------------------------
 */

static void always_changing(void **state)
{
	struct profile_file *pf = server_profile(server_yaml);

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++)
		for (int k = 0; k < PLACES; k++) {
			struct torn t;
			struct place p[PLACES];
			struct py_snapshot s;
			struct pyreader *r = torn_open(&t, minors[i], &pf->profiles[0]);

			find_places(r, p);
			t.word[0].addr = p[k].addr;
			t.word[0].value = p[k].value;
			t.word[0].drifts = true;
			t.n = 1;
			assert_int_equal(pyreader_snapshot(r, &s), 0);
			if (s.stable || !s.unstable)
				fail_msg("3.%d: place %d changes all the time", minors[i], k);
			assert_true(s.complete);
			assert_int_equal(s.nstatus, 5); /* the others are as they were */
			py_snapshot_free(&s);
			torn_close(&t, r);
		}
	profile_free(pf);
}

/* ---- what changes once --------------------------------------------------------------------------
 */

/* Whenever it is that an element is replaced: the snapshot has the queue of before or of after, or
 * says that it does not know; and the next one is right. */
static void changes_once(void **state)
{
	struct profile_file *pf = server_profile(server_yaml);
	const struct profile *p = &pf->profiles[0];

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		__free char *before = expected(minors[i]);
		__free char *after = strdup(before);
		char *line = strstr(after, "queue inflight 7 ");
		unsigned stable = 0, calls = 0;

		assert_non_null(line);
		memmove(line, strchr(line, '\n') + 1, strlen(strchr(line, '\n') + 1) + 1);
		for (unsigned at = 1; !calls || at <= calls; at += 1 + calls / 30) {
			struct torn t;
			struct place place[PLACES];
			struct py_snapshot s;
			struct pyreader *r = torn_open(&t, minors[i], p);

			find_places(r, place);
			t.calls = 0;
			t.word[0].addr = place[P_ITEM].addr;
			t.word[0].value = place[P_ITEM].value;
			t.word[0].from = at;
			t.n = 1;
			for (int k = 0; k < 2; k++) {
				__free char *got = NULL;

				assert_int_equal(pyreader_snapshot(r, &s), 0);
				got = text_of(&s, p->python);
				stable += s.stable;
				if (s.stable && strcmp(got, after) != 0 &&
				    (k || strcmp(got, before) != 0))
					fail_msg("3.%d: changed at call %u: %s", minors[i], at,
						 got);
				assert_true(!k || s.stable);
				py_snapshot_free(&s);
				if (!k && !calls)
					calls = t.calls;
			}
			torn_close(&t, r);
		}
		assert_in_range(stable, 45, 62); /* of 2 x 31: most end well in spite of it */
	}
	profile_free(pf);
}

/* ---- what is remembered
 * --------------------------------------------------------------------------
 */

static char *second_look(struct pyreader *r, struct torn *t, const struct profile_python *py,
			 struct place change)
{
	struct py_snapshot s;
	char *text = NULL;

	for (int k = 0; k < 3; k++) { /* the change comes before the last */
		t->n = k == 2;
		t->word[0].addr = change.addr;
		t->word[0].value = change.value;
		free(text);
		assert_int_equal(pyreader_snapshot(r, &s), 0);
		assert_true(s.stable);
		text = text_of(&s, py);
		py_snapshot_free(&s);
	}
	return text;
}

/* Rows that were read before are taken from memory, unless anything of them is another now: the
 * digits of a room in their place, or the dict that an object keeps its attributes in. */
static void remembered(void **state)
{
	struct profile_file *pf = server_profile(server_yaml);
	const struct profile *p = &pf->profiles[0];
	const struct py_path room = {.nsteps = 1,
				     .step = {{.kind = PY_ATTR, .name = "bootstrap_room"}}};

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct torn t;
		struct place place[PLACES];
		struct pyreader *r = torn_open(&t, minors[i], p);
		uint64_t list, items = inflight(r, &list), obj;
		__free char *digits = NULL, *dict = NULL;

		assert_int_equal(pyquery_path(r->batch, word_at(r, items + 24), &room, &obj), 0);
		digits = second_look(r, &t, p->python,
				     (struct place){obj + 24, word_at(r, obj + 24) ^ 1});
		assert_non_null(strstr(digits, "queue inflight 999999999999999998 edited 300/"));
		t.n = 0;
		find_places(r, place);
		dict = second_look(r, &t, p->python, place[P_DICT]);
		assert_null(strstr(dict, "queue inflight 7 r7"));
		assert_non_null(strstr(strstr(dict, "inflight 18446744073709551615") + 1,
				       "inflight 18446744073709551615"));
		torn_close(&t, r);
	}
	profile_free(pf);
}

/* ---- the root goes -----------------------------------------------------------------------------
 */

static void root_gone(void **state)
{
	struct profile_file *pf = server_profile(server_yaml);

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct torn t;
		struct py_snapshot s;
		struct pyreader *r = torn_open(&t, minors[i], &pf->profiles[0]);
		struct pyreader_stats stats;
		uint64_t list, first = word_at(r, inflight(r, &list));

		t.word[0].addr = r->root.obj + PY_OB_TYPE;
		t.word[0].value = word_at(r, first + PY_OB_TYPE); /* of another class */
		t.n = 1;
		assert_int_equal(pyreader_snapshot(r, &s), -ENOENT);
		assert_null(s.request);
		t.n = 0; /* and is there again: it is found anew */
		assert_int_equal(pyreader_snapshot(r, &s), 0);
		assert_true(s.stable && s.complete);
		py_snapshot_free(&s);
		pyreader_stats(r, &stats);
		assert_int_equal(stats.failed, 1);
		torn_close(&t, r);
	}
	profile_free(pf);
}

/* ---- garbage ------------------------------------------------------------------------------------
 */

#ifndef ROUNDS
#define ROUNDS 250 /* of each image */
#endif
#define BUDGET_BYTES (64u << 20)

/* xorshift64*, Vigna 2016 */
static uint64_t rnd(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * 2685821657736338717ull;
}

struct pieces {
	struct piece_head p[4096];
	int n;
};

static void read_pieces(struct pieces *out, int minor)
{
	char path[64];
	__fclose FILE *in = NULL;

	snprintf(path, sizeof(path), SERVER_IMAGE, minor);
	in = fopen(path, "re");
	assert_non_null(in);
	out->n = 0;
	assert_int_equal(fread(&out->p[0], sizeof(out->p[0]), 1, in), 1); /* its head */
	while (out->n < (int)ARRAY_SIZE(out->p) &&
	       fread(&out->p[out->n], sizeof(out->p[0]), 1, in) == 1)
		assert_int_equal(fseek(in, out->p[out->n++].len, SEEK_CUR), 0);
}

static uint64_t somewhere(const struct pieces *p, uint64_t *seed)
{
	const struct piece_head *h = &p->p[rnd(seed) % (uint64_t)p->n];

	return (h->addr + rnd(seed) % h->len) & ~7ull;
}

static void break_words(struct torn *t, const struct pieces *p, uint64_t *seed)
{
	t->n = 1 + (int)(rnd(seed) % ARRAY_SIZE(t->word));
	for (int k = 0; k < t->n; k++) {
		uint64_t addr = somewhere(p, seed), old = 0;

		pymem_budget(t->image, 0, 0);
		pymem_u64(t->image, addr, &old);
		t->word[k].addr = addr;
		t->word[k].from = t->calls + (unsigned)(rnd(seed) % 200);
		t->word[k].drifts = rnd(seed) & 1;
		switch (rnd(seed) % 5) {
		case 0:
			t->word[k].value = UINT64_MAX >> rnd(seed) % 64;
			break;
		case 1:
			t->word[k].value = rnd(seed) % 100000;
			break;
		case 2:
			t->word[k].value = old ^ 1ull << rnd(seed) % 64;
			break;
		default:
			t->word[k].value = somewhere(p, seed);
		}
	}
	t->hole = rnd(seed) % 8 ? 0 : somewhere(p, seed);
}

static void garbage(void **state)
{
	struct profile_file *pf = server_profile(server_yaml);
	static struct pieces pieces;

	for (size_t i = 0; i < ARRAY_SIZE(minors); i++) {
		struct torn t;
		struct pyreader *r = torn_open(&t, minors[i], &pf->profiles[0]);
		uint64_t seed = 0x9e3779b97f4a7c15ull + (uint64_t)minors[i];
		unsigned ended = 0;

		read_pieces(&pieces, minors[i]);
		for (int k = 0; k < ROUNDS; k++) {
			struct py_snapshot s;
			struct py_stack *stack;
			uint64_t bytes = t.mem.bytes;
			size_t n;
			int err;

			break_words(&t, &pieces, &seed);
			err = pyreader_snapshot(r, &s);
			if (err && err != -ENOENT && err != -EAGAIN && err != -E2BIG)
				fail_msg("3.%d round %d: %d", minors[i], k, err);
			ended += !err;
			py_snapshot_free(&s);
			assert_true(t.mem.bytes - bytes < BUDGET_BYTES);
			if (!(k % 16) && !pyreader_stacks(r, &stack, &n))
				py_stacks_free(stack, n);
			t.n = 0; /* what it remembers of broken memory does not last */
			t.hole = 0;
			if (k % 32)
				continue;
			r->root.seen_ns = 0; /* ten seconds later */
			assert_int_equal(pyreader_snapshot(r, &s), 0);
			assert_true(s.stable && s.complete);
			py_snapshot_free(&s);
		}
		assert_in_range(ended, ROUNDS / 4, ROUNDS);
		torn_close(&t, r);
	}
	profile_free(pf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(always_changing), cmocka_unit_test(changes_once),
		cmocka_unit_test(remembered),      cmocka_unit_test(root_gone),
		cmocka_unit_test(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
