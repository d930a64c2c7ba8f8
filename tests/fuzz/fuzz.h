/* Shared by all fuzz targets: bytes to read from, a way to fail, an allocator that counts and can run out. */
#ifndef FUZZ_H
#define FUZZ_H
#include "gk_backend.h"
#include "unit/support/own_memory.h"
#include <stdio.h>

/* Called by libFuzzer. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(truth) ((truth) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #truth))

static inline _Noreturn void fuzz_failed(const char *file, int line, const char *what) {
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, gk_error());
  abort();
}

/* ---- input ------------------------------------------------------------------------------------------------------- */

typedef struct bytes { const uint8_t *at, *end; } bytes;

/* Zeros behind the end, so that every input means something. */
static inline uint8_t take(bytes *in) { return in->at < in->end ? *in->at++ : 0; }

/* ---- gk's memory ------------------------------------------------------------------------------------------------- */

static counting fuzz_memory;

static inline void memory_fails_at(int call) { counting_fail_at(&fuzz_memory, call); }
static inline bool memory_failed(void) { return counting_failed(&fuzz_memory); }

static inline void count_memory(void) {
  const gk_allocator allocator = counting_allocator(&fuzz_memory);
  REQUIRE(gk_set_allocator(&allocator) == GK_OK);
}
#endif
