// SPDX-License-Identifier: Apache-2.0
/*
 * Patterns over texts and frames: matching. A first pass from left to right decides nearly every
 * text; where it fails and another split could still fit, a table of "parts i.. match at j" finds
 * the one with the shortest tokens. Both are bounded: no pattern and no text makes them slow.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile_priv.h"
#include "util/cleanup.h"

#define PAT_TEXT_MAX 512 /* longest text that is searched; a fetch copies SP_SLOT_MAX at most */
#define PAT_IP_MAX   64  /* longest address text: IPv6 with a zone */

static bool is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static bool is_token_char(unsigned char c)
{
	return c > ' ' && c != 0x7f; /* UTF-8 names are welcome, blanks and controls are not */
}

/* Canonical decimal below 2^64. */
static bool parse_u64(const char *s, size_t len, uint64_t *out)
{
	uint64_t v = 0;

	if (!len || len > 20 || (len > 1 && s[0] == '0'))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit((unsigned char)s[i]) || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v))
			return false;
	}
	*out = v;
	return true;
}

static bool flag_at(const char *s, size_t len, size_t *used, uint64_t *num)
{
	static const struct {
		const char *text;
		uint64_t num;
	} flags[] = {{"0", 0}, {"1", 1}, {"True", 1}, {"False", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		size_t n = strlen(flags[i].text);

		if (n > len || memcmp(s, flags[i].text, n) != 0)
			continue;
		*used = n;
		*num = flags[i].num;
		return true;
	}
	return false;
}

static bool dotted_quad(const char *s, size_t len)
{
	int groups = 0;

	while (len) {
		size_t n = 0;
		uint64_t v;

		while (n < len && is_digit((unsigned char)s[n]))
			n++;
		if (!parse_u64(s, n, &v) || v > 255)
			return false;
		groups++;
		s += n;
		len -= n;
		if (!len)
			break;
		if (*s != '.' || len == 1)
			return false;
		s++;
		len--;
	}
	return groups == 4;
}

/* The shape of an address, not its validity: what is wanted is to tell it from another frame. */
static bool ip_text(const char *s, size_t len)
{
	size_t colons = 0, n = 0;

	if (!len || len > PAT_IP_MAX)
		return false;
	if (dotted_quad(s, len))
		return true;
	while (n < len && pattern_ip_char((unsigned char)s[n])) {
		colons += s[n] == ':';
		n++;
	}
	if (colons < 2 || (n < len && s[n] != '%'))
		return false;
	if (n == len)
		return true;
	while (++n < len)
		if (!is_token_char((unsigned char)s[n]))
			return false;
	return s[len - 1] != '%';
}

static bool fits(enum pat_shape shape, const char *s, size_t len, uint64_t *num)
{
	size_t used;

	switch (shape) {
	case PAT_U64:
		return parse_u64(s, len, num);
	case PAT_FLAG:
		return flag_at(s, len, &used, num) && used == len;
	case PAT_IP:
		return ip_text(s, len);
	case PAT_TOKEN:
		for (size_t i = 0; i < len; i++)
			if (!is_token_char((unsigned char)s[i]))
				return false;
		return len > 0;
	case PAT_LEN:
	case PAT_U64S:
	case PAT_S32S:
		return true;
	}
	return false;
}

static size_t digits(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && is_digit((unsigned char)s[n]))
		n++;
	return n;
}

/* Where part i, a capture that begins at s, ends in the first pass. */
static size_t first_end(const struct pattern *p, int i, const char *s, size_t len)
{
	const struct pat_part *next = i + 1 < p->nparts ? &p->part[i + 1] : NULL;
	const char *at;
	uint64_t num;
	size_t n = 0;

	if (!next)
		return len;
	switch (p->part[i].shape) {
	case PAT_U64:
		return digits(s, len);
	case PAT_FLAG:
		return flag_at(s, len, &n, &num) ? n : 0;
	default:
		if (!len)
			return 0;
		at = memmem(s + 1, len - 1, next->literal, next->literal_len);
		return at ? (size_t)(at - s) : 0;
	}
}

/* end[i]: where part i ends. */
static bool first_pass(const struct pattern *p, const char *s, size_t len, size_t end[])
{
	size_t at = 0;

	for (int i = 0; i < p->nparts; i++) {
		const struct pat_part *part = &p->part[i];
		uint64_t num;
		size_t n;

		if (part->is_capture) {
			n = first_end(p, i, s + at, len - at);
			if (!fits(part->shape, s + at, n, &num))
				return false;
		} else {
			n = part->literal_len;
			if (n > len - at || memcmp(s + at, part->literal, n) != 0)
				return false;
		}
		at += n;
		end[i] = at;
	}
	return at == len;
}

/* can[j]: parts i.. match at j; rest[k]: parts i+1.. match at k. */
static void fill_row(const struct pat_part *part, const char *s, size_t len, const bool *rest,
		     bool *can)
{
	size_t most = part->shape == PAT_U64 ? 20 : PAT_IP_MAX;
	uint64_t num;

	for (size_t j = len + 1; j-- > 0;) {
		can[j] = false;
		if (!part->is_capture) {
			can[j] = part->literal_len <= len - j &&
				 !memcmp(s + j, part->literal, part->literal_len) &&
				 rest[j + part->literal_len];
		} else if (part->shape == PAT_TOKEN) {
			can[j] = j < len && is_token_char((unsigned char)s[j]) &&
				 (rest[j + 1] || can[j + 1]);
		} else {
			for (size_t n = 1; n <= most && n <= len - j && !can[j]; n++)
				can[j] = rest[j + n] && fits(part->shape, s + j, n, &num);
		}
	}
}

