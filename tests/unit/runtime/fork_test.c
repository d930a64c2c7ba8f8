/* A process that was forked: its parent's devices and graphs are refused by name, and can be freed; it may open some of
 * its own. A child that hangs is ended by its alarm. */
#include "unit/cuda/world.h"
#include "unit/support/await.h"
#include "runtime/graph.h"
#include "unit/support/runtime_leaks.h"
#include "openmp/team.h"
#include "unit/support/runtime_kernels.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { X = 1, A, N };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_DEFAULT(A, int, 1), GK_OWN(N, int, 1)};
LIST(list, GK_RUN(add, GK_ONE, X, A));

/* In the child: no assert of cmocka's, which would continue with the parent's tests. */
#define must(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: not %s; %s\n", __FILE__, __LINE__, #condition, gk_error()); \
      _exit(1); \
    } \
  } while (0)
#define must_refuse(call) must((call) == GK_ERROR_DEVICE && strstr(gk_error(), " was opened before a fork"))
#define must_give_none(call) must(!(call) && strstr(gk_error(), " was opened before a fork"))

static bool is_child, frees_all;

/* What a device's backend has isn't freed in a child, but for OpenMP's. Called by LeakSanitizer. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return is_child && !frees_all; }

static pid_t fork_child(void) {
  fflush(NULL);
  await(others_sleep()); /* sanitizers have locks, too, which a child finds as they were */
  const pid_t child = fork();
  if (child != 0) return child;
  is_child = true;
  sim->allow("leak");
  alarm(600);
  return 0;
}

/* The simulated driver's own end may wait for a lock that one of its threads held. */
static _Noreturn void leave(bool had_cuda) {
  if (had_cuda) _exit(0);
  exit(0); /* what was counted of lines is written */
}

static void note_nothing(void *user, const gk_fact *fact) { (void)user, (void)fact; }

static void refuse_device(gk_device *device, void *memory) {
  char byte[4];
  gk_graph *graph;
  must_give_none(gk_alloc(device, 4, GK_DEVICE_MEMORY));
  must_refuse(gk_upload(device, memory, byte, 4));
  must_refuse(gk_download(device, byte, memory, 4));
  must_refuse(gk_copy(device, memory, memory, 4));
  must_give_none(gk_host_address(device, memory));
  must_refuse(gk_graph_create(device, &list, 0, &graph));
  must_refuse(gk_device_facts(device, note_nothing, NULL));
  gk_free(device, memory);
  must(gk_device_describe(device)); /* neither thread nor driver is asked for that */
}

static void refuse_graph(gk_graph *graph) {
  const gk_status *status;
  must_refuse(gk_launch(graph, 0));
  must_refuse(gk_launch_on(graph, 0, NULL));
  must_refuse(gk_wait(graph, &status));
  must_refuse(gk_poll(graph, &status));
  must_refuse(gk_cancel(graph));
  must_refuse(gk_bind(graph, X, &status));
  must_refuse(gk_bind_int(graph, A, 2));
  must_refuse(gk_resize(graph, X, 5));
  must_give_none(gk_bound(graph, X));
  must_give_none(gk_dump(NULL, graph, "text"));
  must_give_none(gk_find_slot(graph, "X"));
}

static int add_once(const char *backend) {
  gk_device *device;
  gk_graph *graph;
  int x = 0;
  must(gk_device_open(&(gk_device_desc){.backend = backend}, &device) == GK_OK);
  must(gk_graph_create(device, &list, 0, &graph) == GK_OK);
  must(gk_launch(graph, 0) == GK_OK);
  must(gk_wait(graph, NULL) == GK_OK);
  must(gk_download(device, &x, gk_bound(graph, X), sizeof x) == GK_OK);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return x;
}

static void assert_child_is_fine(pid_t child) {
  int status;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("the child's status is 0x%x", (unsigned)status);
}

enum { PLACES = 64 };
extern char __data_start, end; /* of what isn't on the heap nor a stack */

