#include "openmp/team.h"
#include "gk_backend.h"
#include "base/thread.h"
#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <sched.h>

/* A pause takes 15 to 40 ns on today's CPUs, so a waiting thread spins for 30 to 80 us, about the time of a wake-up. So
 * it loses at most twice as much as a thread that knows the length of the wait. Then it yields, so that other threads
 * get the core; a yield takes about 300 ns if none wants it. Cores and memory differ in speed, so the parts of a job
 * end at different times, in proportion to their length. After long parts a thread therefore yields for longer, up to a
 * millisecond. */
enum { SPINS = 2000, YIELDS = 40, MOST_YIELDS = 3000, CROWDED_YIELDS = 4, YIELD_NS = 300,
       LATE_SPINS = 500 /* spins before keep_apart */,
       MOVES = 4 /* threads moved in one wait, at most; each move takes some microseconds */,
       LEAST_STACK = 64 << 10, MOST_STACK = 8 << 20 /* the system's default */ };
#define SLEEPS 0x80000000u /* in gki_team_job.pending */

static void sleep_while(atomic_uint *word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

/* The word may be gone: its owner may have seen the new value and returned. The system uses the address alone, and a
 * thread that sleeps there for another reason checks its own condition again. */
static void wake(atomic_uint *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); }

/* ---- cores ------------------------------------------------------------------------------------------------------- */

/* Moves a thread off the cores, by forbidding them for a moment. Linux at once moves a thread that is on a forbidden
 * core or waits for one. */
static void move_off(pid_t thread, const cpu_set_t *cores) {
  cpu_set_t allowed, forbidden, left;
  if (thread == 0 || sched_getaffinity(thread, sizeof allowed, &allowed) != 0) return;
  CPU_AND(&forbidden, &allowed, cores);
  CPU_XOR(&left, &allowed, &forbidden);
  if (CPU_COUNT(&forbidden) == 0 || CPU_COUNT(&left) == 0) return;
  if (sched_setaffinity(thread, sizeof left, &left) == 0) (void)sched_setaffinity(thread, sizeof allowed, &allowed);
}

/* Linux may wake a thread on the core of the thread that waits for it, though another core is idle. The two then take
 * turns until Linux balances its cores, some milliseconds later. So threads that haven't started are moved to cores
 * that no thread of this job uses. Called by the thread that posted the job. Tested with two threads only. */
static void keep_apart(const gki_team *team, const gki_team_job *job) {
  const int here = sched_getcpu();
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (team->crowded || here < 0) return;
  CPU_SET((size_t)here, &cores);
  gki_team_slot *late[MOVES];
  uint32_t count = 0;
  for (uint32_t k = 1; k < job->parts; ++k) {
    gki_team_slot *slot = &team->slots[gki_team_slot_of(job->first, job->count, k, job->parts)];
    const int cpu = atomic_load_explicit(&slot->cpu, memory_order_relaxed);
    if (cpu >= 0 && cpu != here) CPU_SET((size_t)cpu, &cores);
    else if (count < MOVES) late[count++] = slot;
  }
  for (uint32_t k = 0; k < count; ++k) move_off(atomic_load_explicit(&late[k]->tid, memory_order_relaxed), &cores);
}

