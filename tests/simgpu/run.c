/* A launch of a graph: its nodes in some order that their edges allow, chosen by the seed, conditional nodes truly.
 * Kernels of parallel branches take turns, so that several are under way at once. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A flow that is being carried out. */
typedef struct frame {
  const sim_flow *flow;
  struct frame *around;
  struct frame *next, **link; /* among all */
  uint64_t number; /* never twice in a launch */
  unsigned done;
  bool last_closed; /* what it did last was a conditional node that ran nothing */
  unsigned missing[]; /* by step: of those before it */
} frame;

typedef struct ready { frame *frame; unsigned step; } ready;

/* Where a kernel ran that set handles: the step in each flow from the root down to that. */
typedef struct setter {
  unsigned references, depth;
  const sim_flow *flow;
  struct { uint64_t frame; unsigned step; } at[];
} setter;

typedef struct setting { /* the last of a handle */
  uint64_t kernel; /* 0: none in this launch */
  setter *setter;
  unsigned value;
  bool from_within; /* set two levels or more inside the node */
} setting;

typedef struct state { /* of a handle */
  setting last, earlier; /* earlier: of another kernel than that of the last */
  uint64_t passes;       /* of its WHILE node */
  bool late;             /* P7: has made a pass too many */
  bool cut;              /* P8: another loop ended */
} state;

enum { REMEMBERED = 256, MOST_FLIGHTS = 8 };

typedef struct flight { /* a kernel under way */
  frame *at;
  unsigned step;
  uint64_t number;
  sim_grid *grid;
  unsigned long long thread; /* the first that set a handle, */
  bool has_set, held_back;   /* whether any did, and whether it is ignored */
  setter *setter;            /* it; NULL if the program is chained */
} flight;

/* What a driver may do otherwise, if a probe is answered with no; README.md says what. */
#define PROBES(X) \
  X(P1a) X(P1b) X(P1b2) X(P1c) X(P1e) X(P1k) X(P2o) X(P2o0) X(P2o1) X(P2o2) X(P2o3) X(P2d) X(P2b) X(P4a) X(P4e) X(P4f) \
  X(P4g) X(P6) X(P7) X(P8) X(P9a) X(P13) X(overlap)
#define PROBE(name) bool name;
typedef struct answers { PROBES(PROBE) } answers; /* true: no */
#undef PROBE

typedef struct run {
  sim_device *device;
  const sim_program *program;
  unsigned *values;    /* of handles */
  state *states;       /* of handles, too */
  unsigned *entered;   /* by flow: how often */
  ready *ready;
  size_t ready_count;
  uint64_t frames, kernels;
  flight flights[MOST_FLIGHTS], *now; /* the kernel that runs */
  unsigned flight_count;
  setter *before[REMEMBERED]; /* those before it, for P4e and P4f */
  unsigned before_count;
  uint64_t random, pauses;
  frame *all;
  answers no;
  bool failed;
} run;

static _Thread_local run *running;

/* ---- handles ---- */

/* Whether two kernels that ran were ordered by edges. */
static bool are_ordered(const setter *a, const setter *b) {
  const sim_flow *flow = a->flow;
  for (unsigned d = 0; d <= a->depth && d <= b->depth; ++d) {
    if (a->at[d].frame != b->at[d].frame) return true; /* passes of one body, or its cases */
    if (a->at[d].step == b->at[d].step) continue;
    while (flow->depth > d) flow = flow->around;
    return sim_places_ordered((sim_place){flow, a->at[d].step}, (sim_place){flow, b->at[d].step});
  }
  return true;
}

static setter *setter_make(const run *r) {
  const sim_flow *flow = r->now->at->flow;
  setter *made = sim_obtain(sizeof *made + (flow->depth + 1) * sizeof made->at[0]);
  made->references = 1;
  made->flow = flow;
  made->depth = flow->depth;
  unsigned step = r->now->step;
  for (const frame *each = r->now->at; each; each = each->around) {
    made->at[each->flow->depth].frame = each->number;
    made->at[each->flow->depth].step = step;
    step = each->flow->around_step;
  }
  return made;
}

static void setter_release(setter *one) {
  if (one && --one->references == 0) free(one);
}

/* The first setting of a kernel: others that ran beside it? */
static void begin_setting(run *r, unsigned long long thread) {
  flight *now = r->now;
  now->has_set = true;
  now->thread = thread;
  if (r->program->chained) return;
  now->setter = setter_make(r);
  if (!r->no.P4e && !r->no.P4f) return;
  unsigned beside = 0, place = r->before_count % REMEMBERED;
  for (unsigned k = 0; k < REMEMBERED && r->before[k]; ++k) beside += !are_ordered(r->before[k], now->setter);
  now->held_back = (beside > 0 && r->no.P4e) || (beside > 1 && r->no.P4f);
  setter_release(r->before[place]);
  r->before[place] = now->setter;
  ++now->setter->references;
  ++r->before_count;
}

