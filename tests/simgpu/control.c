/* Environment, counts, calls that fail, and simgpu_control. */
#include "sim.h"
#include "base/fork.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIM_DEVICES_MOST = 4 };

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
GKI_FREE_IN_CHILD(sim_lock)
int sim_version = 13000, sim_device_count = 1, sim_arch = 90;
uint64_t sim_seed = 1, sim_passes = 1000000, sim_memory_bytes = UINT64_C(4) << 30;
bool sim_held, sim_lazy, sim_settles, sim_launch_blocking;
uint64_t sim_busy;
simgpu_counts sim_count;

static uint64_t calls_of[SIM_ENTRIES];
_Thread_local const char *sim_entered = "";
static struct {
  uint64_t left; /* calls until it happens; 0: not asked for */
  CUresult code;
  simgpu_how how;
  bool lost;
  const char *hit;
} failure;

static const char *const entry_names[SIM_ENTRIES] = {
#define NAME(name, version, since, parameters) #name,
  SIM_ALL_ENTRIES(NAME)
#undef NAME
};

/* ---- the environment ---- */

/* "12.4" or "12040" */
static int read_version(const char *text) {
  char *end;
  long major = strtol(text, &end, 10);
  return (int)(*end == '.' ? major * 1000 + strtol(end + 1, NULL, 10) * 10 : major);
}

/* "k", "k:code" or "k:code:how" */
static void read_failure(const char *text) {
  char *end;
  failure.left = strtoull(text, &end, 10);
  failure.code = *end == ':' ? (CUresult)strtol(end + 1, &end, 10) : CUDA_ERROR_UNKNOWN;
  failure.how = strcmp(end, ":late") == 0 ? SIMGPU_LATE : strcmp(end, ":lost") == 0 ? SIMGPU_LOST : SIMGPU_NOW;
}

static uint64_t number_or(const char *name, uint64_t other) {
  const char *text = getenv(name);
  return text && *text ? strtoull(text, NULL, 0) : other;
}

__attribute__((constructor))
static void read_environment(void) {
  const char *version = getenv("SIMGPU_VERSION"), *fails = getenv("SIMGPU_FAIL");
  if (version && *version) sim_version = read_version(version);
  if (fails && *fails) read_failure(fails);
  sim_seed = number_or("SIMGPU_SEED", sim_seed);
  sim_passes = number_or("SIMGPU_PASSES", sim_passes);
  sim_memory_bytes = number_or("SIMGPU_MEMORY", sim_memory_bytes);
  sim_arch = (int)number_or("SIMGPU_ARCH", (uint64_t)sim_arch);
  sim_busy = number_or("SIMGPU_BUSY", 0);
  sim_launch_blocking = number_or("CUDA_LAUNCH_BLOCKING", 0) != 0;
  sim_device_count = (int)number_or("SIMGPU_DEVICES", (uint64_t)sim_device_count);
  if (sim_device_count > SIM_DEVICES_MOST) sim_device_count = SIM_DEVICES_MOST;
  sim_rules_read();
}

/* ---- entering ---- */

static bool is_counted(sim_entry entry) { return entry != SIM_cuGetErrorName && entry != SIM_cuGetErrorString; }

static void fail_late(CUresult code) {
  sim_context *context = sim_current_or_null();
  for (int ordinal = 0; !context && ordinal < sim_device_count; ++ordinal) context = sim_devices[ordinal].primary;
  if (context) context->late = code;
}

pthread_mutex_t *sim_arrive(const char *entry) {
  sim_entered = entry;
  pthread_testcancel();
  if (sim_is_forked()) sim_broken("forked", "%s in a process that was forked after cuInit", entry);
  pthread_mutex_lock(&sim_lock);
  return &sim_lock;
}

/* The result of the call, if it fails. */
CUresult sim_enter_back(sim_entry entry) {
  if (!is_counted(entry)) return CUDA_SUCCESS;
  ++sim_count.calls;
  ++calls_of[entry];
  bool asks_device = entry != SIM_cuCtxPushCurrent && entry != SIM_cuCtxPopCurrent &&
                     entry != SIM_cuThreadExchangeStreamCaptureMode;
  if (failure.lost && asks_device) return failure.code;
  if (failure.left == 0 || --failure.left != 0) return CUDA_SUCCESS;
  failure.hit = entry_names[entry];
  if (failure.how == SIMGPU_LATE) {
    fail_late(failure.code);
    return CUDA_SUCCESS;
  }
  failure.lost = failure.how == SIMGPU_LOST;
  return sim_refuse(failure.code, "was asked to fail");
}

CUresult sim_enter(sim_entry entry) {
  SIM_TRY(sim_enter_back(entry));
  if (sim_is_initialised() || !is_counted(entry) || entry == SIM_cuInit || entry == SIM_cuDriverGetVersion)
    return CUDA_SUCCESS;
  return sim_refuse(CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called");
}

/* ---- simgpu_control ---- */

#define SETTER(name, type, variable) \
  static void name(type value) { \
    SIM_HOLD(sim_lock); \
    variable = value; \
    sim_wake_devices(); \
  }
SETTER(set_version, int, sim_version)
SETTER(set_passes, uint64_t, sim_passes)
SETTER(hold, int, sim_held)
SETTER(busy, uint64_t, sim_busy)
SETTER(settle, int, sim_settles)
SETTER(lazy, int, sim_lazy)

#define GETTER(type, name, parameters, value) \
  static type name parameters { \
    SIM_HOLD(sim_lock); \
    return value; \
  }
GETTER(simgpu_counts, counts, (void), sim_count)
GETTER(const char *, failed, (void), failure.hit)
GETTER(size_t, alive, (simgpu_kind kind), sim_alive(kind))
GETTER(size_t, queued, (void), sim_queued())

static void set_seed(uint64_t seed) {
  SIM_HOLD(sim_lock);
  sim_seed = seed;
  SIM_EACH_DEVICE(each) sim_seed_device(each, seed);
}

static void mark(void) {
  SIM_HOLD(sim_lock);
  memset(&sim_count, 0, sizeof sim_count);
  memset(calls_of, 0, sizeof calls_of);
  memset(&failure, 0, sizeof failure);
}

static uint64_t calls(const char *entry) {
  SIM_HOLD(sim_lock);
  for (int k = 0; k < SIM_ENTRIES; ++k)
    if (strcmp(entry_names[k], entry) == 0) return calls_of[k];
  return 0;
}

static void fail(uint64_t k, CUresult code, simgpu_how how) {
  SIM_HOLD(sim_lock);
  memset(&failure, 0, sizeof failure);
  failure.left = k;
  failure.code = code;
  failure.how = how;
}

static void answer_no(const char *probes) {
  sim_answer_no(probes);
  SIM_HOLD(sim_lock);
  sim_wake_devices();
}

__attribute__((visibility("default")))
const simgpu simgpu_control = {
  sizeof(simgpu), set_version, set_seed, answer_no, sim_allow, set_passes, mark, counts, calls, fail, failed,
  sim_broken_count, sim_first_broken, sim_forgive, sim_last_refused, alive, hold, busy, settle, sim_lack, lazy, queued};
