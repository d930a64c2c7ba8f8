/* A grid on one thread: block by block, the threads of a block one after the other on one stack, until one waits for
 * others. That thread keeps the stack, and the next ones begin on another. A kernel may pause, and others go on. */
#include "fiber.h"
#include "load.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, MOST_THREADS = 1024, MOST_BYTES = 32764, MOST_GRIDS = 8, PAUSES_ONE_IN = 4 };

typedef enum lane_state { NOT_BEGUN, AT_WORK, WAITING, LEFT } lane_state;

typedef struct lane {
  lane_state state;
  sim_meeting what; /* the meeting that it waits for */
  unsigned mask;
  unsigned long long brought;
  sim_fiber *fiber;
} lane;

typedef struct warp { unsigned long long results[WARP]; } warp; /* what its last meetings brought, by lane */

typedef struct sim_grid {
  const sim_kernel *kernel;
  unsigned grid[3], block[3];
  sim_index block_at;
  unsigned threads, begun, left; /* of this block */
  sim_index next;                /* place of the thread that begins next */
  unsigned current;              /* thread */
  bool inside;                   /* a kernel is being carried out */
  bool stopped;                  /* and has ended without being finished */
  bool faulted;                  /* as it would touch memory that it must not */
  bool ending;
  uint64_t *random;              /* NULL: it mustn't pause */
  sim_fiber *outside, *at;       /* the caller's stack, and where we are */
  sim_fiber *paused;             /* where it goes on */
  sim_fiber *spare[MOST_THREADS + 1];
  unsigned spares;
  sim_fiber *all[MOST_THREADS + 1];
  unsigned fibers;
  unsigned ready[MOST_THREADS]; /* a ring of threads that go on */
  unsigned first_ready, ready_count;
  unsigned waiting_for_block;
  unsigned brought, result; /* to the block's meeting; how many at the last one */
  lane lanes[MOST_THREADS];
  warp warps[MOST_THREADS / WARP];
  _Alignas(64) unsigned char parameters[MOST_BYTES + 4];
} machine;

/* Of a thread, kept from kernel to kernel. */
typedef struct machines {
  sim_fiber *outside;
  unsigned count;
  machine *all[MOST_GRIDS];
} machines;

static __thread machines *own_all SIM_FAST_PER_THREAD;
static __thread machine *own SIM_FAST_PER_THREAD; /* that is at work, or was last */
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void go(machine *m, sim_fiber *to) {
  sim_fiber *from = m->at;
  m->at = to;
  sim_fiber_go(from, to);
}

static sim_index place_of(unsigned number, const unsigned size[3]) {
  return (sim_index){number % size[0], number / size[0] % size[1], number / size[0] / size[1]};
}

static void go_on_as(machine *m, unsigned thread) {
  m->current = thread;
  *m->kernel->of->thread = place_of(thread, m->block);
}

static inline __attribute__((always_inline)) sim_index next_place(sim_index at, const unsigned size[3]) {
  if (++at.x < size[0]) return at;
  if (++at.y < size[1]) return (sim_index){0, at.y, at.z};
  return (sim_index){0, 0, at.z + 1};
}

/* Runs far more often than anything else here, so it does little. */
__attribute__((no_sanitize("address", "undefined")))
static void begin_threads(machine *m) {
  void (*const call)(const void *parameters) = m->kernel->code->call;
  sim_index *const place = m->kernel->of->thread;
  while (m->begun < m->threads && m->ready_count == 0 && !m->stopped) {
    lane *self = &m->lanes[m->current = m->begun++];
    self->state = AT_WORK;
    self->fiber = m->at;
    *place = m->next;
    m->next = next_place(m->next, m->block);
    call(m->parameters);
    self->state = LEFT;
    ++m->left;
  }
}