static void note_core(gki_team_slot *slot, int *known) {
  const int cpu = sched_getcpu();
  if (cpu == *known) return;
  *known = cpu;
  atomic_store_explicit(&slot->cpu, cpu, memory_order_relaxed);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Spins. True: the word has another value now. */
static bool left_at_once(const gki_team *team, atomic_uint *word, uint32_t value, int spins) {
  for (int k = 0; k < (team->crowded ? 0 : spins); ++k) {
    if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
    gki_pause();
  }
  return false;
}

/* Yields. True: the word has another value now. */
static bool left_soon(const gki_team *team, atomic_uint *word, uint32_t value, float part_ns) {
  float yields = fminf(fmaxf(part_ns / YIELD_NS, YIELDS), MOST_YIELDS);
  for (int k = 0; k < (team->crowded ? CROWDED_YIELDS : (int)yields); ++k) {
    if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
    sched_yield();
  }
  return false;
}

/* True: it slept. */
static bool await_bell(const gki_team *team, gki_team_slot *slot, uint32_t served, float part_ns) {
  if (left_at_once(team, &slot->bell, served, SPINS) || left_soon(team, &slot->bell, served, part_ns)) return false;
  atomic_store_explicit(&slot->asleep, 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_seq_cst); /* pairs with gki_team_post: one of the two sees the other's store */
  while (atomic_load_explicit(&slot->bell, memory_order_acquire) == served) sleep_while(&slot->bell, served);
  atomic_store_explicit(&slot->asleep, 0, memory_order_relaxed);
  return true;
}

static void *serve(void *at) {
  gki_team_slot *slot = at;
  float part_ns = 0;
  int known = -1;
  atomic_store_explicit(&slot->tid, (int)syscall(SYS_gettid), memory_order_relaxed);
  note_core(slot, &known);
  for (uint32_t served = 0;; ++served) {
    const bool slept = await_bell(slot->team, slot, served, part_ns);
    gki_team_job *job = slot->job;
    if (slept) {
      atomic_store_explicit(&job->woken_at, gki_now_ns(), memory_order_relaxed);
      known = -1;
    }
    note_core(slot, &known);
    part_ns = job->part_ns;
    const bool ends = !job->work;
    gki_within_now = job->within;
    if (!ends) job->work(job, slot->index);
    if (atomic_fetch_sub_explicit(&job->pending, 1, memory_order_release) == (SLEEPS | 1)) wake(&job->pending);
    if (ends) return NULL;
  }
}

/* ---- the threads ------------------------------------------------------------------------------------------------- */

bool gki_team_make(gki_team *team, uint32_t threads, size_t stack_bytes) {
  const int limit = omp_get_thread_limit();
  *team = (gki_team){.asked_for = threads, .limit = threads, .in_use = 1, .stack_bytes = stack_bytes};
  if (limit > 0 && (uint32_t)limit < threads) team->limit = (uint32_t)limit;
  team->crowded = (int)team->limit > omp_get_num_procs();
  if (sched_getaffinity(0, sizeof team->cores, &team->cores) != 0) CPU_ZERO(&team->cores);
  /* The allocator hook gives no such alignment, so this aligns the address itself. */
  char *memory = gk_host_alloc(threads * sizeof(gki_team_slot) + 2 * sizeof(void *) + GKI_APART);
  if (!memory) return false;
  uintptr_t at = ((uintptr_t)memory + sizeof(void *) + GKI_APART - 1) & ~(uintptr_t)(GKI_APART - 1);
  team->slots = (gki_team_slot *)at;
  ((void **)at)[-1] = memory;
  memset(team->slots, 0, threads * sizeof(gki_team_slot));
  for (uint32_t k = 0; k < threads; ++k) {
    team->slots[k].team = team;
    atomic_init(&team->slots[k].cpu, -1);
  }
  return true;
}

void gki_team_free(gki_team *team) {
  if (!team->slots) return;
  gki_team_job end = {.work = NULL};
  const bool running = team->started && team->process == getpid();
  if (running) gki_team_post(team, &end, 0, team->limit, team->limit);
  for (uint32_t k = 1; running && k < team->limit; ++k) pthread_join(team->slots[k].thread, NULL);
  gk_host_free(((void **)team->slots)[-1]);
  team->slots = NULL;
}

/* The leader may be a thread of the program with an affinity of its own, which a new thread has, too. */
static void restore_cores(const gki_team *team, pthread_t thread) {
  cpu_set_t cores;
  if (CPU_COUNT(&team->cores) == 0 || sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  if (!CPU_EQUAL(&cores, &team->cores)) (void)pthread_setaffinity_np(thread, sizeof team->cores, &team->cores);
}

/* Binds a thread as OMP_PROC_BIND and OMP_PLACES say. The leader is at the first place. */
static void bind(const gki_team *team, uint32_t number) {
  const omp_proc_bind_t how = omp_get_proc_bind();
  const uint32_t places = how == omp_proc_bind_false ? 0 : (uint32_t)omp_get_num_places();
  if (places == 0) {
    restore_cores(team, team->slots[number].thread);
    return;
  }
  uint32_t place = number;
  if (how == omp_proc_bind_master) place = 0;
  else if (how == omp_proc_bind_spread || team->limit > places) place = number * places / team->limit;
  int cpus[CPU_SETSIZE];
  const int count = omp_get_place_num_procs((int)place);
  if (count < 1 || count > CPU_SETSIZE) return;
  omp_get_place_proc_ids((int)place, cpus);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int k = 0; k < count; ++k) CPU_SET((size_t)cpus[k], &cores);
  (void)pthread_setaffinity_np(team->slots[number].thread, sizeof cores, &cores);
}

/* Called once. Starts fewer threads if the system refuses more. A stack that is too small is made larger: it must also
 * hold all thread-local variables of the program, whose size users don't know. */
static void start_threads(gki_team *team) {
  pthread_attr_t how;
  int code = pthread_attr_init(&how);
  size_t stack = team->stack_bytes && team->stack_bytes < LEAST_STACK ? LEAST_STACK : team->stack_bytes;
  uint32_t count = 1;
  while (count < team->limit && code == 0) {
    if (stack) code = pthread_attr_setstacksize(&how, stack);
    if (code == 0) code = gki_thread_start(&team->slots[count].thread, &how, serve, &team->slots[count]);
    if (code == 0) bind(team, count++);
    else if (code == EINVAL && stack && stack < MOST_STACK) {
      stack *= 2;
      code = 0;
    }
  }
  pthread_attr_destroy(&how);
  if (code)
    gk_log(GK_LOG_WARN, "backend openmp: %u of %u threads can be used, as no more can be started (%s); end others, or "
           "raise the limit (ulimit -u, ulimit -v, pids.max of a container), or lower OMP_STACKSIZE", (unsigned)count,
           (unsigned)team->limit, strerror(code));
  team->limit = count;
  team->process = getpid();
  team->started = true;
}

void gki_team_start(gki_team *team) {
  if (!team->started) start_threads(team);
  team->in_use = team->limit;
}

void gki_team_post(gki_team *team, gki_team_job *job, uint32_t first, uint32_t count, uint32_t parts) {
  job->first = first;
  job->count = count;
  job->parts = parts;
  job->within = gki_within_now;
  atomic_store_explicit(&job->pending, parts - 1, memory_order_relaxed);
  for (uint32_t k = 1; k < parts; ++k) {
    gki_team_slot *slot = &team->slots[gki_team_slot_of(first, count, k, parts)];
    slot->job = job;
    slot->index = k;
    if (atomic_load_explicit(&slot->asleep, memory_order_relaxed))
      atomic_store_explicit(&slot->cpu, -1, memory_order_relaxed);
    uint32_t jobs = atomic_load_explicit(&slot->bell, memory_order_relaxed);
    atomic_store_explicit(&slot->bell, jobs + 1, memory_order_release);
  }
  atomic_thread_fence(memory_order_seq_cst);
  for (uint32_t k = 1; k < parts; ++k) {
    gki_team_slot *slot = &team->slots[gki_team_slot_of(first, count, k, parts)];
    if (atomic_load_explicit(&slot->asleep, memory_order_relaxed)) wake(&slot->bell);
  }
}

void gki_team_wait(const gki_team *team, gki_team_job *job) {
  uint32_t pending;
  bool asked = false;
  while ((pending = atomic_load_explicit(&job->pending, memory_order_acquire)) != 0) {
    if (left_at_once(team, &job->pending, pending, LATE_SPINS)) continue;
    if (!asked) keep_apart(team, job);
    asked = true;
    if (left_at_once(team, &job->pending, pending, SPINS - LATE_SPINS)) continue;
    if (left_soon(team, &job->pending, pending, job->part_ns)) continue;
    if (!atomic_compare_exchange_strong_explicit(&job->pending, &pending, pending | SLEEPS, memory_order_relaxed,
                                                 memory_order_relaxed))
      continue;
    while (((pending = atomic_load_explicit(&job->pending, memory_order_acquire)) & ~SLEEPS) != 0)
      sleep_while(&job->pending, pending);
    return;
  }
}
