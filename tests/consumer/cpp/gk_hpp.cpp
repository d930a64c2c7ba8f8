// gk.hpp as a program uses it. Kernels come from C, so the lists do without.
#include <gk.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

struct triple { int a, b, c; };
enum slot { X = 1, N, BIG, FINE, COARSE, GIVEN, FLAG };
enum label { GROW = 1, AGAIN };

static const gk_slot_desc slots[] = {
  GK_OWN(X, int, 4), GK_DEFAULT(N, int, 4), GK_DEFAULT(BIG, int64_t, 0), GK_DEFAULT(FINE, double, 0),
  GK_DEFAULT(COARSE, float, 0), GK_STRUCT_VALUE(GIVEN, triple), GK_OWN(FLAG, int, 1),
};
static const gk_task tasks[] = {
  GK_FILL(X, N, 7), GK_YIELD(GROW), GK_FILL(X, N, 9), GK_YIELD(AGAIN), GK_FILL(X, GK_ONE, 1),
};
static const gk_list list = GK_LIST(list, tasks, slots);
static const gk_task plain_tasks[] = {GK_FILL(X, N, 5), GK_DO_WHILE(FLAG, .max_iterations = 3), GK_END};
static const gk_list plain = GK_LIST(plain, plain_tasks, slots);

#define REQUIRE(what) \
  do if (!(what)) std::fprintf(stderr, "line %d: %s\n", __LINE__, #what), std::exit(1); while (0)

/* Whether it throws a gk::error with that result, and with these words in its message. */
template <class F> static bool fails(gk_result result, const char *words, F &&call) {
  try {
    call();
  } catch (const gk::error &error) {
    if (error.result() == result && std::strstr(error.what(), words)) return true;
    std::fprintf(stderr, "%s: %s\n", gk_result_name(error.result()), error.what());
  }
  return false;
}

static_assert(!std::is_copy_constructible<gk::device>::value && !std::is_copy_assignable<gk::graph>::value, "");
static_assert(std::is_nothrow_move_constructible<gk::device>::value, "");
static_assert(std::is_nothrow_move_constructible<gk::graph>::value, "");

static void test_devices() {
  REQUIRE(fails(GK_ERROR_INVALID, "nowhere", [] { gk::device device("nowhere"); }));
  gk_device_desc desc = gk_device_desc();
  desc.backend = "openmp";
  gk::device device(desc), moved(std::move(device));
  REQUIRE(!device.get() && moved.get());
  device = std::move(moved);
  gk_device *raw = nullptr;
  gk::require(gk_device_open(&desc, &raw));
  gk::device adopted(raw);
  REQUIRE(adopted.get() == raw && device.get() != raw);
}

static void test_binds(gk::device &device) {
  gk::graph graph(device, plain);
  const triple given = {1, 2, 3};
  int x[4] = {};
  graph.bind(N, 2);
  graph.bind(N, size_t(2));
  graph.bind(N, true);
  graph.bind(N, X); /* an enumerator: 1 */
  graph.bind(BIG, -(int64_t(1) << 62));
  graph.bind(FINE, 0.1);
  graph.bind(COARSE, 0.1f);
  graph.bind_bytes(GIVEN, given);
  graph.bind(X, nullptr);
  graph.resize(X, 4);
  REQUIRE(fails(GK_ERROR_INVALID, "int64_t", [&] { graph.bind(BIG, ~uint64_t(0)); }));
  REQUIRE(fails(GK_ERROR_INVALID, "(N)", [&] { graph.bind(N, int64_t(1) << 40); }));
  REQUIRE(fails(GK_ERROR_INVALID, "(N)", [&] { graph.bind(N, 0.5); }));
  graph.bind(N, -1);
  graph.bind(N, 3);
  REQUIRE(graph.launch_wait().state == GK_FINISHED);
  graph.read(X, x, 4);
  REQUIRE(x[0] == 5 && x[2] == 5 && x[3] == 0);
  REQUIRE(gk_host_address(device.get(), graph.bound(X)));
  x[0] = 1;
  graph.write(FLAG, x, 1);
  REQUIRE(graph.launch_wait().limit->passes == 3);
  REQUIRE(fails(GK_ERROR_INVALID, "(X)", [&] { graph.read(X, x, 5); }));
}

static void test_launches(gk::device &device) {
  gk::graph graph(device, plain);
  REQUIRE(fails(GK_ERROR_INVALID, "launch", [&] { graph.wait(); }));
  graph.launch();
  while (!graph.poll()) {}
  REQUIRE(graph.wait().launch == 1);
  REQUIRE(graph.run().launch == 2);
  REQUIRE(fails(GK_ERROR_UNSUPPORTED, "GK_CANCELLABLE", [&] { graph.cancel(); }));
  REQUIRE(fails(GK_ERROR_INVALID, "label", [&] { graph.launch(77); }));
  REQUIRE(fails(GK_ERROR_UNSUPPORTED, "stream", [&] { graph.launch_on(0, nullptr); }));
  gk::graph moved(std::move(graph));
  REQUIRE(!graph.get() && moved.launch_wait().launch == 3);
  graph = gk::graph(device, plain, GK_CANCELLABLE);
  graph.cancel();
  gk_graph *raw = nullptr;
  gk::require(gk_graph_create(device.get(), &plain, 0, &raw));
  REQUIRE(gk::graph(raw).run().launch == 1);
  REQUIRE(fails(GK_ERROR_INVALID, "END", [&] {
    const gk_task end[] = {GK_END};
    const gk_list wrong = GK_LIST(wrong, end, slots);
    gk::graph refused(device, wrong);
  }));
}

static void test_runs(gk::device &device) {
  gk::graph graph(device, list);
  int yields = 0, x[8] = {};
  auto grow = [&](gk::graph &paused, const gk_status &status) {
    REQUIRE(&paused == &graph);
    ++yields;
    if (status.yielded == AGAIN) return;
    paused.resize(X, 8);
    paused.bind(N, 8);
  };
  REQUIRE(graph.run(grow).state == GK_FINISHED && yields == 2);
  graph.read(X, x, 8);
  REQUIRE(x[0] == 1 && x[1] == 9 && x[7] == 9);
  REQUIRE(fails(GK_ERROR_INVALID, "on_yield", [&] { graph.run(); }));
  /* Its own exception, whatever it is, leaves the run; the graph goes on. */
  bool caught = false;
  try {
    graph.run([](gk::graph &, const gk_status &) { throw std::string("mine"); });
  } catch (const std::string &thrown) {
    caught = thrown == "mine";
  }
  REQUIRE(caught);
  REQUIRE(fails(GK_ERROR_MEMORY, "(X)", [&] {
    graph.run([](gk::graph &paused, const gk_status &) { paused.resize(X, SIZE_MAX); });
  }));
  graph.resize(X, 8);
  yields = 0;
  graph.run([&](gk::graph &, const gk_status &) { ++yields; });
  REQUIRE(yields == 2);
}

int main() {
  test_devices();
  gk::device device("openmp");
  test_binds(device);
  test_launches(device);
  test_runs(device);
  gk::graph outlives(device, plain);
  device = gk::device("openmp"); /* closes the first one */
  REQUIRE(fails(GK_ERROR_DEVICE, "closed", [&] { outlives.launch(); }));
  return 0;
}
