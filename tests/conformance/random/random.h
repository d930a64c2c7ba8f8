/* Random lists: right lists over all constructs, with launches and what a host may do in between, on a backend and on
 * the reference. Everything follows from the seed. */
#ifndef RANDOM_H
#define RANDOM_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { RANDOM_DEVICE_LISTS = 250 }; /* lists that one device is open for; on Vulkan, 20 times as many */

/* Runs the lists of so many seeds in a child process, a new one after each failure, and prints what came up. A seed
 * whose status, memory or end differs is named, made as small as it will be if `shrink`, and printed as a C program.
 * @return the seeds that failed (it stops at the third) and, of 1000 lists or more that all went well, the constructs
 * that never came up; -1: the backend has no device here, and why was printed. */
int random_lists(const char *backend, uint64_t first_seed, long count, bool shrink);

/* In the child: what is called before the device is opened, before each list, and after it, to say which rule was
 * broken (""). Each may be NULL. */
void random_watch(void (*before_open)(uint64_t seed), void (*before_list)(uint64_t seed), const char *(*broken)(void));

/* Bits of gk_graph_create for every list, beside those that it asks for itself. */
void random_ask_for(uint32_t bits);

/* No CALLs, and nothing is cancelled, since it is in a CALL that a launch waits for that. A backend that records CALLs
 * needs no such thing: there they record copies, and it is in a kernel that a launch waits (stay.h). */
void random_leave_out_calls(void);

/* The list of a seed as a C program that does the same on a backend and compares with what the reference said. */
bool random_print(const char *backend, uint64_t seed, FILE *to);
#endif
