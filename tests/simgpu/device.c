/* Devices, their primary contexts, and each thread's stack of contexts. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 4, DEPTH = 64 };

sim_device sim_devices[DEVICES];
static bool initialised;
static pid_t process; /* that initialised it */
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER;
static _Thread_local uint64_t stack[DEPTH]; /* handles, so that a context that is gone is seen */
static _Thread_local int depth;

bool sim_is_initialised(void) { return initialised && process == getpid(); }
bool sim_is_forked(void) { return initialised && process != getpid(); }

sim_context *sim_current_or_null(void) {
  if (depth == 0 || !sim_is_alive(stack[depth - 1], SIM_CONTEXT)) return NULL;
  return sim_find(stack[depth - 1], SIM_CONTEXT);
}

CUresult sim_state(sim_context *context) {
  if (context->late != CUDA_SUCCESS && context->sticky == CUDA_SUCCESS)
    sim_fail_context(context, context->late, "was asked to fail");
  if (context->sticky != CUDA_SUCCESS) return sim_refuse(context->sticky, "the context has failed: %s", context->why);
  return CUDA_SUCCESS;
}

CUresult sim_current(sim_context **context) {
  *context = NULL;
  if (depth == 0) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread");
  *context = sim_find(stack[depth - 1], SIM_CONTEXT);
  if (!*context) return sim_refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context is gone");
  /* A late failure shows where something waits, not here. */
  if ((*context)->sticky != CUDA_SUCCESS)
    return sim_refuse((*context)->sticky, "the context has failed: %s", (*context)->why);
  return CUDA_SUCCESS;
}

CUresult sim_check_context(const sim_object *object, const char *what) {
  SIM_FIND_CONTEXT(context);
  if (object->context == context) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "foreign", "a %s of another context than the current one", what);
}

void sim_fail_context(sim_context *context, CUresult code, const char *why) {
  if (context->sticky != CUDA_SUCCESS) return;
  context->sticky = code;
  free(context->why);
  context->why = strdup(why);
}

static CUresult find_device(CUdevice number, sim_device **device) {
  *device = number >= 0 && number < sim_device_count ? &sim_devices[number] : NULL;
  return *device ? CUDA_SUCCESS : sim_refuse(CUDA_ERROR_INVALID_DEVICE, "there is no device %d", number);
}
#define FIND_DEVICE(found, number) \
  __attribute__((unused)) sim_device *found; \
  SIM_TRY(find_device(number, &found))

CUresult sim_cuInit(unsigned int flags) {
  SIM_ENTER(cuInit);
  if (flags != 0) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuInit: flags must be 0");
  if (sim_device_count <= 0) return sim_refuse(CUDA_ERROR_NO_DEVICE, "there is no device");
  for (int k = 0; k < sim_device_count && !initialised; ++k) {
    sim_devices[k].ordinal = k;
    sim_seed_device(&sim_devices[k], sim_seed);
  }
  if (!initialised) process = getpid();
  initialised = true;
  return CUDA_SUCCESS;
}

#define ANSWER(to, value) (to) ? (*(to) = (value), CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE
SIM_DEFINE(cuDriverGetVersion, (int *version), ANSWER(version, sim_version))
SIM_DEFINE(cuDeviceGetCount, (int *count), ANSWER(count, sim_device_count))

