/* Memory of graphs is kept for the next ones, so that making and destroying a graph doesn't wait for the device. */
#include "cuda/pool.h"
#include "runtime/device.h"
#include "cuda/device.h"
#include "graphs.h"
#include "unit/support/work.h"

enum { NONE, X, N, LEFT };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 8), GK_DEFAULT(N, int, 8), GK_BUFFER(LEFT, int)};
LIST(list, GK_DO_WHILE(LEFT), GK_FILL(X, N, 5), GK_FILL(LEFT, GK_ONE, 0), GK_END);
LIST(owner, GK_FILL(X, N, 6));
static const gk_slot_desc borrowing_slots[] = {GK_BUFFER(X, int), GK_DEFAULT(N, int, 8)};
static const gk_list straight = GK_LIST(straight, owner_tasks, borrowing_slots); /* over memory of others */

/* A launch that never ends: a call that waits for the device hangs, until the alarm. */
static gk_graph *launch_endless(gk_device *device, int **left) {
  *left = int_on(device, 1);
  gk_graph *slow = NEW_GRAPH(device, &list, 0, {LEFT, *left});
  sim->answer_no("ends");
  alarm(600);
  assert_ok(gk_launch(slow, 0));
  sim->mark();
  return slow;
}

static void end_endless(gk_device *device, gk_graph *slow, int *left) {
  assert_int_equal(sim->calls("cuMemFree"), 0);
  assert_int_equal(sim->calls("cuMemHostUnregister"), 0);
  sim->answer_no(NULL);
  assert_ok(gk_wait(slow, NULL));
  alarm(0);
  discard(slow);
  gk_free(device, left);
}

TEST_ON_CUDA(beside_one_that_takes_long) {
  int *left;
  gk_graph *slow = launch_endless(device, &left);
  for (uint32_t bits = 0; bits <= GK_HOST_GATED; bits += GK_HOST_GATED)
    gk_graph_destroy(graph_on(device, &straight, bits));
  end_endless(device, slow, left);
}

/* Memory that slots own is made, kept and given back in the same way. */
TEST_ON_CUDA(owned_beside_one_that_takes_long) {
  int *done = int_on(device, 1), *left;
  gk_graph *both[2];
  for (uint32_t gated = 0; gated < 2; ++gated) {
    both[gated] = NEW_GRAPH(device, &list, gated ? GK_HOST_GATED : 0, {LEFT, done});
    run_to_end(both[gated], 0);
  }
  gk_graph *slow = launch_endless(device, &left);
  for (uint32_t gated = 0; gated < 2; ++gated) {
    assert_ok(gk_resize(both[gated], X, 4));
    assert_ok(gk_resize(both[gated], X, 100));
    gk_graph *other = graph_on(device, &list, gated ? GK_HOST_GATED : 0);
    assert_ok(gk_resize(other, LEFT, 1));
    assert_ok(gk_resize(other, X, 0));
    gk_graph_destroy(other);
  }
  end_endless(device, slow, left);
  for (int gated = 0; gated < 2; ++gated) {
    const int *x = gk_bound(both[gated], X);
    for (int k = 0; k < 100; ++k) assert_int_equal(int_at(device, x + k), k < 4 ? 5 : 0);
  }
}

/* Resizing waits for the graph's own launches, which use the old memory. */
TEST_ON_CUDA(follows_its_own_launches) {
  gk_graph *graph = new_graph(device, &owner, 0);
  sim->busy(UINT64_MAX);
  assert_ok(gk_launch(graph, 0));
  assert_ok(gk_resize(graph, X, 16));
  for (int k = 0; k < 16; ++k) assert_int_equal(int_at(device, (int *)gk_bound(graph, X) + k), k < 8 ? 6 : 0);
  assert_ok(gk_launch(graph, 0));
  sim->mark();
  assert_ok(gk_resize(graph, X, 0)); /* nothing is kept, and it waits all the same */
  assert_int_equal(sim->calls("cuEventSynchronize"), 1);
}

