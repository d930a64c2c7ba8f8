#include "hip/graph.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/op.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* A graph that is made: a chain, in which the sections of a PARALLEL lie side by side. It has one root, since some
 * runtimes run only the first of several. */
typedef struct made {
  const gki_hip_device *device;
  hipGraph_t graph;
  hipGraphNode_t last; /* NULL: there is no node yet */
  hipGraphNode_t *ends; /* by node of the plan: behind a PARALLEL, the last nodes of its sections */
} made;

static hipError_t add_kernel(made *m, const gki_hip_shape *shape) {
  hipGraphNode_t node;
  const hipError_t answer =
      m->device->driver->hipGraphAddKernelNode(&node, m->graph, &m->last, m->last ? 1 : 0, &shape->params);
  if (answer == hipSuccess) m->last = node;
  return answer;
}

static hipError_t add_empty(made *m, const hipGraphNode_t *after, size_t count) {
  hipGraphNode_t node;
  const hipError_t answer = m->device->driver->hipGraphAddEmptyNode(&node, m->graph, after, count);
  if (answer == hipSuccess) m->last = node;
  return answer;
}

static hipError_t add_nodes(made *m, const gki_hip_graph *g, uint32_t run, uint32_t begin, uint32_t end);

static hipError_t add_sections(made *m, const gki_hip_graph *g, uint32_t run, uint32_t parallel) {
  const gk_node *nodes = g->plan->nodes;
  hipError_t answer = m->last ? hipSuccess : add_empty(m, NULL, 0);
  const hipGraphNode_t before = m->last;
  size_t count = 0;
  for (uint32_t k = parallel + 1; k < nodes[parallel].end && answer == hipSuccess; k = nodes[k].end) {
    m->last = before;
    answer = add_nodes(m, g, run, k + 1, nodes[k].end);
    m->ends[parallel + count++] = m->last;
  }
  return answer == hipSuccess ? add_empty(m, m->ends + parallel, count) : answer;
}

