/* Which Vulkan device is opened, what it reports, threads and forks. Skipped where there is no Vulkan device. */
#include "unit/support/vulkan_device.h"
#include "gk_backend.h"
#include "gk_kernel.h"
#include "vulkan/device.h"
#include <sys/wait.h>
#include <unistd.h>

GK_SOURCE(device_test)
GK_KERNEL(count_down, (inout(int, x), out(int, more))) {
  x[i] -= 1;
  more[i] = x[i] > 0 ? 1 : 0;
}
GK_KERNEL(add_doubles, (inout(double, y))) { gk_atomic_add(&y[0], 1.0); }
GK_SOURCE_END

enum { PASSES = 10, LAUNCHES = 4 };
enum { X = 1, MORE };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_OWN(MORE, int, 1)};
static const gk_task tasks[] = {GK_FILL(X, GK_ONE, PASSES), GK_DO_WHILE(MORE), GK_RUN(count_down, GK_ONE, X, MORE),
                                GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

enum { Y = 1 };
static const gk_slot_desc sums[] = {GK_OWN(Y, double, 1)};
static const gk_task adding[] = {GK_RUN(add_doubles, GK_ONE, Y)};
static const gk_list adds = GK_LIST(adds, adding, sums);

static const gk_backend *vulkan(void) {
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)) && strcmp(backend->name, "vulkan") != 0;) ++k;
  assert_non_null(backend);
  return backend;
}

/* ---- which device ------------------------------------------------------------------------------------------------ */

TEST(a_cpu_only_by_name) {
  gk_device *device = open_vulkan();
  const bool is_cpu = strstr(gk_device_describe(device)->name, "(this machine's CPU)") != NULL;
  gk_device_close(device);
  gk_fail_again();
  const gk_result result = vulkan()->by_default(&(gk_device_desc){.backend = "vulkan"});
  assert_int_equal(result, is_cpu ? GK_ERROR_NO_DEVICE : GK_OK);
  if (is_cpu) assert_says("is no GPU; to use it nevertheless, ask for \"vulkan\" by gk_device_desc.backend");
  unsetenv("GK_BACKEND");
  assert_ok(gk_device_open(NULL, &device));
  if (is_cpu) assert_string_not_equal(gk_device_describe(device)->backend, "vulkan");
  gk_device_close(device);
}