CUresult sim_cuDeviceGet(CUdevice *device, int ordinal) {
  SIM_ENTER(cuDeviceGet);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(found, ordinal);
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetName(char *name, int length, CUdevice device) {
  SIM_ENTER(cuDeviceGetName);
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(found, device);
  snprintf(name, (size_t)length, "simulated GPU %d", device);
  return CUDA_SUCCESS;
}

int sim_shared_most(void) {
  const int arch = sim_arch;
  return 1024 * (arch < 80 ? 64 : arch == 80 ? 163 : arch < 90 || arch >= 120 ? 99 : 227);
}

CUresult sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  SIM_ENTER(cuDeviceGetAttribute);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(found, device);
  bool managed = !sim_says_no("managed");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = SIM_BLOCK; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2 * SIM_BLOCK; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = sim_arch / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = sim_arch % 10; break;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: *value = managed; break;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: *value = managed && !sim_says_no("concurrent"); break;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: *value = sim_allows("pageable"); break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = sim_shared_most(); break;
    default: return sim_refuse(CUDA_ERROR_INVALID_VALUE, "device attribute %d isn't simulated", (int)attribute);
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetPCIBusId(char *bus, int length, CUdevice device) {
  SIM_ENTER(cuDeviceGetPCIBusId);
  char whole[20];
  if (!bus) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(found, device);
  snprintf(whole, sizeof whole, "0000:%02X:00.0", device + 1);
  if (length <= (int)strlen(whole)) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuDeviceGetPCIBusId: no room for it");
  memcpy(bus, whole, strlen(whole) + 1);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  SIM_ENTER(cuDeviceTotalMem);
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(found, device);
  *bytes = sim_memory_bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice device) {
  SIM_ENTER(cuDeviceGraphMemTrim);
  FIND_DEVICE(found, device);
  return CUDA_SUCCESS;
}

/* ---- contexts ---- */

static sim_context *make_context(sim_device *device, bool is_primary) {
  sim_context *made = sim_object_make(sizeof *made, SIM_CONTEXT, NULL, is_primary); /* counted by its retains */
  made->base.context = made;
  made->device = device;
  made->default_stream = sim_stream_make(made, true, true);
  if (!device->contexts) sim_worker_start(device);
  made->next = device->contexts;
  device->contexts = made;
  return made;
}

CUresult sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice number) {
  SIM_ENTER(cuDevicePrimaryCtxRetain);
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(device, number);
  while (device->closing) pthread_cond_wait(&closed, &sim_lock);
  if (!device->primary) device->primary = make_context(device, true);
  if (device->primary->is_reset) device->primary->sticky = CUDA_SUCCESS;
  device->primary->is_reset = false;
  ++device->primary->retains;
  *context = SIM_HANDLE(CUcontext, device->primary);
  return CUDA_SUCCESS;
}

/* What its owners left; a driver would clean it up, but gk is to leave nothing. */
static void report_left(const sim_context *context) {
  static const struct { simgpu_kind kind; const char *name; } kinds[] = {
    {SIMGPU_STREAMS, "streams"}, {SIMGPU_EVENTS, "events"}, {SIMGPU_MODULES, "modules"}, {SIMGPU_EXECS, "graph execs"},
    {SIMGPU_MEMORY, "blocks of device memory"}, {SIMGPU_PINNED, "blocks of pinned memory"},
    {SIMGPU_MANAGED, "blocks of managed memory"}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; ++k) {
    size_t left = sim_alive_in(context, kinds[k].kind);
    if (left) sim_broken("leak", "a context ends with %zu %s in it", left, kinds[k].name);
  }
}

static void drop_streams(const sim_context *context) {
  for (sim_stream *next, *each = context->device->streams; each; each = next) {
    next = each->next;
    if (each->base.context == context) sim_stream_drop(each);
  }
}

/* What is in it ends, whoever holds it. */
static void empty(sim_context *context) {
  sim_wait_idle(context);
  if (depth == DEPTH) abort();
  stack[depth++] = context->base.handle;
  sim_objects_reset(context);
  --depth;
}

static void end_context(sim_context *context) {
  sim_device *device = context->device;
  device->closing = true;
  sim_wait_idle(context);
  report_left(context);
  empty(context);
  sim_context **link = &device->contexts;
  while (*link != context) link = &(*link)->next;
  *link = context->next;
  if (!device->contexts) sim_worker_stop(device);
  drop_streams(context);
  sim_memory_end(context);
  if (device->primary == context) device->primary = NULL;
  device->closing = false;
  pthread_cond_broadcast(&closed);
  sim_object_end(&context->base);
  free(context->why);
  free(context);
}

/* Whoever gives it back has to be done with it: what is pushed and never popped would be current for ever. */
static void report_pushed(const sim_context *context) {
  for (int k = 0; k < depth; ++k)
    if (stack[k] == context->base.handle)
      sim_broken("pop", "a primary context ends that the thread which releases it has pushed, and not popped");
}

static CUresult release(CUdevice number) {
  FIND_DEVICE(device, number);
  if (!device->primary)
    return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "destroyed", "a primary context was released that nobody retains");
  if (--device->primary->retains > 0) return CUDA_SUCCESS;
  report_pushed(device->primary);
  end_context(device->primary);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuDevicePrimaryCtxRelease, (CUdevice device), release(device))

