/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML document as a tree with the place of every node, built on libyaml's events. Bounded in
 * size and depth; no aliases, anchors, tags or further documents: a probes file needs none, and
 * what is not there cannot be abused.
 */
#ifndef SP_YAML_TREE_H
#define SP_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"
#include "util/err.h"

#define YAML_DEPTH_MAX 24
#define YAML_NODES_MAX 50000

enum ynode_kind { YNODE_SCALAR, YNODE_LIST, YNODE_MAP };
struct ynode {
	enum ynode_kind kind;
	struct profile_mark mark;
	char *text;          /* scalar: NUL-terminated, no NUL inside */
	bool plain;          /* scalar: without quotes */
	struct ynode **item; /* list: values; map: key, value, key, value... keys are scalars */
	size_t n;            /* list: values; map: pairs */
	struct ynode *next;  /* all nodes of a tree, for freeing */
};

struct ytree {
	struct ynode *root, *all;
	size_t nodes;
};

/* 0, or -EINVAL / -ENOMEM with "NAME:LINE:COL: ..." in err. Free the tree in either case. */
int ytree_parse(struct ytree *t, const char *name, const char *text, size_t len,
		struct sp_err *err);
void ytree_free(struct ytree *t);
struct ynode *ynode_key(const struct ynode *map, size_t i);
struct ynode *ynode_value(const struct ynode *map, size_t i);
struct ynode *ynode_get(const struct ynode *map, const char *key); /* NULL: absent */
const char *ynode_kind_name(const struct ynode *n);                /* "a list" */

#endif
