#include "fake_backend.h"
#include "device/watch.h"
#include "base/error.h"

const char *const fake_names[FAKE_MODES] = {"fake_in_process", "fake_native", "fake_batched"};
static const char *const entry_names[FAKE_ENTRIES] = {"open", "close",  "alloc",  "free",   "copy", "load",
                                                      "unload", "lower", "drop",   "launch", "wait", "cancel",
                                                      "run",    "submit", "read_flag", "dump"};

enum { DEVICES = 2, PENDING = 64, RING = 16, SECTIONS = 8, LOOPS = 64 /* whose pass numbers it has */ };
static const uintptr_t address_offset = (uintptr_t)1 << 62; /* added to addresses, so that the host can't use them */

static struct {
  pthread_cond_t going;
  unsigned calls[FAKE_ENTRIES], fail_in;
  fake_entry fail_entry;
  gk_result fail_code;
  bool fail_silently, held;
} fake = {.going = PTHREAD_COND_INITIALIZER}; /* watch.lock */

void fake_reset(void) {
  LOCKED(memset(fake.calls, 0, sizeof fake.calls), fake.fail_in = 0, fake.held = false, watch.broken[0] = 0,
         pthread_cond_broadcast(&fake.going));
}

static unsigned locked(const unsigned *number) {
  unsigned value;
  LOCKED(value = *number);
  return value;
}

unsigned fake_calls(fake_entry entry) { return locked(&fake.calls[entry]); }
unsigned fake_failures_left(void) { return locked(&fake.fail_in); }
unsigned fake_leaks(void) { return leaks(); }
const char *fake_broken(void) { return watch.broken; }

void fake_fail(fake_entry entry, unsigned nth, gk_result code, bool silent) {
  LOCKED(fake.fail_entry = entry, fake.fail_in = nth, fake.fail_code = code, fake.fail_silently = silent);
}

void fake_hold(void) { LOCKED(fake.held = true); }
void fake_go(void) { LOCKED(fake.held = false, pthread_cond_broadcast(&fake.going)); }

static void while_held(void) {
  pthread_mutex_lock(&watch.lock);
  while (fake.held) pthread_cond_wait(&fake.going, &watch.lock);
  pthread_mutex_unlock(&watch.lock);
}

static void called(fake_entry entry) {
  pthread_testcancel(); /* as in a driver that waits */
  LOCKED(++fake.calls[entry]);
}

static gk_result called_or_failed(fake_entry entry) {
  bool silent, fails;
  gk_result code;
  called(entry);
  LOCKED(silent = fake.fail_silently, fails = fake.fail_entry == entry || fake.fail_entry == FAKE_ENTRIES,
         code = fake.fail_in && fails && --fake.fail_in == 0 ? fake.fail_code : GK_OK);
  return code == GK_OK || silent ? code : gk_fail(code, "fake: %s failed on request", entry_names[entry]);
}

typedef struct block { struct block *next; uintptr_t at; size_t bytes; } block;
typedef struct pending { struct graph *graph; uint32_t run; } pending;

/* A launch on the native device's thread. */
typedef struct ride {
  struct ride *next;
  struct graph *graph;
  gk_launch_args args;
  gk_launch_result record;
  gk_result result;
  char message[300];
  bool over;
} ride;

typedef struct device {
  fake_mode mode;
  int ordinal;
  bool opened;
  pthread_mutex_t lock; /* of what follows */
  block *blocks;
  atomic_uint graphs, codes;
  pthread_mutex_t work_lock; /* held while pending runs are run */
  pending pending[PENDING];
  unsigned pending_count;
  pthread_t thread;
  pthread_cond_t changed;
  ride *first;
  bool ending;
} device;

typedef struct graph {
  device *device;
  const gk_plan *plan;
  atomic_flag in_call;
  gk_launch_args args;
  uint64_t launched, waited;
  gk_result late; /* of a run that was submitted */
  char late_message[300];
  int32_t passes[LOOPS];
  ride rides[RING];
} graph;

static void *ride_all(void *at);

