/* A list on the OpenMP backend by its vtable alone: this thread is the worker, and what the backend has learned about
 * costs can be set, so that it shares everything, nothing, or what it likes. */
#ifndef OPENMP_WORLD_H
#define OPENMP_WORLD_H
#include "base/error.h"
#include "unit/support/runtime_leaks.h"
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
  uint32_t *changed, changed_count, tried; /* tried: worlds of a FOR_EACH_WORLD, with this one */
  gk_launch_result record;
  uint64_t *entries, *counts, launches;
  int32_t cancel;
  int threads;
  costs costs;
} world;

static inline gk_result world_lower(world *w, const gk_list *list) {
  gki_blocks blocks = {0};
  gk_mode mode = GK_MODE_NATIVE;
  assert_int_equal(gki_blocks_read(&blocks, list), GK_OK);
  assert_int_equal(gki_plan_make(&w->planned, &blocks, NULL, 0), GK_OK);
  gki_blocks_free(&blocks);
  w->plan = &w->planned.plan;
  w->values = calloc(w->plan->slot_count, sizeof *w->values);
  w->changed = calloc(w->plan->slot_count, sizeof *w->changed);
  w->entries = calloc(w->plan->loop_count + 1, sizeof *w->entries);
  w->counts = calloc(w->plan->loop_count + 1, sizeof *w->counts);
  w->record.passes = calloc(w->plan->loop_count + 1, sizeof *w->record.passes);
  w->record.hit_bound = calloc(w->plan->loop_count + 1, 1);
  w->record.ran = calloc(w->plan->checkpoint_count + 1, 1);
  gk_result result = gki_openmp.lower(&w->device, &w->program, w->plan, NULL, &mode);
  if (result == GK_OK) assert_int_equal(mode, GK_MODE_IN_PROCESS);
  return result;
}

static inline void world_open(world *w, int threads) {
  memset(w, 0, sizeof *w);
  w->threads = threads;
  gki_begin();
  assert_ok(gki_openmp.open(&w->device, &(gk_device_desc){.backend = "openmp", .threads = threads}));
}

static inline void world_begin(world *w, const gk_list *list, int threads, costs how) {
  world_open(w, threads);
  w->costs = how;
  w->device.fixed = how != AS_MEASURED;
  gki_begin();
  assert_ok(world_lower(w, list));
}

/* A team until the end of its block. */
#define TEAM(made, size) \
  __attribute__((cleanup(gki_team_free))) gki_team made; \
  assert_true(gki_team_make(&(made), size, 0))

static inline uint32_t threads_there(uint32_t wanted) {
  TEAM(team, wanted);
  gki_team_start(&team);
  return team.in_use;
}
/* Skips the test where fewer can be had. */
static inline void needs_threads(uint32_t count) {
  const uint32_t there = threads_there(count);
  if (there == count) return;
  print_message("there are %u threads, not %u\n", (unsigned)there, (unsigned)count);
  skip();
}

static inline void world_end(world *w) {
  gki_openmp.drop(&w->program);
  gki_openmp.close(&w->device);
  gki_plan_free(&w->planned);
  free(w->values);
  free(w->changed);
  free(w->entries);
  free(w->counts);
  free(w->record.passes);
  free(w->record.hit_bound);
  free(w->record.ran);
}
static inline void world_close(world *w) { gki_openmp.close(&w->device); }

/* A world until the end of its block, also one that a test begins in its own way, or that shares all among so many
 * threads in truth; or a device alone. */
#define WORLD_BY(begin, w, ...) \
  __attribute__((cleanup(world_end))) world w; \
  begin(&(w), __VA_ARGS__)
#define WORLD(w, list, threads, costs) WORLD_BY(world_begin, w, list, threads, costs)
#define TEAM_WORLD(w, list, threads) \
  needs_threads(threads); \
  WORLD(w, list, threads, SHARE_ALL)
#define DEVICE(w, threads) \
  __attribute__((cleanup(world_close))) world w; \
  world_open(&(w), threads)

static inline bool world_next(world *w, const gk_list *list, uint32_t ways, const int *threads, size_t count) {
  const uint32_t tried = w->tried;
  if (tried > 0) world_end(w);
  if (tried == ways * count) return false;
  world_begin(w, list, threads[tried / ways], ways == 1 ? SHARE_ALL : (costs)(tried % ways));
  w->tried = tried + 1;
  return true;
}
#define FOR_WORLDS_(w, list, ways, ...) \
  for (world w = {.tried = 0}; world_next(&(w), list, ways, (const int[]){__VA_ARGS__}, \
                                          GK_COUNT(((const int[]){__VA_ARGS__})));)
/* For each of these numbers of threads, w.threads: a world for each w.costs, or one that shares all. */
#define FOR_EACH_WORLD(w, list, ...) FOR_WORLDS_(w, list, 3, __VA_ARGS__)
#define FOR_EACH_TEAM(w, list, ...) FOR_WORLDS_(w, list, 1, __VA_ARGS__)

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
                         .changed_count = w->changed_count, .entries = w->entries, .counts = w->counts,
                         .cancel = &w->cancel};
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

/* The dump says all of these words. */
#define assert_dumps(w, ...) world_dumps(w, (const char *const[]){__VA_ARGS__, NULL})
static inline void world_dumps(world *w, const char *const *words) {
  char *text = gki_openmp.dump(&w->program, "text");
  for (; *words; ++words)
    if (!strstr(text, *words)) fail_msg("not \"%s\" in\n%s", *words, text);
  free(text);
}

/* Blocks of a list with the tasks in them. */
#define PARALLEL(...) GK_PARALLEL, __VA_ARGS__, GK_END
#define SECTION(...) GK_SECTION, __VA_ARGS__, GK_END
#define LOOP(flag, ...) GK_DO_WHILE(flag), __VA_ARGS__, GK_END
#define IF(flag, ...) GK_IF(flag), __VA_ARGS__, GK_END
#define CHECKPOINT(called, its_flag, its_label, ...) \
  {.op = GK_OP_CHECKPOINT, .name = called, .flag = its_flag, .label = its_label}, __VA_ARGS__, GK_END

/* A kernel by hand, which sees the range: HAND_KERNEL(count_up, INOUT(int), SUM(float)) {...}, or of that function. */
#define PARAM_(type, access) {#type, #type, sizeof(type), sizeof(type), GK_PTR, GK_ACCESS_##access}
#define IN(type) PARAM_(type, IN)
#define OUT(type) PARAM_(type, OUT)
#define INOUT(type) PARAM_(type, INOUT)
#define SUM(type) PARAM_(type, SUM)
#define KERNEL_OF(id, function, ...) \
  static const gk_param id##_params[] = {__VA_ARGS__}; \
  static const gk_kernel id = {.name = #id, .params = id##_params, .param_count = GK_COUNT(id##_params), \
                               .dimensions = 3, .host = function}
#define HAND_KERNEL(id, ...) \
  static void id##_host(const gk_value *args, gk_range range); \
  KERNEL_OF(id, id##_host, __VA_ARGS__); \
  HOST_KERNEL(id##_host)

#define assert_runs(w) assert_ok(world_launch(w, 0))
/* RUN_WITH(&w, {N, {.i32 = 3}}): bound first. */
#define RUN_WITH(w, ...) \
  do { \
    BIND(w, __VA_ARGS__); \
    assert_runs(w); \
  } while (0)
#endif
