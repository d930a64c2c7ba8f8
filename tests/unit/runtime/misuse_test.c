/* Calls in every wrong order: each answers what a small model of docs/contract.md says, with a message where it failed;
 * nothing is left behind and nothing hangs. And the messages of a debug build about destroyed graphs. */
#include "unit/support/runtime.h"
#include "unit/support/runtime_kernels.h"
#include "unit/support/chance.h"

enum { X = 1, A, N, FLAG, NO_SLOT = 99 };
enum { FIRST = 10, NO_LABEL = 77 };
static const gk_slot_desc slots[] = {GK_BUFFER(X, int), GK_DEFAULT(A, int, 1), GK_OWN(N, int, 1), GK_OWN(FLAG, int, 1)};
LIST(turning, GK_DO_WHILE(N, .max_iterations = 20), GK_RUN(add, GK_ONE, X, A), GK_RUN(decrease, GK_ONE, N), GK_END,
              GK_TARGET(FIRST), GK_END);
LIST(pausing, GK_RUN(add, GK_ONE, X, A), GK_CHECKPOINT(FIRST, FLAG), GK_RUN(add, GK_ONE, X, A), GK_END,
              GK_RUN(add, GK_ONE, X, A));

/* ---- the model --------------------------------------------------------------------------------------------------- */

typedef enum act {
  BIND, BIND_NO_SLOT, BIND_TOO_LARGE, BIND_NUMBER, RESIZE, RESIZE_TOO_LARGE, LAUNCH, LAUNCH_NO_LABEL, RESUME, WAIT,
  POLL, CANCEL, ACTS,
  DUMP = ACTS, BOUND, CLOSE, ALL_ACTS /* what changes nothing, and what ends it, in shorter orders */
} act;
static const char *const act_names[] = {"bind", "bind no slot", "bind a number too large", "bind a number", "resize",
                                        "resize too large", "launch", "launch no label", "resume", "wait", "poll",
                                        "cancel", "dump", "bound", "close"};

typedef struct model {
  gk_device *device;
  gk_graph *graph;
  int *x;
  bool can_yield, can_cancel, flag_set;
  bool bound, closed, cancelled; /* since the last launch */
  int launched, told;
  gk_result failed[3]; /* of X, A and NO_SLOT */
  int first;           /* of binds that failed, unless corrected: the next launch answers as they did */
} model;

static gk_result keep(model *m, int slot, gk_result result) {
  const int at = slot == X ? 0 : slot == A ? 1 : 2;
  if (result != GK_OK && m->failed[m->first] == GK_OK) m->first = at;
  return m->failed[at] = result;
}

static gk_result expect_launch(model *m, bool known) {
  if (!known) return GK_ERROR_INVALID;
  if (m->can_yield && m->launched > m->told) return GK_ERROR_BUSY;
  gk_result failed = m->failed[m->first];
  for (int k = 0; k < 3; ++k) {
    if (failed == GK_OK) failed = m->failed[(k + 2) % 3]; /* NO_SLOT, then by number */
    m->failed[(k + 2) % 3] = GK_OK;
  }
  if (failed != GK_OK) return failed;
  if (!m->bound) return GK_ERROR_INVALID;
  ++m->launched;
  m->cancelled = false;
  return GK_OK;
}

static gk_result expect(model *m, act a) {
  if (m->closed && a != CANCEL && a != CLOSE) return GK_ERROR_DEVICE;
  switch (a) {
  case BIND: m->bound = true; return keep(m, X, GK_OK);
  case BIND_NO_SLOT: return keep(m, NO_SLOT, GK_ERROR_INVALID);
  case BIND_TOO_LARGE: return keep(m, A, GK_ERROR_INVALID);
  case BIND_NUMBER: return keep(m, A, GK_OK);
  case RESIZE: m->bound = true; return keep(m, X, GK_OK);
  case RESIZE_TOO_LARGE: return keep(m, X, GK_ERROR_MEMORY);
  case LAUNCH: case RESUME: return expect_launch(m, true);
  case LAUNCH_NO_LABEL: return expect_launch(m, false);
  case WAIT: case POLL: return m->launched ? GK_OK : GK_ERROR_INVALID; /* or GK_NOT_READY */
  case CANCEL: m->cancelled = true; return m->can_cancel ? GK_OK : GK_ERROR_UNSUPPORTED;
  case CLOSE: m->closed = true; return GK_OK;
  default: return GK_OK;
  }
}

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static const char *judge_status(const model *m, const gk_status *status) {
  if (!status) return "there is no status";
  if (status->launch != (uint64_t)m->launched) return "it is another launch's status";
  bool yields = m->can_yield && m->flag_set, yielded = status->state == GK_YIELDED && status->yielded == FIRST;
  if (yields) return yielded ? NULL : "not yielded";
  if (status->state == GK_FINISHED) return NULL;
  return status->state == GK_CANCELLED && m->cancelled ? NULL : "cancelled without gk_cancel";
}

