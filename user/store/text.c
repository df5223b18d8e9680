// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "store/text.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1; /* upper case is never written */
}

/* s begins with \xNN: the byte; else -1. */
static int escaped_byte(const char *s)
{
	int hi, lo;

	if (s[0] != '\\' || s[1] != 'x')
		return -1;
	hi = hex_value(s[2]);
	lo = hi < 0 ? -1 : hex_value(s[3]);
	return lo < 0 ? -1 : hi << 4 | lo;
}

/*
 * Length of the character at s that may stand as it is; 0: its first byte must be escaped. Follows
 * the well-formed byte sequences of Unicode (no surrogates, nothing overlong, at most U+10FFFF).
 * Control characters (C0, DEL, C1) steer terminals and are refused too.
 */
static size_t safe_length(const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	uint32_t c;
	size_t n;

	if (s[0] < 0x80) {
		if (s[0] < 0x20 || s[0] == 0x7f)
			return 0;
		return escaped_byte(text) < 0 ? 1 : 0;
	}
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	c = s[0] & (0xff >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((n == 3 && c < 0x800) || (n == 4 && (c < 0x10000 || c > 0x10ffff)))
		return 0;
	if (c < 0xa0 || (c >= 0xd800 && c < 0xe000))
		return 0;
	return n;
}

bool text_is_safe(const char *s)
{
	while (*s) {
		size_t n = safe_length(s);

		if (!n)
			return false;
		s += n;
	}
	return true;
}

size_t text_safe(char *dst, size_t len, const char *src)
{
	static const char hex[] = "0123456789abcdef";
	size_t at = 0;

	if (!len)
		return 0;
	while (*src) {
		size_t n = safe_length(src);

		if (at + (n ? n : 4) >= len)
			break;
		if (n) {
			memcpy(dst + at, src, n);
			at += n;
			src += n;
		} else {
			dst[at++] = '\\';
			dst[at++] = 'x';
			dst[at++] = hex[(uint8_t)*src >> 4];
			dst[at++] = hex[*src & 15];
			src++;
		}
	}
	dst[at] = '\0';
	return at;
}

size_t text_raw(char *dst, size_t len, const char *src)
{
	size_t at = 0;

	if (!len)
		return 0;
	while (*src && at + 1 < len) {
		int byte = escaped_byte(src);

		dst[at++] = byte < 0 ? *src : (char)byte;
		src += byte < 0 ? 1 : 4;
	}
	dst[at] = '\0';
	return at;
}
