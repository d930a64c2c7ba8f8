/* The runner as gk's own tests have it: with the backends that watch common, and fail on request. */
#include "own.h"
#include "awkward/awkward.h"
#include "unit/fake_backend.h"
#include <stddef.h>

static void awkward_fails(unsigned long call, gk_result code, int way) {
  static const awkward_how ways[] = {AWKWARD_AT_ONCE, AWKWARD_LATE, AWKWARD_LOST};
  awkward_fail_how(ways[way]);
  awkward_fail_at(call, code);
}

#define FAKE(called) {.name = (called), .enter = fake_register, .broken = fake_broken, .leaks = fake_leaks}

const own_backend own_backends[] = {
  {.name = "awkward", .enter = awkward_register, .seed = awkward_seed, .broken = awkward_broken,
   .leaks = awkward_leaks, .ways = {"at once", "late", "with the device lost"}, .fail_at = awkward_fails,
   .calls = awkward_calls},
  FAKE("fake_in_process"), FAKE("fake_native"), FAKE("fake_batched"), {0},
};
