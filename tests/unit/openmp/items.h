/* A kernel that notes which items it was called for and by whom, and slots for it. */
#ifndef OPENMP_ITEMS_H
#define OPENMP_ITEMS_H
#include "world.h"
#include <pthread.h>
#include <stdatomic.h>

enum { X = 1, Y, N, NY, NZ, COUNT, S, SLOTS };
enum { ITEMS_MAX = 100003 };

static atomic_int other_threads;
static pthread_t worker;

/* By hand, as it wants to see the range: adds one to each item, and each is to be met once. */
static void touch(const gk_value *args, gk_range range) {
  unsigned char *x = args[0].ptr;
  assert_true(range.begin < range.end);
  assert_true(range.end <= (size_t)range.extent[0] * range.extent[1] * range.extent[2]);
  for (size_t i = range.begin; i < range.end; ++i) ++x[i];
  if (!pthread_equal(pthread_self(), worker)) atomic_fetch_add(&other_threads, 1);
}
static const gk_param touch_params[] = {{"x", "uint8_t", 1, 1, GK_PTR, GK_ACCESS_INOUT}};
static const gk_kernel touching = {
  .name = "touching", .params = touch_params, .param_count = 1, .dimensions = 3, .host = touch};

static const gk_slot_desc item_slots[] = {
  GK_BUFFER(X, uint8_t), GK_BUFFER(Y, uint8_t), GK_SCALAR(N, int), GK_SCALAR(NY, uint), GK_SCALAR(NZ, int64_t),
  GK_BUFFER(COUNT, int),
};

static unsigned char touched_bytes[ITEMS_MAX + 1];
#endif
