/* A list on the OpenMP backend by its vtable alone: this thread is the worker, and what the backend has learned about
 * costs can be set, so that it shares everything, nothing, or what it likes. */
#ifndef OPENMP_WORLD_H
#define OPENMP_WORLD_H
#include "base/error.h"
#include "unit/support/libomp_leaks.h"
#include "openmp/program.h"
#include "openmp/backend.h"
#include "plan/plan.h"
#include <math.h>
#include "unit/support/test.h"

typedef enum costs { AS_MEASURED, SHARE_ALL, SHARE_NOTHING } costs;

typedef struct world {
  gki_openmp_device device;
  gki_program program;
  gki_planned planned;
  const gk_plan *plan;
  gk_value *values;
  uint32_t *changed, changed_count;
  gk_launch_result record;
  uint64_t *entries;
  int32_t cancel;
  uint64_t launches;
  costs costs;
} world;

static inline gk_result world_lower(world *w, const gk_list *list, uint32_t bits) {
  gki_blocks blocks = {0};
  gk_mode mode = GK_MODE_NATIVE;
  assert_int_equal(gki_blocks_read(&blocks, list), GK_OK);
  assert_int_equal(gki_plan_make(&w->planned, &blocks, NULL, bits), GK_OK);
  gki_blocks_free(&blocks);
  w->plan = &w->planned.plan;
  w->values = calloc(w->plan->slot_count, sizeof *w->values);
  w->changed = calloc(w->plan->slot_count, sizeof *w->changed);
  w->entries = calloc(w->plan->loop_count + 1, sizeof *w->entries);
  w->record.passes = calloc(w->plan->loop_count + 1, sizeof *w->record.passes);
  w->record.hit_bound = calloc(w->plan->loop_count + 1, 1);
  w->record.ran = calloc(w->plan->checkpoint_count + 1, 1);
  gk_result result = gki_openmp.lower(&w->device, &w->program, w->plan, NULL, &mode);
  if (result == GK_OK) assert_int_equal(mode, GK_MODE_IN_PROCESS);
  return result;
}

static inline void world_open(world *w, int threads) {
  memset(w, 0, sizeof *w);
  gki_begin();
  gk_result result = gki_openmp.open(&w->device, &(gk_device_desc){.backend = "openmp", .threads = threads});
  if (result != GK_OK) fail_msg("%s", gk_error());
}

static inline void world_begin(world *w, const gk_list *list, int threads, costs how) {
  world_open(w, threads);
  w->costs = how;
  w->device.fixed = how != AS_MEASURED;
  gki_begin();
  if (world_lower(w, list, 0) != GK_OK) fail_msg("%s", gk_error());
}

/* Skips the test where fewer can be had. */
static inline void needs_threads(uint32_t count) {
  gki_team team;
  assert_true(gki_team_make(&team, count, 0));
  gki_team_start(&team);
  const uint32_t there = team.size;
  gki_team_free(&team);
  if (there == count) return;
  print_message("there are %u threads, not %u\n", (unsigned)there, (unsigned)count);
  skip();
}

static inline void world_drop(world *w) {
  gki_openmp.drop(&w->program);
  gki_plan_free(&w->planned);
  free(w->values);
  free(w->changed);
  free(w->entries);
  free(w->record.passes);
  free(w->record.hit_bound);
  free(w->record.ran);
}

static inline void world_end(world *w) {
  world_drop(w);
  gki_openmp.close(&w->device);
}

/* A world until the end of its block. */
#define WORLD(w, list, threads, costs) \
  __attribute__((cleanup(world_end))) world w; \
  world_begin(&(w), list, threads, costs)

static inline void world_bind(world *w, gk_slot slot, gk_value value) {
  w->values[slot] = value;
  for (uint32_t k = 0; k < w->changed_count; ++k)
    if (w->changed[k] == (uint32_t)slot) return;
  w->changed[w->changed_count++] = (uint32_t)slot;
}

/* BIND(&w, {X, {.ptr = x}}, {N, {.i32 = 3}}) */
typedef struct slot_value { gk_slot slot; gk_value value; } slot_value;
static inline void world_bind_all(world *w, const slot_value *all, size_t count) {
  for (size_t k = 0; k < count; ++k) world_bind(w, all[k].slot, all[k].value);
}
#define BIND(w, ...) world_bind_all(w, (const slot_value[]){__VA_ARGS__}, GK_COUNT(((const slot_value[]){__VA_ARGS__})))
static inline void bind_ptr(world *w, gk_slot slot, void *at) { world_bind(w, slot, (gk_value){.ptr = at}); }
static inline void bind_i32(world *w, gk_slot slot, int32_t number) { world_bind(w, slot, (gk_value){.i32 = number}); }

static inline gk_result world_launch(world *w, uint32_t target) {
  gk_launch_result *r = &w->record;
  r->state = GK_FINISHED;
  r->yielded = r->limit = 0;
  memset(r->passes, 0, w->plan->loop_count * sizeof *r->passes);
  memset(r->hit_bound, 0, w->plan->loop_count);
  memset(r->ran, 0, w->plan->checkpoint_count);
  if (w->costs != AS_MEASURED) {
    float ns = w->costs == SHARE_ALL ? 1e-9f : 1e30f;
    w->device.dispatch_ns = w->device.dispatch_floor_ns = w->device.wake_ns = ns;
  }
  gk_launch_args launch = {.launch = ++w->launches, .target = target, .values = w->values, .changed = w->changed,
                         .changed_count = w->changed_count, .entries = w->entries, .cancel = &w->cancel};
  w->changed_count = 0;
  gki_begin();
  return gki_openmp.run(&w->program, &launch, r);
}

/* The state after a start of the team at which each dispatch took so long. */
static inline void begin_slow_moment(gki_openmp_device *device, float dispatch_ns, uint64_t doubted_at) {
  device->dispatch_ns = device->dispatch_floor_ns = dispatch_ns;
  for (size_t k = 0; k < GK_COUNT(device->calibrated_ns); ++k) device->calibrated_ns[k] = dispatch_ns;
  if (device->calibrations == 0) device->calibrations = 1;
  device->pause_ns = 1e6f;
  device->doubted_at = doubted_at;
}

#define assert_runs(w) \
  do { \
    gk_result result_ = world_launch((w), 0); \
    if (result_ != GK_OK) fail_msg("%s, %s", gk_result_name(result_), gk_error()); \
  } while (0)
#endif
