/* Values and grids of handwritten kernels, for a device whose grids have few blocks along every dimension. */
#include "lower/params.h"
#include "gk_info.h"
#include "unit/support/planned.h"

enum { X = 1, N, M };
enum { PER_BLOCK = 8, MOST = 4 };
static const gk_param parameters[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                      {"n", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
static const gk_code code = {.text = "code"};
static const gk_kernel fill_up = {.name = "fill_up", .params = parameters, .param_count = 2, .cuda = &code};
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_SCALAR(N, int), GK_SCALAR(M, int)};
static const gk_task tasks[] = {GK_RUN(fill_up, N, X, N), GK_FILL(X, M, 0)};
static const unsigned per_block[3] = {PER_BLOCK, 1, 1}, most_blocks[3] = {MOST, MOST, MOST};

typedef struct device {
  planned_list list;
  gki_arena arena;
  gki_slot_table table;
  gki_params params;
  gki_param_given given;
  int memory;
} device;

static void begin(device *d) {
  *d = (device){.memory = 0};
  const gk_plan *plan = plan_tasks(&d->list, tasks, GK_COUNT(tasks), slots, GK_COUNT(slots));
  size_t ring_bytes;
  assert_ok(gki_slot_table_make(&d->table, plan, 1, &d->arena, &ring_bytes));
  d->table.at = 4096;
  d->table.control = 512;
  assert_ok(gki_param_make(&d->params, &d->table, most_blocks, &d->arena));
  assert_int_equal(d->params.count, 1);
  d->params.tasks[0].per_block = per_block;
  assert_ok(gki_param_given_make(&d->given, &d->params));
}

static void end(device *d) {
  gki_param_given_drop(&d->given);
  gki_arena_free(&d->arena);
  free_planned(&d->list);
}

static bool take_changed(device *d, int32_t n, uint32_t changed) {
  const gk_value values[] = {[X] = {.ptr = &d->memory}, [N] = {.i32 = n}, [M] = {.i32 = 1}};
  return gki_param_update(&d->params, &(gk_launch_args){.values = values, .changed = &changed, .changed_count = 1});
}

static void take(device *d, int32_t n) { assert_true(take_changed(d, n, N)); }

static gk_result check(const device *d, int32_t n) {
  const gki_bad_count post = {.node = d->params.tasks[0].node};
  return gki_param_check(&d->params, &post, &(gk_launch_args){.values = (const gk_value[]){[N] = {.i32 = n}}});
}

static void expect_grid(const device *d, unsigned x, unsigned y, unsigned z) {
  const unsigned *grid = d->params.wanted.grids[0];
  assert_true(grid[0] == x && grid[1] == y && grid[2] == z);
}

TEST(test_values) {
  device d;
  void *pointers[GK_MAX_ARGS];
  begin(&d);
  take(&d, MOST * PER_BLOCK - 1);
  expect_grid(&d, MOST, 1, 1);
  gki_param_point(&d.params, 0, pointers);
  assert_ptr_equal(*(int **)pointers[0], &d.memory);
  assert_int_equal(*(int32_t *)pointers[1], MOST * PER_BLOCK - 1);
  end(&d);
}

TEST(test_only_changes_are_sent) {
  device d;
  begin(&d);
  take(&d, 5);
  assert_false(gki_param_is_given(&d.given, &d.params, 0));
  gki_param_note_given(&d.given, &d.params, 0);
  take(&d, 5);
  assert_true(gki_param_is_given(&d.given, &d.params, 0));
  take(&d, 6); /* the same grid, another value */
  assert_false(gki_param_is_given(&d.given, &d.params, 0));
  end(&d);
}

/* A backend that records commands does so anew at each change. */
TEST(test_slots_of_other_tasks) {
  device d;
  begin(&d);
  assert_true(take_changed(&d, 5, M)); /* the first launch gives all values */
  assert_false(take_changed(&d, 5, M));
  assert_int_equal(d.params.wanted.version, 1);
  assert_true(take_changed(&d, 6, N));
  assert_true(take_changed(&d, 6, X));
  assert_int_equal(d.params.wanted.version, 3);
  end(&d);
}

TEST(test_most_blocks) {
  device d;
  begin(&d);
  take(&d, MOST * PER_BLOCK);
  expect_grid(&d, MOST, 1, 1);
  assert_ok(check(&d, MOST * PER_BLOCK));
  take(&d, MOST * PER_BLOCK + 1);
  expect_grid(&d, 0, 1, 0);
  const gki_task posts = gki_param_fill(&d.params, 0);
  assert_true(posts.record == 4096 + d.table.records[d.params.tasks[0].node] && posts.number == 512);
  assert_int_equal(check(&d, MOST * PER_BLOCK + 1), GK_ERROR_INVALID);
  assert_non_null(strstr(gk_error(), "5 blocks along x, by slot 2 (N), and a grid has at most 4"));
  end(&d);
}

TEST(test_no_items) {
  device d;
  begin(&d);
  take(&d, 0);
  assert_false(gki_param_has_items(&d.params, 0));
  assert_int_equal(gki_param_fill(&d.params, 0).record, 4096); /* slot 0 */
  end(&d);
}

static unsigned calls, fail_at;
static void *failing_alloc(void *user, size_t bytes) { return ++calls == fail_at ? user : malloc(bytes); }
static void *failing_resize(void *user, void *at, size_t bytes) {
  return ++calls == fail_at ? user : realloc(at, bytes);
}
static void failing_free(void *user, void *at) { free(user ? user : at); }

static gk_result make_again(device *d) {
  gki_arena arena = {0};
  gki_params params;
  gki_param_given given = {0};
  gk_result result = gki_param_make(&params, &d->table, most_blocks, &arena);
  if (result == GK_OK) result = gki_param_given_make(&given, &params);
  gki_param_given_drop(&given);
  gki_arena_free(&arena);
  return result;
}

TEST(test_no_memory) {
  static const gk_allocator allocator = {NULL, failing_alloc, failing_resize, failing_free};
  device d;
  assert_ok(gk_set_allocator(&allocator));
  begin(&d);
  gk_result result = GK_ERROR_MEMORY;
  unsigned failures = 0;
  for (unsigned k = 1; result != GK_OK; ++k) {
    calls = 0;
    fail_at = k;
    result = make_again(&d);
    if (result != GK_OK) assert_int_equal(result, GK_ERROR_MEMORY), ++failures;
  }
  assert_true(failures > 3); /* the arena's, then each array of what nodes were given */
  fail_at = 0;
  end(&d);
  assert_ok(gk_set_allocator(NULL));
}

int main(void) { return run_all_tests(); }
