/* Shared by the tests of the runtime: devices and the fixtures that open them, lists, graphs, threads. */
#ifndef RUNTIME_H
#define RUNTIME_H
#include "own_memory.h"
#include "test.h"
#include <pthread.h>
#include "device/test_device.h"
#include "fake_backend.h"
#include "runtime/device.h"

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

static inline void assert_nothing_left(void) {
  assert_string_equal(fake_broken(), "");
  assert_int_equal(fake_leaks(), 0);
  assert_string_equal(test_device_broken(), "");
  assert_int_equal(test_device_leaks(), 0);
}

/* Closes it, and asserts that every rule was kept and nothing is left. */
static inline void close_fake(gk_device *device) {
  gk_device_close(device);
  assert_nothing_left();
}

static inline void destroy_graphs_of(gk_device *device) {
  while (device->graphs) gk_graph_destroy(device->graphs);
}

/* The same with the graphs that are left. */
static inline void end_fake(gk_device *device) {
  destroy_graphs_of(device);
  close_fake(device);
}

static inline void begin_backends(void) {
  fake_register();
  fake_reset();
  test_device_register();
  test_device_seed(1);
  test_device_fail_at(0, GK_OK);
  test_device_forgive();
}

/* The fixture of a test on a backend, which its initial state names. */
static inline int setup_device(void **state) {
  begin_backends();
  return gk_device_open(&(gk_device_desc){.backend = *state}, (gk_device **)state) == GK_OK ? 0 : -1;
}

static inline int teardown_device(void **state) {
  fake_go(); /* a failed test may have left it held, and closing would wait for ever */
  end_fake(*state);
  return 0;
}

/* The same where gk's own memory is counted. */
static inline int begin_counted_backends(void **state) {
  begin_backends();
  return begin_counted(state);
}
static inline int end_counted_backends(void **state) {
  assert_nothing_left();
  return end_counted(state);
}
static inline int setup_counted(void **state) { return begin_counted(state) == 0 ? setup_device(state) : -1; }
static inline int teardown_counted(void **state) {
  teardown_device(state);
  return end_counted(state);
}

static inline bool is_of(const gk_device *device, const char *backend) {
  return strcmp(gk_device_describe(device)->backend, backend) == 0;
}
static inline bool is_fake(const gk_device *device) {
  return strncmp(gk_device_describe(device)->backend, "fake", 4) == 0;
}

#define FAKE_BACKENDS "fake_in_process fake_native fake_batched"
#define ALL_BACKENDS FAKE_BACKENDS " openmp test_device"
#define TEST_ON(backends, test) DEVICE_TEST_ON(backends, test, setup_device, teardown_device)

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

typedef struct int_value { int *at; int value; } int_value;

static inline void assert_values(gk_device *device, const char *text, const int_value *all, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    const int have = int_at(device, all[k].at);
    if (have != all[k].value) fail_msg("%s: value %zu is %d, not %d", text, k, have, all[k].value);
  }
}
static inline void set_values(gk_device *device, const int_value *all, size_t count) {
  for (size_t k = 0; k < count; ++k) set_int(device, all[k].at, all[k].value);
}
#define INT_VALUES(...) (const int_value[]){__VA_ARGS__}, GK_COUNT(((const int_value[]){__VA_ARGS__}))
/* ASSERT_VALUES({x, 3}, {y, 5}); SET_VALUES({x, 0}, {left, 3}). */
#define ASSERT_VALUES(...) assert_values(device, #__VA_ARGS__, INT_VALUES(__VA_ARGS__))
#define SET_VALUES(...) set_values(device, INT_VALUES(__VA_ARGS__))

static inline void assert_ints(gk_device *device, const int *at, const int *want, size_t count) {
  int have[64];
  assert_ok(gk_download(device, have, at, count * sizeof *have));
  for (size_t k = 0; k < count; ++k)
    if (have[k] != want[k]) fail_msg("at %zu: %d, not %d", k, have[k], want[k]);
}
/* Ints that follow each other: ASSERT_INTS(x, 1, 2, 3). */
#define ASSERT_INTS(at, ...) assert_ints(device, at, (const int[]){__VA_ARGS__}, GK_COUNT(((const int[]){__VA_ARGS__})))

/* ---- graphs --------------------------------------------------------------------------------------- */

static inline gk_graph *graph_on(gk_device *device, const gk_list *list, uint32_t bits) {
  gk_graph *graph = NULL;
  assert_ok(gk_graph_create(device, list, bits, &graph));
  return graph;
}

typedef struct slot_memory { gk_slot slot; void *at; } slot_memory;
typedef struct slot_number { gk_slot slot; int64_t value; } slot_number;

static inline void bind_slots(gk_graph *graph, const slot_memory *all, size_t count) {
  for (size_t k = 0; k < count; ++k) assert_ok(gk_bind(graph, all[k].slot, all[k].at));
}
static inline void bind_ints(gk_graph *graph, const slot_number *all, size_t count) {
  for (size_t k = 0; k < count; ++k) assert_ok(gk_bind_int(graph, all[k].slot, all[k].value));
}

