/* Executes one op on the leader alone, or cut into parts for its subteam. Measured time decides between the two.
 * Results never depend on that: item count and the device's number of threads decide how sums of floats are cut. */
#include "base/error.h"
#include "base/within.h"
#include "openmp/cost.h"
#include <math.h>
#include <string.h>

enum { SUM_ITEMS = 32, /* items of a partial sum, at least: gk_kernel.h adds so many side by side */
       LINE_ITEMS = 64, /* parts of large tasks and of bytes are multiples of this: no two write to one cache line */
       CHUNK_NS = 8000, /* shortest chunk; beginning a chunk takes some 100 ns, as it waits for memory once more */
       LONG_NS = 16 * CHUNK_NS, /* longest chunk: no other thread can help within a chunk */
       FEW_CHUNKS = 4, /* a part shorter than FEW_CHUNKS * CHUNK_NS isn't cut, as others could take little */
       MANY_CHUNKS = 64 /* a part has at most so many chunks of the greatest length */ };

/* ---- failures ---------------------------------------------------------------------------------------------------- */

gki_outcome gki_openmp_fail(gki_program *program, gk_result code) {
  int none = GK_OK;
  if (atomic_compare_exchange_strong(&program->failed, &none, (int)code))
    gki_error_save(program->message, sizeof program->message);
  return GKI_FAILED;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* A task is cut into at most as many parts as its subteam has team slots, and a long part into chunks. A thread that
 * has finished its own part takes chunks of other parts: cores, above all virtual ones, differ in speed, and items
 * differ in length. Each thread begins with its own part, which its cache holds from the task before (affinity
 * scheduling, Markatos and LeBlanc 1994). A short last chunk is left to its part's thread, which would come as soon and
 * has it in its cache. A chunk is half of the rest of its part (guided self-scheduling, Polychronopoulos and Kuck 1987,
 * within each part), but no longer than LONG_NS. So there are few chunks, and the late ones are short. */
typedef struct task_job {
  gki_team_job team_job; /* comes first: the team gets its address */
  const gki_program *program;
  const gki_sums *sums;  /* NULL: none */
  const gk_value *args;
  gk_host_kernel host;   /* NULL: COPY or FILL. The op has it, too, but the leader writes to the op meanwhile */
  gk_range range;
  uint32_t first, count; /* the subteam's team slots */
  uint32_t parts, chunks, partials;
  uint32_t arg_count;
  uint32_t step; /* sizes of parts and chunks are multiples of it, except the last */
  bool timed, keeps_last; /* keeps_last: only the part's thread takes its last chunk */
  size_t part_items, least_items, most_items; /* size of a part; least and greatest size of a chunk */
  char *partial;
  _Atomic uint64_t spent_ns; /* with chunks and timed: by all threads together */
  gk_value bytes[2];     /* arguments of a copy or fill */
} task_job;

/* Its sums depend on the order of additions. */
static bool has_ordered_sums(const task_job *job) { return job->sums && !job->sums->exact; }

static size_t round_up(size_t items, size_t step) { return (items + step - 1) / step * step; }

static size_t next_chunk(const task_job *job, size_t left) {
  size_t chunk = round_up(left / 2, job->step);
  if (chunk > job->most_items) chunk = job->most_items;
  if (chunk < job->least_items) chunk = job->least_items;
  return chunk < left ? chunk : left;
}

static void cut_chunks(task_job *job, float part_ns) {
  const float items = (float)job->part_items, item_ns = part_ns / items;
  job->least_items = round_up((size_t)(items * (CHUNK_NS / part_ns)) + 1, job->step);
  job->most_items = round_up((size_t)(items * fmaxf(LONG_NS / part_ns, 1.0f / MANY_CHUNKS)) + 1, job->step);
  job->keeps_last = (float)job->least_items * item_ns <= 2 * CHUNK_NS;
  job->chunks = 0;
  for (size_t left = job->part_items; left > 0; left -= next_chunk(job, left)) ++job->chunks;
}

static void cut_parts(task_job *job, uint32_t parts, float part_ns) {
  const bool bytes = !job->host, many = job->range.end >= (size_t)LINE_ITEMS * parts;
  /* Tasks with sums are cut evenly: a kernel may have one item per thread. */
  job->step = bytes || (many && !job->sums) ? LINE_ITEMS : 1;
  job->parts = parts;
  job->part_items = round_up((job->range.end + parts - 1) / parts, job->step);
  job->chunks = 1;
  if (parts > 1 && !has_ordered_sums(job) && part_ns >= FEW_CHUNKS * CHUNK_NS) cut_chunks(job, part_ns);
}

/* The items of a part's chunk. The last chunk has the rest. A shorter part has as many chunks, so some are empty. */
static gk_range chunk_of(const task_job *job, uint32_t part, uint32_t chunk) {
  const size_t items = job->range.end, begin = part * job->part_items, end = begin + job->part_items;
  const size_t part_end = end < items ? end : items;
  gk_range range = job->range;
  range.begin = begin < part_end ? begin : part_end;
  range.end = part_end;
  for (uint32_t k = 0; k < chunk; ++k) range.begin += next_chunk(job, part_end - range.begin);
  if (chunk + 1 < job->chunks) range.end = range.begin + next_chunk(job, part_end - range.begin);
  return range;
}

static atomic_uint *taken_of(const task_job *job, uint32_t part) {
  return &job->program->device->team.slots[gki_team_slot_of(job->first, job->count, part, job->parts)].taken;
}

typedef struct own_work {
  void (*run)(const task_job *job, struct own_work *own, gk_range range);
  const gk_value *args;
  char *partial;    /* with sums: those of a chunk */
  uint32_t *totals; /* with sums: those of the chunks before */
} own_work;

/* Runs chunks of that part until `most` of them are taken, by any thread. */
static void take_chunks(const task_job *job, uint32_t part, uint32_t most, own_work *own) {
  atomic_uint *taken = taken_of(job, part);
  while (atomic_load_explicit(taken, memory_order_relaxed) < most) {
    const uint32_t chunk = atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
    if (chunk >= job->chunks) break; /* others took the rest; chunk_of may return items of the last chunk again */
    const gk_range range = chunk_of(job, part, chunk);
    if (range.begin < range.end) own->run(job, own, range);
  }
}

static void run_chunks(task_job *job, uint32_t part, own_work *own) {
  if (job->chunks == 1) {
    const gk_range range = chunk_of(job, part, 0);
    if (range.begin < range.end) own->run(job, own, range);
    return;
  }
  /* Its own part, then the chunks that a few other parts leave. With many threads, all parts would take too long. */
  const uint64_t begun = job->timed ? gki_now_ns() : 0;
  take_chunks(job, part, job->chunks, own);
  const uint32_t for_others = job->chunks - job->keeps_last;
  for (uint32_t k = 1; k < job->parts; k *= 2) take_chunks(job, (part + k) % job->parts, for_others, own);
  if (job->timed) atomic_fetch_add_explicit(&job->spent_ns, gki_now_ns() - begun, memory_order_relaxed);
}

static void run_items(const task_job *job, own_work *own, gk_range range) { job->host(own->args, range); }

/* Sets the partial sums of that number to zero and returns their memory. args: gets the job's, with that memory for the
 * sums. */
static char *begin_partial(const task_job *job, uint32_t number, gk_value args[GK_MAX_ARGS]) {
  char *partial = job->partial + (size_t)number * job->program->partial_bytes;
  memcpy(args, job->args, job->arg_count * sizeof *args);
  memset(partial, 0, (size_t)job->sums->count * 8);
  for (uint32_t k = 0; k < job->sums->count; ++k) args[job->sums->param[k]].ptr = partial + 8 * k;
  return partial;
}

static void run_partial(const task_job *job, uint32_t number, gk_range range) {
  gk_value args[GK_MAX_ARGS];
  (void)begin_partial(job, number, args);
  if (range.begin < range.end) job->host(args, range);
}

static void run_partials(const task_job *job, uint32_t part) {
  const uint32_t begin = (uint32_t)((uint64_t)job->partials * part / job->parts);
  const uint32_t end = (uint32_t)((uint64_t)job->partials * (part + 1) / job->parts);
  for (uint32_t k = begin; k < end; ++k) {
    gk_range range = job->range;
    range.begin = job->range.end * k / job->partials;
    range.end = job->range.end * (k + 1) / job->partials;
    run_partial(job, k, range);
  }
}

/* Adds up the sums of a chunk. In each call a kernel finds zeroes where it puts its sums. */
static void run_summed(const task_job *job, own_work *own, gk_range range) {
  job->host(own->args, range);
  for (uint32_t k = 0; k < job->sums->count; ++k) {
    uint32_t sum;
    memcpy(&sum, own->partial + 8 * k, sizeof sum);
    own->totals[k] += sum;
  }
  memset(own->partial, 0, (size_t)job->sums->count * 8);
}

/* For sums of integers. int is added as uint, as in add_up. */
static void sum_chunks(task_job *job, uint32_t part) {
  gk_value args[GK_MAX_ARGS];
  uint32_t totals[GK_MAX_ARGS] = {0};
  char *partial = begin_partial(job, part, args);
  own_work own = {.run = run_summed, .args = args, .partial = partial, .totals = totals};
  run_chunks(job, part, &own);
  for (uint32_t k = 0; k < job->sums->count; ++k) memcpy(partial + 8 * k, &totals[k], sizeof totals[k]);
}

static void run_part(gki_team_job *team_job, uint32_t part) {
  task_job *job = (task_job *)team_job;
  if (has_ordered_sums(job)) run_partials(job, part);
  else if (job->sums && job->chunks > 1) sum_chunks(job, part);
  else if (job->sums) run_partial(job, part, chunk_of(job, part, 0));
  else run_chunks(job, part, &(own_work){.run = run_items, .args = job->args});
}

/* Atomic, since another section may add to the same place. gki_fork.in_order says whether the order matters. */
#define ADD(name, type) \
  static void name(void *at, const char *partial, uint32_t partials, size_t stride) { \
    type old, next; \
    __atomic_load((type *)at, &old, __ATOMIC_RELAXED); \
    do { \
      next = old; \
      for (uint32_t k = 0; k < partials; ++k) { \
        type part; \
        memcpy(&part, partial + k * stride, sizeof part); \
        next += part; \
      } \
    } while (!__atomic_compare_exchange((type *)at, &old, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
  }
ADD(add_uint, uint32_t)
ADD(add_float, float)
ADD(add_double, double)

/* Adds the partial sums in their order, on one thread. int is added as uint, which wraps as on any device. */
static void add_up(const task_job *job) {
  for (uint32_t k = 0; k < job->sums->count; ++k) {
    void *at = job->args[job->sums->param[k]].ptr;
    const char *partial = job->partial + 8 * k;
    switch ((gk_type)job->sums->number[k]) {
    case GK_F32: add_float(at, partial, job->partials, job->program->partial_bytes); break;
    case GK_F64: add_double(at, partial, job->partials, job->program->partial_bytes); break;
    default: add_uint(at, partial, job->partials, job->program->partial_bytes); break;
    }
  }
}

/* For sums of floats, items and threads alone decide the number of partial sums, and so the bits of the result. */
static void cut_sums(const gki_runner *runner, const gki_op *op, task_job *job) {
  const gki_program *program = runner->program;
  size_t threads = program->device->team.asked_for, partials = job->range.end / SUM_ITEMS;
  job->sums = &program->sums[op->more - 1];
  job->partials = (uint32_t)(partials < 1 ? 1 : partials < threads ? partials : threads);
  job->partial = program->partial + runner->first * threads * program->partial_bytes;
}

/* ---- copies and fills: their items are bytes --------------------------------------------------------------------- */

static void copy_bytes(const task_job *job, own_work *own, gk_range range) {
  (void)own;
  const gk_value *args = job->args;
  memmove((char *)args[0].ptr + range.begin, (const char *)args[1].ptr + range.begin, range.end - range.begin);
}
static void copy_part(gki_team_job *team_job, uint32_t part) {
  task_job *job = (task_job *)team_job;
  run_chunks(job, part, &(own_work){.run = copy_bytes});
}

static void fill_bytes(const task_job *job, own_work *own, gk_range range) {
  (void)own;
  const gk_value *args = job->args;
  char *at = (char *)args[0].ptr + range.begin, *end = at + (range.end - range.begin);
  uint32_t pattern = args[1].u32; /* chunks begin at multiples of LINE_ITEMS bytes */
  if (pattern == (pattern & 0xff) * 0x01010101u) {
    memset(at, (int)(pattern & 0xff), (size_t)(end - at));
    return;
  }
  for (; end - at >= 4; at += 4) memcpy(at, &pattern, 4);
  memcpy(at, &pattern, (size_t)(end - at));
}
static void fill_part(gki_team_job *team_job, uint32_t part) {
  task_job *job = (task_job *)team_job;
  run_chunks(job, part, &(own_work){.run = fill_bytes});
}

static bool overlap(const char *a, const char *b, size_t bytes) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return (x < y ? y - x : x - y) < bytes;
}

static void set_bytes(const gki_runner *runner, const gki_op *op, task_job *job) {
  const gki_program *program = runner->program;
  const gk_node *node = &program->plan->nodes[op->node];
  const gk_slot_desc *to = &program->plan->slots[program->plan->args[node->args]];
  job->bytes[0].ptr = (char *)job->args[0].ptr + node->offset;
  if (op->kind == GKI_COPY) job->bytes[1].ptr = (char *)job->args[1].ptr + node->from_offset;
  else job->bytes[1].u32 = node->pattern;
  job->args = job->bytes;
  job->range.end *= to->element_bytes ? to->element_bytes : 1; /* fewer than 2^31 elements of fewer than 2^32 bytes */
}

/* ---- one op ------------------------------------------------------------------------------------------------------ */

static void run_alone(task_job *job) {
  cut_parts(job, 1, 0);
  if (job->sums && job->sums->exact) job->partials = 1;
  job->team_job.work(&job->team_job, 0);
}

enum { TASKS_TIMED_EVERY = 16 /* a shared task that isn't long is timed once in so many executions */ };

static void share_out(gki_runner *runner, task_job *job) {
  for (uint32_t k = 0; k < job->parts && job->chunks > 1; ++k)
    atomic_store_explicit(taken_of(job, k), 0, memory_order_relaxed); /* ringing the bell publishes it */
  gki_team_post(&runner->program->device->team, &job->team_job, runner->first, runner->count, job->parts);
}

/* Learns from the times of a shared task: the cost of an item, and the time of waking the team or of a dispatch. */
static void learn_shared(gki_runner *runner, const task_job *job, gki_op *op, uint64_t posted, uint64_t begun,
                         uint64_t ended) {
  gki_openmp_device *device = runner->program->device;
  const uint64_t joined = gki_now_ns();
  const size_t own = has_ordered_sums(job) ? job->range.end * (job->partials / job->parts) / job->partials
                                            : chunk_of(job, 0, 0).end;
  if (job->chunks > 1) gki_openmp_learn(device, op, job->range.end, job->spent_ns);
  else gki_openmp_learn(device, op, own, ended - begun);
  uint64_t woken_at = atomic_load_explicit(&job->team_job.woken_at, memory_order_relaxed);
  if (woken_at) {
    if (runner->top) gki_openmp_adapt_wake(device, (float)(woken_at - posted));
    gki_openmp_reconsider(runner);
  } else if ((float)(ended - begun) < fmaxf(runner->dispatch_ns, 8 * device->dispatch_floor_ns)) {
    /* With longer work the difference is that of uneven parts. Learned as a dispatch, it would raise this limit. */
    gki_openmp_adapt_dispatch(runner, (float)(joined - posted - (ended - begun)));
  }
}

static void run_shared(gki_runner *runner, task_job *job, gki_op *op) {
  const gki_team *team = &runner->program->device->team;
  const size_t most = has_ordered_sums(job) ? job->partials : job->range.end;
  const uint32_t parts = most < runner->count ? (uint32_t)most : runner->count;
  job->team_job.part_ns = (float)job->range.end * op->cost_ns / (float)parts;
  job->first = runner->first;
  job->count = runner->count;
  cut_parts(job, parts, job->team_job.part_ns);
  if (job->sums && job->sums->exact) job->partials = parts;
  if (op->countdown > TASKS_TIMED_EVERY) op->countdown = TASKS_TIMED_EVERY; /* it wasn't shared until now */
  /* Reading the clock six times takes a good part of a dispatch, but little of a long task. */
  const bool timed = op->countdown <= 1 || op->timed == 0 || job->team_job.part_ns >= LONG_NS ||
                     gki_team_sleeps(team, gki_team_slot_of(runner->first, runner->count, parts - 1, parts));
  job->timed = timed;
  const uint64_t posted = timed ? gki_now_ns() : 0;
  share_out(runner, job);
  const uint64_t begun = timed ? gki_now_ns() : 0;
  job->team_job.work(&job->team_job, 0);
  const uint64_t ended = timed ? gki_now_ns() : 0;
  gki_team_wait(team, &job->team_job);
  if (timed) learn_shared(runner, job, op, posted, begun, ended);
  else --op->countdown;
}

static gki_outcome call(gki_runner *runner, const gki_op *op) {
  gki_program *program = runner->program;
  const gk_node *node = &program->plan->nodes[op->node];
  gki_begin();
  const gk_result result = gki_call_task(node, program->args + op->args, NULL);
  return result == GK_OK ? GKI_DONE : gki_openmp_fail(program, result);
}

/* Whether the known number of elements of a COPY or FILL fits into memory, so that no check is left. */
static bool fits(const gki_runner *runner, const gki_op *op) {
  const gk_plan *plan = runner->program->plan;
  const gk_node *node = &plan->nodes[op->node];
  const uint32_t *slots = plan->args + node->args, element = plan->slots[*slots].element_bytes;
  const uint64_t bytes = op->range.end * (element ? element : 1);
  const size_t *capacity = runner->launch->capacity;
  if (!capacity) return true;
  return bytes + node->offset <= capacity[slots[0]] &&
         (op->kind == GKI_FILL || bytes + node->from_offset <= capacity[slots[1]]);
}

/* Checks a count that may be too large: read from memory now, above INT32_MAX, or beyond the end of memory. */
static gk_result check_count(const gki_runner *runner, const gki_op *op, gk_range *range) {
  int64_t extent[3];
  uint64_t items;
  gki_begin();
  gki_openmp_extents(runner->program, op, runner->launch->values, extent);
  gk_result result = gk_check_count(runner->program->plan, op->node, runner->launch, extent, &items);
  *range = (gk_range){0, (size_t)items, {(uint32_t)extent[0], (uint32_t)extent[1], (uint32_t)extent[2]}};
  return result;
}

/* Makes a job that isn't cut yet, maybe without items. */
static gk_result make_job(const gki_runner *runner, const gki_op *op, task_job *job) {
  const gki_program *program = runner->program;
  const gk_node *node = &program->plan->nodes[op->node];
  *job = (task_job){.program = program, .args = program->args + op->args, .arg_count = node->arg_count,
                   .host = op->host, .range = op->range, .team_job.work = run_part};
  if (op->bits & (GKI_READS | GKI_TOO_MANY) || (op->kind > GKI_KERNEL && node->items[0] && !fits(runner, op))) {
    gk_result result = check_count(runner, op, &job->range);
    if (result != GK_OK) return result;
  }
  if (job->range.end == 0) return GK_OK;
  if (op->kind > GKI_KERNEL) {
    set_bytes(runner, op, job);
    job->team_job.work = op->kind == GKI_COPY ? copy_part : fill_part;
  } else if (op->more) {
    cut_sums(runner, op, job);
  }
  return GK_OK;
}

static bool is_divisible(const gki_op *op, const task_job *job) {
  if (op->kind == GKI_COPY && overlap(job->args[0].ptr, job->args[1].ptr, job->range.end)) return false;
  return has_ordered_sums(job) ? job->partials > 1 : job->range.end > 1;
}

/* alone_ns: the time on one thread. Asks again after a start of the team, which changes runner->break_even_ns. */
static bool is_worth_sharing(gki_runner *runner, float alone_ns) {
  gki_advice advice = GKI_HAS_STARTED;
  while (advice == GKI_HAS_STARTED && alone_ns >= runner->break_even_ns)
    advice = gki_openmp_advise(runner, (alone_ns / runner->break_even_ns - 1) * runner->dispatch_ns);
  return advice == GKI_SHARE;
}

static void run_alone_timed(gki_runner *runner, gki_op *op, task_job *job, float alone_ns) {
  const uint64_t begun = gki_now_ns();
  run_alone(job);
  gki_openmp_learn(runner->program->device, op, job->range.end, gki_now_ns() - begun);
  /* It would be shared if a dispatch took GKI_DISPATCH_NS, so the longer expected time matters. */
  if (alone_ns < runner->break_even_ns && alone_ns > 2 * GKI_DISPATCH_NS) gki_openmp_reconsider(runner);
}

gki_outcome gki_openmp_execute(gki_runner *runner, gki_op *op) {
  task_job job;
  if (op->kind == GKI_CALL) return call(runner, op);
  const gk_result result = make_job(runner, op, &job);
  if (result != GK_OK) return gki_openmp_fail(runner->program, result);
  if (job.range.end == 0) return GKI_DONE;
  const float alone_ns = (float)job.range.end * op->cost_ns;
  const bool divisible = is_divisible(op, &job);
  if (divisible && is_worth_sharing(runner, alone_ns)) {
    run_shared(runner, &job, op);
  } else if (divisible && runner->break_even_ns < INFINITY &&
             (alone_ns >= runner->break_even_ns || op->countdown <= 1)) {
    run_alone_timed(runner, op, &job, alone_ns);
  } else {
    op->countdown = op->countdown > 1 ? (uint16_t)(op->countdown - 1) : UINT16_MAX;
    run_alone(&job);
  }
  if (job.sums) add_up(&job);
  return GKI_DONE;
}
