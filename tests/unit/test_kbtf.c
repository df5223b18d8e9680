// SPDX-License-Identifier: Apache-2.0
/* The kernel's types cut down: offsets must be the kernel's, damage must be refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <bpf/btf.h>

#include "attach/kbtf.h"

/* struct inner { int a; int b; }; typedef struct { int counter; } count_t;
 * struct task { long pad; union { int pid; long other; }; const count_t live; struct inner in[3];
 * void *mm; unsigned low:3; unsigned high:5; }; */
static struct btf *make_kernel(void)
{
	struct btf *b = btf__new_empty();
	int i32 = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	int u32 = btf__add_int(b, "unsigned int", 4, 0);
	int i64 = btf__add_int(b, "long", 8, BTF_INT_SIGNED);
	int ptr = btf__add_ptr(b, 0);
	int inner, anon, count, td, cnst, arr, proto;

	inner = btf__add_struct(b, "inner", 8);
	btf__add_field(b, "a", i32, 0, 0);
	btf__add_field(b, "b", i32, 32, 0);
	anon = btf__add_union(b, NULL, 8);
	btf__add_field(b, "pid", i32, 0, 0);
	btf__add_field(b, "other", i64, 0, 0);
	count = btf__add_struct(b, NULL, 4);
	btf__add_field(b, "counter", i32, 0, 0);
	td = btf__add_typedef(b, "count_t", count);
	cnst = btf__add_const(b, td);
	arr = btf__add_array(b, i32, inner, 3);
	proto = btf__add_func_proto(b, i32);
	btf__add_func_param(b, "x", i32);
	btf__add_func(b, "f", BTF_FUNC_STATIC, proto);
	btf__add_enum(b, "e", 4);
	btf__add_enum_value(b, "one", 1);
	btf__add_struct(b, "task", 56);
	btf__add_field(b, "pad", i64, 0, 0);
	btf__add_field(b, NULL, anon, 64, 0);
	btf__add_field(b, "live", cnst, 128, 0);
	btf__add_field(b, "in", arr, 160, 0);
	btf__add_field(b, "mm", ptr, 384, 0);
	btf__add_field(b, "low", u32, 448, 3);
	btf__add_field(b, "high", u32, 451, 5);
	return b;
}

/* What the BPF side would ask for; another order, and a member that this kernel has not. */
static struct btf *make_local(void)
{
	struct btf *b = btf__new_empty();
	int i32 = btf__add_int(b, "int", 4, BTF_INT_SIGNED);
	int ptr = btf__add_ptr(b, 0);
	int inner, count, td, arr;

	inner = btf__add_struct(b, "inner", 4);
	btf__add_field(b, "b", i32, 0, 0);
	count = btf__add_struct(b, NULL, 4);
	btf__add_field(b, "counter", i32, 0, 0);
	td = btf__add_typedef(b, "count_t", count);
	arr = btf__add_array(b, i32, inner, 1);
	btf__add_struct(b, "task", 32);
	btf__add_field(b, "mm", ptr, 0, 0);
	btf__add_field(b, "pid", i32, 64, 0);
	btf__add_field(b, "in", arr, 96, 0);
	btf__add_field(b, "live", td, 128, 0);
	btf__add_field(b, "gone", i32, 160, 0);
	btf__add_field(b, "high", i32, 192, 0);
	btf__add_struct(b, "not_there", 4);
	btf__add_field(b, "x", i32, 0, 0);
	return b;
}

static const struct btf_type *find(const struct btf *b, const char *name)
{
	int id = btf__find_by_name_kind(b, name, BTF_KIND_STRUCT);

	return id > 0 ? btf__type_by_id(b, (uint32_t)id) : NULL;
}

/* Bit offset of a member, -1: none; its type and bit width. */
static long member(const struct btf *b, const struct btf_type *t, const char *name, uint32_t *type,
		   uint32_t *bits)
{
	for (unsigned i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];

		if (strcmp(btf__name_by_offset(b, m->name_off), name))
			continue;
		*type = m->type;
		*bits = btf_member_bitfield_size(t, i);
		return btf_member_bit_offset(t, i);
	}
	return -1;
}

static void test_cut(void **state)
{
	struct btf *kernel = make_kernel(), *local = make_local(), *out = NULL;
	const struct btf_type *t, *in;
	uint32_t len, type, bits;
	const void *raw = btf__raw_data(kernel, &len);

	assert_int_equal(kbtf_cut(raw, len, local, &out), 0);
	assert_true(btf__type_cnt(out) < btf__type_cnt(kernel));
	t = find(out, "task");
	assert_non_null(t);
	assert_int_equal(t->size, 56);
	assert_int_equal(btf_vlen(t), 5);
	assert_int_equal(member(out, t, "pid", &type, &bits), 64);
	assert_int_equal(member(out, t, "mm", &type, &bits), 384);
	assert_true(btf_is_ptr(btf__type_by_id(out, type)));
	assert_int_equal(member(out, t, "high", &type, &bits), 451);
	assert_int_equal(bits, 5);
	assert_int_equal(member(out, t, "pad", &type, &bits), -1);
	assert_int_equal(member(out, t, "live", &type, &bits), 128);
	in = btf__type_by_id(out, type);
	assert_true(btf_is_struct(in));
	assert_int_equal(member(out, in, "counter", &type, &bits), 0);
	assert_int_equal(member(out, t, "in", &type, &bits), 160);
	in = btf__type_by_id(out, type);
	assert_true(btf_is_array(in));
	assert_int_equal(btf_array(in)->nelems, 3);
	in = btf__type_by_id(out, btf_array(in)->type);
	assert_int_equal(in->size, 8);
	assert_int_equal(member(out, in, "b", &type, &bits), 32);
	assert_int_equal(member(out, in, "a", &type, &bits), -1);
	assert_null(find(out, "not_there"));
	btf__free(out);
	btf__free(local);
	btf__free(kernel);
}

