/* What an instantiated graph is: steps by number in flows (the root, bodies, child graphs), and its handles. */
#include "sim.h"
#include <stdlib.h>

enum { REACH_MOST = 8192 }; /* steps: all are taken for ordered in a flow of more */

/* ---- order within a flow ---- */

/* Topological order; how many steps it has, and whether there is but one. */
static unsigned sort_steps(const sim_flow *flow, unsigned *order, bool *only) {
  unsigned *missing = sim_obtain(flow->count * sizeof *missing), begin = 0, end = 0;
  *only = true;
  for (unsigned k = 0; k < flow->count; ++k)
    if ((missing[k] = flow->steps[k].after_count) == 0) order[end++] = k;
  while (begin < end) {
    if (end - begin > 1) *only = false;
    const sim_step *step = &flow->steps[order[begin++]];
    for (unsigned k = 0; k < step->next_count; ++k)
      if (--missing[step->next[k]] == 0) order[end++] = step->next[k];
  }
  free(missing);
  return end;
}

static void find_order(sim_flow *flow) {
  unsigned *order = sim_obtain(flow->count * sizeof *order);
  unsigned sorted = sort_steps(flow, order, &flow->chained);
  size_t row = (flow->count + 63) / 64;
  if (sorted != flow->count) abort(); /* a cycle, which no call makes */
  if (!flow->chained && flow->count <= REACH_MOST) {
    flow->reach = sim_obtain(flow->count * row * sizeof *flow->reach);
    for (unsigned k = flow->count; k-- > 0;) {
      const sim_step *step = &flow->steps[order[k]];
      uint64_t *mine = flow->reach + order[k] * row;
      for (unsigned n = 0; n < step->next_count; ++n) {
        mine[step->next[n] / 64] |= UINT64_C(1) << (step->next[n] % 64);
        for (size_t word = 0; word < row; ++word) mine[word] |= flow->reach[step->next[n] * row + word];
      }
    }
  }
  free(order);
}

static bool reaches(const sim_flow *flow, unsigned from, unsigned to) {
  size_t row = (flow->count + 63) / 64;
  return flow->reach[from * row + to / 64] >> (to % 64) & 1;
}

bool sim_places_ordered(sim_place a, sim_place b) {
  while (a.flow != b.flow) {
    bool deeper = a.flow->depth >= b.flow->depth, both = a.flow->depth == b.flow->depth;
    if (deeper) a = (sim_place){a.flow->around, a.flow->around_step};
    if (!deeper || both) b = (sim_place){b.flow->around, b.flow->around_step};
  }
  if (a.step == b.step || a.flow->chained || !a.flow->reach) return true;
  return reaches(a.flow, a.step, b.step) || reaches(a.flow, b.step, a.step);
}

/* ---- making ---- */

static void connect(sim_flow *flow, const sim_graph *graph) {
  for (size_t k = 0; k < graph->count; ++k)
    for (size_t a = 0; a < graph->nodes[k]->after_count; ++a)
      ++flow->steps[graph->nodes[k]->after[a]->index].next_count;
  for (unsigned k = 0; k < flow->count; ++k) {
    flow->steps[k].next = sim_obtain(flow->steps[k].next_count * sizeof(unsigned));
    flow->steps[k].next_count = 0;
  }
  for (size_t k = 0; k < graph->count; ++k)
    for (size_t a = 0; a < graph->nodes[k]->after_count; ++a) {
      sim_step *before = &flow->steps[graph->nodes[k]->after[a]->index];
      before->next[before->next_count++] = (unsigned)k;
    }
}

static sim_flow *flow_make(sim_program *program, const sim_graph *graph, sim_flow *around, unsigned around_step);

static void step_make(sim_program *program, sim_flow *flow, unsigned number, const sim_node *node) {
  sim_step *step = &flow->steps[number];
  step->work = sim_work_copied(node->work);
  step->node = node->base.handle;
  step->after_count = (unsigned)node->after_count;
  if (node->condition) {
    step->condition_type = node->condition_type;
    step->condition = sim_find_handle(program, node->condition->base.handle);
    program->handles[step->condition].at = (sim_place){flow, number};
  }
  step->size = node->child ? 1 : node->size;
  step->bodies = step->size ? sim_obtain(step->size * sizeof(sim_flow *)) : NULL;
  for (unsigned k = 0; k < step->size; ++k)
    step->bodies[k] = flow_make(program, node->child ? node->child : node->bodies[k], flow, number);
}