static bool search(const struct pattern *p, const char *s, size_t len, size_t end[])
{
	bool can[PAT_MAX_PARTS + 1][PAT_TEXT_MAX + 1];
	size_t at = 0;

	if (len > PAT_TEXT_MAX)
		return false;
	memset(can[p->nparts], 0, len + 1);
	can[p->nparts][len] = true;
	for (int i = p->nparts - 1; i >= 0; i--)
		fill_row(&p->part[i], s, len, can[i + 1], can[i]);
	if (!can[0][0])
		return false;
	for (int i = 0; i < p->nparts; i++) {
		const struct pat_part *part = &p->part[i];
		size_t n = part->is_capture ? 1 : part->literal_len;
		uint64_t num;

		while (part->is_capture &&
		       !(can[i + 1][at + n] && fits(part->shape, s + at, n, &num)))
			n++;
		at += n;
		end[i] = at;
	}
	return true;
}

static void keep(struct captures *caps, const struct pat_part *part, const char *s, size_t len,
		 size_t full_len, bool cut)
{
	struct capture *c = &caps->cap[caps->n++];

	memcpy(c->name, part->name, sizeof(c->name));
	c->num = 0;
	c->raw = NULL;
	c->raw_len = 0;
	c->cut = cut;
	c->is_num = part->shape != PAT_IP && part->shape != PAT_TOKEN;
	if (pattern_element(part->shape)) {
		c->raw = s;
		c->raw_len = len - len % pattern_element(part->shape);
	}
	if (part->shape == PAT_LEN || c->raw) {
		c->num = full_len;
		snprintf(c->text, sizeof(c->text), "%zu", full_len);
		return;
	}
	if (c->is_num)
		(void)fits(part->shape, s, len, &c->num);
	if (len > sizeof(c->text) - 1) {
		c->raw = s;
		c->raw_len = len;
		len = sizeof(c->text) - 1;
	}
	if (s && len) /* an empty frame has no bytes to point to */
		memcpy(c->text, s, len);
	c->text[len] = '\0';
}

static bool split(const struct pattern *p, const char *s, size_t len, size_t full_len, size_t end[])
{
	const struct pat_part *final = p->nparts ? &p->part[p->nparts - 1] : NULL;

	if (final && pattern_is_whole(p)) {
		size_t size = pattern_element(final->shape);

		end[0] = len;
		return !size || full_len % size == 0; /* else it is no such array */
	}
	/* what the kernel did not copy can only belong to a token at the end */
	if (full_len > len && !(final && final->is_capture && final->shape == PAT_TOKEN))
		return false;
	return first_pass(p, s, len, end) || (p->ambiguous && search(p, s, len, end));
}

bool pattern_match(const struct pattern *p, const char *s, size_t len, size_t full_len,
		   struct captures *caps)
{
	size_t end[PAT_MAX_PARTS] = {0};
	size_t from = 0;
	int had;

	if (p->any)
		return true;
	if (!split(p, s, len, full_len, end))
		return false;
	if (!caps)
		return true;
	had = caps->n;
	for (int i = 0; i < p->nparts; i++) {
		const struct pat_part *part = &p->part[i];

		if (part->is_capture && part->name[0]) {
			if (caps->n == CAP_MAX) {
				caps->n = had;
				return false;
			}
			keep(caps, part, s + from, end[i] - from, full_len,
			     i == p->nparts - 1 && full_len > len);
		}
		from = end[i];
	}
	return true;
}

/* Of a capture: how much of [s, s+len) it may take before the next part begins; len: all of it, and
 * what is to come too. 0: it cannot be. */
static size_t may_take(const struct pattern *p, int i, const char *s, size_t len)
{
	uint64_t num;
	size_t n = 0;

	switch (p->part[i].shape) {
	case PAT_U64:
		return digits(s, len);
	case PAT_FLAG:
		return len < strlen("False") ? len : flag_at(s, len, &n, &num) ? n : 0;
	case PAT_TOKEN:
		while (n < len && is_token_char((unsigned char)s[n]))
			n++;
		return n == len ? len : first_end(p, i, s, len);
	default:
		return len;
	}
}

bool pattern_may_match(const struct pattern *p, const char *s, size_t len)
{
	for (int i = 0; i < p->nparts && len; i++) {
		const struct pat_part *part = &p->part[i];
		size_t n = part->literal_len < len ? part->literal_len : len;

		if (part->is_capture)
			n = may_take(p, i, s, len);
		else if (memcmp(s, part->literal, n) != 0)
			return false;
		if (!n)
			return false;
		s += n;
		len -= n;
	}
	return !len;
}

const struct capture *captures_find(const struct captures *caps, const char *name)
{
	for (int i = 0; i < caps->n; i++)
		if (!strcmp(caps->cap[i].name, name))
			return &caps->cap[i];
	return NULL;
}
