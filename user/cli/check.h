/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `silentpin check`: each prints what it is given to standard output. */
#ifndef SP_CLI_CHECK_H
#define SP_CLI_CHECK_H

#include "profile/profile.h"

void check_print_status(const struct status_spec *s);
void check_print_probe(const struct profile *p, const struct profile_probe *probe);
void check_print_messages(const struct profile_probe *probe);
/* In one line; also an entry of sockets. */
void check_print_line(const struct profile *p, const struct profile_probe *probe);

#endif
