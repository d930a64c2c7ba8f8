/* A launch. The walker gives the next step, and ops run one after the other. Sections run side by side if that was
 * measured to be faster. The team starts at the first step that is worth sharing; until then the launch uses one
 * thread. */
#include "base/error.h"
#include "base/trace.h"
#include "openmp/cost.h"
#include <math.h>
#include <string.h>

static gki_outcome run_ops(gki_runner *runner, uint32_t end);
static gki_outcome walk(gki_runner *runner);

/* answer: to the step before, as of gk_walk_next. */
static inline gk_step next_step(gki_runner *runner, int64_t answer) {
  gk_step step = gk_walk_next(runner->walk, answer);
  if (step.kind == GK_STEP_RUN || step.kind == GK_STEP_HOST || step.kind == GK_STEP_CHECKPOINT)
    runner->at = runner->program->runs[step.at].begin;
  return step;
}
static void advance(gki_runner *runner, int64_t answer) { runner->step = next_step(runner, answer); }

/* ---- sections ---------------------------------------------------------------------------------------------------- */

/* GKI_SHARE: split the sections. *timed: the time must be reported. */
static gki_advice choose_split(gki_runner *runner, gki_fork *fork, bool *timed) {
  *timed = false;
  if (fork->in_order || runner->break_even_ns == INFINITY) return GKI_ALONE;
  gki_advice advice;
  do {
    const uint32_t subteam = runner->may_start ? runner->program->device->team.limit : runner->count;
    const uint32_t groups = fork->count < subteam ? fork->count : subteam;
    const gki_pick pick = gki_trial_pick(&fork->trial, groups, runner->dispatch_ns);
    *timed = pick.timed;
    advice = pick.split ? gki_openmp_advise(runner, pick.saving_ns) : GKI_ALONE;
  } while (advice == GKI_HAS_STARTED);
  return advice;
}

typedef struct split_job {
  gki_team_job team_job;
  gki_runner *from;
  gki_fork *fork;
  gk_walk *around;
  uint32_t groups;
  atomic_uint next; /* the next section to begin */
} split_job;

static void run_sections(gki_team_job *at, uint32_t index) {
  split_job *split = (split_job *)at;
  const gki_runner *from = split->from;
  gki_program *program = from->program;
  gki_runner runner = {.program = program, .launch = from->launch};
  uint32_t begin = (uint32_t)((uint64_t)index * from->count / split->groups);
  uint32_t end = (uint32_t)((uint64_t)(index + 1) * from->count / split->groups);
  gki_openmp_set_subteam(&runner, from->first + begin, end - begin, from->dispatch_ns);
  uint32_t number;
  while (!gki_openmp_failed(program) && (number = atomic_fetch_add(&split->next, 1)) < split->fork->count) {
    gki_section *section = &program->sections[split->fork->first + number];
    if (split->fork->straight) {
      runner.at = section->begin;
      if (run_ops(&runner, section->end) != GKI_DONE) return;
      continue;
    }
    gk_walk_fork(split->around, section->node, section->walk);
    runner.walk = runner.outermost = section->walk;
    advance(&runner, 0);
    if (walk(&runner) != GKI_DONE) return;
  }
}

/* around: the walk that is at the fork; NULL for a straight fork. */
static gki_outcome split_sections(gki_runner *runner, gki_fork *fork, gk_walk *around, bool timed) {
  gki_program *program = runner->program;
  gki_team *team = &program->device->team;
  split_job split = {.team_job.work = run_sections, .from = runner, .fork = fork, .around = around};
  split.groups = fork->count < runner->count ? fork->count : runner->count;
  uint64_t begun = timed ? gki_now_ns() : 0;
  gki_team_post(team, &split.team_job, runner->first, runner->count, split.groups);
  run_sections(&split.team_job, 0);
  gki_team_wait(team, &split.team_job);
  if (gki_openmp_failed(program)) return GKI_FAILED;
  for (uint32_t k = 0; k < fork->count && !fork->straight; ++k)
    gk_walk_join(around, program->sections[fork->first + k].walk);
  if (timed) gki_trial_report(&fork->trial, true, gki_now_ns() - begun);
  return GKI_DONE;
}

static void begin_series(gki_runner *runner, gki_fork *fork, bool timed) {
  fork->began = timed ? gki_now_ns() : 0;
  fork->started = runner->started;
}

