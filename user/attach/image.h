/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a target in memory, read piece by piece where it is asked for. Not mapped: a file may
 * be cut short while it is looked at (a library is replaced, or its process means harm), and where
 * a mapping would then end silentpin by SIGBUS, a read fails. What was given once stays as it was.
 */
#ifndef SP_ATTACH_IMAGE_H
#define SP_ATTACH_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct image;
/* fd stays the caller's and must outlive the image. -ENOMEM, -EFBIG. */
int image_open(int fd, uint64_t size, struct image **out);
void image_close(struct image *im);
/* NULL: the file has no such bytes, or has them no longer. Good until image_close. */
const uint8_t *image_at(struct image *im, uint64_t off, uint64_t len);

#endif