static bool is_loop(const sim_step *step) {
  return step->work.type == CU_GRAPH_NODE_TYPE_CONDITIONAL && step->condition_type == CU_GRAPH_COND_TYPE_WHILE;
}

static bool is_around(const sim_flow *outer, const sim_flow *inner) {
  while (inner && inner != outer) inner = inner->around;
  return inner != NULL;
}

/* Of bodies; child graphs are no levels of their own. */
static unsigned levels_between(const sim_flow *outer, const sim_flow *inner) {
  unsigned levels = 0;
  for (; inner != outer; inner = inner->around) levels += inner->is_body;
  return levels;
}

static const sim_flow *level_of(const sim_flow *flow) {
  while (!flow->is_body && flow->around) flow = flow->around;
  return flow;
}

/* Whether the kernel that runs is in a body of the handle's node. */
static bool is_within(const run *r, const sim_handle *handle) {
  for (const sim_flow *each = r->now->at->flow; each->around; each = each->around)
    if (each->around == handle->at.flow && each->around_step == handle->at.step) return true;
  return false;
}

/* Whether a driver that answers no to a probe ignores it. */
static bool is_ignored(const run *r, const sim_handle *handle) {
  const sim_flow *from = level_of(r->now->at->flow), *to = level_of(handle->at.flow);
  const sim_step *node = &handle->at.flow->steps[handle->at.step];
  bool loop = is_loop(node);
  if (r->no.P2o0 || (r->no.P6 && !loop && is_within(r, handle))) return true;
  if (from == to) return false;
  if (is_around(to, from)) {
    unsigned levels = levels_between(to, from);
    if (loop && levels == 1 && is_within(r, handle)) return false; /* how a loop ends */
    return r->no.P2o1 || (levels >= 2 && (r->no.P2o || r->no.P2o2)) || (levels >= 3 && r->no.P2o3);
  }
  return is_around(from, to) ? r->no.P2d : r->no.P2b;
}

/* Whether another kernel has set it of which neither is behind the other. */
static bool is_set_beside(const run *r, const setting *last, unsigned value) {
  if (last->kernel == 0 || r->program->chained || last->kernel == r->now->number) return false;
  if (are_ordered(last->setter, r->now->setter)) return false;
  if (last->value != value)
    sim_broken("unordered", "a conditional handle was set by two kernels of which neither is behind the other");
  return true;
}

static void set_handle(run *r, unsigned number, unsigned value, unsigned long long thread) {
  const sim_handle *handle = &r->program->handles[number];
  setting *last = &r->states[number].last, *earlier = &r->states[number].earlier;
  flight *now = r->now;
  if (!now->has_set) begin_setting(r, thread);
  if (thread != now->thread) sim_broken("threads", "conditional handles were set by two threads of a kernel");
  if (!sim_places_ordered((sim_place){now->at->flow, now->step}, handle->at))
    sim_broken("unordered", "a conditional handle was set by a kernel beside its node, neither behind the other");
  const bool beside = is_set_beside(r, last, value), beside_earlier = is_set_beside(r, earlier, value);
  if ((beside || beside_earlier) && r->no.P4g) { /* then both are lost */
    r->values[number] = handle->initial;
    ++r->device->counts.dropped;
    return;
  }
  bool twice = last->kernel == now->number;
  if (now->held_back || is_ignored(r, handle) || (twice && r->no.P4a)) {
    ++r->device->counts.dropped;
    return;
  }
  if (now->setter) ++now->setter->references;
  setting *replaced = twice ? last : earlier;
  setter_release(replaced->setter);
  if (!twice) *earlier = *last;
  *last = (setting){now->number, now->setter, value,
                    is_within(r, handle) && levels_between(handle->at.flow, now->at->flow) > 1};
  r->values[number] = value;
}

__attribute__((visibility("default")))
void sim_set_conditional(unsigned long long handle, unsigned value) {
  run *r = running;
  if (!r || !r->now) {
    sim_broken("eager", "a conditional handle was set by a kernel that was not launched by a graph");
    return;
  }
  unsigned number = sim_find_handle(r->program, handle);
  if (number < r->program->handle_count) set_handle(r, number, value, sim_kernel_thread());
  else sim_broken("handle", "a kernel set %#llx, which is no conditional handle of the graph that runs", handle);
}