static gk_result fake_open(void *state, const gk_device_desc *desc) {
  device *d = state;
  gk_result result = called_or_failed(FAKE_OPEN);
  if (result != GK_OK) return result;
  broken_if(!desc->backend, "open: desc->backend is NULL");
  broken_unless_zeroed(d, sizeof *d, "open: the state isn't zeroed");
  if (desc->ordinal >= DEVICES) return gk_fail(GK_ERROR_NO_DEVICE, "fake: there are %d devices", DEVICES);
  while (strcmp(fake_names[d->mode], desc->backend) != 0) ++d->mode;
  d->ordinal = desc->ordinal;
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->work_lock, NULL);
  pthread_cond_init(&d->changed, NULL);
  if (d->mode == FAKE_NATIVE && pthread_create(&d->thread, NULL, ride_all, d) != 0)
    return gk_fail(GK_ERROR_MEMORY, "fake: no thread");
  d->opened = true;
  leak(1);
  return GK_OK;
}

static void fake_close(void *state) {
  device *d = state;
  called(FAKE_CLOSE);
  if (!d->opened) return;
  pthread_mutex_lock(&d->lock);
  broken_if(d->blocks != NULL, "close: memory wasn't freed");
  broken_if(d->graphs != 0, "close: a graph wasn't dropped");
  broken_if(d->codes != 0, "close: a kernel's code wasn't unloaded");
  broken_if(d->first || d->pending_count, "close: work is under way");
  d->ending = true;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
  if (d->mode == FAKE_NATIVE) pthread_join(d->thread, NULL);
  pthread_cond_destroy(&d->changed);
  pthread_mutex_destroy(&d->work_lock);
  pthread_mutex_destroy(&d->lock);
  d->opened = false;
  leak(-1);
}

static void fake_describe(void *state, gk_device_info *info) {
  static const gk_capability capabilities[] = {{"WHILE", GK_ON_HOST, "it is a fake"},
                                               {"PARALLEL", GK_IN_SERIES, "it is a fake"},
                                               {"LAUNCH_ON", GK_REFUSED, "it is a fake"}};
  device *d = state;
  broken_if(!info->backend, "describe: info->backend is NULL");
  info->name = d->ordinal == 0 ? "first fake" : "second fake";
  info->driver = "fake 1";
  info->ordinal = d->ordinal;
  info->capability_count = GK_COUNT(capabilities);
  info->capabilities = capabilities;
}

static bool has_own_addresses(const device *d) { return d->mode == FAKE_BATCHED; }

/* Where device memory is. A batched device knows its memory by its blocks; any other address is the host's. */
static void *here(void *state, const void *address, size_t bytes) {
  device *d = state;
  uintptr_t at = (uintptr_t)address;
  if (!has_own_addresses(d)) return (void *)at;
  pthread_mutex_lock(&d->lock);
  const block *b = d->blocks;
  while (b && (at < b->at || at - b->at >= b->bytes || bytes > b->bytes - (at - b->at))) b = b->next;
  pthread_mutex_unlock(&d->lock);
  broken_if(!b, "an address that is no memory of the device");
  return b ? (void *)(at - address_offset) : NULL;
}

static gk_result fake_alloc(void *state, size_t bytes, gk_memory kind, void **memory) {
  device *d = state;
  gk_result result = called_or_failed(FAKE_ALLOC);
  if (result != GK_OK) return result;
  broken_by_alloc(bytes, kind);
  if (bytes > 1u << 30) return gk_fail(GK_ERROR_MEMORY, "fake: %zu bytes are more than this device has", bytes);
  block *b = malloc(sizeof *b);
  void *at = NULL;
  if (!b || posix_memalign(&at, 256, bytes) != 0) abort();
  memset(at, 0xA5, bytes);
  *b = (block){NULL, (uintptr_t)at + (has_own_addresses(d) ? address_offset : 0), bytes};
  HOLDING(&d->lock, b->next = d->blocks, d->blocks = b);
  leak(1);
  *memory = (void *)b->at;
  return GK_OK;
}

static void fake_free(void *state, void *memory) {
  device *d = state;
  called(FAKE_FREE);
  pthread_mutex_lock(&d->lock);
  broken_if(d->first || d->pending_count, "free: what was launched may still use the memory");
  block **at = &d->blocks;
  while (*at && (*at)->at != (uintptr_t)memory) at = &(*at)->next;
  block *b = *at;
  broken_if(!b, "free: memory that alloc didn't give, or that is freed already");
  if (b) *at = b->next;
  pthread_mutex_unlock(&d->lock);
  if (!b) return;
  free((void *)(b->at - (has_own_addresses(d) ? address_offset : 0)));
  free(b);
  leak(-1);
}

static gk_result fake_reaches(void *state, const void *memory) {
  return (void)state, (void)memory, pthread_testcancel(), GK_OK;
}

