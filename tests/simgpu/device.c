/* Devices, their primary contexts, and each thread's stack of contexts. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 4, DEPTH = 64 };

sim_device sim_devices[DEVICES];
static bool initialised;
static pid_t process; /* the process that initialised it */
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER;
static _Thread_local uint64_t stack[DEPTH]; /* handles, so that the use of a context that is gone is seen */
static _Thread_local int depth;

bool sim_is_initialised(void) { return initialised && process == getpid(); }
bool sim_is_forked(void) { return initialised && process != getpid(); }

sim_context *sim_current_or_null(void) {
  if (depth == 0 || !sim_is_alive(stack[depth - 1], SIM_CONTEXT)) return NULL;
  return sim_find(stack[depth - 1], SIM_CONTEXT);
}

static CUresult answer_sticky(const sim_context *context) {
  if (context->sticky == CUDA_SUCCESS) return CUDA_SUCCESS;
  return sim_refuse(context->sticky, "the context has failed: %s", context->why);
}

CUresult sim_state(sim_context *context) {
  if (context->late != CUDA_SUCCESS) sim_fail_context(context, context->late, "was asked to fail");
  return answer_sticky(context);
}

/* A late failure shows at the next wait, not here. */
CUresult sim_current(sim_context **context) {
  *context = NULL;
  if (depth == 0) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "no context is current to this thread");
  *context = sim_find(stack[depth - 1], SIM_CONTEXT);
  if (!*context) return sim_refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context is gone");
  return answer_sticky(*context);
}

void sim_fail_context(sim_context *context, CUresult code, const char *why) {
  if (context->sticky != CUDA_SUCCESS) return;
  context->sticky = code;
  free(context->why);
  context->why = strdup(why);
}

static CUresult check_device(CUdevice number) {
  if (number >= 0 && number < sim_device_count) return CUDA_SUCCESS;
  return sim_refuse(CUDA_ERROR_INVALID_DEVICE, "there is no device %d", number);
}

CUresult sim_cuInit(unsigned int flags) {
  SIM_ENTER(cuInit);
  if (flags != 0) return sim_invalid("flags must be 0");
  if (sim_device_count <= 0) return sim_refuse(CUDA_ERROR_NO_DEVICE, "there is no device");
  for (int k = 0; k < sim_device_count && !initialised; ++k) {
    sim_devices[k].ordinal = k;
    sim_seed_device(&sim_devices[k], sim_seed);
  }
  if (!initialised) process = getpid();
  initialised = true;
  return CUDA_SUCCESS;
}

SIM_ANSWERS(cuDriverGetVersion, (int *version), version, , sim_version)
SIM_ANSWERS(cuDeviceGetCount, (int *count), count, , sim_device_count)
SIM_ANSWERS(cuDeviceGet, (CUdevice *device, int ordinal), device, SIM_TRY(check_device(ordinal)), ordinal)
SIM_ANSWERS(cuDeviceTotalMem, (size_t *bytes, CUdevice device), bytes, SIM_TRY(check_device(device)), sim_memory_bytes)

CUresult sim_cuDeviceGetName(char *name, int length, CUdevice device) {
  SIM_ENTER(cuDeviceGetName);
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(check_device(device));
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
  SIM_TRY(check_device(device));
  const bool managed = !sim_says_no("managed");
  const struct { CUdevice_attribute attribute; int value; } known[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, SIM_BLOCK}, {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4}, {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2 * SIM_BLOCK}, {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, sim_arch / 10},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, sim_arch % 10},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, managed},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, managed && !sim_says_no("concurrent")},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, sim_allows("pageable")},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, sim_shared_most()}};
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
    if (known[k].attribute != attribute) continue;
    *value = known[k].value;
    return CUDA_SUCCESS;
  }
  return sim_invalid("device attribute %d isn't simulated", (int)attribute);
}

CUresult sim_cuDeviceGetPCIBusId(char *bus, int length, CUdevice device) {
  SIM_ENTER(cuDeviceGetPCIBusId);
  char whole[20];
  if (!bus) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(check_device(device));
  snprintf(whole, sizeof whole, "0000:%02X:00.0", device + 1);
  if (length <= (int)strlen(whole)) return sim_invalid("no room for it");
  memcpy(bus, whole, strlen(whole) + 1);
  return CUDA_SUCCESS;
}

SIM_DEFINE(cuDeviceGraphMemTrim, (CUdevice device), check_device(device))

/* ---- contexts ---- */

static CUresult push(uint64_t context) {
  if (depth == DEPTH) return sim_invalid("never popped?");
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

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
  SIM_TRY(check_device(number));
  sim_device *device = &sim_devices[number];
  while (device->closing) pthread_cond_wait(&closed, &sim_lock);
  if (!device->primary) device->primary = make_context(device, true);
  if (device->primary->is_reset) device->primary->sticky = CUDA_SUCCESS;
  device->primary->is_reset = false;
  ++device->primary->retains;
  *context = SIM_HANDLE(CUcontext, device->primary);
  return CUDA_SUCCESS;
}

/* A driver would clean up what the owners left, but gk must leave nothing. */
static void report_left(const sim_context *context) {
  for (simgpu_kind kind = SIMGPU_STREAMS; kind < SIMGPU_CONTEXTS; ++kind) {
    size_t left = sim_alive_in(context, kind);
    if (left) sim_broken("leak", "a context ends with %zu %s in it", left, sim_kind_names[kind]);
  }
}

static void drop_streams(const sim_context *context) {
  for (sim_stream *next, *each = context->device->streams; each; each = next) {
    next = each->next;
    if (each->base.context == context) sim_stream_drop(each);
  }
}