static sim_flow *flow_make(sim_program *program, const sim_graph *graph, sim_flow *around, unsigned around_step) {
  sim_flow *flow = sim_obtain(sizeof *flow);
  flow->number = program->flow_count++;
  flow->around = around;
  flow->around_step = around_step;
  flow->depth = around ? around->depth + 1 : 0;
  flow->is_body = graph->is_body;
  flow->count = (unsigned)graph->count;
  flow->steps = sim_obtain(graph->count * sizeof *flow->steps);
  for (unsigned k = 0; k < flow->count; ++k) step_make(program, flow, k, graph->nodes[k]);
  connect(flow, graph);
  find_order(flow);
  program->chained = program->chained && flow->chained;
  return flow;
}

sim_program *sim_program_make(const sim_graph *graph) {
  sim_program *program = sim_obtain(sizeof *program);
  program->references = 1;
  program->chained = true;
  program->handle_count = (unsigned)graph->condition_count;
  program->handles = sim_obtain(graph->condition_count * sizeof *program->handles);
  for (unsigned k = 0; k < program->handle_count; ++k) {
    const sim_condition *condition = graph->conditions[k];
    program->handles[k] = (sim_handle){condition->base.handle, condition->initial, condition->assigned, {NULL, 0}};
  }
  program->root = flow_make(program, graph, NULL, 0);
  return program;
}

static void flow_end(sim_flow *flow) {
  for (unsigned k = 0; k < flow->count; ++k) {
    sim_step *step = &flow->steps[k];
    for (unsigned body = 0; body < step->size; ++body) flow_end(step->bodies[body]);
    free(step->bodies);
    free(step->next);
    free(step->work.call);
  }
  free(flow->steps);
  free(flow->reach);
  free(flow);
}

void sim_program_release(sim_program *program) {
  if (--program->references != 0) return;
  flow_end(program->root);
  free(program->handles);
  free(program);
}

/* ---- copying, for a change while launches are under way ---- */

static sim_flow *flow_copy(sim_program *to, const sim_flow *from, sim_flow *around) {
  sim_flow *flow = sim_duplicate(from, sizeof *from);
  size_t row = (from->count + 63) / 64;
  flow->around = around;
  flow->reach = sim_duplicate(from->reach, from->count * row * sizeof *from->reach);
  flow->steps = sim_duplicate(from->steps, from->count * sizeof *from->steps);
  for (unsigned k = 0; k < flow->count; ++k) {
    sim_step *step = &flow->steps[k];
    step->next = sim_duplicate(step->next, step->next_count * sizeof *step->next);
    step->work = sim_work_copied(step->work);
    step->bodies = sim_duplicate(step->bodies, step->size * sizeof *step->bodies);
    for (unsigned body = 0; body < step->size; ++body) step->bodies[body] = flow_copy(to, step->bodies[body], flow);
    if (step->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL) to->handles[step->condition].at = (sim_place){flow, k};
  }
  return flow;
}

sim_program *sim_program_copy(const sim_program *from) {
  sim_program *program = sim_duplicate(from, sizeof *from);
  program->references = 1;
  program->handles = sim_duplicate(from->handles, from->handle_count * sizeof *from->handles);
  program->root = flow_copy(program, from->root, NULL);
  return program;
}

/* ---- finding ---- */

unsigned sim_find_handle(const sim_program *program, uint64_t handle) {
  unsigned low = 0, high = program->handle_count;
  while (low < high) {
    unsigned middle = low + (high - low) / 2;
    if (program->handles[middle].handle < handle) low = middle + 1;
    else high = middle;
  }
  return low < program->handle_count && program->handles[low].handle == handle ? low : program->handle_count;
}

static sim_step *find_step(sim_flow *flow, uint64_t node, const sim_flow **where) {
  for (unsigned k = 0; k < flow->count; ++k) {
    if (flow->steps[k].node == node) {
      *where = flow;
      return &flow->steps[k];
    }
    for (unsigned body = 0; body < flow->steps[k].size; ++body) {
      sim_step *found = find_step(flow->steps[k].bodies[body], node, where);
      if (found) return found;
    }
  }
  return NULL;
}

sim_step *sim_program_step(sim_program *program, CUgraphNode node, const sim_flow **flow) {
  return find_step(program->root, (uint64_t)(uintptr_t)node, flow);
}

static bool flow_usable(const sim_flow *flow) {
  for (unsigned k = 0; k < flow->count; ++k) {
    const sim_step *step = &flow->steps[k];
    if (step->work.call && !sim_is_alive(step->work.call->function, SIM_FUNCTION)) return false;
    for (unsigned body = 0; body < step->size; ++body)
      if (!flow_usable(step->bodies[body])) return false;
  }
  return true;
}

bool sim_program_usable(const sim_program *program) { return flow_usable(program->root); }