static void *fake_host_address(void *state, void *memory) { return has_own_addresses(state) ? NULL : memory; }

static bool fake_takes(const gk_kernel *kernel) { return kernel->host != NULL; }

static gk_result fake_load(void *state, const gk_kernel *kernel, void **code) {
  device *d = state;
  gk_result result = called_or_failed(FAKE_LOAD);
  if (result != GK_OK) return result;
  const gk_kernel **made = malloc(sizeof *made);
  if (!made) abort();
  *made = kernel;
  *code = made;
  ++d->codes;
  leak(1);
  return GK_OK;
}

static void fake_unload(void *state, void *code) {
  device *d = state;
  called(FAKE_UNLOAD);
  free(code);
  --d->codes;
  leak(-1);
}

static device_tasks tasks_of(graph *g, const gk_launch_args *launch) {
  return (device_tasks){g->plan, launch->values, launch->capacity, here, g->device, NULL, true};
}

static gk_result run_run(graph *g, const gk_launch_args *launch, uint32_t run) {
  while_held();
  device_tasks tasks = tasks_of(g, launch);
  gk_result result = GK_OK;
  for (uint32_t k = g->plan->runs[run].begin; k < g->plan->runs[run].end && result == GK_OK; ++k)
    result = device_run_node(&tasks, k);
  return result;
}

static int32_t flag_of(graph *g, const gk_launch_args *launch, uint32_t node) {
  device_tasks tasks = tasks_of(g, launch);
  int32_t flag = 0;
  device_read_flag(&tasks, node, &flag);
  return flag;
}

static gk_result fake_lower(void *device_state, void *state, const gk_plan *plan, void *const *code, gk_mode *mode) {
  static const gk_mode modes[FAKE_MODES] = {GK_MODE_IN_PROCESS, GK_MODE_NATIVE, GK_MODE_BATCHED};
  graph *g = state;
  broken_unless_zeroed(g, sizeof *g, "lower: the state isn't zeroed");
  g->device = device_state;
  ++g->device->graphs;
  leak(1);
  gk_result result = called_or_failed(FAKE_LOWER);
  if (result != GK_OK) return result;
  g->plan = plan;
  atomic_flag_clear(&g->in_call);
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_kernel *kernel = plan->nodes[k].op == GK_OP_KERNEL ? plan->nodes[k].kernel : NULL;
    broken_if(!code[k] != !kernel || (kernel && *(const gk_kernel **)code[k] != kernel),
              "lower: not the kernel's code");
  }
  for (int k = 0; k < RING && g->device->mode == FAKE_NATIVE; ++k) {
    if (!record_open(&g->rides[k].record, plan)) return gk_fail(GK_ERROR_MEMORY, "fake: no memory");
    g->rides[k].over = true;
  }
  *mode = modes[g->device->mode];
  return GK_OK;
}

static void fake_drop(void *state) {
  graph *g = state;
  called(FAKE_DROP);
  pthread_mutex_lock(&g->device->lock);
  broken_if(g->device->graphs-- == 0, "drop: of a graph that was dropped already");
  broken_if(g->launched != g->waited, "drop: a launch wasn't waited for");
  for (unsigned k = 0; k < g->device->pending_count; ++k)
    broken_if(g->device->pending[k].graph == g, "drop: a run is still to be run");
  pthread_mutex_unlock(&g->device->lock);
  for (int k = 0; k < RING; ++k) record_close(&g->rides[k].record);
  leak(-1);
}

static gk_result walk_on(graph *g, const gk_launch_args *launch, gk_walk *walk);

/* The last section first: they have no order. */
static gk_result walk_sections(graph *g, const gk_launch_args *launch, gk_walk *walk, uint32_t parallel) {
  const gk_node *nodes = g->plan->nodes;
  gk_result result = GK_OK;
  for (uint32_t first = parallel + 1; first < nodes[parallel].end && result == GK_OK;) {
    gk_walk walks[SECTIONS];
    uint32_t count = 0;
    for (; first < nodes[parallel].end && count < SECTIONS; first = nodes[first].end)
      gk_walk_fork(walk, first, &walks[count++]);
    for (uint32_t k = count; k-- > 0 && result == GK_OK;) result = walk_on(g, launch, &walks[k]);
    for (uint32_t k = 0; k < count && result == GK_OK; ++k) gk_walk_join(walk, &walks[k]);
  }
  return result;
}

