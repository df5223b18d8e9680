/* SPDX-License-Identifier: Apache-2.0 */
/* ZMTP read with the whole stream in hand: what the decoder must say, said another way. */
#ifndef ZMTP_REFERENCE_H
#define ZMTP_REFERENCE_H

#include "stream_rig.h"

static inline void zmtp_refuse(struct heard *out, uint64_t at, uint8_t why)
{
	hear(out, at, why ? SP_ZMTP_UNREADABLE : SP_ZMTP_BAD)->why = why;
}

/* 64 when all is well, 0 when there is no more to say. */
static inline size_t zmtp_reference_greeting(const uint8_t *p, size_t n, struct heard *out)
{
	static const char *const known[] = {"NULL", "PLAIN", "CURVE", "GSSAPI"};
	struct said *s;
	char name[21] = "";
	int which = -1;

	if (n && p[0] != 0xff && (!p[0] || (n > 1 && p[1])))
		return zmtp_refuse(out, p[0] != 0, 0), 0;
	if (n > 1 && p[0] != 0xff)
		return zmtp_refuse(out, 1, SP_WHY_VERSION), 0;
	if (n > 9 && p[9] != 0x7f)
		return zmtp_refuse(out, 9, p[9] & 1 ? 0 : SP_WHY_VERSION), 0;
	if (n > 10 && p[10] != 3)
		return zmtp_refuse(out, 10, SP_WHY_VERSION), 0;
	if (n > 12 && !p[12])
		return zmtp_refuse(out, 12, SP_WHY_VERSION), 0;
	for (size_t i = 13; i < 32 && i < n; i++)
		if (p[i] && !p[i - 1])
			return zmtp_refuse(out, i, 0), 0;
	if (n < 32)
		return 0;
	memcpy(name, p + 12, 20);
	for (int i = 0; i < 4; i++)
		if (!strcmp(name, known[i]))
			which = i;
	if (which < 0 || which > 1)
		return zmtp_refuse(out, 31, which == 2 ? SP_WHY_CURVE : SP_WHY_MECHANISM), 0;
	if (n < 64)
		return 0;
	s = hear(out, 63, SP_ZMTP_GREETED);
	s->major = 3;
	s->minor = p[11];
	s->mechanism = (uint8_t)name[0];
	return 64;
}

static inline void zmtp_reference(const uint8_t *p, size_t n, bool middle, struct heard *out)
{
	size_t i = middle ? 0 : zmtp_reference_greeting(p, n, out);
	uint32_t index = 0;

	if (!middle && !i)
		return;
	while (i < n) {
		uint8_t flags = p[i];
		size_t digits = flags & 2 ? 8 : 1, k;
		uint64_t size = 0;
		struct said *s;

		if (flags > 7 || (flags & 5) == 5)
			return zmtp_refuse(out, i, 0);
		for (k = 1; k <= digits && i + k < n; k++) {
			size = size * 256 + p[i + k];
			if (size > 1099511627776ull)
				return zmtp_refuse(out, i + k, 0);
		}
		if (k <= digits)
			return;
		i += digits; /* the last byte of the length */
		if (flags & 4) {
			if (!size)
				return zmtp_refuse(out, i, 0);
			if (i + 1 < n && (!p[i + 1] || 1ull + p[i + 1] > size))
				return zmtp_refuse(out, i + 1, 0);
		}
		if (size > n - 1 - i)
			return;
		s = hear(out, i + size, flags & 4 ? SP_ZMTP_COMMAND : SP_ZMTP_FRAME);
		s->size = size;
		s->len = size < 64 ? (uint8_t)size : 64;
		memcpy(s->text, p + i + 1, s->len);
		if (!(flags & 4)) {
			s->index = index;
			s->more = flags & 1;
			index = flags & 1 ? index + 1 : 0;
		}
		i += size + 1;
	}
}

#endif
