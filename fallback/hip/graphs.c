#include "hip/graphs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
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
} made;

static hipError_t add_kernel(made *m, const gki_hip_shape *shape) {
  size_t bytes = shape->args.bytes;
  void *extra[] = {(void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_BUFFER_POINTER, shape->args.packed,
                   (void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   (void *)(uintptr_t)GKI_HIP_LAUNCH_PARAM_END};
  const bool packs = m->device->packs;
  const unsigned *grid = shape->grid, *block = shape->block;
  const hipKernelNodeParams params = {
      .func = shape->function, .gridDim = {grid[0], grid[1], grid[2]}, .blockDim = {block[0], block[1], block[2]},
      .sharedMemBytes = shape->shared_bytes, .kernelParams = packs ? NULL : (void **)(uintptr_t)shape->args.pointers,
      .extra = packs ? extra : NULL};
  hipGraphNode_t node;
  const hipError_t answer =
      m->device->driver->hipGraphAddKernelNode(&node, m->graph, m->last ? &m->last : NULL, m->last ? 1 : 0, &params);
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

/* @param ends  Room for the last node of each section. */
static hipError_t add_sections(made *m, const gki_hip_graph *g, uint32_t run, uint32_t parallel, hipGraphNode_t *ends) {
  const gk_node *nodes = g->plan->nodes;
  hipError_t answer = m->last ? hipSuccess : add_empty(m, NULL, 0);
  const hipGraphNode_t before = m->last;
  size_t count = 0;
  for (uint32_t k = parallel + 1; k < nodes[parallel].end && answer == hipSuccess; k = nodes[k].end) {
    m->last = before;
    answer = add_nodes(m, g, run, k + 1, nodes[k].end);
    ends[count++] = m->last;
  }
  return answer == hipSuccess ? add_empty(m, ends, count) : answer;
}

/* Of a straight piece. */
static hipError_t add_nodes(made *m, const gki_hip_graph *g, uint32_t run, uint32_t begin, uint32_t end) {
  const gk_node *nodes = g->plan->nodes;
  hipError_t answer = hipSuccess;
  for (uint32_t k = begin; k < end && answer == hipSuccess; k = nodes[k].end) {
    gki_hip_shape shape;
    if (nodes[k].op == GK_OP_PARALLEL) {
      hipGraphNode_t *ends = gki_array(nodes[k].end - k, sizeof *ends, "the sections of a graph");
      answer = ends ? add_sections(m, g, run, k, ends) : hipErrorOutOfMemory;
      gk_host_free(ends);
    } else {
      gki_hip_shape_task(g, k, run, true, &shape);
      answer = add_kernel(m, &shape);
    }
  }
  return answer;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static bool can_be_graph(const gk_plan *plan, uint32_t run) {
  for (uint32_t k = plan->runs[run].begin; k < plan->runs[run].end; ++k)
    if (gki_op_is_call(plan->nodes[k].op) || plan->nodes[k].handwritten) return false;
  return true;
}

/* Ends the making of a graph, which went as `answer` says. */
static hipError_t make_exec(const made *m, hipError_t answer, hipGraphExec_t *exec) {
  const gki_hip_driver *driver = m->device->driver;
  if (answer == hipSuccess) answer = driver->hipGraphInstantiateWithFlags(exec, m->graph, 0);
  if (answer != hipSuccess) *exec = NULL;
  if (m->graph) (void)driver->hipGraphDestroy(m->graph);
  return answer;
}

static hipError_t make_run(const gki_hip_graph *g, uint32_t run, hipGraphExec_t *exec) {
  const gk_plan_run *at = &g->plan->runs[run];
  made m = {.device = g->device};
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
  if (!g->device->uses_graphs || !count) return GK_OK;
  g->execs = gki_arena_alloc(&g->arena, count, sizeof *g->execs);
  if (!g->execs) return gki_fail_memory("a graph's runs", count * sizeof *g->execs);
  for (uint32_t run = 0; run < count; ++run) {
    if (!can_be_graph(g->plan, run)) continue;
    const hipError_t answer = make_run(g, run, &g->execs[run]);
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

/* ---- whether graphs are used ------------------------------------------------------------------------------------- */

enum { NODES = 256, GRAPHS = 2, TIMES = 3 };

/* Graphs of a kernel that writes its arguments, each time elsewhere. */
typedef struct trial {
  gki_hip_device *device;
  uint64_t *seen; /* by graph, node and word */
  hipGraphExec_t execs[GRAPHS];
} trial;

static void shape_trial(const trial *t, uint32_t place, gki_hip_shape *shape) {
  gki_hip_shape_echo(t->device, t->seen + (size_t)place * GKI_HIP_ECHO, place, shape);
}

static hipError_t make_trial(trial *t, uint32_t number) {
  made m = {.device = t->device};
  hipError_t answer = t->device->driver->hipGraphCreate(&m.graph, 0);
  if (answer != hipSuccess) m.graph = NULL;
  for (uint32_t k = 0; k < NODES && answer == hipSuccess; ++k) {
    gki_hip_shape shape;
    shape_trial(t, number * NODES + k, &shape);
    answer = add_kernel(&m, &shape);
  }
  return make_exec(&m, answer, &t->execs[number]);
}

static bool is_right(const trial *t) {
  for (uint32_t place = 0; place < GRAPHS * NODES; ++place)
    if (!gki_hip_has_echo(t->seen + (size_t)place * GKI_HIP_ECHO, place)) return false;
  return true;
}

/* Once all graphs are made, or by plain launches. */
static hipError_t run_trial(trial *t, bool by_graphs) {
  const gki_hip_device *d = t->device;
  hipError_t answer = hipSuccess;
  for (uint32_t k = 0; by_graphs && k < GRAPHS && answer == hipSuccess; ++k)
    answer = d->driver->hipGraphLaunch(t->execs[k], d->stream);
  for (uint32_t place = 0; !by_graphs && place < GRAPHS * NODES && answer == hipSuccess; ++place) {
    gki_hip_shape shape;
    shape_trial(t, place, &shape);
    answer = gki_hip_launch_shape(d, &shape, d->stream);
  }
  return answer == hipSuccess ? d->driver->hipStreamSynchronize(d->stream) : answer;
}

/* The shortest of a few times, in nanoseconds. */
static hipError_t measure(trial *t, bool by_graphs, uint64_t *shortest) {
  *shortest = UINT64_MAX;
  for (int k = 0; k < TIMES; ++k) {
    const uint64_t begin = gki_now_ns();
    const hipError_t answer = run_trial(t, by_graphs);
    if (answer != hipSuccess) return answer;
    const uint64_t taken = gki_now_ns() - begin;
    if (taken < *shortest) *shortest = taken;
  }
  return hipSuccess;
}

static hipError_t judge(trial *t, bool is_wanted) {
  gki_hip_device *d = t->device;
  hipError_t answer = hipSuccess;
  uint64_t graphs = 0, plain = 0;
  for (uint32_t k = 0; k < GRAPHS && answer == hipSuccess; ++k) answer = make_trial(t, k);
  if (answer == hipSuccess) answer = run_trial(t, true);
  if (answer != hipSuccess) return answer;
  if (!is_right(t)) {
    snprintf(d->graphs_why, sizeof d->graphs_why, "graphs of %d nodes go wrong here", NODES);
    return hipSuccess;
  }
  if (!is_wanted) answer = measure(t, true, &graphs);
  if (!is_wanted && answer == hipSuccess) answer = measure(t, false, &plain);
  if (answer != hipSuccess) return answer;
  d->uses_graphs = is_wanted || graphs < plain;
  if (is_wanted) snprintf(d->graphs_why, sizeof d->graphs_why, "GK_HIP_GRAPHS=1 wants it");
  else snprintf(d->graphs_why, sizeof d->graphs_why, "a task takes %llu ns in a graph, else %llu",
                (unsigned long long)(graphs / (GRAPHS * NODES)), (unsigned long long)(plain / (GRAPHS * NODES)));
  return answer;
}

gk_result gki_hip_try_graphs(gki_hip_device *d) {
  const char *wanted = secure_getenv("GK_HIP_GRAPHS");
  void *seen = NULL;
  const size_t bytes = (size_t)GRAPHS * NODES * GKI_HIP_ECHO * sizeof(uint64_t);
  if (d->driver->no_graphs || (wanted && strcmp(wanted, "0") == 0)) {
    if (d->driver->no_graphs)
      snprintf(d->graphs_why, sizeof d->graphs_why, "the runtime has no %s", d->driver->no_graphs);
    else snprintf(d->graphs_why, sizeof d->graphs_why, "GK_HIP_GRAPHS=0 wants it");
    return GK_OK;
  }
  const gk_result result = gki_hip_alloc_raw(d, bytes, GK_HOST_MEMORY, &seen);
  if (result != GK_OK) return result;
  memset(seen, 0, bytes);
  trial t = {.device = d, .seen = seen};
  const hipError_t answer = judge(&t, wanted && strcmp(wanted, "1") == 0);
  if (answer != hipSuccess) (void)d->driver->hipStreamSynchronize(d->stream); /* what was launched writes there */
  for (uint32_t k = 0; k < GRAPHS; ++k)
    if (t.execs[k]) (void)d->driver->hipGraphExecDestroy(t.execs[k]);
  gki_hip_free_raw(d, GK_HOST_MEMORY, seen);
  if (answer == hipErrorOutOfMemory) return gki_hip_result(d->driver, answer, "trying graphs");
  if (answer != hipSuccess)
    snprintf(d->graphs_why, sizeof d->graphs_why, "the runtime refuses them: %.100s",
             d->driver->hipGetErrorName(answer));
  return GK_OK;
}