/* Memory that another graph uses, too: gk waits for that graph's launches, and the driver for all other work. */
TEST_ON_CUDA(waits_for_graphs_that_use_its_memory) {
  gk_graph *lender = new_graph(device, &owner, 0);
  gk_graph *user = NEW_GRAPH(device, &straight, 0, {X, gk_bound(lender, X)});
  sim->mark();
  sim->busy(UINT64_MAX);
  assert_ok(gk_launch(user, 0));
  assert_ok(gk_resize(lender, X, 16));
  assert_int_equal(sim->calls("cuMemFree"), 1);
  assert_int_equal(int_at(device, (int *)gk_bound(lender, X) + 7), 6);
  assert_ok(gk_bind(user, X, gk_bound(lender, X)));
  assert_ok(gk_launch(user, 0));
  discard(lender);
  assert_int_equal(sim->calls("cuMemFree"), 2);
  assert_ok(gk_wait(user, NULL));
}

TEST_ON_CUDA(is_taken_again) {
  gk_graph_destroy(graph_on(device, &list, 0));
  sim->mark();
  for (int k = 0; k < 5; ++k) {
    int *left = int_on(device, 1);
    gk_graph *graph = NEW_GRAPH(device, &list, 0, {LEFT, left});
    run_to_end(graph, 0);
    assert_int_equal(int_at(device, (int *)gk_bound(graph, X) + 7), 5);
    discard(graph);
    gk_free(device, left);
  }
  assert_int_equal(sim->calls("cuMemHostRegister"), 0);
  assert_int_equal(sim->calls("cuMemAlloc"), 5); /* LEFT, which is the program's */
  assert_int_equal(sim->calls("cuMemFree"), 5);
}

TEST_ON_CUDA(is_bounded) {
  for (int k = 0; k < 100; ++k) (void)new_graph(device, &straight, 0);
  const size_t at_work = sim->alive(SIMGPU_MEMORY) + sim->alive(SIMGPU_PINNED);
  discard_all();
  const size_t kept = sim->alive(SIMGPU_MEMORY) + sim->alive(SIMGPU_PINNED);
  assert_true(at_work > 300);
  assert_true(kept >= 200 && kept <= 256);
}

/* Kept memory goes back to the driver before an allocation fails. */
TEST_ON_CUDA(kept_memory_is_given_back_when_memory_runs_out) {
  for (int kind = 0; kind < 2; ++kind) {
    gk_graph_destroy(graph_on(device, &list, 0));
    assert_true(sim->alive(SIMGPU_PINNED) > 0);
    const size_t alive = sim->alive(SIMGPU_ALL);
    gk_free(device, gk_alloc(device, 100, kind ? GK_HOST_MEMORY : GK_DEVICE_MEMORY));
    assert_int_equal(sim->alive(SIMGPU_ALL), alive); /* not before memory is short */
    fail_call(3, CUDA_ERROR_OUT_OF_MEMORY); /* behind the context's push and the mode's exchange */
    void *memory = gk_alloc(device, 100, kind ? GK_HOST_MEMORY : GK_DEVICE_MEMORY);
    assert_string_equal(sim->failed(), kind ? "cuMemHostAlloc" : "cuMemAlloc");
    assert_non_null(memory);
    assert_int_equal(sim->alive(SIMGPU_PINNED), kind);
    gk_free(device, memory);
  }
  fail_call(3, CUDA_ERROR_OUT_OF_MEMORY); /* nothing is kept */
  assert_null(gk_alloc(device, 100, GK_DEVICE_MEMORY));
  assert_says("cuMemAlloc of 100 bytes: out of memory");
}

/* Where the driver can't register memory, its own is used. */
TEST_ON_CUDA(takes_the_drivers) {
  gk_graph *graph = NULL;
  const char *failed = "";
  for (uint64_t k = 3; strcmp(failed, "cuMemHostRegister") != 0; ++k) { /* behind the context's push and the exchange */
    graph = NULL;
    fail_call(k, CUDA_ERROR_NOT_SUPPORTED);
    if (gk_graph_create(device, &straight, 0, &graph) == GK_OK) gk_graph_destroy(graph);
    failed = sim->failed();
    if (!failed) fail_msg("no call");
  }
  assert_non_null(graph);
  assert_true(sim->calls("cuMemHostAlloc") > 0);
}

static gki_cuda_device *native_of(gk_device *device) { return device->state; }

static char *take_bytes(gki_cuda_device *native, size_t bytes) {
  void *memory = NULL;
  CUdeviceptr at = 0;
  assert_ok(gki_cuda_alloc_pinned(native, bytes, "a test", &memory, &at));
  assert_int_equal(at, (uintptr_t)memory);
  return memory;
}

static CUdeviceptr take_device(gki_cuda_device *native, size_t bytes) {
  CUdeviceptr memory = 0;
  assert_ok(gki_cuda_alloc_device(native, bytes, "a test", &memory));
  assert_true(memory != 0);
  return memory;
}

