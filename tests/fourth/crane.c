// SPDX-License-Identifier: Apache-2.0
#include "crane.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static int jams[CRANE_LANES];

static int pass(int lane)
{
	if (lane < 0 || lane >= CRANE_LANES)
		return CRANE_NO_LANE;
	pthread_mutex_lock(&lock);
	while (jams[lane])
		pthread_cond_wait(&freed, &lock);
	pthread_mutex_unlock(&lock);
	return CRANE_FINE;
}

int crane_lift(void *to, const void *from, size_t size, int lane)
{
	int code = pass(lane);

	if (!code)
		memcpy(to, from, size);
	return code;
}

int crane_pull(int lane, size_t size, unsigned char first, void *to)
{
	int code = pass(lane);

	for (size_t i = 0; !code && i < size; i++)
		((unsigned char *)to)[i] = (unsigned char)(first + i);
	return code;
}

int crane_seal(const void *data, size_t size, int lane, unsigned *sum)
{
	int code = pass(lane);

	*sum = 0;
	for (size_t i = 0; !code && i < size; i++)
		*sum = *sum * 31 + ((const unsigned char *)data)[i];
	return code;
}

void crane_jam(int lane, int jammed)
{
	if (lane < 0 || lane >= CRANE_LANES)
		return;
	pthread_mutex_lock(&lock);
	jams[lane] = jammed;
	pthread_cond_broadcast(&freed);
	pthread_mutex_unlock(&lock);
}
