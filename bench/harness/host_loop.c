#include "bench/harness/host_loop.h"
#include "bench/harness/harness.h"
#include <limits.h>
#include <string.h>

static CUresult (*node_parameters)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v1 *);

static bool is_cuda(const host_loop *loop) { return strcmp(gk_device_describe(loop->device)->backend, "cuda") == 0; }

void bench_host_begin(host_loop *loop, gk_device *device, host_way way) {
  *loop = (host_loop){.device = device, .way = way};
  if (!is_cuda(loop)) {
    if (way != HOST_GRAPHS) bench_fail("this way is CUDA's alone");
    return;
  }
  loop->posted = bench_hand_pinned(device, &loop->posted_at);
  loop->post = bench_hand_function("post");
  bench_hand_find("cuGraphKernelNodeGetParams", 10000, &node_parameters);
}

static void end_stretch(host_stretch *s) {
  if (s->exec) bench_hand_exec_end(s->exec);
  gk_graph_destroy(s->graph);
}

void bench_host_end(host_loop *loop) {
  bench_host_wait(loop);
  for (int k = 0; k < loop->count; ++k) end_stretch(&loop->stretches[k]);
  gk_free(loop->device, (void *)(uintptr_t)loop->posted);
}

/* ---- stretches --------------------------------------------------------------------------------------------------- */

static bool is_node(gk_op op) { return op == GK_OP_KERNEL || op == GK_OP_COPY || op == GK_OP_FILL; }

/* Sections are branches of a graph, which graphs without gk can have, too. */
static bool is_plain(const gk_list *list) {
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_op op = list->tasks[k].op;
    if (!is_node(op) && op != GK_OP_PARALLEL && op != GK_OP_SECTION && op != GK_OP_END) return false;
  }
  return list->task_count <= HOST_TASKS;
}

int bench_host_add(host_loop *loop, const gk_list *list) {
  host_stretch *s = &loop->stretches[loop->count];
  if (loop->count == HOST_STRETCHES || !is_plain(list)) bench_fail("a stretch is at most 64 lines, and none decides");
  if (loop->count && list->slots != loop->slots) bench_fail("stretches have one table of slots");
  bench_must(gk_graph_create(loop->device, list, 0, &s->graph));
  loop->slots = list->slots;
  loop->slot_count = list->slot_count;
  s->is_bound = true;
  s->list = list;
  if (is_cuda(loop)) {
    CUgraph whole;
    bench_must(gk_cuda_graph(s->graph, 0, &whole, NULL));
    s->exec = bench_hand_instantiate(whole);
    for (size_t k = 0; k < list->task_count; ++k) {
      CUgraphNode node;
      if (!is_node(list->tasks[k].op)) continue;
      bench_must(gk_cuda_node(s->graph, 0, k, NULL, &node));
      HAND(node_parameters(node, &s->kernels[k]));
    }
  }
  return loop->count++;
}

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static void wait_for(host_stretch *s) {
  if (s->is_launched) bench_must(gk_wait(s->graph, NULL));
  s->is_launched = false;
}

/* Also by its room. */
static bool uses(const gk_list *list, gk_slot slot) {
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_task *task = &list->tasks[k];
    for (int a = 0; a < GK_MAX_ARGS; ++a)
      if (task->args[a] == slot) return true;
    for (int a = 0; a < 3; ++a)
      if (task->items[a] == slot) return true;
  }
  for (size_t k = 0; k < list->slot_count; ++k) {
    const gk_slot_desc *room = &list->slots[k];
    if ((room->bits & GK_IS_ROOM) && room->value.i32 == slot && uses(list, room->slot)) return true;
  }
  return false;
}

/* Call it before `slot` is bound. @return Whether the stretch uses it */
static bool begin_binding(host_stretch *s, gk_slot slot) {
  if (!uses(s->list, slot)) return false;
  wait_for(s);
  return s->is_bound = true;
}

void bench_host_bind(host_loop *loop, gk_slot slot, const void *memory) {
  for (host_stretch *s = loop->stretches; s < loop->stretches + loop->count; ++s)
    if (begin_binding(s, slot)) bench_must(gk_bind(s->graph, slot, memory));
}

void bench_host_bind_int(host_loop *loop, gk_slot slot, int64_t value) {
  for (host_stretch *s = loop->stretches; s < loop->stretches + loop->count; ++s)
    if (begin_binding(s, slot)) bench_must(gk_bind_int(s->graph, slot, value));
}

void bench_host_bind_bytes(host_loop *loop, gk_slot slot, const void *value, size_t bytes) {
  for (host_stretch *s = loop->stretches; s < loop->stretches + loop->count; ++s)
    if (begin_binding(s, slot)) bench_must(gk_bind_bytes(s->graph, slot, value, bytes));
}

void bench_host_share(host_loop *loop, const gk_graph *from) {
  for (size_t k = 0; k < loop->slot_count; ++k) {
    const void *memory = loop->slots[k].type == GK_PTR ? gk_bound(from, loop->slots[k].slot) : NULL;
    if (memory) bench_host_bind(loop, loop->slots[k].slot, memory);
  }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void launch_singly(const host_stretch *s) {
  for (size_t k = 0; k < s->list->task_count; ++k) {
    const CUDA_KERNEL_NODE_PARAMS_v1 *node = &s->kernels[k];
    if (!node->func) continue; /* PARALLEL, SECTION and END */
    bench_hand_run(node->func, node->gridDimX, node->blockDimX, node->kernelParams);
  }
}

void bench_host_run(host_loop *loop, int stretch) {
  host_stretch *s = &loop->stretches[stretch];
  if (!s->exec || s->is_bound) {
    bench_must(gk_launch(s->graph, 0));
    s->is_bound = false;
    s->is_launched = true;
  } else if (loop->way == HOST_KERNELS) {
    launch_singly(s);
  } else {
    bench_hand_launch(s->exec);
  }
}

void bench_host_wait(host_loop *loop) {
  for (int k = 0; k < loop->count && !loop->posted; ++k) wait_for(&loop->stretches[k]);
  if (loop->posted) bench_hand_wait();
}

static int watch(host_loop *loop, const void *flag) {
  *loop->posted = INT_MIN;
  bench_hand_run(loop->post, 1, 1, (void *[]){&flag, &loop->posted_at});
  while (*loop->posted == INT_MIN) {}
  return *loop->posted;
}

int bench_host_read(host_loop *loop, const void *flag) {
  if (loop->way == HOST_POLLED) return watch(loop, flag);
  if (!loop->posted) {
    bench_host_wait(loop);
    return *(const int *)flag;
  }
  HAND(bench_hand_driver->cuMemcpyDtoHAsync((void *)(uintptr_t)loop->posted, (CUdeviceptr)(uintptr_t)flag, sizeof(int),
                                            bench_hand_stream));
  bench_hand_wait();
  return *loop->posted;
}