/* NULL: as the model has it. */
static const char *judge(model *m, act a) {
  const gk_status *status = (const gk_status *)m;
  void *bound;
  char *text;
  gk_result result = GK_OK;
  gk_result wanted = expect(m, a);
  switch (a) {
  case BIND: result = gk_bind(m->graph, X, m->x); break;
  case BIND_NO_SLOT: result = gk_bind(m->graph, NO_SLOT, m->x); break;
  case BIND_TOO_LARGE: result = gk_bind_int(m->graph, A, INT64_MAX); break;
  case BIND_NUMBER: result = gk_bind_int(m->graph, A, 2); break;
  case RESIZE: result = gk_resize(m->graph, X, 100); break;
  case RESIZE_TOO_LARGE: result = gk_resize(m->graph, X, SIZE_MAX / 8); break;
  case LAUNCH: result = gk_launch(m->graph, 0); break;
  case LAUNCH_NO_LABEL: result = gk_launch(m->graph, NO_LABEL); break;
  case RESUME: result = gk_launch(m->graph, FIRST); break;
  case WAIT: result = gk_wait(m->graph, &status); break;
  case POLL: result = gk_poll(m->graph, &status); break;
  case CANCEL: result = gk_cancel(m->graph); break;
  case DUMP:
    if (!(text = gk_dump(NULL, m->graph, "text"))) result = GK_ERROR_DEVICE;
    gk_free_text(text);
    break;
  case BOUND:
    bound = gk_bound(m->graph, X);
    if (m->closed) result = bound ? GK_OK : GK_ERROR_DEVICE;
    else if (m->bound != (bound != NULL)) return "bound to something else";
    break;
  default:
    if (m->device) gk_device_close(m->device);
    m->device = NULL;
  }
  if (a == POLL && wanted == GK_OK && result == GK_NOT_READY) return status ? "a status, but not ready" : NULL;
  if (result != wanted) return gk_result_name(result);
  if (result != GK_OK && result != GK_NOT_READY && !gk_error()[0]) return "without a message";
  if (a != WAIT && a != POLL) return NULL;
  if (result != GK_OK) return status ? "it failed, and there is a status" : NULL;
  m->told = m->launched;
  return judge_status(m, status);
}

/* ---- every order ------------------------------------------------------------------------------------------------- */

/* Whether the device was closed by it. */
static bool try_order(model start, const gk_list *list, const act *acts, size_t count) {
  model m = start;
  m.can_yield = list == &pausing;
  m.graph = graph_on(m.device, list, m.can_cancel ? GK_CANCELLABLE : 0);
  if (m.flag_set) set_int(m.device, gk_bound(m.graph, FLAG), 1);
  for (size_t k = 0; k < count; ++k) {
    const char *wrong = judge(&m, acts[k]);
    if (!wrong) continue;
    char order[300] = "";
    for (size_t j = 0, used = 0; j <= k; ++j)
      used += (size_t)snprintf(order + used, sizeof order - used, "%s%s", j ? ", " : "", act_names[acts[j]]);
    fail_msg("%s (%s, flag %d): %s; \"%s\"", order, list->name, m.flag_set, wrong, gk_error());
  }
  gk_graph_destroy(m.graph);
  return m.closed;
}

static uint64_t power(uint64_t base, int exponent) { return exponent ? base * power(base, exponent - 1) : 1; }

#define ON_BOTH(test) DEVICE_TEST_ON("openmp test_device", test, setup_counted, teardown_counted)

