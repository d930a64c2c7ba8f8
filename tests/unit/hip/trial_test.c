/* What is tried when a HIP device is opened, on simulated runtimes, each case in a process of its own: the form of a
 * kernel's arguments; whether graphs are right, from which length on they are faster, whether the device survives. */
#include "unit/hip/world.h"
#include "unit/support/set_clock.h"

/* ---- in the process of a case ------------------------------------------------------------------------------------ */

#define THREE_TIMES(ns) ns, 1, ns + 1, 1, ns + 2, 1
/* The trial measures 512 kernels three times each, by two readings: in plain launches, in 2 graphs, in 64 graphs. */
static int measured(uint64_t plain_ns, uint64_t long_ns, uint64_t short_ns, int work(void)) {
  const uint64_t passing[] = {THREE_TIMES(plain_ns), THREE_TIMES(long_ns), THREE_TIMES(short_ns), 0};
  atomic_store(&clock_runs, false);
  set_clock();
  readings_ns = passing;
  const int code = work();
  printf(" %d", *readings_ns == 0);
  return code;
}

static int graphs_are_faster(void) { return measured(1000001, 1000000, 1000000, runs); }
static int graphs_are_slower(void) { return measured(1000000, 1000001, 1000001, runs); }

/* Graphs of lists without decisions, each one run of fills: whether a launch is one graph. */
static int run_lengths(void) {
  static gk_task all[16];
  if (opens()) return 0;
  gk_device_facts(device, print_fact, (void *)(uintptr_t)"graphs");
  for (uint32_t length = 9; length <= 12; ++length) {
    const gk_slot_desc own[] = {GK_OWN(X, int, 1)};
    gk_graph *graph;
    for (uint32_t k = 0; k < length; ++k) all[k] = (gk_task)GK_FILL(X, GK_ONE, 3);
    const gk_list straight = {GK_ABI, "straight", all, length, own, GK_COUNT(own)};
    if (fails(gk_graph_create(device, &straight, 0, &graph))) return 0;
    sim()->mark();
    if (fails(gk_launch(graph, 0)) || fails(gk_wait(graph, NULL))) return 0;
    printf(" %u:%llu", (unsigned)length, (unsigned long long)sim()->counts().launches);
    gk_graph_destroy(graph);
  }
  gk_device_close(device);
  return 0;
}

/* 10 us by itself; 4 us in a graph, whose launch takes 60 us: a graph of 10 kernels saves nothing. */
static int lengths(void) { return measured(5120000, 512 * 4000 + 2 * 60000, 512 * 4000 + 64 * 60000, run_lengths); }
/* The same from 10.8 kernels on; it would be 11.3 if the launches of the long graphs counted as their kernels' time. */
static int other_lengths(void) {
  return measured(512 * 4000 + 2850000, 512 * 4000 + 2 * 60000, 512 * 4000 + 64 * 60000, run_lengths);
}
/* A graph's launch takes longer than any number of kernels saves. */
static int no_length(void) { return measured(5120000, 5120000 + 2 * 60000, 5120000 + 64 * 60000, run_lengths); }

static void hear(void *user, gk_log_level level, const char *line) {
  (void)user, (void)level;
  if (strstr(line, "task by task")) printf("log: %s | ", line);
}

static const gk_task fills[] = {GK_FILL(X, GK_ONE, 3), GK_FILL(X, GK_ONE, 4)};
static const gk_list filling = GK_LIST(filling, fills, slots);

/* While a graph of the list is made, an entry of the driver answers that. */
static int refuses(const char *entry, CUresult code, const gk_list *of) {
  const char *failed = "";
  gk_result result = GK_OK;
  gk_graph *graph = NULL;
  int x = 0;
  gk_set_log(GK_LOG_INFO, hear, NULL);
  for (uint64_t k = 1; k < 40 && strcmp(failed, entry) != 0; ++k) {
    gk_graph_destroy(graph);
    gk_device_close(device);
    graph = NULL;
    if (opens()) return 0; /* it keeps the code of kernels */
    (sim()->fail)(k, code, SIMGPU_NOW);
    result = gk_graph_create(device, of, 0, &graph);
    failed = sim()->failed() ? sim()->failed() : "";
  }
  if (!fails(result) && !fails(gk_launch(graph, 0)) && !fails(gk_wait(graph, NULL)) && !fails(gk_read(graph, X, &x, 1)))
    printf("%d", x);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return 0;
}

static int refuses_run(void) { return refuses("cuGraphAddKernelNode", CUDA_ERROR_NOT_SUPPORTED, &filling); }
static int lacks_memory_for_run(void) { return refuses("cuGraphAddKernelNode", CUDA_ERROR_OUT_OF_MEMORY, &filling); }
static int lacks_memory_for_code(void) { return refuses("cuModuleLoadDataEx", CUDA_ERROR_OUT_OF_MEMORY, &list); }

/* By a graph of the trial, which breaks a rule of the simulated driver. */
static int loses_in_trial(void) {
  const int code = say();
  sim()->forgive();
  return code;
}

