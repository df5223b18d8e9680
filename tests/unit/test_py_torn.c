// SPDX-License-Identifier: Apache-2.0
/* Memory that changes while it is read: an image of which some bytes look different at every look.
 */
#include "py_walk.h"

struct torn {
	struct pymem mem;
	struct pymem *image;
	uint64_t addr; /* the bytes that change, and by what */
	uint64_t flip;
	int left; /* how many more times it will differ from the time before; < 0: always */
	uint64_t now;
};

/* Are they in this span? Then they are seen as they are now, and change. */
static bool look_at(const struct torn *t, const struct pymem_span *s)
{
	bool seen = false;

	for (int i = 0; i < 8 && !s->rc; i++) {
		uint64_t at = t->addr + (uint64_t)i - s->addr;

		if (t->addr + (uint64_t)i < s->addr || at >= s->len || !(t->flip >> (8 * i)))
			continue;
		((uint8_t *)s->buf)[at] ^= (uint8_t)(t->now >> (8 * i));
		seen = true;
	}
	return seen;
}

static int torn_readv(void *ctx, struct pymem_span *span, size_t n)
{
	struct torn *t = ctx;
	int err = pymem_readv(t->image, span, n);

	for (size_t i = 0; i < n && !err; i++) {
		if (!look_at(t, &span[i]))
			continue;
		if (t->left)
			t->now ^= t->flip;
		if (t->left > 0)
			t->left--;
	}
	return err;
}

/* What is read of an object, and the byte in it that changes. */
struct look {
	const char *name;
	int offset;
	uint8_t flip;
	int (*read)(struct py_runtime *rt, uint64_t obj);
};

static int read_elements(struct py_runtime *rt, uint64_t obj)
{
	__free uint64_t *item = NULL;
	size_t n;

	return py_elements(rt, obj, &item, &n, 0);
}

static int read_entries(struct py_runtime *rt, uint64_t obj)
{
	__free struct py_entry_addr *e = NULL;
	size_t n;

	return py_entries(rt, obj, &e, &n, 0);
}

static int read_str(struct py_runtime *rt, uint64_t obj)
{
	char text[64];

	return py_str(rt, obj, text, sizeof(text), NULL);
}

static int read_type(struct py_runtime *rt, uint64_t obj)
{
	enum py_type type;

	return py_type_of(rt, obj, &type, NULL, 0);
}

static int read_attr(struct py_runtime *rt, uint64_t obj)
{
	uint64_t v;

	return py_attr(rt, obj, "room", &v);
}

static int read_no_attr(struct py_runtime *rt, uint64_t obj)
{
	uint64_t v;
	int err = py_attr(rt, obj, "nothing", &v);

	return err == -ENODATA ? 0 : err;
}

/* The image and the object of a case: its address in *obj. */
static void open_torn(struct torn *t, struct py_runtime *rt, int minor, const char *name,
		      uint64_t *obj)
{
	memset(t, 0, sizeof(*t));
	t->image = load(minor, rt);
	t->mem.readv = torn_readv;
	t->mem.ctx = t;
	pymem_budget(&t->mem, 0, 0);
	rt->mem = &t->mem;
	*obj = walk_find(rt, name);
	if (!*obj)
		fail_msg("3.%d: no case %s", minor, name);
}

static void check(struct torn *t, struct py_runtime *rt, const struct look *l, uint64_t obj)
{
	int err;

	t->flip = l->flip;
	t->left = 0;
	t->now = 0;
	assert_int_equal(l->read(rt, obj), 0);
	/* Once is not enough to make it fail; always is. */
	t->left = 1;
	t->now = t->flip;
	assert_int_equal(l->read(rt, obj), 0);
	assert_int_equal(t->left, 0);
	t->left = -1;
	err = l->read(rt, obj);
	if (err != -EAGAIN)
		fail_msg("3.%d %s +%d: %d", rt->lay.minor, l->name, l->offset, err);
}

static void test_headers(void **state)
{
	static const struct look looks[] = {
		{"list-1", 16, 1, read_elements},       /* ob_size 1, 0 */
		{"list-1", 32, 64, read_elements},      /* allocated */
		{"tuple-nested", 24, 8, read_elements}, /* an element, replaced in place */
		{"deque-65", 56, 1, read_elements},     /* state */
		{"deque-65", 16, 1, read_elements},     /* ob_size, against the indexes */
		{"dict-mixed", 16, 1, read_entries},    /* ma_used 3, 2 */
		{"dict-mixed", 24, 1, read_entries},    /* version */
	};

	for (size_t m = 0; m < ARRAY_SIZE(minors); m++) {
		for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
			struct py_runtime rt;
			struct torn t;
			uint64_t obj;

			open_torn(&t, &rt, minors[m], looks[i].name, &obj);
			t.addr = obj + (uint64_t)looks[i].offset;
			check(&t, &rt, &looks[i], obj);
			pymem_close(t.image);
		}
	}
}