/* Shorter orders are how the longer ones begin. */
ON_BOTH(every_order) {
  enum { LENGTH = 4 };
  model m = {.device = device};
  m.x = int_on(m.device, 0);
  const char *much = getenv("GK_TEST_SCALE");
  int length = much && atof(much) > 1 ? LENGTH + 1 : LENGTH;
  unsigned leaks = test_device_leaks();
  int live = atomic_load(&own_memory.live);
  for (uint64_t order = 0; order < power(ACTS, length); ++order) {
    act acts[LENGTH + 1];
    uint64_t rest = order;
    for (int k = 0; k < length; ++k, rest /= ACTS) acts[k] = (act)(rest % ACTS);
    uint64_t kind = mix(order);
    m.can_cancel = kind & 1;
    m.flag_set = kind & 2;
    try_order(m, kind >> 2 & 1 ? &pausing : &turning, acts, (size_t)length);
    if (order % 64 == 0) {
      if (order) assert_int_equal(test_device_leaks(), leaks);
      if (order) assert_int_equal(atomic_load(&own_memory.live), live);
      leaks = test_device_leaks(); /* what was made ready for the first graph stays with the device */
      live = atomic_load(&own_memory.live);
      assert_string_equal(test_device_broken(), "");
    }
  }
  gk_free(m.device, m.x);
}

/* With a dump, a look or the device closed somewhere among them. */
ON_BOTH(every_order_with_others) {
  enum { LENGTH = 3 };
  const char *backend = gk_device_describe(device)->backend;
  for (uint64_t order = 0; order < power(ALL_ACTS, LENGTH); ++order) {
    act acts[LENGTH];
    uint64_t rest = order;
    bool others = false;
    for (int k = 0; k < LENGTH; ++k, rest /= ALL_ACTS) others |= (acts[k] = (act)(rest % ALL_ACTS)) >= ACTS;
    if (!others) continue;
    model m = {.device = open_named(backend), .can_cancel = order & 1};
    m.x = int_on(m.device, 0);
    if (!try_order(m, order & 2 ? &pausing : &turning, acts, LENGTH)) gk_device_close(m.device);
  }
}

/* ---- arguments that are not there -------------------------------------------------------------------------------- */

ON_BOTH(nothing_where_something_must_be) {
  gk_graph *graph = NULL;
  char byte = 0;
  assert_invalid("gk_device_open: nowhere", gk_device_open(NULL, NULL));
  assert_invalid("gk_device_list: `visit` is NULL", gk_device_list(NULL, NULL));
  assert_gives_null("gk_device_describe", gk_device_describe(NULL));
  assert_gives_null("gk_alloc", gk_alloc(NULL, 1, GK_DEVICE_MEMORY));
  for (int missing = 0; missing < 3; ++missing) {
    gk_device *on = missing == 0 ? NULL : device;
    char *to = missing == 1 ? NULL : &byte, *from = missing == 2 ? NULL : &byte;
    assert_invalid("gk_upload", gk_upload(on, to, from, 1));
    assert_invalid("gk_download", gk_download(on, to, from, 1));
    assert_invalid("gk_copy", gk_copy(on, to, from, 1));
  }
  assert_gives_null("gk_host_address", gk_host_address(NULL, &byte));
  assert_invalid("", gk_check(NULL, NULL, NULL, NULL));
  assert_invalid("gk_graph_create: nowhere", gk_graph_create(device, &turning, 0, NULL));
  assert_invalid("gk_graph_create: there is no device", gk_graph_create(NULL, &turning, 0, &graph));
  assert_invalid("", gk_graph_create(device, NULL, 0, &graph));
  assert_null(graph);
  assert_gives_null("gk_dump", gk_dump(NULL, NULL, "text"));
  assert_gives_null("gk_dump", gk_dump(&turning, NULL, NULL));
  assert_graph_calls_fail(NULL, GK_ERROR_INVALID, "there is no graph");
  assert_invalid("gk_cancel: there is no graph", gk_cancel(NULL));
  assert_int_equal(gk_passes(NULL, 0), 0);
  gk_device_close(NULL);
  gk_free(device, NULL);
  gk_free(NULL, NULL);
  gk_graph_destroy(NULL);
  gk_free_text(NULL);
  graph = graph_on(device, &turning, 0);
  assert_int_equal(gk_find_slot(graph, NULL), 0);
}

/* ---- after the end ----------------------------------------------------------------------------------------------- */

#ifdef GK_DEBUG
static void note_line(void *user, gk_log_level level, const char *said) {
  (void)level;
  snprintf(user, 300, "%s", said);
}