static void run_threads(void *data) {
  machine *m = data;
  for (;;) {
    if (!m->ending) begin_threads(m);
    if (m->ending) sim_fiber_leave(m->at, m->outside);
    m->spare[m->spares++] = m->at;
    go(m, m->outside);
  }
}

/* Gives the stack away until the other threads have come. */
static void wait_for_others(machine *m) {
  m->lanes[m->current].state = WAITING;
  go(m, m->outside);
}

static void make_ready(machine *m, unsigned thread) {
  m->lanes[thread].state = AT_WORK;
  m->ready[(m->first_ready + m->ready_count++) % MOST_THREADS] = thread;
}

/* ---- where threads meet ------------------------------------------------------------------------------------------ */

static void stop(const char *why);

/* Whether all lanes of the mask are at the same meeting. `thread` counts as there. */
static bool is_complete(const machine *m, unsigned thread, sim_meeting what, unsigned mask) {
  unsigned first = thread / WARP * WARP;
  for (unsigned next = 1; next < WARP; ++next) { /* from the one behind it, which seldom is there already */
    unsigned k = (thread + next) % WARP;
    if (!(mask >> k & 1)) continue;
    if (first + k >= m->begun) return false;
    const lane *other = &m->lanes[first + k];
    if (other->state != WAITING || other->what != what || other->mask != mask) return false;
  }
  return true;
}

static const unsigned long long *meet(sim_meeting what, unsigned mask, unsigned long long brought) {
  machine *m = own;
  unsigned thread = m->current, first = thread / WARP * WARP;
  warp *w = &m->warps[thread / WARP];
  lane *self = &m->lanes[thread];
  self->what = what;
  self->mask = mask;
  self->brought = brought;
  if (!(mask >> thread % WARP & 1)) stop("a lane comes with a mask that it isn't in");
  if (!is_complete(m, thread, what, mask)) {
    wait_for_others(m);
    return w->results;
  }
  for (unsigned k = 0; k < WARP; ++k) {
    if (!(mask >> k & 1)) continue;
    w->results[k] = m->lanes[first + k].brought;
    if (first + k != thread) make_ready(m, first + k);
  }
  return w->results;
}

static unsigned barrier(int brought) {
  machine *m = own;
  lane *self = &m->lanes[m->current];
  self->what = SIM_MEET_BLOCK;
  m->brought += brought != 0;
  if (++m->waiting_for_block < m->threads) {
    wait_for_others(m);
    return m->result;
  }
  m->result = m->brought;
  m->brought = m->waiting_for_block = 0;
  for (unsigned k = 0; k < m->threads; ++k)
    if (k != m->current) make_ready(m, k);
  return m->result;
}

typedef struct place_text { char text[48]; } place_text;
static place_text text_of(sim_index at) {
  place_text place;
  snprintf(place.text, sizeof place.text, "(%u, %u, %u)", at.x, at.y, at.z);
  return place;
}

/* The thread waits for ever. */
static _Noreturn void give_up(machine *m) {
  m->stopped = true;
  m->lanes[m->current].state = WAITING;
  go(m, m->outside);
  abort();
}

static void stop(const char *why) {
  const machine *m = own;
  sim_broken("kernel", "kernel %s, block %s, thread %s: %s", m->kernel->name, text_of(m->block_at).text,
             text_of(place_of(m->current, m->block)).text, why);
  give_up(own);
}

static void pause_now_and_then(void) {
  machine *m = own;
  if (!m->random) return;
  *m->random = *m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  if ((*m->random >> 33) % PAUSES_ONE_IN != 0) return;
  m->paused = m->at;
  go(m, m->outside);
}

static void touch(unsigned long long at, unsigned long long bytes);

static const sim_services services = {meet, barrier, sim_set_conditional, stop, pause_now_and_then, touch};

/* Parameters, results of meetings and this table aren't the GPU's memory, but kernels read them. */
static void touch(unsigned long long at, unsigned long long bytes) {
  if (at - (uintptr_t)own < sizeof *own || at - (uintptr_t)&services < sizeof services) return;
  if (sim_touch(at, bytes)) return;
  own->faulted = true;
  give_up(own);
}

