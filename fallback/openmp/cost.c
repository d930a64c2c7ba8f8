#include "openmp/cost.h"
#include <math.h>

enum { SERIES_TRIES = 2, TRIES = 4, /* of a way to run sections before it is judged: the least of them counts */
       PROBES = 2,                  /* likewise, when it is looked at again */
       SOON = 4, LATE = 64,         /* executions until then; each time in vain twice as many */
       TIMED_NS = 2000, /* what takes longer is timed each time: that costs 3 % of it */
       SELDOM = 16      /* executions from one to the next that is timed of what doesn't */ };

static void hold_to(gki_trial *trial, bool split, float lately_ns) {
  trial->wait = trial->pause = SOON;
  trial->split = split;
  trial->last_ns = trial->lately_ns = lately_ns;
}

/* Speed drifts (clock rate, other load), so only times measured close together are compared: the least of PROBES
 * executions of the way that isn't taken, with the least of the last two of the way that is. */
void gki_trial_report(gki_trial *trial, bool split, uint64_t ns) {
  float seen = (float)ns, *known = split ? &trial->split_ns : &trial->series_ns;
  uint8_t *samples = split ? &trial->split_samples : &trial->series_samples;
  if (*samples < TRIES) {
    *known = *samples ? fminf(*known, seen) : seen;
    if (++*samples < TRIES || !split) return;
    trial->series_samples = TRIES;
    hold_to(trial, trial->split_ns < trial->series_ns, fminf(trial->split_ns, trial->series_ns));
  } else if (trial->probing && split != trial->split) {
    *known = trial->probing == PROBES ? seen : fminf(*known, seen);
    if (--trial->probing == 0 && *known < trial->lately_ns) hold_to(trial, split, *known);
  } else {
    if (split == trial->split) {
      trial->lately_ns = fminf(trial->last_ns, seen);
      trial->last_ns = seen;
    }
    if (seen > 2 * *known) trial->untimed = SELDOM; /* it grows: time the next, too */
    *known += (fminf(fmaxf(seen, *known / 2), *known * 2) - *known) / 4;
  }
}

/* Whether the way that isn't taken shall be looked at again: soon, if the other has just won or seems to lose. */
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

/* In series each task may still be shared by the whole crew, so neither way is better beforehand: both are tried, if
 * the sections take long enough to pay for a hand-over, and the one that lost is tried again now and then. */
gki_pick gki_trial_pick(gki_trial *trial, uint32_t groups, float dispatch_ns) {
  if (trial->series_samples < SERIES_TRIES) return (gki_pick){.timed = true};
  bool untried = trial->split_samples < TRIES;
  if (!untried && !trial->probing) reconsider(trial);
  float saving = groups > 1 ? trial->series_ns * (1 - 1 / (float)groups) - dispatch_ns : 0;
  if (saving <= 0) trial->probing = 0;
  else if (trial->split) saving = fmaxf(trial->series_ns - trial->split_ns, 1);
  bool soon = !untried && trial->wait < PROBES; /* what is timed now is what the other way will be held against */
  bool timed = trial->probing || soon || trial->series_ns > TIMED_NS || ++trial->untimed >= SELDOM;
  if (timed) trial->untimed = 0;
  const bool splits = untried || (trial->probing ? !trial->split : trial->split);
  if (saving <= 0 || !splits) return (gki_pick){.timed = timed};
  return (gki_pick){.split = true, .timed = true, .saving_ns = saving};
}
