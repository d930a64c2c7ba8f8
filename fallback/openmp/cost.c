#include "openmp/cost.h"
#include <math.h>

enum { SERIES_TRIES = 2,    /* timed executions in series before the first split one */
       TRIES = 4,           /* timed split executions before the least times of both ways are compared */
       PROBES = 2,          /* executions of a probe */
       SOON = 4, LATE = 64, /* executions before a probe; doubled after each probe without a change */
       TIMED_NS = 2000,     /* sections that take longer are timed each time, which costs 3 % */
       FORKS_TIMED_EVERY = 16 /* shorter ones are timed once in so many executions */ };

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void set_faster(gki_trial *trial, bool split, float lately_ns) {
  trial->wait = trial->pause = SOON;
  trial->split = split;
  trial->last_ns = trial->lately_ns = lately_ns;
}

/* Speed drifts (clock rate, other load), so only times measured close together are compared: the least of the PROBES
 * executions of the slower way with the least of the last two executions of the faster way. */
void gki_trial_report(gki_trial *trial, bool split, uint64_t ns) {
  float seen = (float)ns, *known = split ? &trial->split_ns : &trial->series_ns;
  uint8_t *samples = split ? &trial->split_samples : &trial->series_samples;
  if (*samples < TRIES) {
    *known = *samples ? fminf(*known, seen) : seen;
    if (++*samples < TRIES || !split) return;
    trial->series_samples = TRIES;
    set_faster(trial, trial->split_ns < trial->series_ns, fminf(trial->split_ns, trial->series_ns));
  } else if (trial->probing && split != trial->split) {
    *known = trial->probing == PROBES ? seen : fminf(*known, seen);
    if (--trial->probing == 0 && *known < trial->lately_ns) set_faster(trial, split, *known);
  } else {
    if (split == trial->split) {
      trial->lately_ns = fminf(trial->last_ns, seen);
      trial->last_ns = seen;
    }
    if (seen > 2 * *known) trial->untimed = FORKS_TIMED_EVERY; /* the time grows: time the next execution, too */
    *known += (fminf(fmaxf(seen, *known / 2), *known * 2) - *known) / 4;
  }
}

/* Begins a probe of the slower way if one is due. It is due soon if the faster way has just changed or gets slower. */
static void reconsider(gki_trial *trial) {
  bool loses = trial->lately_ns > 1.5f * (trial->split ? trial->series_ns : trial->split_ns);
  if (loses && trial->wait > SOON) trial->wait = SOON;
  if (trial->wait > 0) {
    --trial->wait;
    return;
  }
  trial->probing = PROBES;
  trial->pause = trial->pause < LATE / 2 ? (uint16_t)(2 * trial->pause + 1) : LATE;
  trial->wait = trial->pause;
}

/* In series each task may still be shared by the whole subteam, so it isn't known in advance which way is faster. If
 * the sections take long enough to pay for a dispatch, both ways are tried, and the slower one is tried again later. */
gki_pick gki_trial_pick(gki_trial *trial, uint32_t groups, float dispatch_ns) {
  if (trial->series_samples < SERIES_TRIES) return (gki_pick){.timed = true};
  bool untried = trial->split_samples < TRIES;
  if (!untried && !trial->probing) reconsider(trial);
  float saving = groups > 1 ? trial->series_ns * (1 - 1 / (float)groups) - dispatch_ns : 0;
  if (saving <= 0) trial->probing = 0;
  else if (trial->split) saving = fmaxf(trial->series_ns - trial->split_ns, 1);
  bool soon = !untried && trial->wait < PROBES; /* a probe will be compared with the executions timed now */
  bool timed = trial->probing || soon || trial->series_ns > TIMED_NS || ++trial->untimed >= FORKS_TIMED_EVERY;
  if (timed) trial->untimed = 0;
  const bool splits = untried || (trial->probing ? !trial->split : trial->split);
  if (saving <= 0 || !splits) return (gki_pick){.timed = timed};
  return (gki_pick){.split = true, .timed = true, .saving_ns = saving};
}