/* ---- the cases --------------------------------------------------------------------------------------------------- */

static const elsewhere_case forms[] = {
    {HIP7, {HOME, "SIMHIP_FAULT=kernelparams"}, "run", {"arguments extra 20 7 8 9 by "}},
    {HIP7, {HOME, "SIMHIP_FAULT=extra"}, "run", {"arguments kernelParams 20 7 8 9 by "}},
    {HIP7, {HOME, "SIMHIP_FAULT=extra,kernelparams"}, "run",
     {"GK_ERROR_NO_DEVICE: backend hip: kernels on ", " get wrong arguments, by kernelParams and by extra"}},
};
static const elsewhere_case graphs[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=1"}, "run", {"arguments kernelParams 20 7 8 9 by graphs", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=1", "SIMHIP_FAULT=several-roots"}, "run", {"arguments", " 20 7 8 9 by graphs", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=0"}, "run", {"arguments kernelParams 20 7 8 9 by kernels", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=1", "SIMHIP_FAULT=stale-pointers"}, "run", {"arguments", " 20 7 8 9 by kernels", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=1", "SIMHIP_FAULT=exec-keeps-arguments"}, "run",
     {"arguments", " 20 7 8 9 by kernels", "$"}},
    {HIP5, {HOME, "GK_HIP_GRAPHS=1"}, "run", {"arguments kernelParams 20 7 8 9 by kernels", "$"}},
    {HIP7, {HOME, "SIMHIP_FAULT=refuse-kernel-node"}, "run", {"arguments kernelParams 20 7 8 9 by kernels", "$"}},
};
#define BROKEN \
  "GK_ERROR_NO_DEVICE: backend hip: device 0 (simulated GPU 0) doesn't work any more since gk tried a graph there: " \
  "hipErrorIllegalAddress (hipErrorIllegalAddress, 700); set GK_HIP_GRAPHS=0"
static const elsewhere_case deadly_graphs[] = {
    {HIP7, {HOME, "SIMHIP_FAULT=graph-pointers"}, "lose in trial", {BROKEN, " | openmp", "$"}},
    {HIP7, {HOME, "SIMHIP_FAULT=graph-pointers", "GK_HIP_GRAPHS=1"}, "lose in trial", {BROKEN, " | openmp", "$"}},
    {HIP7, {HOME, "SIMHIP_FAULT=graph-pointers", "GK_HIP_GRAPHS=0"}, "run",
     {"arguments kernelParams 20 7 8 9 by kernels", "$"}},
};
static const elsewhere_case refused_runs[] = {
    {HIP7, {HOME, "GK_HIP_GRAPHS=1"}, "refused run",
     {"log: ", "run 0 is launched task by task, as HIP makes no graph of it: hipErrorNotSupported ", " | 4", "$"}},
    {HIP7, {HOME, "GK_HIP_GRAPHS=1"}, "no memory for run", {"GK_ERROR_MEMORY: ", "making graph filling: "}},
    {HIP7, {HOME, NO_CACHE, "GK_HIP_GRAPHS=0"}, "no memory for code",
     {"GK_ERROR_MEMORY: ", "hipModuleLoadData"}},
};
static const elsewhere_case times[] = {
    {HIP7, {HOME}, "faster", {"arguments kernelParams 20 7 8 9 by graphs 1", "$"}},
    {HIP7, {HOME}, "slower", {"arguments kernelParams 20 7 8 9 by kernels 1", "$"}},
    {HIP7, {HOME}, "lengths", {"graphs from 11 kernels on 9:0 10:0 11:1 12:1 1", "$"}},
    {HIP7, {HOME}, "other lengths", {"graphs from 11 kernels on 9:0 10:0 11:1 12:1 1", "$"}},
    {HIP7, {HOME}, "no length", {"graphs no 9:0 10:0 11:0 12:0 1", "$"}},
};

TEST(the_form_of_arguments_that_works_is_taken) { ELSEWHERE(forms); }
TEST(graphs_are_used_where_they_are_right) { ELSEWHERE(graphs); }
TEST(what_the_runtime_refuses_is_told_or_not_needed) { ELSEWHERE(refused_runs); }
TEST(graphs_are_used_where_they_are_faster) { ELSEWHERE(times); }
TEST(a_graph_that_breaks_the_device_is_reported) { ELSEWHERE(deadly_graphs); }

int main(int count, char **words) {
  atomic_store(&clock_runs, true);
  static const elsewhere_word known[] = {{"run", runs}, {"faster", graphs_are_faster}, {"slower", graphs_are_slower},
                                         {"lengths", lengths}, {"other lengths", other_lengths},
                                         {"no length", no_length}, {"lose in trial", loses_in_trial},
                                         {"refused run", refuses_run},
                                         {"no memory for run", lacks_memory_for_run},
                                         {"no memory for code", lacks_memory_for_code}};
  int code;
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  return run_all_tests();
}
