/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `silentpin check`: each prints what it is given to standard output. */
#ifndef SP_CLI_CHECK_H
#define SP_CLI_CHECK_H

#include "profile/profile.h"

void check_print_status(const struct status_spec *s);
void check_print_probe(const struct profile *p, const struct profile_probe *probe);
void check_print_messages(const struct profile_probe *probe);
/* What no probe of the profile gives, though others build on it. */
void check_print_notes(const struct profile *p);

#endif
