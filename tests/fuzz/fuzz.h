/* What all fuzz targets need: bytes to read from, a way to fail, an allocator that counts and can run out. */
#ifndef FUZZ_H
#define FUZZ_H
#include "gk_backend.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Called by libFuzzer. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(truth) ((truth) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #truth))

static inline _Noreturn void fuzz_failed(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, gk_error());
  abort();
}

/* ---- input ------------------------------------------------------------------------------------------------------- */

typedef struct bytes {
  const uint8_t *at, *end;
} bytes;

/* Zeros behind the end, so that every input means something. */
static inline uint8_t take(bytes *in) { return in->at < in->end ? *in->at++ : 0; }

/* ---- gk's memory ------------------------------------------------------------------------------------------------- */

static atomic_long fuzz_live, fuzz_calls, fuzz_fail_at; /* blocks; allocations since the last memory_fails_at */

static inline void memory_fails_at(long call) {
  atomic_store(&fuzz_calls, 0);
  atomic_store(&fuzz_fail_at, call);
}

static inline bool fuzz_runs_out(void) {
  long at = atomic_load(&fuzz_fail_at);
  return atomic_fetch_add(&fuzz_calls, 1) + 1 == at && at > 0;
}

/* Whether the failure that was asked for has come. */
static inline bool memory_failed(void) {
  return atomic_load(&fuzz_fail_at) > 0 && atomic_load(&fuzz_calls) >= atomic_load(&fuzz_fail_at);
}

static inline void *fuzz_alloc(void *user, size_t bytes) {
  (void)user;
  void *memory = fuzz_runs_out() ? NULL : malloc(bytes);
  if (memory) atomic_fetch_add(&fuzz_live, 1);
  return memory;
}

static inline void *fuzz_resize(void *user, void *at, size_t bytes) {
  (void)user;
  void *memory = fuzz_runs_out() ? NULL : realloc(at, bytes);
  if (memory && !at) atomic_fetch_add(&fuzz_live, 1);
  return memory;
}

static inline void fuzz_free(void *user, void *at) {
  (void)user;
  if (at) atomic_fetch_sub(&fuzz_live, 1);
  free(at);
}

static inline void count_memory(void) {
  static const gk_allocator allocator = {NULL, fuzz_alloc, fuzz_resize, fuzz_free};
  REQUIRE(gk_set_allocator(&allocator) == GK_OK);
}
#endif