/* No thread can go on, and some wait. */
static void say_stuck(machine *m) {
  static const char *const meetings[] = {"", "a shuffle", "a vote", "__syncwarp", "__syncthreads"};
  unsigned waits = 0, thread = 0;
  for (unsigned k = m->threads; k-- > 0;)
    if (m->lanes[k].state == WAITING) {
      ++waits;
      thread = k;
    }
  const lane *self = &m->lanes[thread];
  const place_text block = text_of(m->block_at), place = text_of(place_of(thread, m->block));
  if (self->what == SIM_MEET_BLOCK)
    sim_broken("barrier", "kernel %s, block %s: thread %s waits at __syncthreads, where %u of %u threads have come; %u "
               "have left", m->kernel->name, block.text, place.text, m->waiting_for_block, m->threads, m->left);
  else {
    unsigned missing = 0, first = thread / WARP * WARP;
    for (unsigned k = 0; k < WARP; ++k) {
      const lane *other = &m->lanes[first + k];
      if ((self->mask >> k & 1) && (first + k >= m->threads || other->state != WAITING || other->what != self->what ||
                                    other->mask != self->mask)) missing |= 1u << k;
    }
    sim_broken("lanes", "kernel %s, block %s: thread %s waits at %s of mask 0x%08x, to which these lanes don't come: "
               "0x%08x (%u threads wait, %u of %u have left)", m->kernel->name, block.text, place.text,
               meetings[self->what], self->mask, missing, waits, m->left, m->threads);
  }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static sim_fiber *take_spare(machine *m) {
  if (m->spares > 0) return m->spare[--m->spares];
  return m->all[m->fibers++] = sim_fiber_make(run_threads, m);
}

/* The thread before the first counts as over when a kernel begins. */
static bool next_block(machine *m) {
  sim_index *at = &m->block_at;
  if (++at->x == m->grid[0]) *at = (sim_index){0, at->y + 1, at->z};
  if (at->y == m->grid[1]) *at = (sim_index){0, 0, at->z + 1};
  if (at->z == m->grid[2]) return false;
  m->begun = m->left = m->ready_count = m->waiting_for_block = m->brought = 0;
  m->next = (sim_index){0, 0, 0};
  *m->kernel->of->block = *at;
  return true;
}

static void go_on_once(machine *m) {
  if (m->paused) {
    sim_fiber *fiber = m->paused;
    m->paused = NULL;
    go(m, fiber);
  } else if (m->ready_count > 0) {
    unsigned thread = m->ready[m->first_ready];
    m->first_ready = (m->first_ready + 1) % MOST_THREADS;
    --m->ready_count;
    go_on_as(m, thread);
    go(m, m->lanes[thread].fiber);
  } else if (m->begun < m->threads) go(m, take_spare(m));
  else {
    say_stuck(m);
    m->stopped = true;
  }
}

/* All fibers are idle and as new, in any state that the last kernel left them in. */
static void tidy_up(machine *m) {
  if (m->at != m->outside) sim_fiber_jumped(m->at, m->outside);
  m->at = m->outside;
  for (unsigned k = 0; k < m->fibers; ++k) {
    sim_fiber_reset(m->all[k]);
    m->spare[k] = m->all[k];
  }
  m->spares = m->fibers;
  m->paused = NULL;
  m->inside = m->stopped = m->faulted = false;
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static void end_machine(machine *m) {
  own = m;
  if (m->inside) tidy_up(m);
  m->ending = true;
  while (m->spares > 0) {
    go(m, m->spare[--m->spares]);
    m->at = m->outside;
  }
  for (unsigned k = 0; k < m->fibers; ++k) sim_fiber_drop(m->all[k]);
  free(m);
}

static void end_machines(void *data) {
  machines *all = data;
  while (all->count > 0) end_machine(all->all[--all->count]);
  sim_fiber_drop(all->outside);
  free(all);
  own = NULL;
  own_all = NULL;
}

static void make_key(void) { pthread_key_create(&key, end_machines); }

static void *obtain(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!memory) sim_die("no memory left");
  return memset(memory, 0, bytes);
}

static machines *machines_of_thread(void) {
  if (own_all) return own_all;
  pthread_once(&key_once, make_key);
  own_all = obtain(sizeof *own_all);
  own_all->outside = sim_fiber_of_thread();
  pthread_setspecific(key, own_all);
  return own_all;
}

/* One that is idle. */
static machine *take_machine(void) {
  machines *all = machines_of_thread();
  for (unsigned k = 0; k < all->count; ++k)
    if (!all->all[k]->inside) return all->all[k];
  if (all->count == MOST_GRIDS) sim_die("too many kernels at once");
  machine *m = all->all[all->count++] = obtain(sizeof *m);
  m->outside = m->at = all->outside;
  return m;
}

void sim_kernel_left(void) {
  for (unsigned k = 0; own_all && k < own_all->count; ++k)
    if (own_all->all[k]->inside) tidy_up(own_all->all[k]);
}

/* ---- grids ------------------------------------------------------------------------------------------------------- */

static size_t parameter_bytes(const sim_code_kernel *code) {
  return code->count == 0 ? 0 : code->offsets[code->count - 1] + code->bytes[code->count - 1];
}

sim_grid *sim_kernel_begin(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                           const void *parameters) {
  unsigned long long threads = (unsigned long long)block[0] * block[1] * block[2];
  if (threads == 0 || threads > MOST_THREADS || parameter_bytes(kernel->code) > MOST_BYTES) {
    sim_broken("kernel", "kernel %s: a block of %llu threads, %zu bytes of parameters", kernel->name, threads,
               parameter_bytes(kernel->code));
    return NULL;
  }
  machine *m = take_machine();
  m->kernel = kernel;
  m->threads = m->begun = m->left = (unsigned)threads;
  m->ready_count = 0;
  m->block_at = (sim_index){UINT32_MAX, 0, 0};
  memcpy(m->grid, grid, sizeof m->grid);
  memcpy(m->block, block, sizeof m->block);
  if (parameter_bytes(kernel->code) > 0) memcpy(m->parameters, parameters, parameter_bytes(kernel->code));
  m->inside = true;
  return m;
}

/* Kernels of one module have these in common. */
static void take_places(machine *m) {
  const sim_code *code = m->kernel->of;
  *code->services = &services;
  *code->block_size = (sim_index){m->block[0], m->block[1], m->block[2]};
  *code->grid_size = (sim_index){m->grid[0], m->grid[1], m->grid[2]};
  *code->block = m->block_at;
  if (m->paused) go_on_as(m, m->current);
}

bool sim_kernel_go_on(sim_grid *m, uint64_t *random) {
  own = m;
  m->random = m->kernel->of->shares ? NULL : random;
  take_places(m);
  do {
    if (m->stopped || (m->left == m->threads && !m->paused && !next_block(m))) {
      const bool faulted = m->faulted;
      if (m->stopped) tidy_up(m);
      m->inside = false;
      if (faulted) sim_give_up();
      return true;
    }
    go_on_once(m);
  } while (!m->paused);
  return false;
}

void sim_kernel_run(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3], const void *parameters) {
  sim_kernel_left();
  sim_grid *under_way = sim_kernel_begin(kernel, grid, block, parameters);
  if (under_way) sim_kernel_go_on(under_way, NULL);
}

unsigned long long sim_kernel_thread(void) {
  const machine *m = own;
  sim_index at = m->block_at;
  unsigned long long block = at.x + m->grid[0] * (at.y + (unsigned long long)m->grid[1] * at.z);
  return block * m->threads + m->current;
}