/* ---- flows ---- */

static void push(run *r, frame *where, unsigned step) {
  r->ready = sim_grow(r->ready, r->ready_count, sizeof *r->ready);
  r->ready[r->ready_count++] = (ready){where, step};
}

static ready take(run *r, size_t chosen) {
  ready one = r->ready[chosen];
  r->ready[chosen] = r->ready[--r->ready_count];
  return one;
}

/* What a driver might do with values when a body is entered, if a probe is answered with no. */
static void reset_in(run *r, const sim_flow *flow) {
  bool again = r->entered[flow->number]++ > 0;
  for (unsigned k = 0; k < flow->count; ++k) {
    if (flow->steps[k].work.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) continue;
    unsigned number = flow->steps[k].condition;
    bool loop = is_loop(&flow->steps[k]);
    bool resets = again ? (loop ? r->no.P1b : r->no.P1k) : r->no.P1c;
    if (resets && r->program->handles[number].assigned) r->values[number] = r->program->handles[number].initial;
    if (again && loop && r->no.P1b2) r->values[number] = 0;
  }
}

static void finish(run *r, frame *f);
static void enter(run *r, const sim_flow *flow, frame *around);

static void frame_end(frame *f) {
  *f->link = f->next;
  if (f->next) f->next->link = f->link;
  free(f);
}

static void enter(run *r, const sim_flow *flow, frame *around) {
  frame *f = sim_obtain(sizeof *f + flow->count * sizeof f->missing[0]);
  f->flow = flow;
  f->around = around;
  f->number = ++r->frames;
  f->next = r->all;
  f->link = &r->all;
  if (f->next) f->next->link = &f->next;
  r->all = f;
  if (flow->is_body) reset_in(r, flow);
  for (unsigned k = 0; k < flow->count; ++k)
    if ((f->missing[k] = flow->steps[k].after_count) == 0) push(r, f, k);
  if (flow->count == 0) finish(r, f);
}

static void complete(run *r, frame *f, unsigned number) {
  const sim_step *step = &f->flow->steps[number];
  for (unsigned k = 0; k < step->next_count; ++k)
    if (--f->missing[step->next[k]] == 0) push(r, f, step->next[k]);
  if (++f->done == f->flow->count) finish(r, f);
}

/* A WHILE node is then looked at again, like any node that is ready. */
static void finish(run *r, frame *f) {
  frame *around = f->around;
  unsigned step = f->flow->around_step;
  bool last_closed = f->last_closed;
  frame_end(f);
  if (!around) return;
  const sim_step *node = &around->flow->steps[step];
  bool loop = is_loop(node);
  state *its = loop ? &r->states[node->condition] : NULL;
  if (loop && last_closed && r->no.P7 && its->last.from_within && !its->late) {
    its->late = true; /* the end comes a pass too late */
    ++r->device->counts.passes;
    enter(r, node->bodies[0], around);
    return;
  }
  if (loop) push(r, around, step);
  else complete(r, around, step);
}

/* Which body runs; the size: none. */
static unsigned chosen_body(run *r, const sim_step *step) {
  unsigned value = r->values[step->condition];
  bool *cut = &r->states[step->condition].cut;
  if (*cut) {
    *cut = false;
    return step->size;
  }
  if (step->condition_type != CU_GRAPH_COND_TYPE_SWITCH) return value ? 0 : 1;
  if (value >= step->size && r->no.P9a) return step->size - 1;
  return value < step->size ? value : step->size;
}

/* P8 answered with no: a loop that ends takes those in parallel branches with it. */
static void end_beside(run *r, sim_place loop) {
  for (unsigned k = 0; k < r->program->handle_count; ++k) {
    sim_place other = r->program->handles[k].at;
    if (is_loop(&other.flow->steps[other.step]) && r->states[k].passes && !sim_places_ordered(loop, other))
      r->states[k].cut = true;
  }
}

static void decide(run *r, frame *f, unsigned number) {
  const sim_step *step = &f->flow->steps[number];
  unsigned body = chosen_body(r, step);
  bool loop = is_loop(step);
  if (!loop && r->no.P1e) r->values[step->condition] = 0;
  f->last_closed = body >= step->size && !loop;
  if (body >= step->size) {
    if (loop && r->no.P8) end_beside(r, (sim_place){f->flow, number});
    complete(r, f, number);
    return;
  }
  r->device->counts.passes += loop;
  if (loop && ++r->states[step->condition].passes > r->device->passes_most) {
    sim_broken("endless", "a WHILE node made more than %llu passes in one launch",
               (unsigned long long)r->device->passes_most);
    snprintf(r->device->why, sizeof r->device->why, "a WHILE node never ended");
    r->failed = true;
    return;
  }
  enter(r, step->bodies[body], f);
}