/* ---- dispatches and tasks ---------------------------------------------------------------------------------------- */

void gki_openmp_set_subteam(gki_runner *runner, uint32_t first, uint32_t count, float dispatch_ns) {
  runner->first = first;
  runner->count = count;
  runner->dispatch_ns = dispatch_ns;
  uint32_t threads = runner->may_start ? runner->program->device->team.limit : count;
  runner->break_even_ns = threads > 1 ? dispatch_ns * (float)threads / (float)(threads - 1) : INFINITY;
}

static void do_nothing(gki_team_job *job, uint32_t index) {
  (void)job;
  (void)index;
}

/* Returns when the whole team is awake and idle. */
static void wake_team(gki_openmp_device *device) {
  gki_team *team = &device->team;
  gki_team_job job = {.work = do_nothing};
  gki_team_post(team, &job, 0, team->in_use, team->in_use);
  gki_team_wait(team, &job);
}

/* Takes the second least of four dispatches: a thread that loses its core for a moment makes some of them long. If all
 * were long, dispatch_floor_ns is the least of earlier calibrations. */
void gki_openmp_calibrate(gki_openmp_device *device, uint64_t since) {
  enum { TIMES = 4, TOO_LONG_NS = 100000, PAUSES = 32, MOST_PAUSE_NS = 100000000 };
  float least = INFINITY, next = INFINITY;
  uint64_t start = gki_now_ns(), before = start;
  for (int k = 0; k < TIMES && before - start < TOO_LONG_NS; ++k) {
    wake_team(device);
    uint64_t after = gki_now_ns();
    float seen = (float)(after - before);
    next = fminf(next, fmaxf(least, seen));
    least = fminf(least, seen);
    before = after;
  }
  device->calibrated_ns[device->calibrations++ % GK_COUNT(device->calibrated_ns)] = next < INFINITY ? next : least;
  float floor_ns = INFINITY;
  for (uint32_t k = 0; k < device->calibrations && k < GK_COUNT(device->calibrated_ns); ++k)
    floor_ns = fminf(floor_ns, device->calibrated_ns[k]);
  device->dispatch_floor_ns = floor_ns;
  const bool was_long = device->pause_ns > 0;
  if (device->calibrations == 1 || was_long || device->dispatch_ns < floor_ns / 2) device->dispatch_ns = floor_ns;
  const bool was_doubted = start >= device->doubted_at;
  const float pause_ns = fmaxf((float)(before - since) * PAUSES, device->pause_ns * (was_doubted ? 2 : 1));
  device->pause_ns = floor_ns > GKI_DISPATCH_NS ? fminf(pause_ns, MOST_PAUSE_NS) : 0;
  device->doubted_at = before + (uint64_t)device->pause_ns;
}

/* Costs measured on a busy machine are forgotten in small steps. A floor above GKI_DISPATCH_NS could keep the team from
 * ever starting, and only a start measures it. It may also be an accident: Linux may have put two threads on one core,
 * above all a new thread on its creator's. So after a pause the floor is doubted, and the next task that seems worth
 * sharing measures it again. The pause doubles each time the floor is still long, up to MOST_PAUSE_NS. */
bool gki_openmp_forget(gki_openmp_device *device) {
  const bool is_long = device->dispatch_floor_ns > GKI_DISPATCH_NS;
  const bool doubtful = !device->fixed && is_long && gki_now_ns() >= device->doubted_at;
  if (doubtful) device->dispatch_ns = device->dispatch_floor_ns = GKI_DISPATCH_NS;
  const float floor_ns = device->dispatch_floor_ns;
  if (device->dispatch_ns > floor_ns) device->dispatch_ns += (floor_ns - device->dispatch_ns) / 16;
  return doubtful;
}