static gk_result walk_on(graph *g, const gk_launch_args *launch, gk_walk *walk) {
  gk_result result = GK_OK;
  for (int64_t answer = 0; result == GK_OK;) {
    gk_step step = gk_walk_next(walk, answer);
    answer = 0;
    if (step.kind == GK_STEP_END) break;
    if (step.kind == GK_STEP_FLAG) answer = flag_of(g, launch, step.at);
    else if (step.kind == GK_STEP_PASS) g->passes[g->plan->nodes[step.at].loop] = (int32_t)step.passes;
    else if (step.kind == GK_STEP_FORK) result = walk_sections(g, launch, walk, step.at);
    else result = run_run(g, launch, step.at);
  }
  return result;
}

static gk_result walk_launch(graph *g, const gk_launch_args *launch, gk_launch_result *record) {
  gk_walk walk;
  for (uint32_t k = 0; k < g->plan->loop_count && k < LOOPS; ++k) g->passes[k] = (int32_t)launch->entries[k];
  const uint32_t takes = 1u << GK_STEP_FORK | (g->device->mode == FAKE_NATIVE ? 1u << GK_STEP_PASS : 0);
  gk_walk_start(&walk, g->plan, launch, takes, record);
  return walk_on(g, launch, &walk);
}

static void *fake_pass(void *at, uint32_t k) { return &((graph *)at)->passes[((graph *)at)->plan->nodes[k].loop]; }

static gk_result fake_run(void *state, const gk_launch_args *launch, gk_launch_result *record) {
  graph *g = state;
  enter(&g->in_call);
  broken_by_args(g->plan, launch, ++g->launched);
  ++g->waited;
  gk_result result = called_or_failed(FAKE_RUN);
  return leave(&g->in_call, result == GK_OK ? walk_launch(g, launch, record) : result);
}

static void *ride_all(void *at) {
  device *d = at;
  pthread_mutex_lock(&d->lock);
  for (;;) {
    while (!d->first && !d->ending) pthread_cond_wait(&d->changed, &d->lock);
    if (!d->first) break;
    ride *r = d->first;
    pthread_mutex_unlock(&d->lock);
    while_held();
    gki_begin();
    r->result = walk_launch(r->graph, &r->args, &r->record);
    if (r->result != GK_OK) snprintf(r->message, sizeof r->message, "%s", gk_error());
    pthread_mutex_lock(&d->lock);
    d->first = r->next;
    r->over = true;
    pthread_cond_broadcast(&d->changed);
  }
  pthread_mutex_unlock(&d->lock);
  return NULL;
}

static gk_result native_launch(graph *g, const gk_launch_args *launch) {
  device *d = g->device;
  ride *r = &g->rides[(launch->launch - 1) % RING];
  pthread_mutex_lock(&d->lock);
  broken_if(!r->over, "launch: more than 16 of a graph");
  *r = (ride){.graph = g, .args = *launch, .record = r->record};
  record_clear(&r->record, g->plan);
  ride **last = &d->first;
  while (*last) last = &(*last)->next;
  *last = r;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
  return GK_OK;
}

static gk_result fake_wait(void *state, bool blocks, gk_launch_result *record) {
  graph *g = state;
  enter(&g->in_call);
  device *d = g->device;
  broken_if(g->waited == g->launched, "wait: for more launches than there were");
  gk_result result = called_or_failed(FAKE_WAIT);
  ride *r = &g->rides[g->waited % RING];
  pthread_mutex_lock(&d->lock);
  while (!r->over && (blocks || result != GK_OK)) pthread_cond_wait(&d->changed, &d->lock);
  bool over = r->over;
  pthread_mutex_unlock(&d->lock);
  if (!over) return leave(&g->in_call, GK_NOT_READY);
  ++g->waited;
  if (result != GK_OK) return leave(&g->in_call, result);
  if (r->result != GK_OK) return leave(&g->in_call, gk_fail(r->result, "%s", r->message));
  record_copy(record, &r->record, g->plan);
  return leave(&g->in_call, GK_OK);
}

/* The launches read their word themselves. */
static gk_result fake_cancel(void *state) { return (void)state, called_or_failed(FAKE_CANCEL); }

/* Runs what was submitted, or waits for the thread that does. */
static void settle(device *d) {
  pthread_mutex_lock(&d->work_lock);
  for (unsigned k = 0; k < d->pending_count; ++k) {
    graph *g = d->pending[k].graph;
    if (g->late != GK_OK) continue;
    g->late = run_run(g, &g->args, d->pending[k].run);
    if (g->late != GK_OK) snprintf(g->late_message, sizeof g->late_message, "%s", gk_error());
  }
  pthread_mutex_lock(&d->lock);
  d->pending_count = 0;
  pthread_mutex_unlock(&d->work_lock);
  while (d->first) pthread_cond_wait(&d->changed, &d->lock);
  pthread_mutex_unlock(&d->lock);
}