/* The thread that stops: the first time that it gives back a lock of the whole process, and where it asks for an entry
 * of a library. */
static _Thread_local bool is_watched;
static const void *places[PLACES];
static int place_count, stop_at;
static atomic_bool is_stopped, has_begun_cuda, is_through;
static sem_t may_go_on;

static void pass(const void *place) {
  if (!is_watched) return;
  for (int k = 0; k < place_count; ++k)
    if (places[k] == place) return;
  must(place_count < PLACES);
  places[place_count] = place;
  if (place_count++ != stop_at) return;
  atomic_store(&is_stopped, true);
  while (sem_wait(&may_go_on) != 0) continue;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock) {
  const char *at = (const char *)lock;
  if (at >= &__data_start && at < &end) pass(lock);
  return __real_pthread_mutex_unlock(lock);
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name) {
  pass(name);
  return __real_dlsym(library, name);
}

static void meet_team(void) {
  gki_team team;
  must(gki_team_make(&team, 2, 0));
  gki_team_start(&team);
  must(team.limit == 2);
  gki_team_free(&team);
}

static void *do_all(void *unused) {
  (void)unused;
  is_watched = true;
  must(add_once("openmp") == 1);
  meet_team();
  atomic_store(&has_begun_cuda, true);
  must(add_once("cuda") == 1);
  is_watched = false;
  atomic_store(&is_through, true);
  return NULL;
}

/* In a child that was forked while that thread had stopped. */
static _Noreturn void do_all_in_child(void) {
  gk_device *device;
  must(add_once("openmp") == 1);
  meet_team();
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)); ++k)
    must(gk_backend_facts(backend, note_nothing, NULL) == GK_OK);
  if (atomic_load(&has_begun_cuda)) {
    must(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) == GK_ERROR_NO_DEVICE);
    must(strstr(gk_error(), "this process was forked from one that had started CUDA"));
  } else {
    must(add_once("cuda") == 1);
  }
  leave(true);
}

/* In a process of its own, as many things are done only once in each. */
static _Noreturn void stop_and_fork(void) {
  pthread_t thread;
  setenv("GK_CUDA_PROBE", "0", 1);
  must(sem_init(&may_go_on, 0, 0) == 0);
  must(pthread_create(&thread, NULL, do_all, NULL) == 0);
  await(atomic_load(&is_stopped) || atomic_load(&is_through));
  const bool is_last = atomic_load(&is_through);
  const pid_t child = is_last ? 0 : fork_child();
  if (child == 0 && !is_last) do_all_in_child();
  int status = 0;
  if (!is_last) must(waitpid(child, &status, 0) == child);
  sem_post(&may_go_on);
  must(pthread_join(thread, NULL) == 0);
  must(atomic_load(&is_through));
  _exit(status ? 1 : is_last ? 2 : 0);
}

/* The child can do all that a new process can, at any state of a thread of the parent, with any lock held. */
TEST(child_finds_no_lock_taken) {
  int status;
  for (stop_at = 0;; ++stop_at) {
    const pid_t child = fork_child();
    if (child == 0) stop_and_fork();
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) % 2) fail_msg("stop %d: status 0x%x", stop_at, (unsigned)status);
    if (WEXITSTATUS(status) == 2) break;
  }
  assert_true(stop_at > 8);
}