void gki_openmp_adapt_wake(gki_openmp_device *device, float seen_ns) {
  device->wake_ns *= seen_ns > device->wake_ns ? 1.5f : 1 / 1.5f;
  if (device->wake_ns < device->dispatch_ns) device->wake_ns = device->dispatch_ns;
}

void gki_openmp_adapt_dispatch(gki_runner *runner, float seen_ns) {
  if (!runner->top) return;
  gki_openmp_device *device = runner->program->device;
  device->dispatch_ns *= seen_ns > device->dispatch_ns ? 1.1f : 1 / 1.1f;
  if (device->dispatch_ns < device->dispatch_floor_ns / 2) device->dispatch_ns = device->dispatch_floor_ns / 2;
  gki_openmp_set_subteam(runner, runner->first, runner->count, device->dispatch_ns);
}

void gki_openmp_reconsider(gki_runner *runner) {
  if (!runner->top) return;
  gki_openmp_device *device = runner->program->device;
  if (gki_openmp_forget(device) && runner->started) {
    const uint64_t since = gki_now_ns();
    wake_team(device);
    gki_openmp_calibrate(device, since);
  }
  gki_openmp_set_subteam(runner, runner->first, runner->count, device->dispatch_ns);
}

static void start_team(gki_runner *runner) {
  gki_openmp_device *device = runner->program->device;
  const uint64_t begun = gki_now_ns();
  gki_team_start(&device->team);
  runner->may_start = false;
  runner->started = true;
  runner->saving_missed_ns = 0;
  wake_team(device);
  const uint64_t started = gki_now_ns();
  if (device->team.in_use > 1 && !device->fixed) gki_openmp_calibrate(device, started);
  gki_openmp_adapt_wake(device, (float)(started - begun));
  gki_openmp_set_subteam(runner, 0, device->team.in_use, device->dispatch_ns);
}

/* Waking a thread takes long. So a subteam is woken only when it would already have saved as much time as waking takes.
 * Then at most half of the possible saving is lost, whatever comes next. */
gki_advice gki_openmp_advise(gki_runner *runner, float saving_ns) {
  const gki_openmp_device *device = runner->program->device;
  bool awake = runner->count > 1 && !gki_team_sleeps(&device->team, runner->first + runner->count - 1);
  if (runner->count == 1 && !runner->may_start) return GKI_ALONE;
  runner->saving_ns += saving_ns;
  if (!awake) {
    runner->saving_missed_ns += saving_ns;
    if (runner->saving_missed_ns < device->wake_ns) return GKI_ALONE;
    if (runner->count == 1) {
      start_team(runner);
      return GKI_HAS_STARTED;
    }
    runner->saving_missed_ns = 0;
  }
  return GKI_SHARE;
}

/* A thread that loses its core makes any task seem long. So the cost grows at most eightfold at a time, and a task
 * whose cost grows so fast is timed again at once. After FIRST samples the cost is a moving average. */
void gki_openmp_learn(const gki_openmp_device *device, gki_op *op, size_t items, uint64_t ns) {
  enum { FIRST = 8, LATER = 15 };
  static const uint16_t next[] = {4, 4, 4, 16, 16, 16, 16, 16, 64};
  static const float least_ns = 1e-3f; /* above 0, since no factor leads up from 0 */
  float seen = fmaxf(((float)ns - device->clock_ns) / (float)items, least_ns), before = op->cost_ns;
  bool growing = seen > 8 * before;
  if (op->timed < FIRST) op->cost_ns = fminf(seen, 8 * before);
  else op->cost_ns += (fminf(fmaxf(seen, before / 2), before * 2) - before) / 4;
  op->countdown = growing ? 1 : next[op->timed < FIRST ? op->timed : FIRST];
  if (op->timed < LATER) ++op->timed;
  if (!(op->bits & GKI_READS)) op->alone_ns = (float)op->range.end * op->cost_ns;
}
