/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from a target may hold any byte. What leaves silentpin (recording, JSON, terminal) is valid
 * UTF-8 without control characters: other bytes are written as \xNN, and a backslash that would
 * read as such a sequence as \x5c, so that the original can be had back.
 */
#ifndef SP_STORE_TEXT_H
#define SP_STORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define TEXT_SAFE_MAX(n) (4 * (n)) /* the longest safe form of n bytes (NUL counted) */

bool text_is_safe(const char *s);
/* Cut, at a whole character, when it does not fit. Returns the length of dst. */
size_t text_safe(char *dst, size_t len, const char *src);
/* The inverse; returns the length of dst. */
size_t text_raw(char *dst, size_t len, const char *src);

#endif
