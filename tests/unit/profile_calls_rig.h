/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a probes file with probes of calls. */
#ifndef PROFILE_CALLS_RIG_H
#define PROFILE_CALLS_RIG_H

#include "profile_rig.h"

#define HEAD                                                                                       \
	"version: 1\n"                                                                             \
	"profiles:\n"                                                                              \
	"  - name: t\n"                                                                            \
	"    room: {type: u64}\n"                                                                  \
	"    libraries: {l: {file: \"lib.so\"}, m: {file: m}}\n"                                   \
	"    probes:\n"
#define PUSH                                                                                       \
	"      - name: push\n"                                                                     \
	"        library: l\n"                                                                     \
	"        symbol: f\n"                                                                      \
	"        on: ret\n"
#define REF                                                                                        \
	"      - name: ref\n"                                                                      \
	"        library: l\n"
#define ARG_QP "        args: [{name: qp, fetch: \"+52($arg1)\", type: u32}]\n"
#define CALL   "        event: {role: call}\n"

#endif
