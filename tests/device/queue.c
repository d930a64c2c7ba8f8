/* The device's thread. It takes a batch from the queue some time after the batch was flushed, and reports its commands
 * as done only at its end. */
#include "parts.h"
#include "plan/node.h"
#include "unit/support/chance.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- on the device ----------------------------------------------------------------------------------------------- */

static bool run_blocks(graph *g, uint32_t at, uint32_t end);

static device_tasks tasks_of(graph *g) {
  return (device_tasks){g->plan, g->values, g->capacity, test_device_here, g->device, &g->device->device_random,
                        false};
}

static void fail_late(graph *g, gk_result code) {
  g->late = code;
  snprintf(g->late_message, sizeof g->late_message, "%s", gk_error());
}

/* If the address isn't in the device's memory, the launch fails and the flag is 0. offset: of a number, that of its
 * 8 bytes in a table of slots, or of the upper 4. */
static int32_t flag_of(graph *g, uint32_t node, uint32_t slot, uint32_t offset) {
  device_tasks tasks = tasks_of(g);
  int32_t flag = 0;
  if (slot == g->plan->slot_count) return 1; /* of a YIELD */
  if (slot > g->plan->slot_count) {
    const uint64_t number = (uint64_t)gki_number(g->plan, offset / 8, g->values[offset / 8]);
    return (int32_t)(uint32_t)(number >> (offset % 8 * 8));
  }
  gk_result result = device_read_int(&tasks, node, slot, offset, &flag);
  if (result != GK_OK) fail_late(g, result);
  return flag;
}

enum { SECTIONS = 64 }; /* most sections to interleave */

/* Runs straight sections, one task of any of them at a time. True: the launch has failed. */
static bool run_interleaved(graph *g, const uint32_t *sections, uint32_t count) {
  const gk_node *nodes = g->plan->nodes;
  uint32_t at[SECTIONS], end[SECTIONS];
  for (uint32_t k = 0; k < count; ++k) at[k] = sections[k] + 1, end[k] = nodes[sections[k]].end;
  while (count) {
    uint32_t one = pick(&g->device->device_random, count), node = at[one];
    if (run_blocks(g, node, nodes[node].end)) return true;
    at[one] = nodes[node].end;
    if (at[one] < end[one]) continue;
    --count;
    at[one] = at[count], end[one] = end[count];
  }
  return false;
}

static bool run_block(graph *g, uint32_t at) {
  const gk_node *nodes = g->plan->nodes;
  if (nodes[at].op == GK_OP_PARALLEL) {
    for (uint32_t one = at + 1; one < nodes[at].end;) {
      uint32_t sections[SECTIONS], count = 0;
      for (; one < nodes[at].end && count < SECTIONS; one = nodes[one].end) sections[count++] = one;
      if (run_interleaved(g, sections, count)) return true;
    }
    return false;
  }
  device_tasks tasks = tasks_of(g);
  gk_result result = device_run_node(&tasks, at);
  if (result != GK_OK) fail_late(g, result);
  return result != GK_OK;
}

static bool run_blocks(graph *g, uint32_t at, uint32_t end) {
  for (; at < end; at = g->plan->nodes[at].end)
    if (run_block(g, at) || g->late != GK_OK) return true;
  return false;
}

static void run(graph *g, uint32_t run) { run_blocks(g, g->plan->runs[run].begin, g->plan->runs[run].end); }

/* ---- tapes ------------------------------------------------------------------------------------------------------- */

static _Thread_local struct { graph *g; bool cancelled; } walked;

#define GKW_FN static
#define gkw_uint uint32_t
#define GKW_POINT(i) walked.g->plan->points->table[i]
#define GKW_STATE(i) walked.g->words[i]
#define GKW_FLAG(slot, offset) ((uint32_t)flag_of(walked.g, GKW_POINT(at + GKW_NODE), slot, offset)) /* of gkw_flag */
#define GKW_CANCELLED() walked.cancelled
#include "plan/walk.inc"

void *test_device_pass(void *state, uint32_t node) {
  const graph *g = state;
  return (uint32_t *)g->words_at + gk_points_pass(g->plan->points, node);
}

static bool is_open(graph *g, uint32_t run) {
  const gk_points *points = g->plan->points;
  return g->words[points->table[points->runs[run] + GKW_RECORD] + GKW_TASKS] == GKW_OPEN;
}

/* Executes the open runs of a level in any order, then the control kernel, which sometimes walks only a few points.
 * Closing a device also cancels graphs without GK_CANCELLABLE. Such a graph's control kernels need not see that. */
static void run_level(device *d, const command *c) {
  graph *g = c->graph;
  uint32_t open[LEVEL], left = 0;
  for (uint32_t k = 0; k < c->count; ++k)
    if (is_open(g, c->runs[k])) open[left++] = c->runs[k];
  while (left && g->late == GK_OK) {
    const uint32_t one = pick(&d->device_random, left);
    run(g, open[one]);
    open[one] = open[--left];
  }
  walked.g = g;
  walked.cancelled = c->was_cancelled || (!c->ignores_cancel && __atomic_load_n(g->cancel, __ATOMIC_RELAXED));
  for (uint32_t k = 0; k < c->count; ++k) gkw_ran(g->plan->points->runs[c->runs[k]]);
  gkw_walk(!d->slow || pick(&d->device_random, 8) ? 1000 : 1 + pick(&d->device_random, 4));
  if (c->ends_tape) memcpy(g->states[c->at], g->words, g->plan->points->state_count * sizeof *g->words);
}

