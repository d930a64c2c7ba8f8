#include "parts.h"
#include "unit/support/chance.h"
#include "watch.h"
#include <sys/mman.h>

enum { DEVICES = 2, STRUCT_UNIT = 64 };
static const size_t apart_bytes = (size_t)1 << 34, most_bytes = (size_t)1 << 30; /* a device's addresses; a block */

/* ---- what the tests ask for, and see ----------------------------------------------------------------------------- */

static struct { uint64_t seed; unsigned long calls, fail_at; gk_result code; test_device_how how; } asked; /* locked */

void test_device_seed(uint64_t seed) { LOCKED(asked.seed = seed); }
void test_device_fail_at(unsigned long call, gk_result code) {
  LOCKED(asked.calls = 0, asked.fail_at = call, asked.code = code);
}
void test_device_fail_how(test_device_how how) { LOCKED(asked.how = how); }
unsigned long test_device_calls(void) {
  unsigned long calls;
  LOCKED(calls = asked.calls);
  return calls;
}
unsigned test_device_leaks(void) { return leaks(); }
const char *test_device_broken(void) { return watch.broken; }
void test_device_forgive(void) { LOCKED(watch.broken[0] = 0); }

/* An entry that can fail begins. late: where a failure may come later, and how it was asked for; else NULL. */
static gk_result begin(device *d, const char *entry, gk_result *late) {
  bool fails, lost = false;
  gk_result code;
  test_device_how how;
  LOCKED(fails = ++asked.calls == asked.fail_at, code = asked.code, how = asked.how);
  if (d->opened) HOLDING(&d->lock, d->lost |= fails && how == TEST_DEVICE_LOST, lost = d->lost && !fails);
  if (lost) return gk_fail(GK_ERROR_DEVICE, "backend test_device: %s: the device is lost; close it", entry);
  if (!fails) return GK_OK;
  if (!late || how != TEST_DEVICE_LATE) return gk_fail(code, "backend test_device: %s failed on request", entry);
  *late = code;
  return GK_OK;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static gk_result open_device(void *state, const gk_device_desc *desc) {
  device *d = state;
  gk_result result = begin(d, "open", NULL);
  if (result != GK_OK) return result;
  broken_if(!desc->backend || strcmp(desc->backend, "test_device") != 0, "open: desc->backend is not its name");
  broken_unless_zeroed(d, sizeof *d, "open: the state isn't zeroed");
  if (desc->next)
    return gk_fail(GK_ERROR_INVALID, "backend test_device: it knows no extension (number %u was given)",
                   (unsigned)desc->next->id);
  if (desc->ordinal >= DEVICES) return gk_fail(GK_ERROR_NO_DEVICE, "backend test_device: it has %d devices", DEVICES);
  void *apart = mmap(NULL, apart_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  d->staging = gk_host_alloc(STAGING);
  if (apart != MAP_FAILED) d->begin = (uintptr_t)apart;
  if (!d->begin || !d->staging) return gk_fail(GK_ERROR_MEMORY, "backend test_device: no memory for a device");
  d->ordinal = desc->ordinal;
  LOCKED(d->random = asked.seed);
  d->slow = d->random != 0;
  d->random = mix(d->random + (uint64_t)desc->ordinal + 1);
  d->device_random = mix(d->random);
  pthread_mutex_init(&d->lock, NULL);
  pthread_mutex_init(&d->copy_lock, NULL);
  d->batch = 1;
  if (!test_device_queue_open(d)) {
    pthread_mutex_destroy(&d->copy_lock);
    pthread_mutex_destroy(&d->lock);
    return gk_fail(GK_ERROR_MEMORY, "backend test_device: its thread could not be started for want of memory");
  }
  d->opened = true;
  leak(1);
  return GK_OK;
}

static void close_device(void *state) {
  device *d = state;
  if (d->opened) {
    test_device_queue_close(d);
    broken_if(d->done != d->written, "close: work is under way");
    broken_if(d->block_count != 0, "close: memory wasn't freed");
    broken_if(d->graphs != NULL, "close: a graph wasn't dropped");
    broken_if(d->codes != 0, "close: a kernel's code wasn't unloaded");
    pthread_mutex_destroy(&d->copy_lock);
    pthread_mutex_destroy(&d->lock);
    leak(-1);
  }
  for (size_t k = 0; k < d->block_count; ++k) free(d->blocks[k].at);
  free(d->blocks);
  gk_host_free(d->staging);
  if (d->begin) munmap((void *)d->begin, apart_bytes);
}

static void describe(void *state, gk_device_info *info) {
  static const gk_capability capabilities[] = {
    {"KERNEL", GK_NATIVE, "Its host function, for parts of the items, on the device's thread."},
    {"DO_WHILE", GK_BATCHED, "Several passes are enqueued at once, and those that don't come are skipped."},
    {"WHILE", GK_BATCHED, "As DO_WHILE."},
    {"IF", GK_BATCHED, "Both arms are enqueued; one is skipped."},
    {"SWITCH", GK_BATCHED, "As IF."},
    {"CHECKPOINT", GK_BATCHED, "What is behind it is enqueued; all of that is skipped if it yields."},
    {"PARALLEL", GK_IN_SERIES, "Sections come in any order, interleaved, but never at once."},
    {"CALL", GK_NATIVE, "On the device's thread, and not before it is sure to come."},
    {"LAUNCH_ON", GK_REFUSED, "It has no streams."}};
  device *d = state;
  broken_if(!info->backend, "describe: info->backend is NULL");
  info->name = d->ordinal == 0 ? "first test device" : "second test device";
  info->driver = "test_device 1";
  info->ordinal = d->ordinal;
  info->capability_count = GK_COUNT(capabilities);
  info->capabilities = capabilities;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The first block that ends behind the address. Under the lock. */
static size_t block_at(const device *d, uintptr_t address) {
  size_t low = 0, high = d->block_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (d->blocks[middle].begin + d->blocks[middle].bytes <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

void *test_device_here(void *state, const void *address, size_t bytes) {
  device *d = state;
  uintptr_t at = (uintptr_t)address;
  unsigned char *here = NULL;
  pthread_mutex_lock(&d->lock);
  size_t k = block_at(d, at);
  if (k < d->block_count && at >= d->blocks[k].begin && bytes <= d->blocks[k].bytes - (at - d->blocks[k].begin))
    here = d->blocks[k].at + (at - d->blocks[k].begin);
  pthread_mutex_unlock(&d->lock);
  return here;
}

/* Finds an address for a block, with a gap behind it. Addresses of freed blocks come last. Under the lock; 0: there is
 * none left. */
static uintptr_t place(device *d, size_t bytes) {
  enum { UNIT = 256 };
  for (int search = 0; search < 2; ++search, d->next = 0) {
    uintptr_t at = d->begin + d->next;
    for (size_t k = block_at(d, at); k < d->block_count && d->blocks[k].begin < at + bytes + UNIT; ++k)
      at = (d->blocks[k].begin + d->blocks[k].bytes + UNIT - 1) / UNIT * UNIT + UNIT;
    if (at + bytes + UNIT > d->begin + apart_bytes) continue;
    d->next = (at - d->begin + bytes + UNIT - 1) / UNIT * UNIT + UNIT * (1 + pick(&d->random, 4));
    return at;
  }
  return 0;
}

/* Sets b->begin. Under the lock. */
static bool insert(device *d, block *b) {
  if (d->block_count == d->block_capacity) {
    size_t capacity = 2 * d->block_capacity + 16;
    block *blocks = realloc(d->blocks, capacity * sizeof *blocks);
    if (!blocks) return false;
    d->blocks = blocks;
    d->block_capacity = capacity;
  }
  if (!(b->begin = place(d, b->bytes))) return false;
  size_t k = block_at(d, b->begin);
  memmove(&d->blocks[k + 1], &d->blocks[k], (d->block_count - k) * sizeof *d->blocks);
  d->blocks[k] = *b;
  ++d->block_count;
  return true;
}

static gk_result alloc_memory(void *state, size_t bytes, gk_memory kind, void **memory) {
  device *d = state;
  gk_result result = begin(d, "alloc", NULL);
  if (result != GK_OK) return result;
  broken_by_alloc(bytes, kind);
  block b = {.bytes = bytes, .kind = kind};
  void *at = NULL;
  if (bytes <= most_bytes && posix_memalign(&at, 256, bytes) == 0) b.at = at; /* of just this size, for ASan */
  if (!b.at) return gk_fail(GK_ERROR_MEMORY, "backend test_device: out of memory: %zu bytes", bytes);
  memset(b.at, 0xA5, bytes);
  pthread_mutex_lock(&d->lock);
  if (insert(d, &b)) *memory = (void *)b.begin;
  else free(b.at);
  pthread_mutex_unlock(&d->lock);
  if (!b.begin) return gk_fail(GK_ERROR_MEMORY, "backend test_device: out of memory: %zu bytes", bytes);
  leak(1);
  return GK_OK;
}

/* Whether a launch that is under way has the block among its slots. Under the lock. */
static bool is_used(const device *d, const block *b) {
  for (const graph *g = d->graphs; g; g = g->next)
    for (uint32_t k = 1; g->running && k < g->plan->slot_count; ++k) {
      uintptr_t at = (uintptr_t)g->values[k].ptr;
      if (g->plan->slots[k].type == GK_PTR && at >= b->begin && at - b->begin < b->bytes) return true;
    }
  return false;
}

static void free_memory(void *state, void *memory) {
  device *d = state;
  unsigned char *at = NULL;
  pthread_mutex_lock(&d->lock);
  size_t k = block_at(d, (uintptr_t)memory);
  bool known = k < d->block_count && d->blocks[k].begin == (uintptr_t)memory;
  if (known) {
    at = d->blocks[k].at;
    broken_if(is_used(d, &d->blocks[k]), "free: what was launched may still use the memory");
    memset(at, 0xDB, d->blocks[k].bytes);
    memmove(&d->blocks[k], &d->blocks[k + 1], (d->block_count - k - 1) * sizeof *d->blocks);
    --d->block_count;
  }
  pthread_mutex_unlock(&d->lock);
  broken_if(!known, "free: memory that alloc didn't give, or that is freed already");
  free(at);
  if (known) leak(-1);
}

static gk_result copy_part(device *d, const command *c) {
  d->copy_result = GK_ERROR_DEVICE; /* should the device be lost before */
  test_device_wait(d, test_device_post(d, c));
  if (d->copy_result == GK_OK) return GK_OK;
  const void *at = c->to && (!c->from || !test_device_here(d, c->to, c->bytes)) ? c->to : c->from;
  return gk_fail(GK_ERROR_DEVICE, "backend test_device: copy: %zu bytes at %p are none of this device", c->bytes, at);
}

static gk_result copy_memory(void *state, gk_direction direction, void *to, const void *from, size_t bytes) {
  device *d = state;
  gk_result result = begin(d, "copy", NULL);
  if (result != GK_OK) return result;
  broken_if(bytes == 0, "copy: 0 bytes");
  bool staged = direction == GK_TO_DEVICE || direction == GK_TO_HOST;
  pthread_mutex_lock(&d->copy_lock);
  for (size_t done = 0, part; done < bytes && result == GK_OK; done += part) {
    part = staged && bytes - done > STAGING ? STAGING : bytes - done;
    command c = {.kind = COMMAND_COPY, .direction = direction, .bytes = part};
    if (direction == GK_TO_DEVICE) memcpy(d->staging, (const unsigned char *)from + done, part);
    if (direction != GK_TO_HOST) c.to = (unsigned char *)to + done;
    if (direction == GK_ON_DEVICE || direction == GK_TO_HOST) c.from = (const unsigned char *)from + done;
    result = copy_part(d, &c);
    if (direction == GK_TO_HOST && result == GK_OK) memcpy((unsigned char *)to + done, d->staging, part);
  }
  pthread_mutex_unlock(&d->copy_lock);
  return result;
}

static void *host_address(void *state, void *memory) {
  device *d = state;
  pthread_mutex_lock(&d->lock);
  size_t k = block_at(d, (uintptr_t)memory);
  bool reachable = k < d->block_count && d->blocks[k].kind == GK_HOST_MEMORY;
  pthread_mutex_unlock(&d->lock);
  return reachable ? test_device_here(d, memory, 1) : NULL;
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

typedef struct code { const gk_kernel *kernel; const device *device; } code;
static bool takes(const gk_kernel *kernel) { return kernel->host != NULL; }

static gk_result load(void *state, const gk_kernel *kernel, void **made) {
  device *d = state;
  gk_result result = begin(d, "load", NULL);
  if (result != GK_OK) return result;
  code *c = malloc(sizeof *c);
  if (!c) return gk_fail(GK_ERROR_MEMORY, "backend test_device: no memory for a kernel");
  *c = (code){kernel, d};
  *made = c;
  ++d->codes;
  leak(1);
  return GK_OK;
}

static void unload(void *state, void *made) {
  device *d = state;
  code *c = made;
  broken_if(c->device != d, "unload: another device's code");
  free(c);
  --d->codes;
  leak(-1);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static size_t struct_bytes(const gk_slot_desc *slot) {
  if (slot->type != GK_BYTES) return 0;
  return ((size_t)slot->element_bytes + STRUCT_UNIT - 1) / STRUCT_UNIT * STRUCT_UNIT;
}

static gk_result lower(void *device_state, void *state, const gk_plan *plan, void *const *codes, gk_mode *mode) {
  graph *g = state;
  device *d = device_state;
  broken_unless_zeroed(g, sizeof *g, "lower: the state isn't zeroed");
  g->device = d;
  g->plan = plan;
  atomic_flag_clear(&g->in_call);
  HOLDING(&d->lock, g->next = d->graphs, d->graphs = g);
  leak(1);
  gk_result result = begin(d, "lower", NULL);
  if (result != GK_OK) return result;
  for (uint32_t k = 0; k < plan->node_count; ++k) {
    const gk_kernel *kernel = plan->nodes[k].op == GK_OP_KERNEL ? plan->nodes[k].kernel : NULL;
    const code *c = codes[k];
    broken_if(!c != !kernel || (c && (c->kernel != kernel || c->device != d)), "lower: not the kernel's code");
  }
  size_t bytes = STRUCT_UNIT;
  for (uint32_t k = 1; k < plan->slot_count; ++k) bytes += struct_bytes(&plan->slots[k]);
  g->values = gk_host_alloc(plan->slot_count * sizeof *g->values);
  g->bytes = gk_host_alloc(bytes);
  if (gk_plan_points(plan, NULL) != GK_OK) return GK_ERROR_MEMORY;
  const size_t state_bytes = plan->points->state_count * sizeof *g->words;
  result = alloc_memory(d, state_bytes, GK_DEVICE_MEMORY, &g->words_at);
  if (result != GK_OK) return result;
  g->words = test_device_here(d, g->words_at, state_bytes);
  for (uint32_t k = 0; k < TAPES; ++k) g->states[k] = gk_host_alloc(state_bytes);
  if (!g->values || !g->bytes || !g->words || !g->states[0] || !g->states[1])
    return gk_fail(GK_ERROR_MEMORY, "backend test_device: no memory for a graph");
  unsigned char *at = g->bytes + (-(uintptr_t)g->bytes & (STRUCT_UNIT - 1));
  for (uint32_t k = 1; k < plan->slot_count; ++k) {
    if (plan->slots[k].type == GK_BYTES) g->values[k].ptr = at;
    at += struct_bytes(&plan->slots[k]);
  }
  *mode = plan->bits & GK_HOST_GATED ? GK_MODE_BATCHED : GK_MODE_AHEAD;
  return GK_OK;
}

static void drop(void *state) {
  graph *g = state;
  device *d = g->device;
  broken_if(g->running, "drop: a launch wasn't waited for");
  pthread_mutex_lock(&d->lock);
  for (uint64_t k = d->done; k < d->written; ++k)
    broken_if(d->queue[k % QUEUE].graph == g, "drop: something of the graph is still to be run");
  graph **at = &d->graphs;
  while (*at && *at != g) at = &(*at)->next;
  broken_if(!*at, "drop: of a graph that was dropped already");
  if (*at) *at = g->next;
  pthread_mutex_unlock(&d->lock);
  gk_host_free(g->values);
  gk_host_free(g->bytes);
  if (g->words_at) free_memory(d, g->words_at);
  for (uint32_t k = 0; k < TAPES; ++k) gk_host_free(g->states[k]);
  leak(-1);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static void take_over(graph *g, uint32_t slot, const gk_value *value) {
  const gk_slot_desc *desc = &g->plan->slots[slot];
  if (desc->type == GK_BYTES) memcpy(g->values[slot].ptr, value->ptr, desc->element_bytes);
  else g->values[slot] = *value;
}

static bool is_same(const graph *g, uint32_t slot, const gk_value *value) {
  const gk_value *own = &g->values[slot];
  switch (g->plan->slots[slot].type) {
  case GK_BYTES: return memcmp(own->ptr, value->ptr, g->plan->slots[slot].element_bytes) == 0;
  case GK_I32: case GK_U32: case GK_F32: return own->u32 == value->u32;
  case GK_I64: case GK_F64: return own->i64 == value->i64;
  case GK_PTR: case GK_HOST_PTR: return own->ptr == value->ptr;
  default: return true; /* no slot */
  }
}

static gk_result launch(void *state, const gk_launch_args *args) {
  graph *g = state;
  device *d = g->device;
  gk_result late = GK_OK;
  enter(&g->in_call);
  gk_result result = begin(d, "launch", &late);
  const char *rule = device_bad_args(g->plan, args, ++g->launched);
  broken_if(rule, rule ? rule : "");
  broken_if(g->running, "launch: the one before wasn't waited for");
  if (rule || result != GK_OK) return leave(&g->in_call, result);
  pthread_mutex_lock(&d->lock);
  for (uint32_t k = 0; k < args->changed_count; ++k)
    take_over(g, args->changed[k], &args->values[args->changed[k]]);
  g->running = true;
  pthread_mutex_unlock(&d->lock);
  for (uint32_t k = 1; k < g->plan->slot_count; ++k)
    broken_if(!is_same(g, k, &args->values[k]), "launch: a slot changed that is not among those changed");
  g->under_way = 0;
  if (args->state) memcpy(g->words, args->state, g->plan->points->state_count * sizeof *g->words);
  broken_if(!args->state != !!(g->plan->bits & GK_HOST_GATED), "launch: a state without need, or none");
  g->cancel = args->cancel;
  g->capacity = args->capacity;
  g->late = GK_OK;
  if (late != GK_OK) test_device_post(d, &(command){.kind = COMMAND_FAIL, .graph = g, .code = late});
  return leave(&g->in_call, GK_OK);
}

static gk_result submit(void *state, uint32_t run) {
  graph *g = state;
  gk_result late = GK_OK;
  enter(&g->in_call);
  broken_if(!g->running, "submit: before launch");
  broken_if(run >= g->plan->run_count, "submit: no such run");
  gk_result result = begin(g->device, "submit", &late);
  command c = {.kind = late == GK_OK ? COMMAND_RUN : COMMAND_FAIL, .graph = g, .at = run, .code = late};
  if (result == GK_OK) test_device_post(g->device, &c);
  return leave(&g->in_call, result);
}

/* `result`, or else the failure of the launch's work so far. */
static gk_result launch_failure(graph *g, gk_result result) {
  bool lost;
  if (result != GK_OK) return result;
  HOLDING(&g->device->lock, lost = g->device->lost);
  if (lost) return gk_fail(GK_ERROR_DEVICE, "backend test_device: the device was lost meanwhile; close it");
  return g->late == GK_OK ? GK_OK : gk_fail(g->late, "%s", g->late_message);
}

static gk_result read_flag(void *state, uint32_t node, int32_t *flag) {
  graph *g = state;
  device *d = g->device;
  enter(&g->in_call);
  const gk_node *of = &g->plan->nodes[node < g->plan->node_count ? node : 0];
  broken_if(node >= g->plan->node_count || (node && !of->flag && !of->count && of->op != GK_OP_CALL_HOST),
            "read_flag: that node has no flag");
  broken_if(!g->running, "read_flag: before launch");
  gk_result result = begin(d, "read_flag", NULL);
  if (of->flag) test_device_wait(d, test_device_post(d, &(command){.kind = COMMAND_FLAG, .graph = g, .at = node}));
  else test_device_wait(d, 0);
  result = launch_failure(g, result);
  if (result == GK_OK && of->flag) *flag = g->flag;
  HOLDING(&d->lock, g->running &= node != 0);
  return leave(&g->in_call, result);
}

/* Posts the first runs of a tape that may be on the device at once, as one command. @return number of entries */
static uint32_t post_level(graph *g, const uint32_t *runs, uint32_t count, command *c, uint64_t *number) {
  uint32_t level = 1;
  while (level < count && level < LEVEL && runs[level] != GK_NONE && runs[level] & GK_AHEAD_BESIDE) ++level;
  c->count = runs[0] == GK_NONE ? 0 : level;
  for (uint32_t k = 0; k < c->count; ++k) {
    c->runs[k] = runs[k] & ~GK_AHEAD_BESIDE;
    broken_if(c->runs[k] >= g->plan->run_count, "ahead: no such run");
  }
  const uint32_t taken = c->count ? level : 1;
  c->ends_tape = taken == count;
  *number = test_device_post(g->device, c);
  return taken;
}

static gk_result ahead(void *state, const uint32_t *runs, uint32_t count) {
  graph *g = state;
  device *d = g->device;
  gk_result late = GK_OK;
  enter(&g->in_call);
  broken_if(!g->running, "ahead: before launch");
  broken_if(count == 0, "ahead: no runs");
  gk_result result = begin(d, "ahead", &late);
  if (result == GK_OK && g->under_way == TAPES) result = GK_NOT_READY;
  if (result != GK_OK) return leave(&g->in_call, result);
  if (late != GK_OK) test_device_post(d, &(command){.kind = COMMAND_FAIL, .graph = g, .code = late});
  command c = {.kind = COMMAND_LEVEL, .graph = g, .was_cancelled = __atomic_load_n(g->cancel, __ATOMIC_RELAXED) != 0};
  HOLDING(&d->lock, c.ignores_cancel = !(g->plan->bits & GK_CANCELLABLE) && pick(&d->random, 2));
  c.at = (g->first + g->under_way++) % TAPES;
  for (uint32_t k = 0; k < count;) k += post_level(g, runs + k, count - k, &c, &g->tapes[c.at]);
  return leave(&g->in_call, GK_OK);
}

static gk_result read_state(void *state, const uint32_t **words) {
  graph *g = state;
  enter(&g->in_call);
  broken_if(!g->running, "state: before launch");
  broken_if(words && !g->under_way, "state: no tape is under way");
  gk_result result = begin(g->device, "state", NULL);
  test_device_wait(g->device, words ? g->tapes[g->first] : 0);
  result = launch_failure(g, result);
  if (words && result == GK_OK) *words = g->states[g->first];
  g->first = (g->first + 1) % TAPES;
  g->under_way = words && g->under_way ? g->under_way - 1 : 0;
  HOLDING(&g->device->lock, g->running &= words != NULL);
  return leave(&g->in_call, result);
}

static char *dump(void *state, const char *format) {
  graph *g = state;
  enter(&g->in_call);
  char *text = dump_runs(g->plan, format);
  leave(&g->in_call, GK_OK);
  return text;
}

/* For gk_backend_load: it is a module, too. */
const gk_backend *gk_backend_export(void) {
  static const gk_backend backend = {
    .abi = GK_BACKEND_ABI, .bytes = sizeof(gk_backend), .name = "test_device", .device_bytes = sizeof(device),
    .graph_bytes = sizeof(graph), .open = open_device, .close = close_device, .describe = describe,
    .alloc = alloc_memory, .free = free_memory, .copy = copy_memory, .host_address = host_address, .takes = takes,
    .load = load, .unload = unload, .lower = lower, .drop = drop, .launch = launch, .submit = submit,
    .read_flag = read_flag, .ahead = ahead, .state = read_state, .pass = test_device_pass, .dump = dump};
  return &backend;
}

void test_device_register(void) {
  for (size_t k = 0; gk_backend_at(k); ++k)
    if (strcmp(gk_backend_at(k)->name, "test_device") == 0) return;
  if (gk_backend_register(gk_backend_export()) != GK_OK) abort();
}
