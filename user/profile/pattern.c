// SPDX-License-Identifier: Apache-2.0
/* Patterns over texts and frames: compiling. Matching: pattern_match.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "profile/profile_priv.h"
#include "util/cleanup.h"

static const char *const shape_names[] = {
	[PAT_U64] = "u64", [PAT_FLAG] = "flag", [PAT_IP] = "ip",     [PAT_TOKEN] = "token",
	[PAT_LEN] = "len", [PAT_U64S] = "u64s", [PAT_S32S] = "s32s",
};

const char *pattern_shape_name(enum pat_shape shape)
{
	return shape_names[shape];
}

size_t pattern_element(enum pat_shape shape)
{
	return shape == PAT_U64S ? 8 : shape == PAT_S32S ? 4 : 0;
}

bool pattern_is_array(const struct pat_part *part)
{
	return part->is_capture && pattern_element(part->shape);
}

bool pattern_is_whole(const struct pattern *p)
{
	return p->nparts == 1 && (pattern_is_array(&p->part[0]) ||
				  (p->part[0].is_capture && p->part[0].shape == PAT_LEN));
}

/* ---- compiling ----------------------------------------------------------------------------- */

static enum pat_shape default_shape(const char *name, bool room_u64)
{
	static const char *const numeric[] = {"chunk", "rank", "part", "parts", "need"};

	if (!strcmp(name, "last"))
		return PAT_FLAG;
	if (!strcmp(name, "room"))
		return room_u64 ? PAT_U64 : PAT_TOKEN;
	for (size_t i = 0; i < ARRAY_SIZE(numeric); i++)
		if (!strcmp(name, numeric[i]))
			return PAT_U64;
	return PAT_TOKEN;
}

/* "{name:shape}" at *text; steps behind it. */
static int add_capture(struct pattern *p, const char **text, bool room_u64, char *why, size_t n)
{
	const char *s = *text + 1;
	size_t len = strcspn(s, "{}");
	struct pat_part *part = &p->part[p->nparts];
	const char *colon = memchr(s, ':', len);
	size_t name_len = colon ? (size_t)(colon - s) : len;
	size_t i;

	if (s[len] != '}') {
		snprintf(why, n, "\"{\" has no \"}\": write {{ for a brace of the text");
		return -EINVAL;
	}
	if (name_len && !name_ok(s, name_len)) {
		snprintf(why, n,
			 "\"%.*s\" is not a capture's name: use at most %d letters, digits and _",
			 (int)name_len, s, PAT_NAME_MAX - 1);
		return -EINVAL;
	}
	if (p->nparts && p->part[p->nparts - 1].is_capture) {
		snprintf(why, n, "two captures side by side: put a text between them");
		return -EINVAL;
	}
	memcpy(part->name, s, name_len);
	part->name[name_len] = '\0';
	part->is_capture = true;
	part->shape = default_shape(part->name, room_u64);
	if (colon) {
		size_t shape_len = len - name_len - 1;

		for (i = 0; i < ARRAY_SIZE(shape_names); i++)
			if (strlen(shape_names[i]) == shape_len &&
			    !memcmp(shape_names[i], colon + 1, shape_len))
				break;
		if (i == ARRAY_SIZE(shape_names)) {
			snprintf(why, n,
				 "unknown shape \"%.*s\": use u64, flag, ip, token, len, "
				 "u64s or s32s",
				 (int)(shape_len < 32 ? shape_len : 32), colon + 1);
			return -EINVAL;
		}
		part->shape = (enum pat_shape)i;
	}
	p->nparts++;
	*text = s + len + 1;
	return 0;
}

/* The text up to the next capture, "{{" and "}}" undone. */
static int add_text(struct pattern *p, const char **text, char *why, size_t n)
{
	struct pat_part *part = &p->part[p->nparts++];
	const char *s = *text;

	part->literal = malloc(strlen(s) + 1);
	if (!part->literal)
		return -ENOMEM;
	while (*s) {
		if ((*s == '{' || *s == '}') && s[1] == *s)
			s++;
		else if (*s == '{')
			break;
		else if (*s == '}') {
			snprintf(why, n, "\"}\" without \"{\": write }} for a brace of the text");
			return -EINVAL;
		}
		part->literal[part->literal_len++] = *s++;
	}
	part->literal[part->literal_len] = '\0';
	*text = s;
	return 0;
}

bool pattern_ip_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ||
	       c == '.' || c == ':';
}

/* Whether another end of part i than the one that the first pass takes could fit as well. */
static bool part_ambiguous(const struct pattern *p, int i)
{
	const struct pat_part *part = &p->part[i];
	unsigned char next;

	if (!part->is_capture || i + 1 == p->nparts)
		return false;
	next = (unsigned char)p->part[i + 1].literal[0];
	switch (part->shape) {
	case PAT_U64:
		return next >= '0' && next <= '9';
	case PAT_FLAG:
		return false;
	case PAT_IP:
		return pattern_ip_char(next) || next == '%';
	default:
		return true;
	}
}

static int check_whole(const struct pattern *p, char *why, size_t n)
{
	for (int i = 0; i < p->nparts; i++) {
		const struct pat_part *part = &p->part[i];

		if (p->nparts == 1 || !part->is_capture ||
		    (part->shape != PAT_LEN && !pattern_element(part->shape)))
			continue;
		snprintf(why, n, "{%s:%s} stands for a whole frame: nothing may stand beside it",
			 part->name, shape_names[part->shape]);
		return -EINVAL;
	}
	return 0;
}

int pattern_compile(struct pattern *p, const char *text, bool room_u64, char *why, size_t why_len)
{
	int rc = 0;

	memset(p, 0, sizeof(*p));
	snprintf(why, why_len, "out of memory");
	if (!strcmp(text, "*")) {
		p->any = true;
		return 0;
	}
	while (*text && !rc) {
		if (p->nparts == PAT_MAX_PARTS) {
			snprintf(why, why_len, "more than %d captures and texts: split it",
				 PAT_MAX_PARTS);
			rc = -EINVAL;
		} else if (*text == '{' && text[1] != '{') {
			rc = add_capture(p, &text, room_u64, why, why_len);
		} else {
			rc = add_text(p, &text, why, why_len);
		}
	}
	if (!rc)
		rc = check_whole(p, why, why_len);
	if (rc) {
		pattern_free(p);
		return rc;
	}
	for (int i = 0; i < p->nparts; i++)
		p->ambiguous |= part_ambiguous(p, i);
	return 0;
}

void pattern_free(struct pattern *p)
{
	for (int i = 0; i < PAT_MAX_PARTS; i++)
		free(p->part[i].literal);
	memset(p, 0, sizeof(*p));
}