/* BIND(graph, {X, x}, {Y, y}): slots to memory; BIND_INTS(graph, {N, 5}, {A, 3}): slots to numbers. */
#define BIND(graph, ...) \
  bind_slots(graph, (const slot_memory[]){__VA_ARGS__}, GK_COUNT(((const slot_memory[]){__VA_ARGS__})))
#define BIND_INTS(graph, ...) \
  bind_ints(graph, (const slot_number[]){__VA_ARGS__}, GK_COUNT(((const slot_number[]){__VA_ARGS__})))

/* GRAPH_ON(device, &list, bits, {X, x}, {Y, y}): the graph of a list with its slots bound to memory. */
static inline gk_graph *bound_graph_on(gk_device *device, const gk_list *list, uint32_t bits, const slot_memory *all,
                                       size_t count) {
  gk_graph *graph = graph_on(device, list, bits);
  bind_slots(graph, all, count);
  return graph;
}
#define GRAPH_ON(device, list, bits, ...) \
  bound_graph_on(device, list, bits, (const slot_memory[]){__VA_ARGS__}, \
                 GK_COUNT(((const slot_memory[]){__VA_ARGS__})))

/* The result of a launch and the wait for it; the launch itself must succeed. */
static inline gk_result waited_for(gk_graph *graph, int32_t label) {
  assert_ok(gk_launch(graph, label));
  return gk_wait(graph, NULL);
}

/* Launches from `label`, and waits; answers the result. */
static inline const gk_status *run_to_end(gk_graph *graph, int32_t label) {
  const gk_status *status = NULL;
  assert_ok(gk_launch(graph, label));
  assert_ok(gk_wait(graph, &status));
  return status;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static inline pthread_t start_thread(void *(*work)(void *), void *at) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, work, at), 0);
  return thread;
}

static inline void *join_thread(pthread_t thread) {
  void *answer = NULL;
  assert_int_equal(pthread_join(thread, &answer), 0);
  return answer;
}

/* A thread for each element of an array, to their end. */
static inline void run_threads(void *(*work)(void *), void *array, size_t count, size_t element_bytes) {
  pthread_t threads[8];
  assert_in_range(count, 1, 8);
  for (size_t k = 0; k < count; ++k) threads[k] = start_thread(work, (char *)array + k * element_bytes);
  for (size_t k = 0; k < count; ++k) join_thread(threads[k]);
}
#define RUN_THREADS(work, array) run_threads(work, array, GK_COUNT(array), sizeof *(array))

/* ---- every call of a graph fails in the same way ----------------------------------------------------------------- */

static inline void assert_call_failed(const char *call, gk_result result, gk_result code, const char *words) {
  const char *behind = strchr(gk_error(), ':');
  if (result == code && behind && (size_t)(behind - gk_error()) == strlen(call) && strstr(behind, words) &&
      strncmp(gk_error(), call, strlen(call)) == 0)
    return;
  fail_msg("%s: %s, \"%s\", not %s with \"%s\"", call, gk_result_name(result), gk_error(), gk_result_name(code), words);
}

/* Each but gk_cancel and gk_graph_destroy fails with that code, and its message begins with its name and has these
 * words. Slot 1 of the graph's list is memory, slot 2 a number. */
static inline void assert_graph_calls_fail(gk_graph *graph, gk_result code, const char *words) {
  int value = 0;
  const gk_status *status = (const gk_status *)&value;
  assert_call_failed("gk_bind", gk_bind(graph, 1, &value), code, words);
  assert_call_failed("gk_bind_int", gk_bind_int(graph, 2, 1), code, words);
  assert_call_failed("gk_bind_float", gk_bind_float(graph, 2, 1), code, words);
  assert_call_failed("gk_bind_bytes", gk_bind_bytes(graph, 2, &value, sizeof value), code, words);
  assert_call_failed("gk_resize", gk_resize(graph, 1, 1), code, words);
  assert_call_failed("gk_bound", gk_bound(graph, 1) ? GK_OK : code, code, words);
  assert_call_failed("gk_find_slot", gk_find_slot(graph, "X") ? GK_OK : code, code, words);
  assert_call_failed("gk_launch", gk_launch(graph, 0), code, words);
  assert_call_failed("gk_launch_on", gk_launch_on(graph, 0, NULL), code, words);
  assert_call_failed("gk_wait", gk_wait(graph, &status), code, words);
  assert_null(status);
  status = (const gk_status *)&value;
  assert_call_failed("gk_launch_wait", gk_launch_wait(graph, 0, &status), code, words);
  assert_null(status);
  assert_call_failed("gk_run", gk_run(graph, NULL, NULL, NULL), code, words);
  assert_call_failed("gk_read", gk_read(graph, 1, &value, 1), code, words);
  assert_call_failed("gk_write", gk_write(graph, 1, &value, 1), code, words);
  status = (const gk_status *)&value;
  assert_call_failed("gk_poll", gk_poll(graph, &status), code, words);
  assert_null(status);
  assert_call_failed("gk_dump", gk_dump(NULL, graph, "text") ? GK_OK : code, code, graph ? words : "");
}
#endif