static gk_result fake_copy(void *state, gk_direction direction, void *to, const void *from, size_t bytes) {
  device *d = state;
  gk_result result = called_or_failed(FAKE_COPY);
  if (result != GK_OK) return result;
  broken_if(bytes == 0, "copy: 0 bytes");
  settle(d);
  void *target = direction == GK_TO_HOST ? to : here(d, to, bytes);
  if (!target) return GK_ERROR_DEVICE;
  if (direction == GK_ZERO) memset(target, 0, bytes);
  else memmove(target, direction == GK_TO_DEVICE ? from : here(d, from, bytes), bytes);
  return GK_OK;
}

static gk_result fake_launch(void *state, const gk_launch_args *launch) {
  graph *g = state;
  enter(&g->in_call);
  gk_result result = called_or_failed(FAKE_LAUNCH);
  broken_by_args(g->plan, launch, ++g->launched);
  if (g->device->mode == FAKE_NATIVE) {
    if (result == GK_OK) return leave(&g->in_call, native_launch(g, launch));
    g->rides[(launch->launch - 1) % RING].over = true;
    ++g->waited; /* common mustn't wait for it */
    return leave(&g->in_call, result);
  }
  for (unsigned k = 0; k < g->device->pending_count; ++k)
    broken_if(g->device->pending[k].graph == g, "launch: a run of the one before is still to be run");
  g->waited = g->launched;
  g->args = *launch;
  g->late = GK_OK;
  return leave(&g->in_call, result);
}

static gk_result fake_submit(void *state, uint32_t run) {
  graph *g = state;
  device *d = g->device;
  enter(&g->in_call);
  broken_if(!g->launched, "submit: before launch");
  broken_if(run >= g->plan->run_count, "submit: no such run");
  gk_result result = called_or_failed(FAKE_SUBMIT);
  if (result == GK_OK && d->pending_count == PENDING) settle(d);
  if (result == GK_OK) HOLDING(&d->lock, d->pending[d->pending_count++] = (pending){g, run});
  return leave(&g->in_call, result);
}

static gk_result fake_read_flag(void *state, uint32_t node, int32_t *flag) {
  graph *g = state;
  enter(&g->in_call);
  gk_result result = called_or_failed(FAKE_READ_FLAG);
  settle(g->device);
  if (result == GK_OK && g->late != GK_OK) result = gk_fail(g->late, "%s", g->late_message);
  if (result == GK_OK && g->plan->nodes[node].flag) *flag = flag_of(g, &g->args, node);
  return leave(&g->in_call, result);
}

static char *fake_dump(void *state, const char *format) {
  graph *g = state;
  enter(&g->in_call);
  called(FAKE_DUMP);
  char *text = dump_runs(g->plan, format);
  leave(&g->in_call, GK_OK);
  return text;
}

#define COMMON() \
  .abi = GK_BACKEND_ABI, .bytes = sizeof(gk_backend), .device_bytes = sizeof(device), .graph_bytes = sizeof(graph), \
  .open = fake_open, .close = fake_close, .describe = fake_describe, .alloc = fake_alloc, .free = fake_free, \
  .copy = fake_copy, .host_address = fake_host_address, .takes = fake_takes, .load = fake_load, .unload = fake_unload, \
  .lower = fake_lower, .drop = fake_drop, .dump = fake_dump, .reaches = fake_reaches, .pass = fake_pass

void fake_register(void) {
  static const gk_backend tables[FAKE_MODES] = {
    [FAKE_IN_PROCESS] = {COMMON(), .name = "fake_in_process", .run = fake_run},
    [FAKE_NATIVE] = {COMMON(), .name = "fake_native", .launch = fake_launch, .wait = fake_wait, .cancel = fake_cancel},
    [FAKE_BATCHED] = {COMMON(), .name = "fake_batched", .launch = fake_launch, .submit = fake_submit,
                      .read_flag = fake_read_flag},
  };
  static bool done;
  for (int k = 0; k < FAKE_MODES && !done; ++k)
    if (gk_backend_register(&tables[k]) != GK_OK) abort();
  done = true;
}
