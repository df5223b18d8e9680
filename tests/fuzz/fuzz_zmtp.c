// SPDX-License-Identifier: Apache-2.0
/*
 * The ZMTP decoder on any bytes: what it says is what a reader with the whole stream in hand says,
 * whether fed byte by byte or in pieces with skips. Input: a byte of switches, the stream.
 */
#include "fuzz.h"
#include "../unit/zmtp_reference.h"

static void check(const struct sp_zmtp *z, bool middle)
{
	CHECK(z->is <= SP_ZMTP_DEAD);
	CHECK(z->have <= SP_ZMTP_PART);
	CHECK(fuzz_zero(z->part + z->have, SP_ZMTP_PART - z->have));
	CHECK(z->why < SP_WHY_MAX && (!z->why || z->is == SP_ZMTP_DEAD));
	CHECK(z->is == SP_ZMTP_DEAD || z->size <= SP_ZMTP_SIZE_MAX);
	CHECK(z->left <= SP_ZMTP_SIZE_MAX);
	if (z->is == SP_ZMTP_BODY) {
		CHECK(z->left && z->left <= z->size);
		CHECK(z->have ==
		      (z->size - z->left < SP_ZMTP_PART ? z->size - z->left : SP_ZMTP_PART));
		CHECK(sp_zmtp_skip(z) < z->left);
	} else {
		CHECK(!sp_zmtp_skip(z));
	}
	CHECK(z->is != SP_ZMTP_GREETING || (!middle && z->at < SP_ZMTP_GREET));
	CHECK(!z->keep && !z->copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool middle = size && data[0] & 1;
	struct zmtp_feed plain = {.fast = false}, fast = {.fast = true};
	struct heard ref = {0};
	const uint8_t *p = data + 1;
	size_t n = size - 1;
	uint32_t seed;

	if (!size)
		return 0;
	seed = data[0];
	if (middle) {
		sp_zmtp_resync(&plain.z);
		sp_zmtp_resync(&fast.z);
	}
	for (size_t i = 0; i < n; i++) {
		zmtp_feed(&plain, p + i, 1);
		check(&plain.z, middle);
	}
	for (size_t at = 0, piece; at < n; at += piece) {
		piece = fuzz_piece(&seed, n - at);
		zmtp_feed(&fast, p + at, piece);
	}
	zmtp_reference(p, n, middle, &ref);
	CHECK(heard_same(&plain.heard, &fast.heard));
	CHECK(heard_same(&plain.heard, &ref));
	CHECK(!memcmp(&plain.z, &fast.z, sizeof(plain.z)));
	free(plain.heard.v);
	free(fast.heard.v);
	free(ref.v);
	return 0;
}