ON_BOTH(graph_that_was_destroyed_is_refused) {
  gk_graph *graph = graph_on(device, &turning, GK_CANCELLABLE);
  gk_graph_destroy(graph);
  for (int k = 0; k < 3; ++k) { /* also when others came meanwhile, perhaps to the same place */
    gk_graph *alive = graph_on(device, &turning, GK_CANCELLABLE);
    assert_ptr_not_equal(alive, graph);
    assert_graph_calls_fail(graph, GK_ERROR_INVALID, "this graph was destroyed (turning)");
    assert_invalid("gk_cancel: this graph was destroyed", gk_cancel(graph));
    char said[300] = "";
    gk_set_log(GK_LOG_ERROR, note_line, said);
    gk_graph_destroy(graph);
    gk_set_log(GK_LOG_NONE, NULL, NULL);
    assert_non_null(strstr(said, "gk_graph_destroy: this graph was destroyed (turning)"));
    gk_graph_destroy(alive);
  }
}

ON_BOTH(device_that_was_closed_is_refused) {
  device = open_named(gk_device_describe(device)->backend);
  gk_graph *graph;
  int *x = int_on(device, 0), y = 0;
  gk_device_close(device);
  assert_gives_null("gk_device_describe: this device was closed", gk_device_describe(device));
  assert_gives_null("gk_alloc: this device was closed", gk_alloc(device, 1, GK_DEVICE_MEMORY));
  assert_invalid("gk_upload: this device was closed", gk_upload(device, x, &y, sizeof y));
  assert_invalid("gk_download: this device was closed", gk_download(device, &y, x, sizeof y));
  assert_invalid("gk_copy: this device was closed", gk_copy(device, x, x, sizeof y));
  assert_gives_null("gk_host_address: this device was closed", gk_host_address(device, x));
  assert_invalid("gk_graph_create: this device was closed", gk_graph_create(device, &turning, 0, &graph));
  assert_null(graph);
  char said[300] = "";
  gk_set_log(GK_LOG_ERROR, note_line, said);
  gk_free(device, x);
  assert_non_null(strstr(said, "gk_free: this device was closed"));
  gk_device_close(device);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  assert_non_null(strstr(said, "gk_device_close: this device was closed"));
}

/* After many graphs the last ones are still known as destroyed, and new ones are alive at any address. */
ON_BOTH(many_that_were_destroyed) {
  gk_graph *graphs[300];
  for (int turn = 0; turn < 3; ++turn) {
    for (int k = 0; k < 300; ++k) {
      graphs[k] = graph_on(device, &turning, GK_CANCELLABLE);
      assert_ok(gk_cancel(graphs[k]));
    }
    for (int k = 0; k < 300; ++k) gk_graph_destroy(graphs[k]);
    for (int k = 50; k < 300; ++k) assert_invalid("this graph was destroyed", gk_cancel(graphs[k]));
  }
}

/* An allocator that gives what was freed last of that size, as most do with a few. */
typedef struct pile { size_t bytes; struct pile *next; } pile;
static pile *piled;

static void *alloc_piled(void *user, size_t bytes) {
  (void)user;
  for (pile **at = &piled; *at; at = &(*at)->next) {
    pile *found = *at;
    if (found->bytes != bytes) continue;
    *at = found->next;
    return found + 1;
  }
  pile *made = malloc(sizeof *made + bytes);
  if (made) made->bytes = bytes;
  return made ? made + 1 : NULL;
}

static void free_piled(void *user, void *at) {
  (void)user;
  if (!at) return;
  pile *freed = (pile *)at - 1;
  freed->next = piled;
  piled = freed;
}

static void *resize_piled(void *user, void *at, size_t bytes) {
  void *larger = alloc_piled(user, bytes);
  const size_t before = at ? ((pile *)at - 1)->bytes : 0;
  if (larger && at) memcpy(larger, at, before < bytes ? before : bytes);
  if (larger) free_piled(user, at);
  return larger;
}

TEST(addresses_of_the_dead) {
  enum { COUNT = 100 };
  gk_graph *graphs[COUNT];
  const gk_allocator allocator = {NULL, alloc_piled, resize_piled, free_piled};
  assert_ok(gk_set_allocator(&allocator));
  gk_device *device = open_named("openmp");
  for (int k = 0; k < COUNT; ++k) graphs[k] = graph_on(device, &turning, 0);
  for (int k = 0; k < COUNT; ++k) gk_graph_destroy(graphs[k]);
  gk_graph *alive = graph_on(device, &turning, 0);
  for (int k = 0; k < COUNT; ++k) assert_ptr_not_equal(graphs[k], alive);
  destroy_graphs_of(device);
  gk_device_close(device);
  assert_ok(gk_set_allocator(NULL));
  for (pile *next; piled; piled = next) {
    next = piled->next;
    free(piled);
  }
}
#endif

int main(void) { return run_all_tests(); }