/* Every length and every damaged byte: refused or not, never a wild read. */
static void test_damage(void **state)
{
	struct btf *kernel = make_kernel(), *local = make_local(), *out;
	uint32_t len;
	const void *raw = btf__raw_data(kernel, &len);
	uint8_t *copy;
	int refused = 0;

	for (uint32_t n = 0; n < len; n++) {
		copy = malloc(n ? n : 1); /* exactly so long: a read beyond is seen */
		memcpy(copy, raw, n);
		assert_int_equal(kbtf_cut(copy, n, local, &out), -EINVAL);
		free(copy);
	}
	copy = malloc(len);
	for (uint32_t i = 0; i < len; i++) {
		static const uint8_t bad[] = {0x00, 0x7f, 0x80, 0xff};

		for (size_t k = 0; k < sizeof(bad); k++) {
			memcpy(copy, raw, len);
			copy[i] = bad[k];
			out = NULL;
			if (kbtf_cut(copy, len, local, &out))
				refused++;
			else
				btf__free(out);
		}
	}
	assert_true(refused > 0);
	free(copy);
	btf__free(local);
	btf__free(kernel);
}

static void test_names(void **state)
{
	struct btf *kernel = make_kernel();
	/* "as": the end of no other name may do */
	struct kbtf_func func[] = {{"f", 99}, {"task", 99}, {"as", 99}, {"none", 99}};
	struct kbtf_enum constant[] = {{"one", 99}, {"f", 99}, {"none", 99}};
	const struct kbtf_find find = {func, 4, constant, 3};
	uint32_t len;
	const void *raw = btf__raw_data(kernel, &len);

	assert_int_equal(kbtf_look_up(raw, len, &find), 0);
	assert_int_equal(func[0].id, btf__find_by_name_kind(kernel, "f", BTF_KIND_FUNC));
	for (int i = 1; i < 4; i++)
		assert_int_equal(func[i].id, 0);
	assert_int_equal(constant[0].value, 1);
	assert_int_equal(constant[1].value, -1);
	assert_int_equal(constant[2].value, -1);
	for (uint32_t n = 0; n < len; n++) {
		uint8_t *copy = malloc(n ? n : 1);

		memcpy(copy, raw, n);
		assert_int_equal(kbtf_look_up(copy, n, &find), -EINVAL);
		free(copy);
	}
	btf__free(kernel);
}

static void check_same(const struct btf *all, const struct btf *cut, const char *name,
		       const char *field)
{
	const struct btf_type *a = find(all, name), *c = find(cut, name);
	uint32_t type, bits;

	assert_non_null(a);
	assert_non_null(c);
	assert_int_equal(a->size, c->size);
	assert_true(member(all, a, field, &type, &bits) >= 0);
	assert_int_equal(member(all, a, field, &type, &bits), member(cut, c, field, &type, &bits));
}

static void test_this_kernel(void **state)
{
	struct btf *all = btf__load_vmlinux_btf(), *local, *cut = NULL;
	const void *raw;
	uint32_t len;
	int i32, ptr;

	if (!all)
		skip(); /* a kernel without BTF */
	local = btf__new_empty();
	i32 = btf__add_int(local, "int", 4, BTF_INT_SIGNED);
	ptr = btf__add_ptr(local, 0);
	btf__add_struct(local, "pid", 8);
	btf__add_field(local, "level", i32, 0, 0);
	btf__add_struct(local, "upid", 8);
	btf__add_field(local, "nr", i32, 0, 0);
	btf__add_struct(local, "task_struct", 16);
	btf__add_field(local, "pid", i32, 0, 0);
	btf__add_field(local, "tgid", i32, 32, 0);
	btf__add_field(local, "mm", ptr, 64, 0);
	raw = btf__raw_data(all, &len);
	assert_int_equal(kbtf_cut(raw, len, local, &cut), 0);
	check_same(all, cut, "task_struct", "pid");
	check_same(all, cut, "task_struct", "tgid");
	check_same(all, cut, "task_struct", "mm");
	check_same(all, cut, "pid", "level");
	check_same(all, cut, "upid", "nr");
	btf__free(cut);
	btf__free(local);
	btf__free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