/* gki_cuda_alloc_device and the functions below need the context. */
static int setup_inside(void **state) {
  return setup_cuda(state) || gki_cuda_enter(native_of(*state)) != GK_OK ? -1 : 0;
}

static int teardown_inside(void **state) {
  sim->mark();
  gki_cuda_leave(native_of(*state));
  return teardown_cuda(state);
}
#define INSIDE(test) DEVICE_TEST(test, setup_inside, teardown_inside)

/* The smallest block of the kind that is large enough, at most twice as large (unless it is a page), and zeroed. */
INSIDE(the_best_is_taken) {
  enum { K = 1024 };
  gki_cuda_device *native = native_of(device);
  gki_cuda_pool_trim(native);
  CUdeviceptr sizes[] = {take_device(native, 100 * K), take_device(native, 40 * K), take_device(native, 60 * K)};
  char *page = take_bytes(native, 10);
  memset(page, 0xff, 10);
  for (size_t k = 0; k < GK_COUNT(sizes); ++k) gki_cuda_free_device(native, sizes[k]);
  gki_cuda_free_pinned(native, page);
  sim->mark();
  assert_int_equal(take_device(native, 35 * K), sizes[1]);
  assert_int_equal(take_device(native, 40 * K), sizes[2]);
  assert_int_equal(take_device(native, 50 * K), sizes[0]); /* exactly twice */
  assert_int_equal(sim->calls("cuMemAlloc"), 0);
  gki_cuda_free_device(native, sizes[0]);
  const CUdeviceptr fresh = take_device(native, 50 * K - 1);
  assert_int_equal(sim->calls("cuMemAlloc"), 1);
  const CUdeviceptr small = take_device(native, 8); /* no page-locked block */
  assert_int_equal(sim->calls("cuMemAlloc"), 2);
  char *again = take_bytes(native, 4096);
  assert_ptr_equal(again, page);
  for (size_t k = 0; k < 4096; ++k) assert_int_equal(again[k], 0);
  assert_int_equal(sim->calls("cuMemHostRegister"), 0);
  gki_cuda_free_pinned(native, again);
  const CUdeviceptr all[] = {sizes[1], sizes[2], fresh, small};
  for (size_t k = 0; k < GK_COUNT(all); ++k) gki_cuda_free_device(native, all[k]);
  sim->mark();
  assert_true(gki_cuda_pool_trim(native));
  assert_int_equal(sim->calls("cuMemFree"), 5);
  assert_false(gki_cuda_pool_trim(native));
}

/* In the order in which they were taken, so that a list of blocks in use would have the oldest last. */
static double work_to_give(gki_cuda_device *native, size_t count) {
  CUdeviceptr *all = malloc(count * sizeof *all);
  for (size_t k = 0; k < count; ++k) all[k] = take_device(native, 8);
  const uint64_t before = work_done;
  for (size_t k = 0; k < count; ++k) gki_cuda_free_device(native, all[k]);
  const uint64_t work = work_done - before;
  free(all);
  assert_true(work >= count);
  return (double)work / (double)count;
}

INSIDE(finds_blocks_in_constant_work) {
  enum { SMALL = 200, LARGE = 2000 };
  const double small = work_to_give(native_of(device), SMALL), large = work_to_give(native_of(device), LARGE);
  print_message("%d blocks: %.1f basic blocks to give one back, %.1f of %d\n", LARGE, large, small, SMALL);
  assert_true(large < 2 * small);
}

/* 16 MiB, or 256 blocks. A block that is taken again makes room for others. */
INSIDE(spare_memory_is_bounded) {
  static const struct { int blocks; size_t bytes; } bounds[] = {{16, 1 << 20}, {256, 8}};
  static CUdeviceptr all[257];
  gki_cuda_device *native = native_of(device);
  for (int turn = 0; turn < 6; ++turn) {
    const int count = bounds[turn / 3].blocks + 1;
    if (turn % 3 == 0) gki_cuda_pool_trim(native);
    for (int k = 0; k < count; ++k) all[k] = take_device(native, bounds[turn / 3].bytes);
    sim->mark();
    for (int k = 0; k < count; ++k) gki_cuda_free_device(native, all[k]);
    assert_int_equal(sim->calls("cuMemFree"), 1);
  }
  gki_cuda_free_device(native, 0);
  gki_cuda_free_pinned(native, NULL);
}

