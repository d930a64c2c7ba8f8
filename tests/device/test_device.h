/* A backend for tests, named "test_device": what a device apart from the host may do to common. Its addresses lie in
 * a range that the host can't touch. Submits are queued, and a thread of the device carries them out later, in batches;
 * flags are snapshots that come when the batch is over. A launch's arguments are copied, and only slots said to be
 * changed are looked at. Control kernels behind the runs of a tape now and then walk a few points only, and runs of
 * sections come in any order. It watches whether common keeps the rules of gk_backend.h, and fails when asked to. */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H
#include "gk_backend.h"

typedef enum test_device_how {
  TEST_DEVICE_AT_ONCE, /* the call fails, having done nothing */
  TEST_DEVICE_LATE,    /* a launch or submit says GK_OK, and what it began fails; other calls fail at once */
  TEST_DEVICE_LOST     /* the call fails, and after it every call on that device */
} test_device_how;

const gk_backend *gk_backend_export(void);
void test_device_register(void); /* again: nothing */
/* Delays, sizes of batches, budgets of walks, the order of sections and of items, of devices opened from now on.
 * 0: no delays, and a thread that waits for the device carries out its work, which is fast. */
void test_device_seed(uint64_t seed);

/* The call-th entry that can fail does, from now (1: the next), with that code; 0: none. Those that can are open,
 * alloc, copy, load, lower, launch, submit, read_flag, ahead and state. */
void test_device_fail_at(unsigned long call, gk_result code);
void test_device_fail_how(test_device_how how); /* for all test_device_fail_at from now on; at first AT_ONCE */
unsigned long test_device_calls(void);      /* entries that can fail, since the last test_device_fail_at */

const char *test_device_broken(void); /* the first rule of gk_backend.h that common broke; "" */
void test_device_forgive(void);       /* forgets it */
unsigned test_device_leaks(void);     /* devices, memory, code, graphs not given back */
#endif