/* One graph is destroyed before the device is closed, one after it; both were launched. */
static void free_in_a_child(gk_device *device) {
  gk_graph *graphs[2] = {graph_on(device, &list, GK_CANCELLABLE), graph_on(device, &list, GK_CANCELLABLE)};
  void *memory = gk_alloc(device, 4, GK_DEVICE_MEMORY);
  const bool is_cuda = is_of(device, "cuda");
  for (int k = 0; k < 2; ++k) assert_ok(gk_launch(graphs[k], 0));
  const pid_t child = fork_child();
  if (child == 0) {
    frees_all = is_of(device, "openmp");
    refuse_device(device, memory);
    for (int k = 0; k < 2; ++k) refuse_graph(graphs[k]);
    gk_graph_destroy(graphs[0]);
    gk_device_close(device);
    refuse_graph(graphs[1]);
    gk_graph_destroy(graphs[1]);
    must(!sim->broken());
    must(add_once("openmp") == 1);
    leave(is_cuda);
  }
  assert_child_is_fine(child);
  for (int k = 0; k < 2; ++k) assert_ok(gk_wait(graphs[k], NULL)); /* the parent's are as they were */
  run_to_end(graphs[0], 0);
  assert_int_equal(int_at(device, gk_bound(graphs[0], X)), 2);
  for (int k = 0; k < 2; ++k) gk_graph_destroy(graphs[k]);
  gk_free(device, memory);
}
TEST_ON(ALL_BACKENDS, child_can_only_free) { free_in_a_child(device); }
TEST_ON_CUDA(child_can_only_free_on_cuda) { free_in_a_child(device); }

static bool is_among(const gk_graph *graph, gk_graph *const *graphs, const int *order, int count) {
  for (int k = 0; k < count; ++k)
    if (graphs[order[k]] == graph) return true;
  return false;
}

/* Another thread of the parent was in the middle of changing the device's list: each link back leads to the graph
 * before or after the change. */
TEST_ON("openmp", child_of_a_changing_list) {
  enum { GRAPHS = 3 };
  static const int orders[][GRAPHS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  const bool is_cuda = is_of(device, "cuda");
  gk_graph *graphs[GRAPHS];
  for (int k = 0; k < GRAPHS; ++k) graphs[k] = graph_on(device, &list, 0);
  for (size_t o = 0; o < GK_COUNT(orders); ++o)
    for (int before = GRAPHS; before >= 0; --before) { /* so many are destroyed before the device is closed */
      const pid_t child = fork_child();
      if (child == 0) {
        gk_graph *elsewhere = NULL;
        for (int k = 0; k < GRAPHS; ++k) graphs[k]->link_of_device = &elsewhere;
        for (int k = 0; k < before; ++k) gk_graph_destroy(graphs[orders[o][k]]);
        int left = 0;
        for (const gk_graph *at = device->graphs; at; at = at->next_of_device, ++left)
          must(!is_among(at, graphs, orders[o], before));
        must(left == GRAPHS - before);
        gk_device_close(device);
        for (int k = before; k < GRAPHS; ++k) gk_graph_destroy(graphs[orders[o][k]]);
        leave(is_cuda);
      }
      assert_child_is_fine(child);
    }
  for (int k = 0; k < GRAPHS; ++k) gk_graph_destroy(graphs[k]);
}

/* CUDA's driver serves one process. gk says so as it opens a device, and the simulated driver at each call. */
TEST_ON_CUDA(child_has_no_cuda) {
  const pid_t child = fork_child();
  if (child == 0) {
    gk_device *opened;
    must(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &opened) == GK_ERROR_NO_DEVICE);
    must(strstr(gk_error(), "this process was forked from one that had started CUDA"));
    leave(true);
  }
  assert_child_is_fine(child);
}

/* In the middle of a launch: the parent's thread is in gk_wait, and the child is the worker's thread. */
static pid_t from_inside;
static gk_graph *running;
CALLED(fork_inside) {
  from_inside = fork_child();
  if (from_inside != 0) return GK_OK;
  refuse_graph(running);
  gk_graph_destroy(running);
  must(add_once("openmp") == 1);
  leave(false);
}

TEST_ON("openmp", child_of_a_launch) {
  LIST(forking, GK_CALL(fork_inside, X), GK_RUN(add, GK_ONE, X, A));
  running = graph_on(device, &forking, GK_CANCELLABLE);
  run_to_end(running, 0);
  assert_child_is_fine(from_inside);
  assert_int_equal(int_at(device, gk_bound(running, X)), 1);
}

int main(int argc, char **argv) {
  (void)argc;
  with_simgpu(argv);
  return run_all_tests();
}
