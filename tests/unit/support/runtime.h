/* What the tests of the runtime share: asserts that show gk_error(), an allocator that counts and fails, devices. */
#ifndef RUNTIME_H
#define RUNTIME_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device/awkward.h"
#include "fake_backend.h"

#define assert_ok(call) \
  do { \
    gk_result result_ = (call); \
    if (result_ != GK_OK) fail_msg("%s: %s, %s", #call, gk_result_name(result_), gk_error()); \
  } while (0)

/* The call fails with that code, and its message has these words. */
#define assert_fails(code, words, call) \
  do { \
    gk_result result_ = (call); \
    if (result_ != (code)) fail_msg("%s: %s, not %s; %s", #call, gk_result_name(result_), #code, gk_error()); \
    assert_says(words); \
  } while (0)

#define assert_says(words) \
  do { \
    if (!strstr(gk_error(), (words))) fail_msg("\"%s\" doesn't say \"%s\"", gk_error(), (words)); \
  } while (0)

/* ---- an allocator that counts, and fails on request -------------------------------------------------------------- */

typedef struct counting {
  atomic_int live, calls;
  atomic_int fail_at; /* of calls, from 1; 0: none */
} counting;

static inline bool counting_fails(counting *c) {
  return atomic_fetch_add(&c->calls, 1) + 1 == atomic_load(&c->fail_at);
}

static inline void *counting_alloc(void *user, size_t bytes) {
  counting *c = user;
  void *memory = counting_fails(c) ? NULL : malloc(bytes);
  if (memory) {
    memset(memory, 0x5A, bytes);
    atomic_fetch_add(&c->live, 1);
  }
  return memory;
}

static inline void *counting_resize(void *user, void *at, size_t bytes) {
  counting *c = user;
  void *memory = counting_fails(c) ? NULL : realloc(at, bytes);
  if (memory && !at) atomic_fetch_add(&c->live, 1);
  return memory;
}

static inline void counting_free(void *user, void *at) {
  counting *c = user;
  if (at) atomic_fetch_sub(&c->live, 1);
  free(at);
}

static inline gk_allocator counting_allocator(counting *c) {
  return (gk_allocator){c, counting_alloc, counting_resize, counting_free};
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static inline gk_device *open_named(const char *backend) {
  gk_device *device = NULL;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = backend}, &device));
  return device;
}

static inline gk_device *open_fake(fake_mode mode) {
  fake_register();
  fake_reset();
  return open_named(fake_names[mode]);
}

/* Closes it, and asserts that every rule was kept and nothing is left. */
static inline void close_fake(gk_device *device) {
  gk_device_close(device);
  assert_string_equal(fake_broken(), "");
  assert_int_equal(fake_leaks(), 0);
  assert_string_equal(awkward_broken(), "");
  assert_int_equal(awkward_leaks(), 0);
}

/* A test on a backend: its *state is an open device; with cmocka, `ON(it, test)` is a line of the table of tests. */
static inline int setup_device(void **state) {
  fake_register();
  fake_reset();
  awkward_register();
  awkward_seed(1);
  awkward_fail_at(0, GK_OK);
  awkward_forgive();
  return gk_device_open(&(gk_device_desc){.backend = *state}, (gk_device **)state) == GK_OK ? 0 : -1;
}

static inline int teardown_device(void **state) {
  fake_go(); /* a test that failed in between left it held, and closing would wait for ever */
  close_fake(*state);
  return 0;
}

static inline bool is_fake(const gk_device *device) {
  return strncmp(gk_device_describe(device)->backend, "fake", 4) == 0;
}

#define ON(backend, test) {#test " on " #backend, test, setup_device, teardown_device, (void *)(uintptr_t)#backend}
#define ON_FAKES(test) ON(fake_in_process, test), ON(fake_native, test), ON(fake_batched, test)
#define ON_ALL(test) ON_FAKES(test), ON(openmp, test), ON(awkward, test)

static inline int *ints_on(gk_device *device, const int *from, size_t count) {
  int *memory = gk_alloc(device, count * sizeof *memory, GK_DEVICE_MEMORY);
  if (!memory) fail_msg("%s", gk_error());
  if (from) assert_ok(gk_upload(device, memory, from, count * sizeof *memory));
  return memory;
}

static inline int *int_on(gk_device *device, int value) { return ints_on(device, &value, 1); }

static inline int int_at(gk_device *device, const void *memory) {
  int value = -12345;
  assert_ok(gk_download(device, &value, memory, sizeof value));
  return value;
}

static inline void set_int(gk_device *device, int *memory, int value) {
  assert_ok(gk_upload(device, memory, &value, sizeof value));
}
#endif
