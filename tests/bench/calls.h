/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CALLS_H
#define BENCH_CALLS_H

#include <stdint.h>

typedef void bench_fn(uint64_t a, uint64_t b);
bench_fn bench_plain, bench_scalars, bench_string, bench_nop5, bench_step, bench_poll;
bench_fn bench_announce, bench_post, bench_status;

#endif