/* What cudaDeviceReset does. Those who retained it hold it as before, but nothing in it. */
CUresult sim_cuDevicePrimaryCtxReset(CUdevice number) {
  SIM_ENTER(cuDevicePrimaryCtxReset);
  FIND_DEVICE(device, number);
  sim_context *context = device->primary;
  if (!context || context->is_reset) return CUDA_SUCCESS;
  empty(context);
  sim_memory_end(context);
  context->is_reset = true;
  sim_fail_context(context, CUDA_ERROR_CONTEXT_IS_DESTROYED, "it was reset");
  return CUDA_SUCCESS;
}

CUresult sim_cuDevicePrimaryCtxGetState(CUdevice number, unsigned int *flags, int *active) {
  SIM_ENTER(cuDevicePrimaryCtxGetState);
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  FIND_DEVICE(device, number);
  *flags = 0;
  *active = device->primary && !device->primary->is_reset;
  return CUDA_SUCCESS;
}

/* It is current to the caller, as if it had been pushed. */
CUresult sim_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice number) {
  SIM_ENTER(cuCtxCreate);
  if (!context || flags) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuCtxCreate: flags aren't simulated");
  FIND_DEVICE(device, number);
  if (depth == DEPTH) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuCtxCreate: never popped?");
  while (device->closing) pthread_cond_wait(&closed, &sim_lock);
  *context = SIM_HANDLE(CUcontext, make_context(device, false));
  stack[depth++] = (uint64_t)(uintptr_t)*context;
  return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext handle) {
  sim_context *context = SIM_OF(sim_context, handle, SIM_CONTEXT);
  if (!context) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy: no context");
  if (context == context->device->primary)
    return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy: the primary context is released, not destroyed");
  if (depth && stack[depth - 1] == context->base.handle) --depth;
  end_context(context);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuCtxDestroy, (CUcontext context), destroy(context))

CUresult sim_cuCtxGetDevice(CUdevice *device) {
  SIM_ENTER(cuCtxGetDevice);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_CONTEXT(context);
  *device = context->device->ordinal;
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxPushCurrent(CUcontext context) {
  SIM_ENTER(cuCtxPushCurrent);
  sim_context *found = SIM_OF(sim_context, context, SIM_CONTEXT);
  if (!found) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxPushCurrent: no context");
  if (depth == DEPTH) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuCtxPushCurrent: never popped?");
  stack[depth++] = found->base.handle;
  return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *context) {
  if (depth == 0)
    return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "pop", "cuCtxPopCurrent without a context that was pushed");
  --depth;
  if (context) *context = (CUcontext)(uintptr_t)stack[depth];
  return CUDA_SUCCESS;
}

CUresult sim_cuCtxSynchronize(void) {
  SIM_ENTER(cuCtxSynchronize);
  SIM_FIND_CONTEXT(context);
  SIM_TRY(sim_capture_context(context, "cuCtxSynchronize"));
  SIM_TRY(sim_capture_unsafe("cuCtxSynchronize"));
  sim_wait_idle(context);
  return sim_state(context);
}

SIM_DEFINE_BACK(cuCtxPopCurrent, (CUcontext *context), pop(context))

SIM_DEFINE(cuCtxGetCurrent, (CUcontext *current),
           ANSWER(current, depth ? (CUcontext)(uintptr_t)stack[depth - 1] : NULL))

/* ---- texts ---- */

#define ERROR(code, text) {code, #code, text}
static const struct { CUresult code; const char *name, *text; } errors[] = {
  ERROR(CUDA_SUCCESS, "no error"),
  ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
  ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
  ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
  ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
  ERROR(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
  ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
  ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
  ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
  ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
  ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
  ERROR(CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
  ERROR(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
  ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
  ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
  ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
  ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
  ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
  ERROR(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
  ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
  ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
  ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
  ERROR(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination"),
  ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
  ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
  ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
  ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        "operation would make the legacy stream depend on a capturing blocking stream"),
  ERROR(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
  ERROR(CUDA_ERROR_UNKNOWN, "unknown error")};

static CUresult text_of(CUresult code, bool name, const char **text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = NULL;
  for (size_t k = 0; k < sizeof errors / sizeof *errors; ++k)
    if (errors[k].code == code) *text = name ? errors[k].name : errors[k].text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_DEFINE(cuGetErrorName, (CUresult error, const char **name), text_of(error, true, name))
SIM_DEFINE(cuGetErrorString, (CUresult error, const char **text), text_of(error, false, text))
