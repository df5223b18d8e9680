// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "profile/yaml_tree.h"

struct builder {
	struct ytree *tree;
	yaml_parser_t parser;
	const char *name, *text;
	size_t len;
	struct sp_err *err;
};

static int bad_mark(const struct builder *b, yaml_mark_t m, const char *what)
{
	sp_err_set(b->err, SP_EXIT_USAGE, -EINVAL, "%s:%zu:%zu: %s", b->name, m.line + 1,
		   m.column + 1, what);
	return -EINVAL;
}

static int out_of_memory(const struct builder *b)
{
	sp_err_set(b->err, SP_EXIT_FAIL, -ENOMEM, "%s: out of memory", b->name);
	return -ENOMEM;
}

/* libyaml gives the place of a bad byte as an offset only. */
static int bad_byte(const struct builder *b)
{
	size_t line = 1, col = 1;

	for (size_t i = 0; i < b->parser.problem_offset && i < b->len; i++) {
		unsigned char c = (unsigned char)b->text[i];

		if (c == '\n') {
			line++;
			col = 1;
		} else if ((c & 0xc0) != 0x80) { /* columns count characters, not UTF-8 bytes */
			col++;
		}
	}
	return sp_err_set(b->err, SP_EXIT_USAGE, -EINVAL,
			  "%s:%zu:%zu: %s: a probes file is plain UTF-8 text", b->name, line, col,
			  b->parser.problem);
}

/* The usual slips, seen from libyaml's own words. */
static const char *remedy(const yaml_parser_t *p)
{
	const char *context = p->context ? p->context : "";

	if (p->problem && strstr(p->problem, "mapping values are not allowed"))
		return ": quote a text that holds \": \", the whole of it";
	if (strstr(context, "alias"))
		return ": quote a text that begins with *";
	if (strstr(context, "flow mapping") || strstr(context, "flow sequence"))
		return ": quote a text that holds {}, [], commas or \": \"";
	if (strstr(context, "next token"))
		return ": indent with spaces, quote a text that begins with @, ` or %";
	return "";
}

static int bad_syntax(const struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	char what[300];

	switch (p->error) {
	case YAML_MEMORY_ERROR:
		return out_of_memory(b);
	case YAML_READER_ERROR:
		return bad_byte(b);
	default:
		snprintf(what, sizeof(what), "not YAML: %s%s%s%s%s",
			 p->problem ? p->problem : "cannot be read", p->context ? " (" : "",
			 p->context ? p->context : "", p->context ? ")" : "", remedy(p));
		return bad_mark(b, p->problem_mark, what);
	}
}

static int node_new(struct builder *b, enum ynode_kind kind, yaml_mark_t mark, struct ynode **out)
{
	struct ynode *n;

	if (++b->tree->nodes > YAML_NODES_MAX)
		return bad_mark(b, mark, "too many entries for a probes file");
	n = calloc(1, sizeof(*n));
	if (!n)
		return out_of_memory(b);
	n->kind = kind;
	n->mark.line = (int)mark.line + 1;
	n->mark.col = (int)mark.column + 1;
	n->next = b->tree->all;
	b->tree->all = n;
	*out = n;
	return 0;
}

static int node_add(struct builder *b, struct ynode *to, struct ynode *item, size_t at)
{
	struct ynode **grown;

	if (!(at & (at + 1))) { /* full at 0, 1, 3, 7...: room for 2 at + 1 */
		grown = realloc(to->item, (2 * at + 1) * sizeof(struct ynode *));
		if (!grown)
			return out_of_memory(b);
		to->item = grown;
	}
	to->item[at] = item;
	return 0;
}

static int scalar(struct builder *b, const yaml_event_t *ev, struct ynode **out)
{
	size_t len = ev->data.scalar.length;
	int rc = node_new(b, YNODE_SCALAR, ev->start_mark, out);

	if (rc)
		return rc;
	if (memchr(ev->data.scalar.value, '\0', len))
		return bad_mark(b, ev->start_mark, "a NUL byte in a text");
	(*out)->text = strndup((const char *)ev->data.scalar.value, len);
	(*out)->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return (*out)->text ? 0 : out_of_memory(b);
}

static int refuse_extras(const struct builder *b, const yaml_event_t *ev)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (ev->type == YAML_ALIAS_EVENT)
		return bad_mark(b, ev->start_mark,
				"an alias (*name): not used here: quote a text that begins with *");
	if (ev->type == YAML_SCALAR_EVENT) {
		anchor = ev->data.scalar.anchor;
		tag = ev->data.scalar.tag;
	} else if (ev->type == YAML_SEQUENCE_START_EVENT) {
		anchor = ev->data.sequence_start.anchor;
		tag = ev->data.sequence_start.tag;
	} else if (ev->type == YAML_MAPPING_START_EVENT) {
		anchor = ev->data.mapping_start.anchor;
		tag = ev->data.mapping_start.tag;
	}
	if (anchor)
		return bad_mark(
			b, ev->start_mark,
			"an anchor (&name): not used here: quote a text that begins with &");
	if (tag)
		return bad_mark(b, ev->start_mark,
				"a tag (!name): not used here: quote a text that begins with !");
	return 0;
}

