/* Random lists on a backend against the reference; TAP. Without arguments: as many as the tests want. It exits with 1
 * if something failed, else with 77 if a backend has no device here. */
#include "random.h"
#include "device/test_device.h"
#include "unit/support/runtime_leaks.h"
#include "vulkan/standin.h"
#include <stdlib.h>
#include <string.h>

enum { NO_DEVICE = 77 };

static const vulkan_standin *standin;

/* One device in eight has delays: they take long. */
static void prepare(uint64_t seed) { test_device_seed(seed / RANDOM_DEVICE_LISTS % 8 ? 0 : seed + 1); }

static void begin_list(uint64_t seed) {
  if (standin) standin->set_seed(seed + 1);
}

static const char *broken(void) { return standin && standin->broken()[0] ? standin->broken() : test_device_broken(); }

#if defined(__has_feature)
#define HAS(feature) __has_feature(feature)
#else
#define HAS(feature) 0
#endif

/* Ten thousand, and with --full a million where they run as the library is shipped. */
static long usual_count(void) {
  const char *text = getenv("GK_TEST_SCALE");
  long scale = text && atol(text) > 0 ? atol(text) : 1;
  bool watches_memory = HAS(address_sanitizer), watches_threads = HAS(thread_sanitizer);
#if defined(__SANITIZE_ADDRESS__)
  watches_memory = true;
#endif
  if (watches_memory && scale > 10) scale = 10;
  return watches_threads ? 2000 : 10000 * scale;
}

/* With --full other lists each time; a list that fails is named by its own seed. */
static uint64_t usual_seed(void) {
  const char *text = getenv("GK_TEST_SEED");
  return text ? strtoull(text, NULL, 10) : 1;
}

static int tell_usage(void) {
  fprintf(stderr, "random_lists [--backend NAME]... [--module PATH]... [--seed S] [--random N] [--print S] "
                  "[--host-gated] [--without-calls] [--no-shrink]\n");
  return 2;
}

int main(int argc, char **argv) {
  const char *backends[16] = {NULL};
  int backend_count = 0;
  long count = usual_count();
  uint64_t seed = usual_seed();
  bool shrink = true, prints = false;
  for (int k = 1; k < argc; ++k) {
    if (strcmp(argv[k], "--host-gated") == 0) {
      random_ask_for(GK_HOST_GATED);
      continue;
    }
    if (strcmp(argv[k], "--without-calls") == 0) {
      random_leave_out_calls();
      continue;
    }
    const char *value = k + 1 < argc ? argv[k + 1] : NULL;
    if (strcmp(argv[k], "--no-shrink") == 0) {
      shrink = false;
      continue;
    }
    if (!value) return tell_usage();
    ++k;
    if (strcmp(argv[k - 1], "--backend") == 0 && backend_count < 16) backends[backend_count++] = value;
    else if (strcmp(argv[k - 1], "--module") == 0) {
      if (gk_backend_load(value) == GK_OK) continue;
      fprintf(stderr, "%s\n", gk_error());
      return 1;
    } else if (strcmp(argv[k - 1], "--seed") == 0) seed = strtoull(value, NULL, 10);
    else if (strcmp(argv[k - 1], "--random") == 0) count = atol(value);
    else if (strcmp(argv[k - 1], "--print") == 0) {
      prints = true;
      seed = strtoull(value, NULL, 10);
    } else return tell_usage();
  }
  if (!backend_count) {
    backends[backend_count++] = "openmp";
    backends[backend_count++] = "test_device";
  }
  test_device_register();
  standin = vulkan_standin_find();
  if (standin) standin->set_seed(seed + 1); /* before a device is opened */
  random_watch(prepare, begin_list, broken);
  if (prints) return random_print(backends[0], seed, stdout) ? 0 : 1;
  int failures = 0, absent = 0;
  for (int k = 0; k < backend_count; ++k) {
    int result = random_lists(backends[k], seed, count, shrink);
    printf("%sok %d - %ld random lists on %s%s\n", result > 0 ? "not " : "", k + 1, count, backends[k],
           result < 0 ? " # SKIP it has no device here, as said above" : "");
    fflush(stdout);
    failures += result > 0;
    absent += result < 0;
  }
  printf("1..%d\n", backend_count);
  return failures ? 1 : absent ? NO_DEVICE : 0;
}