static void copy(device *d, const command *c) {
  unsigned char *to = c->to ? test_device_here(d, c->to, c->bytes) : d->staging;
  const unsigned char *from = c->from ? test_device_here(d, c->from, c->bytes) : d->staging;
  d->copy_result = to && from ? GK_OK : GK_ERROR_DEVICE;
  if (d->copy_result != GK_OK) return;
  if (c->direction == GK_ZERO) memset(to, 0, c->bytes);
  else memmove(to, from, c->bytes);
}

static void carry_out(device *d, const command *c) {
  graph *g = c->graph;
  if (c->kind == COMMAND_COPY) {
    copy(d, c);
    return;
  }
  if (g->late != GK_OK) return;
  gk_fail_again();
  switch (c->kind) {
  case COMMAND_RUN: run(g, c->at); break;
  case COMMAND_FLAG:
    if (gki_reads_memory(g->plan, &g->plan->nodes[c->at]))
      g->flag = flag_of(g, c->at, g->plan->nodes[c->at].flag, g->plan->nodes[c->at].offset);
    break;
  case COMMAND_LEVEL: run_level(d, c); break;
  default: fail_late(g, gk_fail(c->code, "backend test_device: what was submitted failed on request"));
  }
}

/* ---- the queue --------------------------------------------------------------------------------------------------- */

static void dawdle(device *d) {
  if (!d->slow) return;
  uint32_t how = pick(&d->device_random, 16);
  struct timespec some = {.tv_nsec = 1000 * (long)pick(&d->device_random, 100)};
  if (how == 0) nanosleep(&some, NULL);
  for (uint32_t k = 0; how < 4 && k < 3; ++k) sched_yield();
}

/* Carries out some of the flushed commands. The lock is held before and after, and not meanwhile. */
static void carry_out_batch(device *d) {
  uint64_t first = d->done, last = d->flushed;
  if (d->slow) last = first + 1 + pick(&d->device_random, (uint32_t)(last - first));
  bool lost = d->lost;
  d->busy = true;
  pthread_mutex_unlock(&d->lock);
  dawdle(d);
  for (uint64_t k = first; k < last && !lost; ++k) carry_out(d, &d->queue[k % QUEUE]);
  dawdle(d);
  pthread_mutex_lock(&d->lock);
  d->busy = false;
  d->done = last;
  pthread_cond_broadcast(&d->finished);
}

static void *serve(void *at) {
  device *d = at;
  pthread_mutex_lock(&d->lock);
  for (;;) {
    while ((d->flushed == d->done || d->busy) && !d->ending) pthread_cond_wait(&d->posted, &d->lock);
    if (d->flushed == d->done) break;
    carry_out_batch(d);
  }
  pthread_mutex_unlock(&d->lock);
  return NULL;
}

bool test_device_queue_open(device *d) {
  pthread_cond_init(&d->posted, NULL);
  pthread_cond_init(&d->finished, NULL);
  if (pthread_create(&d->thread, NULL, serve, d) == 0) return true;
  pthread_cond_destroy(&d->finished);
  pthread_cond_destroy(&d->posted);
  return false;
}

void test_device_queue_close(device *d) {
  pthread_mutex_lock(&d->lock);
  d->ending = true;
  pthread_cond_broadcast(&d->posted);
  pthread_mutex_unlock(&d->lock);
  pthread_join(d->thread, NULL);
  pthread_cond_destroy(&d->finished);
  pthread_cond_destroy(&d->posted);
}

/* Under the lock. */
static void flush(device *d) {
  if (d->flushed == d->written) return;
  d->flushed = d->written;
  d->batch = d->slow ? 1 + pick(&d->random, 12) : QUEUE;
  if (d->slow) pthread_cond_signal(&d->posted);
}

/* Until something was done; the work of a device that isn't slow is done here. Under the lock. */
static void wait_on(device *d) {
  if (d->slow || d->busy) pthread_cond_wait(&d->finished, &d->lock);
  else carry_out_batch(d);
}

uint64_t test_device_post(device *d, const command *c) {
  pthread_mutex_lock(&d->lock);
  while (d->written - d->done == QUEUE) {
    flush(d);
    wait_on(d);
  }
  d->queue[d->written++ % QUEUE] = *c;
  if (d->written - d->flushed >= d->batch) flush(d);
  uint64_t number = d->written;
  pthread_mutex_unlock(&d->lock);
  return number;
}

void test_device_wait(device *d, uint64_t number) {
  pthread_mutex_lock(&d->lock);
  flush(d);
  if (!number) number = d->written;
  while (d->done < number) wait_on(d);
  pthread_mutex_unlock(&d->lock);
}