/* Memory of graphs, too, is allocated after spare blocks went back. A failure leaves nothing allocated or mapped. */
INSIDE(spare_blocks_are_given_back_first) {
  static const char *const entries[] = {"cuMemAlloc", "cuMemHostRegister"};
  gki_cuda_device *native = native_of(device);
  CUdeviceptr memory = 0;
  void *page = NULL;
  gki_cuda_pool_trim(native);
  for (int pinned = 0; pinned < 2; ++pinned) {
    gki_cuda_free_device(native, take_device(native, 3 << 20));
    fail_call(1, CUDA_ERROR_OUT_OF_MEMORY);
    if (pinned) page = take_bytes(native, 8);
    else memory = take_device(native, 8);
    assert_string_equal(sim->failed(), entries[pinned]);
    assert_int_equal(sim->calls("cuMemFree"), 1);
  }
  gki_cuda_free_device(native, memory);
  gki_cuda_free_pinned(native, page);
  gki_cuda_pool_trim(native);
  const size_t alive = sim->alive(SIMGPU_ALL);
  for (uint64_t k = 1; k <= 2; ++k) { /* cuMemHostRegister, cuMemHostGetDevicePointer */
    fail_call(k, CUDA_ERROR_UNKNOWN);
    assert_int_equal(gki_cuda_alloc_pinned(native, 8, "a test", &page, NULL), GK_ERROR_DEVICE);
    sim->mark();
    assert_int_equal(sim->alive(SIMGPU_ALL), alive);
  }
}

/* Mappings that a forked process shares: the child must not get a copy of what the device writes there. */
static int count_shared(void) {
  FILE *maps = fopen("/proc/self/maps", "r");
  char mapping[512];
  int count = 0;
  assert_non_null(maps);
  while (fgets(mapping, sizeof mapping, maps)) count += strstr(mapping, "rw-s") && strstr(mapping, "/dev/zero");
  fclose(maps);
  return count;
}

INSIDE(pages_are_shared_and_unmapped) {
  gki_cuda_device *native = native_of(device);
  gki_cuda_pool_trim(native);
  const int before = count_shared();
  char *page = take_bytes(native, 8);
  if (count_shared() == before) fail_msg("its pages aren't shared ones");
  gki_cuda_free_pinned(native, page);
  gki_cuda_pool_trim(native);
  assert_int_equal(count_shared(), before);
  fail_call(1, CUDA_ERROR_UNKNOWN);
  void *none = NULL;
  assert_int_equal(gki_cuda_alloc_pinned(native, 8, "a test", &none, NULL), GK_ERROR_DEVICE);
  assert_int_equal(count_shared(), before);
}

/* Blocks of gk's own: if there is no memory for one of a block's records, the driver gets the block back. */
COUNTED(no_memory_for_records) {
  gk_device *device = open_named("cuda");
  gki_cuda_device *native = native_of(device);
  assert_ok(gki_cuda_enter(native));
  const size_t alive = sim->alive(SIMGPU_ALL);
  assert_int_equal(native->pool.lists, 0);
  for (int k = 1; k <= 2; ++k) { /* of the block, of all */
    CUdeviceptr memory = 0;
    fail_own_memory(k);
    assert_int_equal(gki_cuda_alloc_device(native, 8, "a test", &memory), GK_ERROR_MEMORY);
    assert_int_equal(atomic_load(&own_memory.calls), k);
    fail_own_memory(0);
    assert_int_equal(sim->alive(SIMGPU_ALL), alive);
  }
  gki_cuda_leave(native);
  gk_graph *graph = graph_on(device, &straight, 0);
  gk_result result = GK_ERROR_MEMORY;
  const size_t used = native->pool.used_count;
  int failed = 0;
  for (int k = 1; result != GK_OK; ++k) { /* of memory that a slot owns, and of common's table */
    fail_own_memory(k);
    result = gk_resize(graph, X, 8);
    fail_own_memory(0);
    if (result == GK_OK) break;
    assert_int_equal(result, GK_ERROR_MEMORY);
    assert_says("gk_resize: slot 1 (X) with 8 elements: out of host memory");
    assert_null(gk_bound(graph, X));
    assert_int_equal(native->pool.used_count, used);
    ++failed;
  }
  assert_true(failed >= 2);
  gk_graph_destroy(graph);
  gk_device_close(device);
}

int main(UNUSED int count, char **words) { return run_on_simgpu(words); }
