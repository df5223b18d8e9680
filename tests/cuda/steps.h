/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command loop of a program that tests watch. Each line of its input goes to a thread by name
 * ("NAME: STEP; STEP; ..."), which is made when first named, does the steps in turn and answers
 * "NAME: RESULT RESULT...".
 */
#ifndef STEPS_H
#define STEPS_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_STEPS 64

struct worker {
	char name[32];
	FILE *in;
	int out; /* where its lines are written */
	pthread_t thread;
	void *own; /* the program's */
	char *step[MAX_STEPS];
	int nsteps, at;
	char answer[1024];
	uint64_t op; /* the last one made or sent */
};

/* The program's part. Steps from w->at on, up to `leave` or the end; arg: the worker. */
void run_steps(void *arg);
/* On its thread, before its first line; 0, or the program ends. */
int worker_init(struct worker *w);

/* Until the input ends: the exit status. */
int serve(void);
__attribute__((format(printf, 2, 3))) void say(struct worker *w, const char *fmt, ...);
uint64_t now_ns(void);
/* A step of the transport; op 0: the one that this thread has made last. -1: it is none. */
int do_transport(struct worker *w, const char *text);

#endif