/* ---- nodes ---- */

static void flight_ends(run *r, flight *f) {
  setter_release(f->setter);
  *f = r->flights[--r->flight_count];
}

/* Until it is over, or pauses for others that may go on or begin. */
static void go_on(run *r, flight *f) {
  const sim_call *call = f->at->flow->steps[f->step].work.call;
  bool alone = r->no.overlap || (r->ready_count == 0 && r->flight_count == 1), over;
  r->now = f;
  r->failed = !sim_go_on_call(r->device, call, f->grid, alone ? NULL : &r->pauses, &over);
  r->now = NULL;
  if (r->failed || !over) return;
  frame *at = f->at;
  unsigned step = f->step;
  flight_ends(r, f);
  at->last_closed = false;
  complete(r, at, step);
}

static void begin_kernel(run *r, ready one) {
  const sim_step *step = &one.frame->flow->steps[one.step];
  flight *f = &r->flights[r->flight_count++];
  *f = (flight){.at = one.frame, .step = one.step, .number = ++r->kernels, .grid = sim_begin_call(step->work.call)};
  ++r->device->counts.kernel_nodes;
  if (r->no.P13) {
    pthread_mutex_lock(&sim_lock);
    sim_memory_refresh(r->device);
    pthread_mutex_unlock(&sim_lock);
  }
  go_on(r, f);
}

static void carry_out(run *r, ready one) {
  const sim_step *step = &one.frame->flow->steps[one.step];
  ++r->device->counts.nodes;
  switch (step->work.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: begin_kernel(r, one); return;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
      r->failed = !sim_run_copy(r->device, &step->work.copy);
      break;
    case CU_GRAPH_NODE_TYPE_HOST: step->work.host.fn(step->work.host.userData); break;
    case CU_GRAPH_NODE_TYPE_GRAPH: enter(r, step->bodies[0], one.frame); return;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      ++r->device->counts.conditional_nodes;
      decide(r, one.frame, one.step);
      return;
    default: break;
  }
  if (r->failed) return;
  one.frame->last_closed = false;
  complete(r, one.frame, one.step);
}

/* Without overlap what became ready last comes first. */
static void go_one_step(run *r) {
  size_t begins = r->flight_count < MOST_FLIGHTS ? r->ready_count : 0, choice = begins + r->flight_count;
  size_t chosen = r->no.overlap ? r->ready_count - 1 : (size_t)(sim_random(&r->random) % choice);
  if (chosen < begins) carry_out(r, take(r, chosen));
  else go_on(r, &r->flights[chosen - begins]);
}

/* ---- a launch ---- */

static void set_defaults(run *r, const unsigned *kept) {
  for (unsigned k = 0; k < r->program->handle_count; ++k) {
    const sim_handle *handle = &r->program->handles[k];
    if (!handle->assigned) r->values[k] = (unsigned)(sim_random(&r->random) % 3);
    else r->values[k] = kept ? kept[k] : handle->initial;
  }
}

static void run_end(run *r) {
  if (r->flight_count > 0) sim_kernel_left(); /* after a failure */
  while (r->flight_count > 0) flight_ends(r, r->flights);
  while (r->all) frame_end(r->all);
  for (unsigned k = 0; k < r->program->handle_count; ++k) {
    setter_release(r->states[k].last.setter);
    setter_release(r->states[k].earlier.setter);
  }
  for (unsigned k = 0; k < REMEMBERED; ++k) setter_release(r->before[k]);
  free(r->states);
  free(r->entered);
  free(r->ready);
}

bool sim_run_program(sim_device *device, sim_program *program, sim_exec *exec) {
  run r = {.device = device, .program = program, .random = device->launch_random, .pauses = device->launch_random};
#define ASK(name) r.no.name = sim_says_no(#name);
  PROBES(ASK)
#undef ASK
  r.values = sim_obtain(program->handle_count * sizeof *r.values);
  r.states = sim_obtain(program->handle_count * sizeof *r.states);
  r.entered = sim_obtain(program->flow_count * sizeof *r.entered);
  set_defaults(&r, r.no.P1a ? exec->kept : NULL);
  running = &r;
  enter(&r, program->root, NULL);
  while (!r.failed && r.ready_count + r.flight_count > 0) go_one_step(&r);
  running = NULL;
  free(exec->kept);
  exec->kept = r.values;
  run_end(&r);
  return !r.failed;
}
