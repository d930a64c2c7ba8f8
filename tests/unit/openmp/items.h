/* A kernel that counts how often it is called for each item, and by other threads; slots for it. */
#ifndef OPENMP_ITEMS_H
#define OPENMP_ITEMS_H
#include "world.h"
#include <pthread.h>
#include <stdatomic.h>

enum { X = 1, Y, N, NY, NZ, COUNT, MORE_SLOTS, ITEMS_MAX = 100003 };
static atomic_int other_threads;
static pthread_t worker;
HAND_KERNEL(touching, INOUT(uint8_t)) {
  unsigned char *x = args[0].ptr;
  assert_true(range.begin < range.end);
  assert_true(range.end <= (size_t)range.extent[0] * range.extent[1] * range.extent[2]);
  for (size_t i = range.begin; i < range.end; ++i) ++x[i];
  if (!pthread_equal(pthread_self(), worker)) atomic_fetch_add(&other_threads, 1);
}

static const gk_slot_desc item_slots[] = {GK_BUFFER(X, uint8_t), GK_BUFFER(Y, uint8_t),  GK_SCALAR(N, int),
                                          GK_SCALAR(NY, uint),   GK_SCALAR(NZ, int64_t), GK_BUFFER(COUNT, int)};
static unsigned char touched_bytes[ITEMS_MAX + 1];
#endif