static void end_series(gki_runner *runner, gki_fork *fork) {
  if (fork->began && fork->started == runner->started)
    gki_trial_report(&fork->trial, false, gki_now_ns() - fork->began);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* Executes a FORK: runs its sections, or enters them in series. Advances runner->at. */
static gki_outcome fork_ops(gki_runner *runner, gki_fork *fork) {
  bool timed;
  if (choose_split(runner, fork, &timed) == GKI_ALONE) {
    begin_series(runner, fork, timed);
    ++runner->at;
    return GKI_DONE;
  }
  runner->at = runner->program->sections[fork->first + fork->count - 1].end + 1;
  return split_sections(runner, fork, NULL, timed);
}

static gki_outcome run_op(gki_runner *runner, gki_op *op) {
  gki_program *program = runner->program;
  if (op->kind == GKI_FORK) return fork_ops(runner, &program->forks[op->more]);
  gki_outcome outcome = GKI_DONE;
  if (op->kind == GKI_JOIN) end_series(runner, &program->forks[op->more]);
  else outcome = gki_openmp_execute(runner, op);
  runner->at += outcome == GKI_DONE;
  return outcome;
}

/* Runs a small task, as most tasks are, which needs nothing but the op. False: it is another op, or must be timed. */
static inline bool run_small(gki_op *op, const gk_value *args, float break_even_ns) {
  if (op->kind != GKI_SIMPLE || op->alone_ns >= break_even_ns || --op->countdown == 0) return false;
  if (op->range.end) op->host(args + op->args, op->range);
  return true;
}

static gki_outcome run_ops(gki_runner *runner, uint32_t end) {
  gki_op *const ops = runner->program->ops;
  const gk_value *const args = runner->program->args;
  float break_even_ns = runner->break_even_ns;
  for (uint32_t at = runner->at; at < end;) {
    if (run_small(&ops[at], args, break_even_ns)) {
      ++at;
      continue;
    }
    runner->at = at;
    gki_outcome outcome = run_op(runner, &ops[at]);
    if (outcome != GKI_DONE) return outcome;
    at = runner->at;
    break_even_ns = runner->break_even_ns;
  }
  runner->at = end;
  return GKI_DONE;
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static int32_t read_flag(const gki_runner *runner, uint32_t at) {
  const gk_node *node = &runner->program->plan->nodes[at];
  int32_t flag;
  memcpy(&flag, (const char *)runner->launch->values[node->flag].ptr + node->offset, sizeof flag);
  return flag;
}

static gki_fork *fork_at(const gki_program *program, uint32_t node) {
  uint32_t first = 0, end = program->fork_count;
  while (end - first > 1) {
    uint32_t middle = first + (end - first) / 2;
    if (program->forks[middle].node <= node) first = middle;
    else end = middle;
  }
  return &program->forks[first];
}

/* Whether the body of a loop is empty or one run: its passes need no walker. */
static bool straight_body(const gki_program *program, uint32_t loop, gki_span *ops) {
  const gk_plan *plan = program->plan;
  *ops = (gki_span){0, 0};
  if (loop + 1 == plan->nodes[loop].end) return true;
  uint32_t run = plan->nodes[loop + 1].run;
  if (run == GK_NONE || plan->runs[run].end != plan->nodes[loop].end) return false;
  *ops = program->runs[run];
  return true;
}

static void begin_section(gki_runner *runner) {
  gki_fork *fork = runner->fork;
  const gki_section *section = &runner->program->sections[fork->first + fork->at];
  gk_walk_fork(fork->around, section->node, section->walk);
  runner->walk = section->walk;
  advance(runner, 0);
}

static gki_outcome fork_walks(gki_runner *runner) {
  gki_fork *fork = fork_at(runner->program, runner->step.at);
  bool timed;
  if (choose_split(runner, fork, &timed) == GKI_SHARE) {
    gki_outcome outcome = split_sections(runner, fork, runner->walk, timed);
    if (outcome == GKI_DONE) advance(runner, 0);
    return outcome;
  }
  begin_series(runner, fork, timed);
  fork->outer = runner->fork;
  fork->around = runner->walk;
  fork->at = 0;
  runner->fork = fork;
  begin_section(runner);
  return GKI_DONE;
}

/* At the end of a section that was walked in series. */
static void end_section(gki_runner *runner) {
  gki_fork *fork = runner->fork;
  gk_walk_join(fork->around, runner->walk);
  if (++fork->at < fork->count) {
    begin_section(runner);
    return;
  }
  end_series(runner, fork);
  runner->walk = fork->around;
  runner->fork = fork->outer;
  advance(runner, 0);
}

/* Runs passes of a loop whose body is straight. The walker runs those of any other loop. */
static gki_outcome run_passes(gki_runner *runner) {
  const gki_program *program = runner->program;
  uint32_t loop = runner->step.at;
  uint64_t *passes = &runner->walk->result->passes[program->plan->nodes[loop].loop];
  gki_span ops;
  int64_t ended = 0;
  if (!straight_body(program, loop, &ops)) {
    advance(runner, 0);
    return GKI_DONE;
  }
  const gk_node *node = &program->plan->nodes[loop];
  const gk_op op = node->op;
  const uint32_t every = node->every ? node->every : 1;
  const uint64_t entry = runner->walk->entries[node->loop];
  uint32_t until_read = every - (uint32_t)(entry % every);
  if (op == GK_OP_WHILE && !entry && read_flag(runner, loop) == 0) ended = 1;
  for (uint32_t made = 1; !ended; ++made) {
    runner->at = ops.begin;
    gki_outcome outcome = run_ops(runner, ops.end);
    if (outcome != GKI_DONE) return outcome;
    ++*passes;
    if (gki_openmp_failed(program)) return GKI_FAILED;
    if (--until_read && made != runner->step.passes) continue;
    until_read = every;
    /* Without reading the flag. The walker sees the cancel, too. */
    if (__atomic_load_n(runner->launch->cancel, __ATOMIC_RELAXED)) break;
    ended = op != GK_OP_REPEAT && read_flag(runner, loop) == 0;
    if (made == runner->step.passes) break;
  }
  advance(runner, ended);
  return GKI_DONE;
}

/* Runs consecutive checkpoints of one run each. The local copy of the step can stay in registers. */
static gki_outcome run_checkpoints(gki_runner *runner) {
  const gki_program *program = runner->program;
  gk_step step = runner->step;
  while (step.kind == GK_STEP_CHECKPOINT) {
    uint32_t end = program->runs[step.at].end;
    gki_op *op = &program->ops[runner->at];
    const bool single = runner->at + 1 == end;
    if (!single || !run_small(op, program->args, runner->break_even_ns)) {
      gki_outcome outcome = single ? run_op(runner, op) : run_ops(runner, end);
      if (outcome != GKI_DONE) return outcome;
    }
    step = next_step(runner, read_flag(runner, step.node));
  }
  runner->step = step;
  return GKI_DONE;
}

/* Runs from runner->step to the end of the outermost walk. */
static gki_outcome walk(gki_runner *runner) {
  gki_program *program = runner->program;
  /* Without GK_ISOLATE not each run would be traced: run_passes and run_checkpoints run many. */
  const bool traced = gki_trace_enabled() && program->plan->bits & GK_ISOLATE;
  for (;;) {
    gki_outcome outcome = GKI_DONE;
    switch (runner->step.kind) {
    case GK_STEP_RUN: case GK_STEP_HOST:
      if (traced) gki_trace_begin_run(program->plan, runner->step.at);
      outcome = run_ops(runner, program->runs[runner->step.at].end);
      if (traced) gki_trace_end();
      if (outcome == GKI_DONE) advance(runner, 0);
      break;
    case GK_STEP_CHECKPOINT: outcome = run_checkpoints(runner); break;
    case GK_STEP_FLAG: advance(runner, read_flag(runner, runner->step.at)); break;
    case GK_STEP_FORK: outcome = fork_walks(runner); break;
    case GK_STEP_END:
      if (runner->walk == runner->outermost) return GKI_DONE;
      end_section(runner);
      break;
    case GK_STEP_LOOP: outcome = run_passes(runner); break;
    case GK_STEP_PASS: break; /* not taken: slots of pass numbers point to the walk's entries */
    }
    if (outcome != GKI_DONE) return outcome;
    if (gki_openmp_failed(program)) return GKI_FAILED;
  }
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

gk_result gki_openmp_run(void *graph, const gk_launch_args *launch, gk_launch_result *result) {
  gki_program *program = graph;
  gki_openmp_device *device = program->device;
  gk_walk whole;
  gki_runner runner = {.program = program, .launch = launch, .walk = &whole, .outermost = &whole, .top = true};
  runner.may_start = device->team.limit > 1;
  atomic_store_explicit(&program->failed, GK_OK, memory_order_relaxed);
  gki_openmp_patch(program, launch);
  (void)gki_openmp_forget(device);
  if (device->wake_ns > GKI_WAKE_NS) device->wake_ns += (GKI_WAKE_NS - device->wake_ns) / 16;
  gki_openmp_set_subteam(&runner, 0, 1, device->dispatch_ns);
  runner.saving_missed_ns = program->wakes_at_once ? device->wake_ns : 0;
  const uint32_t more = 1u << GK_STEP_LOOP | 1u << GK_STEP_CHECKPOINT; /* steps with several tasks */
  const uint32_t takes = 1u << GK_STEP_FORK | (program->plan->bits & GK_ISOLATE ? 0 : more);
  gk_walk_start(&whole, program->plan, launch, takes, result);
  advance(&runner, 0);
  (void)walk(&runner);
  gki_team_release(&device->team);
  program->wakes_at_once = runner.saving_ns > device->wake_ns;
  gk_result failed = (gk_result)atomic_load_explicit(&program->failed, memory_order_relaxed);
  return failed == GK_OK ? GK_OK : gki_fail_with(failed, program->message);
}
