/* Sweeps: a case again and again, each time with another allocation of gk's own, or another call of its backend, that
 * fails. At any point of the case gk absorbs it or answers with a message; nothing leaks, nothing hangs, and the
 * next device works. */
#include "session.h"
#include "own.h"
#include "unit/support/own_memory.h"
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static struct {
  counting memory;        /* memory: its allocations */
  atomic_int said;        /* failures that gk has told of since something failed */
  const own_backend *own; /* calls: whose */
  unsigned long call;
  gk_result code;
} fault;
static unsigned long all_calls; /* that could have failed in the trial that ran last */

static bool has_fired(void) {
  return fault.own ? fault.call > 0 && fault.own->calls() >= fault.call : counting_failed(&fault.memory);
}

static void hear(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_ERROR && line[0] && has_fired()) atomic_fetch_add(&fault.said, 1);
}

static bool injected(gk_result code) {
  if (!has_fired() || atomic_load(&fault.said) == 0) return false;
  if (code == GK_OK || code == fault.code) return true;
  if (!fault.own) return false;
  /* What fails while a driver starts means that there is none; if its compiler fails, there is no COPY and FILL. */
  return code == GK_ERROR_DEVICE || code == GK_ERROR_NO_DEVICE ||
         (code == GK_ERROR_UNSUPPORTED && strstr(gk_error(), "COPY and FILL are kernels of gk's own"));
}

/* kth: 0: none. way: of the backend's; for memory there is one. */
static void arm(unsigned long kth, gk_result code, int way) {
  atomic_store(&fault.said, 0);
  counting_fail_at(&fault.memory, fault.own ? 0 : kth < INT_MAX ? (int)kth : INT_MAX);
  fault.call = kth;
  fault.code = code;
  if (fault.own) fault.own->fail_at(kth, code, way);
}

/* ---- one k after the other --------------------------------------------------------------------------------------- */

/* The codes that a call fails with, by turns. */
static const struct { gk_result code; int way; } failures[] = {
  {GK_ERROR_DEVICE, 0}, {GK_ERROR_MEMORY, 0}, {GK_ERROR_DEVICE, 1}, {GK_ERROR_DEVICE, 2}, {GK_ERROR_MEMORY, 1},
};

/* A device, a graph, a launch: as if nothing had been. */
void case_counter(trial *t);

static bool fail_once(const char *backend, const case_entry *c, unsigned long kth, size_t failure, bool *over) {
  answer *slip = the_session.slip;
  static trial t;
  const int live = atomic_load(&fault.memory.live);
  slip->at = kth;
  slip->failure = failure;
  alarm((unsigned)the_session.seconds);
  arm(kth, fault.own ? failures[failure].code : GK_ERROR_MEMORY, failures[failure].way);
  t = (trial){.backend = backend, .bits = the_session.bits, .injected = injected, .failed = has_fired,
              .sweep = true};
  run_trial(&t, c->body);
  *over = !has_fired();
  all_calls = fault.own ? fault.own->calls() : (unsigned long)atomic_load(&fault.memory.calls);
  slip->outcome = t.outcome == GAVE_UP ? PASSED : t.outcome;
  snprintf(slip->text, sizeof slip->text, "%s", t.text);
  if (t.outcome == FAILED || t.outcome == SKIPPED) return false;
  arm(0, GK_OK, 0);
  if (atomic_load(&fault.memory.live) != live) {
    slip->outcome = FAILED;
    snprintf(slip->text, sizeof slip->text, "%d allocations of gk's own were not given back",
             atomic_load(&fault.memory.live) - live);
  } else if (!own_is_content(backend, slip->text, sizeof slip->text)) {
    slip->outcome = FAILED;
  } else if (!*over) {
    t = (trial){.backend = backend, .bits = the_session.bits};
    run_trial(&t, case_counter);
    slip->outcome = t.outcome;
    snprintf(slip->text, sizeof slip->text, "what was tried afterwards: %s", t.text);
  }
  if (slip->outcome == PASSED) slip->text[0] = 0;
  return slip->outcome == PASSED;
}

/* Where a sample begins: another k in each case, and the same each time. */
static unsigned long start_of(const case_entry *c) {
  unsigned long sum = 0;
  for (const char *at = c->name; *at; ++at) sum = sum * 31 + (unsigned char)*at;
  return sum;
}

void sweep_case(const char *backend, const case_entry *c) {
  answer *slip = the_session.slip;
  const gk_allocator allocator = counting_allocator(&fault.memory);
  bool over = false;
  unsigned long first = the_session.at ? the_session.at : 1;
  if (the_session.sweep == SWEEP_CALLS) {
    fault.own = own_backend_of(backend);
    if (!fault.own || !fault.own->fail_at) {
      slip->outcome = SKIPPED;
      snprintf(slip->text, sizeof slip->text, "backend %s has no calls that fail on request", backend);
      return;
    }
  } else if (gk_set_allocator(&allocator) != GK_OK) {
    slip->outcome = FAILED;
    snprintf(slip->text, sizeof slip->text, "%s", gk_error());
    return;
  }
  if (!enter_session()) return;
  gk_set_log(GK_LOG_ERROR, hear, NULL);
  unsigned long stride = 1, start = 0;
  /* How many there are shows when none fails, and nothing is new; which one is k-th, too, but for the first. */
  if (the_session.most || the_session.at > 1) {
    if (!fail_once(backend, c, ULONG_MAX, 0, &over) || !fail_once(backend, c, ULONG_MAX, 0, &over)) return;
    if (!the_session.at) {
      stride = all_calls / the_session.most + 1;
      start = start_of(c);
      first = start % stride + 1;
    }
  }
  over = false;
  for (unsigned long k = first; !over; k += stride) {
    size_t ways = fault.own ? sizeof failures / sizeof failures[0] : 1;
    for (size_t f = 0; f < ways && !over; ++f) {
      if (!the_session.every_way && f != (k / stride + start) % ways) continue;
      if (!fail_once(backend, c, k, f, &over)) return;
      slip->tried += !over;
    }
    if (the_session.at) break;
  }
  alarm(0);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

void describe_failure(const char *backend, char *text, size_t bytes) {
  const answer *slip = the_session.slip;
  if (the_session.sweep == SWEEP_MEMORY) {
    snprintf(text, bytes, "where allocation %lu fails", slip->at);
    return;
  }
  snprintf(text, bytes, "where call %lu fails with %s, %s", slip->at, gk_result_name(failures[slip->failure].code),
           own_backend_of(backend)->ways[failures[slip->failure].way]);
}
