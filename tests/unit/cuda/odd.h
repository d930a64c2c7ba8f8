/* An open device whose driver has entries of the test's own. */
#ifndef UNIT_CUDA_ODD_H
#define UNIT_CUDA_ODD_H
#include "cuda/device.h"
#include "runtime/device.h"
#include "lists.h"

static gki_cuda_device *native;
static const gki_cuda_driver *right;
static gki_cuda_driver odd; /* the device's driver from setup on: `right` with the entries that a test replaces */

static int unexpected; /* a test can't end within an entry: gk holds locks there */
static inline void expect(bool right_one) { unexpected += !right_one; }

static int failing; /* so many calls more */
static inline bool fails_now(void) { return failing > 0 && failing-- > 0; }

static inline int setup_odd(void **state) {
  unexpected = failing = 0;
  if (setup_in_mode(state) != 0) return -1;
  native = ((gk_device *)*state)->state;
  right = native->driver;
  odd = *right;
  native->driver = &odd;
  return 0;
}

static inline int teardown_odd(void **state) {
  odd = *right;
  if (unexpected) fprintf(stderr, "the driver was asked for the wrong thing, %d times\n", unexpected);
  return teardown_cuda(state) || unexpected ? -1 : 0;
}

#define ODD(test) DEVICE_TEST(test, setup_odd, teardown_odd)
#define ODD_IN_MODES(test) DEVICE_TEST_ON("native gated", test, setup_odd, teardown_odd)

/* An entry that does `first`, then what the right one does. */
#define BEFORE(name, entry, parameters, arguments, first) \
  static CUresult name parameters { \
    first; \
    return right->entry arguments; \
  }
#endif