/* Adds the nodes of a straight piece. */
static hipError_t add_nodes(made *m, const gki_hip_graph *g, uint32_t run, uint32_t begin, uint32_t end) {
  const gk_node *nodes = g->plan->nodes;
  hipError_t answer = hipSuccess;
  for (uint32_t k = begin; k < end && answer == hipSuccess; k = nodes[k].end) {
    gki_hip_shape shape;
    if (nodes[k].op == GK_OP_PARALLEL) answer = add_sections(m, g, run, k);
    else {
      gki_hip_shape_task(g, k, run, true, &shape);
      answer = add_kernel(m, &shape);
    }
  }
  return answer;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Whether the run is long enough, and its arguments don't change. */
static bool should_be_graph(const gki_hip_graph *g, uint32_t run) {
  uint32_t kernels = g->points != NULL;
  for (uint32_t k = g->plan->runs[run].begin; k < g->plan->runs[run].end; ++k) {
    if (gki_op_is_call(g->plan->nodes[k].op) || g->plan->nodes[k].handwritten) return false;
    kernels += g->kernels[k] != NULL;
  }
  return kernels >= g->device->graphs_from;
}

/* Ends the making of a graph, which went as `answer` says. */
static hipError_t make_exec(const made *m, hipError_t answer, hipGraphExec_t *exec) {
  const gki_hip_driver *driver = m->device->driver;
  if (answer == hipSuccess) answer = driver->hipGraphInstantiateWithFlags(exec, m->graph, 0);
  if (answer != hipSuccess) *exec = NULL;
  if (m->graph) (void)driver->hipGraphDestroy(m->graph);
  return answer;
}

static hipError_t make_run(const gki_hip_graph *g, uint32_t run, hipGraphNode_t *ends, hipGraphExec_t *exec) {
  const gk_plan_run *at = &g->plan->runs[run];
  made m = {.device = g->device, .ends = ends};
  gki_hip_shape control;
  hipError_t answer = g->device->driver->hipGraphCreate(&m.graph, 0);
  if (answer != hipSuccess) m.graph = NULL;
  if (answer == hipSuccess) answer = add_nodes(&m, g, run, at->begin, at->end);
  if (answer == hipSuccess && g->points) {
    gki_hip_shape_control(g, run, &control);
    answer = add_kernel(&m, &control);
  }
  return make_exec(&m, answer, exec);
}

gk_result gki_hip_make_execs(gki_hip_graph *g) {
  const uint32_t count = g->plan->run_count;
  char why[300];
  if (!g->device->graphs_from || !count) return GK_OK;
  g->execs = gki_arena_alloc(&g->arena, count, sizeof *g->execs);
  hipGraphNode_t *ends = gki_arena_alloc(&g->arena, g->plan->node_count, sizeof *ends);
  if (!g->execs || !ends) return gki_fail_memory("a graph's runs", count * sizeof *g->execs);
  for (uint32_t run = 0; run < count; ++run) {
    if (!should_be_graph(g, run)) continue;
    const hipError_t answer = make_run(g, run, ends, &g->execs[run]);
    if (answer == hipErrorOutOfMemory)
      return gki_hip_result(g->device->driver, answer, "making graph %s", g->plan->name);
    if (answer == hipSuccess) continue;
    gki_hip_describe(g->device->driver, answer, why, sizeof why);
    gk_log(GK_LOG_INFO, "graph %s: run %u is launched task by task, as HIP makes no graph of it: %s", g->plan->name,
           (unsigned)run, why);
  }
  return GK_OK;
}

void gki_hip_drop_execs(gki_hip_graph *g) {
  for (uint32_t run = 0; g->execs && run < g->plan->run_count; ++run)
    if (g->execs[run]) (void)g->device->driver->hipGraphExecDestroy(g->execs[run]);
}

/* ---- trials ------------------------------------------------------------------------------------------------------ */

/* Two long graphs, and a short one that is launched as often as it takes for as many kernels. */
enum { LONG = 256, GRAPHS = 2, KERNELS = GRAPHS * LONG, SHORT = 8, SHORTS = KERNELS / SHORT,
       SEEN = KERNELS + SHORT /* kernels with arguments of their own */, TIMES = 3 };

/* Each kernel writes the arguments that it got, which depend on its number. */
typedef struct trial {
  gki_hip_device *device;
  uint64_t *seen; /* by number and word */
  hipGraphExec_t execs[GRAPHS + 1]; /* the short graph is the last */
} trial;

enum { PLAIN, IN_LONG, IN_SHORT, WAYS };

/* Launches `count` kernels, or that many graphs. */
static hipError_t launch(const trial *t, int way, uint32_t count) {
  const gki_hip_device *d = t->device;
  hipError_t answer = hipSuccess;
  for (uint32_t k = 0; k < count && answer == hipSuccess; ++k) {
    gki_hip_shape shape;
    gki_hip_shape_echo(d, t->seen, k, &shape);
    answer = way == PLAIN ? gki_hip_launch_shape(d, &shape, d->stream)
                          : d->driver->hipGraphLaunch(t->execs[way == IN_LONG ? k : GRAPHS], d->stream);
  }
  return answer;
}

static hipError_t finish(const trial *t, hipError_t answer) {
  return answer == hipSuccess ? t->device->driver->hipStreamSynchronize(t->device->stream) : answer;
}

/* One kernel by plain launch, in the form of arguments that is set. */
static gk_result try_plain(const trial *t, bool *works) {
  const gki_hip_driver *driver = t->device->driver;
  memset(t->seen, 0, GKI_HIP_ECHO * sizeof *t->seen);
  *works = false;
  const hipError_t answer = launch(t, PLAIN, 1);
  if (answer == hipErrorOutOfMemory) return gki_hip_result(driver, answer, "hipModuleLaunchKernel");
  if (answer != hipSuccess) return GK_OK;
  const gk_result result = gki_hip_result(driver, finish(t, answer), "hipStreamSynchronize");
  *works = result == GK_OK && gki_hip_has_echoes(t->seen, 1);
  return result;
}

/* Some runtimes corrupt one form of arguments, some the other. */
static gk_result choose_form(const trial *t) {
  gki_hip_device *d = t->device;
  bool works;
  gk_result result = try_plain(t, &works);
  if (result == GK_OK && !works) {
    d->packs = true;
    result = try_plain(t, &works);
  }
  if (result != GK_OK || works) return result;
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: kernels on %s get wrong arguments, by kernelParams and by extra; "
                 "use another version than %s", d->name, d->driver->name);
}

static hipError_t make_graph(trial *t, uint32_t number) {
  made m = {.device = t->device};
  hipError_t answer = t->device->driver->hipGraphCreate(&m.graph, 0);
  if (answer != hipSuccess) m.graph = NULL;
  for (uint32_t k = 0; k < (number < GRAPHS ? LONG : SHORT) && answer == hipSuccess; ++k) {
    gki_hip_shape shape;
    gki_hip_shape_echo(t->device, t->seen, number * LONG + k, &shape);
    answer = add_kernel(&m, &shape);
  }
  return make_exec(&m, answer, &t->execs[number]);
}

/* The shortest of a few times of each way, in nanoseconds. */
static hipError_t measure(const trial *t, uint64_t best[WAYS]) {
  static const uint32_t counts[WAYS] = {[PLAIN] = KERNELS, [IN_LONG] = GRAPHS, [IN_SHORT] = SHORTS};
  hipError_t answer = hipSuccess;
  for (int k = 0; k < WAYS * TIMES && answer == hipSuccess; ++k) {
    const int way = k / TIMES;
    const uint64_t begin = gki_now_ns();
    answer = finish(t, launch(t, way, counts[way]));
    const uint64_t taken = gki_now_ns() - begin;
    if (k % TIMES == 0 || taken < best[way]) best[way] = taken;
  }
  return answer;
}

