// SPDX-License-Identifier: Apache-2.0
// Calls within calls, calls that do not return, calls with lists and arrays: for attach_calls.
#include <csetjmp>
#include <semaphore.h>
#include <stdexcept>

#define NOINLINE __attribute__((noinline, noclone))

static volatile long sink;
static volatile long stop;
static sem_t go;
static jmp_buf back;

/* ---- calls within calls -------------------------------------------------------------------- */

extern "C" NOINLINE long calls_inner(long n)
{
	sink = sink + n;
	return n;
}

extern "C" NOINLINE long calls_middle(long n)
{
	long got = calls_inner(n + 1);

	sink = sink + got;
	return got - 1;
}

extern "C" NOINLINE long calls_outer(long n)
{
	long got = calls_inner(n) + calls_middle(n);

	got += calls_inner(n);
	sink = sink + got;
	return got - n;
}

extern "C" NOINLINE long calls_nest(long n)
{
	long got = n > 1 ? calls_nest(n - 1) : calls_inner(n);

	sink = sink + got;
	return got + 1;
}

/* Answers n: negative, 0 and positive are different things to a probe. */
extern "C" NOINLINE int calls_answer(long n)
{
	sink = sink + n;
	return (int)n;
}

/* ---- calls that do not return --------------------------------------------------------------- */

extern "C" NOINLINE long calls_wait(long n)
{
	sem_wait(&go);
	sink = sink + n;
	return n;
}

extern "C" NOINLINE long calls_spin(long n)
{
	stop = 0;
	while (!stop)
		;
	sink = sink + n;
	return n;
}

/* Ends the first of the two, with a number the other. */
extern "C" long calls_release(long n)
{
	if (n)
		stop = 1;
	else
		sem_post(&go);
	return n;
}

NOINLINE long calls_throwing(long n)
{
	long got = calls_inner(n);

	if (n % 2)
		throw std::runtime_error("odd");
	return got + 1;
}

extern "C" NOINLINE long calls_jumping(long n)
{
	long got = calls_inner(n);

	if (n % 2)
		longjmp(back, 1);
	return got + 1;
}

static NOINLINE void after(long n, long what)
{
	if (what == 1)
		calls_wait(n);
	else if (what == 2)
		calls_spin(n);
	else
		calls_inner(n);
	sink = sink + 1;
}

/* n: number for the calls; 1000, 2000 more: wait, spin afterwards. */
extern "C" NOINLINE long calls_catch(long n)
{
	try {
		calls_throwing(n % 1000);
	} catch (const std::runtime_error &) {
		sink = sink + 1;
	}
	if (n < 1000)
		calls_inner(n);
	after(n, n / 1000);
	return n;
}

extern "C" NOINLINE long calls_jump(long n)
{
	if (!setjmp(back))
		calls_jumping(n % 1000);
	if (n < 1000)
		calls_inner(n);
	after(n, n / 1000);
	return n;
}

/* ---- lists and arrays ----------------------------------------------------------------------- */

struct sub {
	long value, pad;
};
struct item {
	long value;
	item *next;
	int flags, nsubs;
	sub *subs;
};
struct queue {
	int id, result;
	item *refused; /* set when the result is not 0, unless it is not said */
	long device;
};
struct done {
	int status, id;
};
struct batch {
	char *begin, *end;
	long n;
};

extern "C" NOINLINE int calls_post(queue *q, item *first)
{
	sink = sink + (first ? first->value : 0);
	return q->result;
}

extern "C" NOINLINE int calls_poll(queue *q, int n, done *out)
{
	for (int i = 0; i < n; i++)
		out[i] = {i == 1 ? 5 : 0, q->id};
	sink = sink + n;
	return n;
}

extern "C" NOINLINE int calls_end(queue *q, int how)
{
	sink = sink + q->id + how;
	return 0;
}

extern "C" NOINLINE int calls_batch(batch *b)
{
	sink = sink + b->n;
	return 0;
}

/* REFUSED: from the first on; PART: from the fourth on; ELSEWHERE: it is not said from where on */
enum { PLAIN, CYCLIC, BROKEN, REFUSED, PART, ELSEWHERE };

/* device << 8 | id */
static queue queue_of(long spec)
{
	return {(int)(spec & 255), 0, nullptr, spec >> 8};
}

extern "C" long calls_do_end(long spec)
{
	queue q = queue_of(spec >> 16);

	return calls_end(&q, (int)(spec & 255));
}

/* spec: queue << 16 | how << 12 | number of items, at most 2047 */
extern "C" long calls_do_post(long spec)
{
	static item items[2048];
	static sub subs[2048];
	queue q = queue_of(spec >> 16);
	int n = (int)(spec & 2047), how = (int)(spec >> 12 & 15);

	for (int i = 0; i < n; i++) {
		items[i] = {100 + i, &items[i + 1], i % 2, i % 3, &subs[i]};
		subs[i] = {1000 + i, 0};
	}
	if (n)
		items[n - 1].next = how == CYCLIC   ? &items[0]
				    : how == BROKEN ? reinterpret_cast<item *>(8)
						    : nullptr;
	q.result = how >= REFUSED ? 12 : 0;
	q.refused = how == PART ? &items[3] : how == REFUSED ? &items[0] : &items[2047];
	return calls_post(&q, n ? items : nullptr);
}

extern "C" long calls_do_poll(long spec)
{
	static done out[2048];
	queue q = queue_of(spec >> 16);

	return calls_poll(&q, (int)(short)(spec & 0xffff), out);
}

/* stride << 8 | number */
extern "C" long calls_do_batch(long spec)
{
	static char bytes[4096];
	long n = spec & 255, stride = spec >> 8;
	batch b = {bytes, bytes + n * stride, n};

	for (long i = 0; i < n; i++)
		*reinterpret_cast<long *>(bytes + i * stride) = 500 + i;
	return calls_batch(&b);
}