TEST(before_openmp) {
  const gk_backend *backend;
  size_t k = 0, at = SIZE_MAX;
  for (; (backend = gk_backend_at(k)) && strcmp(backend->name, "openmp") != 0; ++k)
    if (strcmp(backend->name, "vulkan") == 0) at = k;
  assert_non_null(backend);
  assert_int_not_equal(at, SIZE_MAX);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

static const char *reason_of(const gk_device *device, const char *construct) {
  const gk_device_info *info = gk_device_describe(device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return info->capabilities[k].why;
  fail_msg("there is no %s", construct);
  return "";
}

/* What the report says is what happens. */
TEST(report_names_a_missing_feature) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  const gk_result result = gk_graph_create(device, &adds, 0, &graph);
  assert_true(result == GK_OK || result == GK_ERROR_UNSUPPORTED);
  const char *const missing = " This device has no atomic additions of doubles (shaderBufferFloat64AtomicAdd): gk ";
  assert_int_equal(strstr(reason_of(device, "SUM"), missing) != NULL, result == GK_ERROR_UNSUPPORTED);
  assert_null(strstr(reason_of(device, "IF"), "This device has no"));
  gk_graph_destroy(graph);
  gk_device_close(device);
}

/* Whether a text has Vulkan's name of a feature between these, of "atomic loads (vulkanMemoryModelDeviceScope)". */
static bool names(const char *text, const char *before, const char *feature, const char *behind) {
  const char *const bracket = strchr(feature, '('), *const name = bracket ? bracket + 1 : feature;
  char wanted[100];
  snprintf(wanted, sizeof wanted, "%s%.*s%s", before, (int)strcspn(name, ")"), name, behind);
  return strstr(text, wanted) != NULL;
}

/* Of those that gk doesn't need, the report names each that isn't there. docs/vulkan.md names all. */
TEST(each_feature_is_named) {
  static char docs[100000];
  gki_vulkan_feature found[GKI_VULKAN_FEATURES];
  gk_device *device = open_vulkan();
  void *opened;
  FILE *file = fopen("docs/vulkan.md", "r");
  assert_non_null(file);
  assert_true(fread(docs, 1, sizeof docs - 1, file) > 0);
  fclose(file);
  assert_ok(gk_device_state(device, "vulkan", "this test", &opened));
  gki_vulkan_list_features(opened, found);
  for (size_t k = 0; k < GKI_VULKAN_FEATURES; ++k) {
    if (!names(docs, "`", found[k].name, "`")) fail_msg("%s isn't in docs/vulkan.md", found[k].name);
    if (found[k].instead && !found[k].construct) fail_msg("%s is never reported", found[k].name);
    const char *const why = found[k].instead ? reason_of(device, found[k].construct) : "";
    if (found[k].instead && names(why, "(", found[k].name, "): ") == found[k].is_there)
      fail_msg("%s is there, or isn't, and the report says otherwise", found[k].name);
  }
  gk_device_close(device);
}

static void note_line(void *user, UNUSED gk_log_level level, const char *line) {
  if (strstr(line, "GK_VULKAN_GATE")) snprintf(user, 300, "%s", line);
}

TEST(a_gate_that_there_is_not) {
  const char *const before = getenv("GK_VULKAN_GATE");
  char said[300] = "", *kept = before ? strdup(before) : NULL;
  gk_set_log(GK_LOG_WARN, note_line, said);
  setenv("GK_VULKAN_GATE", "grid", 1);
  gk_device_close(open_vulkan());
  assert_string_equal(said, "");
  setenv("GK_VULKAN_GATE", "grids", 1);
  gk_device_close(open_vulkan());
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  assert_non_null(strstr(said, "GK_VULKAN_GATE is \"grids\", which isn't known; give condition, grid or guard"));
  if (kept) setenv("GK_VULKAN_GATE", kept, 1);
  else unsetenv("GK_VULKAN_GATE");
  free(kept);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static gk_result launch_often(gk_device *device) {
  gk_graph *graph = NULL;
  const gk_status *status = NULL;
  gk_result result = gk_graph_create(device, &list, 0, &graph);
  for (int k = 0; k < LAUNCHES && result == GK_OK; ++k) {
    result = gk_launch(graph, 0);
    if (result == GK_OK) result = gk_wait(graph, &status);
    if (result == GK_OK && gk_passes(status, 0) != PASSES) result = GK_ERROR_DEVICE;
  }
  gk_graph_destroy(graph);
  return result;
}

typedef struct worker { gk_device *shared; pthread_barrier_t *start; gk_result on_shared, on_own; } worker;

static void *work(void *at) {
  worker *w = at;
  gk_device *own = NULL;
  pthread_barrier_wait(w->start);
  w->on_own = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &own);
  w->on_shared = launch_often(w->shared);
  gk_device_close(own);
  return NULL;
}

TEST(two_threads_open_and_launch) {
  gk_device *device = open_vulkan();
  pthread_barrier_t start;
  pthread_barrier_init(&start, NULL, 2);
  worker workers[2] = {{.shared = device, .start = &start}, {.shared = device, .start = &start}};
  pthread_t threads[2];
  for (int k = 0; k < 2; ++k) assert_int_equal(pthread_create(&threads[k], NULL, work, &workers[k]), 0);
  for (int k = 0; k < 2; ++k) pthread_join(threads[k], NULL);
  for (int k = 0; k < 2; ++k) {
    assert_ok(workers[k].on_own);
    assert_ok(workers[k].on_shared);
  }
  pthread_barrier_destroy(&start);
  gk_device_close(device);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

/* 0: the parent's device is refused, and one of the child's own works. */
static int use_in_child(gk_device *parents) {
  gk_device *own;
  gk_graph *graph;
  if (gk_graph_create(parents, &list, 0, &graph) != GK_ERROR_DEVICE) return 1;
  if (!strstr(gk_error(), "opened before a fork")) return 2;
  if (gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &own) != GK_OK) return 3;
  if (launch_often(own) != GK_OK) return 4;
  gk_device_close(own);
  gk_device_close(parents);
  return 0;
}

TEST(a_child_opens_its_own) {
  gk_device *device = open_vulkan();
  assert_ok(launch_often(device));
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(300);
    const int code = use_in_child(device);
    if (code) fprintf(stderr, "step %d: %s\n", code, gk_error());
    _exit(code);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_ok(launch_often(device));
  gk_device_close(device);
}

int main(void) { return run_all_tests(); }