static int collect(struct builder *b, struct ynode *to, int depth);

/* The node that begins with ev; ev is consumed in any case. *out NULL: ev ended a collection. */
static int node_from(struct builder *b, yaml_event_t *ev, int depth, struct ynode **out)
{
	int rc = refuse_extras(b, ev);

	*out = NULL;
	if (rc)
		goto done;
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		rc = scalar(b, ev, out);
		break;
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		if (depth >= YAML_DEPTH_MAX) {
			rc = bad_mark(b, ev->start_mark, "nested too deep for a probes file");
			break;
		}
		rc = node_new(b, ev->type == YAML_MAPPING_START_EVENT ? YNODE_MAP : YNODE_LIST,
			      ev->start_mark, out);
		if (!rc)
			rc = collect(b, *out, depth + 1);
		break;
	default:
		break;
	}
done:
	yaml_event_delete(ev);
	return rc;
}

/* Everything up to the end of the collection. Depth is bounded above. */
// NOLINTNEXTLINE(misc-no-recursion)
static int collect(struct builder *b, struct ynode *to, int depth)
{
	struct ynode *n;
	size_t count = 0;
	int rc;

	for (;;) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&b->parser, &ev))
			return bad_syntax(b);
		rc = node_from(b, &ev, depth, &n);
		if (rc)
			return rc;
		if (!n)
			break;
		if (to->kind == YNODE_MAP && !(count & 1) && n->kind != YNODE_SCALAR)
			return sp_err_set(b->err, SP_EXIT_USAGE, -EINVAL,
					  "%s:%d:%d: a key must be a word", b->name, n->mark.line,
					  n->mark.col);
		rc = node_add(b, to, n, count++);
		if (rc)
			return rc;
	}
	to->n = to->kind == YNODE_MAP ? count / 2 : count;
	return 0;
}

static int document(struct builder *b)
{
	bool begun = false;
	yaml_event_t ev;
	yaml_event_type_t type;
	int rc = 0;

	for (;;) {
		if (!yaml_parser_parse(&b->parser, &ev))
			return bad_syntax(b);
		type = ev.type;
		switch (type) {
		case YAML_DOCUMENT_START_EVENT:
			if (begun)
				rc = bad_mark(b, ev.start_mark,
					      "a second document (---): one file has one document");
			begun = true;
			yaml_event_delete(&ev);
			break;
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
		case YAML_STREAM_END_EVENT:
			yaml_event_delete(&ev);
			break;
		default:
			rc = node_from(b, &ev, 0, &b->tree->root);
		}
		if (rc || type == YAML_STREAM_END_EVENT)
			return rc;
	}
}

int ytree_parse(struct ytree *t, const char *name, const char *text, size_t len, struct sp_err *err)
{
	struct builder b = {.tree = t, .name = name, .text = text, .len = len, .err = err};
	int rc;

	memset(t, 0, sizeof(*t));
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* libyaml would count it as a column */
		b.text = text += 3;
		b.len = len -= 3;
	}
	if (!yaml_parser_initialize(&b.parser))
		return out_of_memory(&b);
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, len);
	rc = document(&b);
	yaml_parser_delete(&b.parser);
	return rc;
}

void ytree_free(struct ytree *t)
{
	struct ynode *next;

	for (struct ynode *n = t->all; n; n = next) {
		next = n->next;
		free(n->text);
		free(n->item);
		free(n);
	}
	memset(t, 0, sizeof(*t));
}

struct ynode *ynode_key(const struct ynode *map, size_t i)
{
	return map->item[2 * i];
}

struct ynode *ynode_value(const struct ynode *map, size_t i)
{
	return map->item[2 * i + 1];
}

struct ynode *ynode_get(const struct ynode *map, const char *key)
{
	for (size_t i = 0; map->kind == YNODE_MAP && i < map->n; i++)
		if (!strcmp(ynode_key(map, i)->text, key))
			return ynode_value(map, i);
	return NULL;
}

const char *ynode_kind_name(const struct ynode *n)
{
	switch (n->kind) {
	case YNODE_LIST:
		return "a list";
	case YNODE_MAP:
		return "a map";
	default:
		return n->text[0] || !n->plain ? "a text" : "nothing";
	}
}
