// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/values.h"
#include "event/id.h"

#define INDEX_NONE 0xffff
#define INDEX_LIST 0xfffe

void values_free(struct values *v)
{
	free(v->v);
	*v = (struct values){.v = NULL};
}

/* A number that comes as a string is taken as the server takes it: digits, in one way of writing.
 */
static bool number_of(const char *text, size_t len, uint64_t *num)
{
	char own[24], *end;

	if (!len || len >= sizeof(own))
		return false;
	memcpy(own, text, len);
	own[len] = '\0';
	if (strspn(own, "0123456789") != len)
		return false;
	errno = 0;
	*num = strtoull(own, &end, 10);
	return !errno && !*end;
}

static bool text_of(const struct sp_rec_http *rec, bool numeric, char text[SP_ROOM_MAX])
{
	size_t len = rec->len < sizeof(rec->text) ? rec->len : sizeof(rec->text);
	uint64_t num = rec->num;

	if (numeric && !rec->is_num && !number_of(rec->text, len, &num))
		return false;
	if (numeric || rec->is_num)
		snprintf(text, SP_ROOM_MAX, "%" PRIu64, num);
	else if (len == SP_HTTP_TEXT)
		sp_id_name_long(text, rec->text, rec->num);
	else
		sp_id_name(text, rec->text, len);
	return text[0] != '\0';
}

static int append(struct values *v, const struct value *one)
{
	struct value *more;

	if (v->n == VALUES_MAX)
		return -ENOSPC;
	if (!(v->n & (v->n - 1))) { /* full at each power of two */
		more = realloc(v->v, (v->n ? 2 * (size_t)v->n : 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		v->v = more;
	}
	v->v[v->n++] = *one;
	return 1;
}

int values_take(struct values *v, const struct sp_rec_http *rec, bool numeric)
{
	struct value one = {.index = rec->index};

	if (rec->index == INDEX_NONE || rec->index == INDEX_LIST) {
		values_free(v);
		v->list = rec->index == INDEX_LIST;
		if (v->list)
			return 0;
	} else if (!v->list || (v->n && v->v[v->n - 1].index >= rec->index)) {
		return 0; /* its beginning was lost */
	}
	if (!text_of(rec, numeric, one.text))
		return 0;
	return append(v, &one);
}

const char *values_at(const struct values *v, uint16_t index, uint32_t *at)
{
	if (!v->list)
		return v->n ? v->v[0].text : "";
	while (*at < v->n && v->v[*at].index < index)
		(*at)++;
	return *at < v->n && v->v[*at].index == index ? v->v[*at].text : "";
}