/* All objects in it end. */
static void empty(sim_context *context) {
  sim_wait_idle(context);
  if (push(context->base.handle) != CUDA_SUCCESS) abort();
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

/* If the releasing thread pushed the context and never pops it, it would stay current for ever. */
static void report_pushed(const sim_context *context) {
  for (int k = 0; k < depth; ++k)
    if (stack[k] == context->base.handle)
      sim_broken("pop", "a primary context ends that the thread which releases it has pushed, and not popped");
}

static CUresult release(CUdevice number) {
  SIM_TRY(check_device(number));
  sim_context *primary = sim_devices[number].primary;
  if (!primary)
    return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "destroyed", "a primary context was released that nobody retains");
  if (--primary->retains > 0) return CUDA_SUCCESS;
  report_pushed(primary);
  end_context(primary);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuDevicePrimaryCtxRelease, (CUdevice device), release(device))

/* What cudaDeviceReset does. The context stays retained, but nothing is left in it. */
CUresult sim_cuDevicePrimaryCtxReset(CUdevice number) {
  SIM_ENTER(cuDevicePrimaryCtxReset);
  SIM_TRY(check_device(number));
  sim_context *context = sim_devices[number].primary;
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
  SIM_TRY(check_device(number));
  const sim_context *primary = sim_devices[number].primary;
  *flags = 0;
  *active = primary && !primary->is_reset;
  return CUDA_SUCCESS;
}

/* It is current to the caller, as if it had been pushed. */
CUresult sim_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice number) {
  SIM_ENTER(cuCtxCreate);
  if (!context || flags) return sim_invalid("flags aren't simulated");
  SIM_TRY(check_device(number));
  if (depth == DEPTH) return sim_invalid("never popped?");
  while (sim_devices[number].closing) pthread_cond_wait(&closed, &sim_lock);
  *context = SIM_HANDLE(CUcontext, make_context(&sim_devices[number], false));
  return push((uint64_t)(uintptr_t)*context);
}

static CUresult destroy(CUcontext handle) {
  sim_context *context = SIM_OF(sim_context, handle, SIM_CONTEXT);
  if (!context) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "no context");
  if (context == context->device->primary)
    return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "the primary context is released, not destroyed");
  if (depth && stack[depth - 1] == context->base.handle) --depth;
  end_context(context);
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuCtxDestroy, (CUcontext context), destroy(context))

SIM_ANSWERS(cuCtxGetDevice, (CUdevice *device), device, SIM_FIND_CONTEXT(context), context->device->ordinal)

CUresult sim_cuCtxPushCurrent(CUcontext context) {
  SIM_ENTER(cuCtxPushCurrent);
  if (!SIM_OF(sim_context, context, SIM_CONTEXT)) return sim_refuse(CUDA_ERROR_INVALID_CONTEXT, "no context");
  return push((uint64_t)(uintptr_t)context);
}

static CUresult pop(CUcontext *context) {
  if (depth == 0) return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "pop", "cuCtxPopCurrent without a pushed context");
  --depth;
  if (context) *context = (CUcontext)(uintptr_t)stack[depth];
  return CUDA_SUCCESS;
}

SIM_DEFINE_BACK(cuCtxPopCurrent, (CUcontext *context), pop(context))
SIM_ANSWERS(cuCtxGetCurrent, (CUcontext *context), context, ,
            depth ? (CUcontext)(uintptr_t)stack[depth - 1] : NULL)

CUresult sim_cuCtxSynchronize(void) {
  SIM_ENTER(cuCtxSynchronize);
  SIM_FIND_CONTEXT(context);
  SIM_TRY(sim_capture_context(context));
  SIM_TRY(sim_capture_unsafe());
  sim_wait_idle(context);
  return sim_state(context);
}

/* ---- texts ---- */

static const struct { CUresult code; const char *name, *text; } errors[] = {
#define ERROR(name, text) {CUDA_##name, "CUDA_" #name, text},
  ERROR(SUCCESS, "no error") ERROR(ERROR_INVALID_VALUE, "invalid argument") ERROR(ERROR_OUT_OF_MEMORY, "out of memory")
  ERROR(ERROR_NOT_INITIALIZED, "initialization error") ERROR(ERROR_DEINITIALIZED, "driver shutting down")
  ERROR(ERROR_STUB_LIBRARY, "CUDA driver is a stub library")
  ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected") ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal")
  ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid") ERROR(ERROR_INVALID_CONTEXT, "invalid device context")
  ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")
  ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed")
  ERROR(ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain.")
  ERROR(ERROR_INVALID_HANDLE, "invalid resource handle")
  ERROR(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")
  ERROR(ERROR_NOT_FOUND, "named symbol not found") ERROR(ERROR_NOT_READY, "device not ready")
  ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
  ERROR(ERROR_CONTEXT_IS_DESTROYED, "context is destroyed") ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure")
  ERROR(ERROR_NOT_PERMITTED, "operation not permitted") ERROR(ERROR_NOT_SUPPORTED, "operation not supported")
  ERROR(ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination")
  ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing")
  ERROR(ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture")
  ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work")
  ERROR(ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream")
  ERROR(ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream")
  ERROR(ERROR_UNKNOWN, "unknown error")
#undef ERROR
};

static CUresult text_of(CUresult code, bool name, const char **text) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = NULL;
  for (size_t k = 0; k < sizeof errors / sizeof *errors; ++k)
    if (errors[k].code == code) *text = name ? errors[k].name : errors[k].text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_DEFINE(cuGetErrorName, (CUresult error, const char **name), text_of(error, true, name))
SIM_DEFINE(cuGetErrorString, (CUresult error, const char **text), text_of(error, false, text))