/* Bytes that are found by following a pointer. */
static uint64_t word(struct py_runtime *rt, uint64_t addr)
{
	uint64_t v;

	assert_int_equal(pymem_u64(rt->mem, addr, &v), 0);
	return v;
}

static void test_payloads(void **state)
{
	for (size_t m = 0; m < ARRAY_SIZE(minors); m++) {
		static const struct look list = {"list-1", 0, 16, read_elements};
		static const struct look deque = {"deque-65", 0, 16, read_elements};
		static const struct look keys = {"dict-mixed", 0, 1, read_entries};
		static const struct look str = {"strings", 16, 1, read_str};
		struct py_runtime rt;
		struct torn t;
		uint64_t obj;

		open_torn(&t, &rt, minors[m], "list-1", &obj);
		t.addr = word(&rt, obj + 24); /* ob_item[0] */
		check(&t, &rt, &list, obj);
		pymem_close(t.image);

		open_torn(&t, &rt, minors[m], "deque-65", &obj);
		t.addr = word(&rt, obj + 24) + 8 + 63 * 8; /* the last of the first block */
		check(&t, &rt, &deque, obj);
		pymem_close(t.image);

		open_torn(&t, &rt, minors[m], "dict-mixed", &obj);
		t.addr = word(&rt, obj + 32) + rt.lay.keys_nentries; /* one entry fewer */
		check(&t, &rt, &keys, obj);
		pymem_close(t.image);

		open_torn(&t, &rt, minors[m], "strings", &obj);
		obj = word(&rt, word(&rt, obj + 24) + 2 * 8); /* "rid-7" */
		t.addr = obj + 16;
		check(&t, &rt, &str, obj);
		pymem_close(t.image);
	}
}

/* The first entry of the keys that an instance's names are in. */
static uint64_t first_key(struct py_runtime *rt, uint64_t obj)
{
	uint64_t type = word(rt, obj + 8), keys;
	bool own = rt->lay.minor == 10;

	keys = own ? word(rt, word(rt, obj + word(rt, type + 288)) + 32)
		   : word(rt, type + rt->lay.heap_cached_keys);
	if (own)
		return keys + 40 + 8 + 8; /* dk_size 8: an index of 8 bytes; the entry's hash */
	return keys + 32 + (1ull << (word(rt, keys + 8) >> 8 & 0xff));
}

static void test_attributes(void **state)
{
	static const struct look there = {"plain", 0, 1, read_attr};
	static const struct look absent = {"plain", 0, 1, read_no_attr};

	for (size_t m = 0; m < ARRAY_SIZE(minors); m++) {
		struct py_runtime rt;
		struct torn t;
		uint64_t obj;

		open_torn(&t, &rt, minors[m], "plain", &obj);
		t.addr = first_key(&rt, obj);
		check(&t, &rt, &there, obj);
		check(&t, &rt, &absent, obj);
		pymem_close(t.image);
	}
}

/* An object whose place is given to another one: its type pointer changes between two types. */
static void test_type(void **state)
{
	for (size_t m = 0; m < ARRAY_SIZE(minors); m++) {
		struct look l = {"plain", 8, 0, read_type};
		struct py_runtime rt;
		struct torn t;
		uint64_t obj;
		int err;

		open_torn(&t, &rt, minors[m], "plain", &obj);
		t.addr = obj + 8;
		t.left = -1;
		t.flip = 16;
		err = l.read(&rt, obj);
		assert_true(err == -EAGAIN || err == -EFAULT);
		pymem_close(t.image);
	}
}

/* A frame that has nobody behind it for one look, as a generator that has just yielded. */
static void test_stack(void **state)
{
	for (size_t m = 0; m < ARRAY_SIZE(minors); m++) {
		struct py_threads whole, seen;
		struct py_runtime rt;
		struct torn t;
		uint64_t obj, back;

		open_torn(&t, &rt, minors[m], "plain", &obj);
		assert_int_equal(py_threads(&rt, 0, false, &whole), 0);
		assert_true(whole.n == 4 && whole.t[0].nframes > 4);
		back = whole.t[0].frame[1].addr + rt.lay.frame.back;
		t.addr = back;
		t.flip = t.now = word(&rt, back);
		t.left = 1;
		assert_int_equal(py_threads(&rt, 0, false, &seen), 0);
		assert_int_equal(t.left, 0);
		assert_int_equal(seen.t[0].nframes, whole.t[0].nframes);
		py_threads_free(&seen);
		/* Something that is no code object, at every look. */
		t.left = 0;
		t.addr = whole.t[0].frame[0].addr + rt.lay.frame.code;
		t.flip = t.now = 64;
		assert_int_equal(py_threads(&rt, 0, false, &seen), -EAGAIN);
		assert_null(seen.t);
		py_threads_free(&whole);
		pymem_close(t.image);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),    cmocka_unit_test(test_payloads),
		cmocka_unit_test(test_attributes), cmocka_unit_test(test_type),
		cmocka_unit_test(test_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