/* By the times of as many kernels in plain launches, in long graphs and in short ones. A graph is worth it if its
 * launch takes less than its kernels save. */
static void choose_length(gki_hip_device *d, const uint64_t ns[WAYS]) {
  const uint64_t plain_ns = ns[PLAIN], long_ns = ns[IN_LONG], short_ns = ns[IN_SHORT];
  const uint64_t launch_ns = short_ns > long_ns ? (short_ns - long_ns) / (SHORTS - GRAPHS) : 0;
  const uint64_t kernels_ns = long_ns > GRAPHS * launch_ns ? long_ns - GRAPHS * launch_ns : 0;
  const uint64_t from = plain_ns > kernels_ns ? launch_ns * KERNELS / (plain_ns - kernels_ns) + 1 : 0;
  d->graphs_from = from < UINT32_MAX ? (uint32_t)from : 0;
  snprintf(d->graphs_why, sizeof d->graphs_why,
           "a launch of a graph takes %llu ns and each kernel in it %llu, a kernel by itself %llu",
           (unsigned long long)launch_ns, (unsigned long long)(kernels_ns / KERNELS),
           (unsigned long long)(plain_ns / KERNELS));
}

static hipError_t judge(trial *t, bool is_wanted) {
  gki_hip_device *d = t->device;
  hipError_t answer = hipSuccess;
  uint64_t ns[WAYS];
  for (uint32_t k = 0; k < GK_COUNT(t->execs) && answer == hipSuccess; ++k) answer = make_graph(t, k);
  memset(t->seen, 0, SEEN * GKI_HIP_ECHO * sizeof *t->seen);
  if (answer == hipSuccess) answer = finish(t, launch(t, IN_LONG, GRAPHS + 1));
  if (answer != hipSuccess) return answer;
  if (!gki_hip_has_echoes(t->seen, SEEN)) {
    snprintf(d->graphs_why, sizeof d->graphs_why, "graphs of %d nodes go wrong here", LONG);
    return hipSuccess;
  }
  if (is_wanted) {
    d->graphs_from = 1;
    snprintf(d->graphs_why, sizeof d->graphs_why, "GK_HIP_GRAPHS=1 wants it");
    return hipSuccess;
  }
  answer = measure(t, ns);
  if (answer == hipSuccess) choose_length(d, ns);
  return answer;
}

/* Plain launches serve if the device has survived the failure of a graph. */
static gk_result go_without(const trial *t, hipError_t answer) {
  gki_hip_device *d = t->device;
  char why[300];
  bool works = false;
  gki_hip_describe(d->driver, answer, why, sizeof why);
  snprintf(d->graphs_why, sizeof d->graphs_why, "the runtime refuses them: %.100s", why);
  gki_attempt_begin();
  const gk_result result = try_plain(t, &works);
  gki_attempt_end();
  if (works) return GK_OK;
  if (result == GK_ERROR_MEMORY) return result;
  gki_begin();
  return gk_fail(GK_ERROR_NO_DEVICE, "backend hip: device %d (%s) doesn't work any more since gk tried a graph there: "
                 "%s; set GK_HIP_GRAPHS=0, so that gk tries none, and start the program again", d->ordinal, d->name,
                 why);
}

static gk_result try_graphs(trial *t) {
  gki_hip_device *d = t->device;
  const char *wanted = secure_getenv("GK_HIP_GRAPHS");
  if (wanted && strcmp(wanted, "0") == 0) {
    snprintf(d->graphs_why, sizeof d->graphs_why, "GK_HIP_GRAPHS=0 wants it");
    return GK_OK;
  }
  const hipError_t answer = judge(t, wanted && strcmp(wanted, "1") == 0);
  if (answer == hipSuccess) return GK_OK;
  (void)d->driver->hipStreamSynchronize(d->stream); /* what was launched writes to `seen` */
  return answer == hipErrorOutOfMemory ? gki_hip_result(d->driver, answer, "trying graphs") : go_without(t, answer);
}

gk_result gki_hip_try(gki_hip_device *d) {
  void *seen = NULL;
  gk_result result = gki_hip_alloc_raw(d, SEEN * GKI_HIP_ECHO * sizeof(uint64_t), GK_HOST_MEMORY, &seen);
  trial t = {.device = d, .seen = seen};
  if (result == GK_OK) result = choose_form(&t);
  if (result == GK_OK) result = try_graphs(&t);
  for (size_t k = 0; k < GK_COUNT(t.execs); ++k)
    if (t.execs[k]) (void)d->driver->hipGraphExecDestroy(t.execs[k]);
  gki_hip_free_raw(d, GK_HOST_MEMORY, seen);
  return result;
}
