/* Numbers that look random and are the same everywhere. */
#ifndef CHANCE_H
#define CHANCE_H
#include <stdint.h>
#include <stdlib.h>

static inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static inline uint32_t pick(uint64_t *random, uint32_t below) {
  *random += UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(mix(*random) >> 33) % below;
}

/* As many times as $GK_TEST_SCALE says, which `./configure.py test --full` sets. */
static inline uint64_t scaled(uint64_t times) {
  const char *text = getenv("GK_TEST_SCALE");
  return text ? times * strtoull(text, NULL, 10) : times;
}

/* Where the seeds of random cases begin: at 0, or with --full at $GK_TEST_SEED, which is another each time. */
static inline uint64_t first_seed(void) {
  const char *text = getenv("GK_TEST_SEED");
  return text ? strtoull(text, NULL, 10) : 0;
}
#endif
