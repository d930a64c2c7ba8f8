#include "cuda/driver.h"
#include "base/fork.h"
#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"
enum { OLDEST = 11040, TEXT_BYTES = 1024 };

GKI_PROCESS_LOCK(lock)
static void *library; /* never closed, even if it can't be started, since it may have threads by then */
static gki_cuda_driver started, of_gone;
static pid_t starter; /* the process that started the driver; 0: none, or it can't be started */

static const struct { const char *name; int version, since; size_t at; } entries[] = {
#define ENTRY(name, version, since, parameters) {#name, version, since, offsetof(gki_cuda_driver, name)},
    GKI_CUDA_ENTRIES(ENTRY)
#undef ENTRY
};

/* Entries that a driver may lack, and what gk does without. */
static const struct { const char *name; gki_cuda_need need; } optional[] = {
    {"cuGraphAddNode", GKI_CUDA_FOR_CONDITIONAL},
    {"cuGraphConditionalHandleCreate", GKI_CUDA_FOR_CONDITIONAL},
    {"cuGraphInstantiateWithParams", GKI_CUDA_FOR_CONDITIONAL},
    {"cuGraphExecNodeSetParams", GKI_CUDA_FOR_CONDITIONAL},
    {"cuGraphGetEdges", GKI_CUDA_FOR_CONDITIONAL},
    {"cuGraphNodeGetDependencies", GKI_CUDA_FOR_CONDITIONAL},
    {"cuStreamBeginCaptureToGraph", GKI_CUDA_FOR_CONDITIONAL},
    {"cuStreamGetCaptureInfo", GKI_CUDA_FOR_CONDITIONAL},
    {"cuStreamBeginCapture", GKI_CUDA_FOR_CALLS},
    {"cuStreamEndCapture", GKI_CUDA_FOR_CALLS},
    {"cuGraphAddChildGraphNode", GKI_CUDA_FOR_CALLS},
    {"cuGraphChildGraphNodeGetGraph", GKI_CUDA_FOR_CALLS},
    {"cuGraphNodeGetType", GKI_CUDA_FOR_CALLS},
    {"cuGraphDebugDotPrint", GKI_CUDA_FOR_DRAWINGS},
    {"cuGetErrorName", GKI_CUDA_FOR_COMFORT},
    {"cuGetErrorString", GKI_CUDA_FOR_COMFORT},
    {"cuDevicePrimaryCtxGetState", GKI_CUDA_FOR_COMFORT},
    {"cuGraphUpload", GKI_CUDA_FOR_COMFORT},
    {"cuStreamGetId", GKI_CUDA_FOR_COMFORT},
    {"cuThreadExchangeStreamCaptureMode", GKI_CUDA_FOR_COMFORT},
    {"cuPointerGetAttribute", GKI_CUDA_FOR_COMFORT},
    {"cuMemHostRegister", GKI_CUDA_FOR_COMFORT},
    {"cuMemHostUnregister", GKI_CUDA_FOR_COMFORT},
    {"cuDeviceGraphMemTrim", GKI_CUDA_FOR_COMFORT},
    {"cuFuncGetParamInfo", GKI_CUDA_FOR_COMFORT},
};

/* Advice if the driver doesn't start. */
static const struct { CUresult result; const char *advice; } advices[] = {
    {CUDA_ERROR_NO_DEVICE,
     "see whether nvidia-smi lists a GPU, and whether $CUDA_VISIBLE_DEVICES or a container hides it"},
    {CUDA_ERROR_INVALID_DEVICE, "see which GPUs nvidia-smi lists, and which of them $CUDA_VISIBLE_DEVICES names"},
    {CUDA_ERROR_STUB_LIBRARY,
     "it is the toolkit's stub, to link with: install NVIDIA's driver, or take the stub's folder out of "
     "$LD_LIBRARY_PATH"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "it and the kernel's module are of different releases: restart the machine after an update, and in a container "
     "use the host's library"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
     "it is from a compatibility package that doesn't serve this GPU: take its folder out of $LD_LIBRARY_PATH, or "
     "update the driver"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "a service that the GPUs here need isn't running, such as nvidia-fabricmanager"},
    {CUDA_ERROR_NOT_PERMITTED, "this user or container may not use the GPU: see who may open /dev/nvidia*"},
    {CUDA_ERROR_OPERATING_SYSTEM, "see who may open /dev/nvidia*, and what the kernel's log says"},
    {CUDA_ERROR_NOT_INITIALIZED,
     "this process may have been forked from one that uses CUDA, which CUDA doesn't allow: start it anew"},
    {CUDA_ERROR_OUT_OF_MEMORY, "free memory and open the device again"},
    {CUDA_ERROR_UNKNOWN, "see what nvidia-smi says; often the kernel's module isn't loaded or /dev/nvidia* is missing"},
};

static const char *advice_for(CUresult result) {
  for (size_t k = 0; k < GK_COUNT(advices); ++k)
    if (advices[k].result == result) return advices[k].advice;
  return "see what nvidia-smi says";
}

static const char *path_of_library(void) {
  struct link_map *map;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : LIBRARY;
}

void gki_cuda_describe_result(const gki_cuda_driver *driver, CUresult result, char *text, size_t bytes) {
  const char *name = NULL, *description = NULL;
  if (driver->cuGetErrorName && driver->cuGetErrorName(result, &name) != CUDA_SUCCESS) name = NULL;
  if (driver->cuGetErrorString && driver->cuGetErrorString(result, &description) != CUDA_SUCCESS) description = NULL;
  if (name && description) snprintf(text, bytes, "%s (%s, %d)", description, name, (int)result);
  else snprintf(text, bytes, "error %d", (int)result);
}

static gk_result refuse(const gki_cuda_driver *driver, const char *call, CUresult result) {
  char text[TEXT_BYTES];
  gki_cuda_describe_result(driver, result, text, sizeof text);
  return gk_fail(GK_ERROR_NO_DEVICE, "the CUDA driver %s can't be started, %s: %s; %s", path_of_library(), call, text,
                 advice_for(result));
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

typedef struct finder {
  gki_cuGetProcAddress first;
  gki_cuGetProcAddress_v2 second;
} finder;

static void *find(const finder *at, const char *name, int version) {
  void *entry = NULL;
  CUdriverProcAddressQueryResult status;
  CUresult result = at->second ? at->second(name, &entry, version, 0, &status) : at->first(name, &entry, version, 0);
  return result == CUDA_SUCCESS ? entry : NULL;
}

/* Stand-ins for entries that only save time. */
static CUresult upload_nothing(CUgraphExec exec, CUstream stream) {
  (void)exec;
  (void)stream;
  return CUDA_SUCCESS;
}
static CUresult trim_nothing(CUdevice device) {
  (void)device;
  return CUDA_SUCCESS;
}

static bool may_lack(gki_cuda_driver *driver, const char *name) {
  for (size_t k = 0; k < GK_COUNT(optional); ++k) {
    if (strcmp(optional[k].name, name) != 0) continue;
    const gki_cuda_need need = optional[k].need;
    if (need < GKI_CUDA_NEED_COUNT && !driver->lacks[need]) driver->lacks[need] = optional[k].name;
    gk_log(GK_LOG_WARN, "the CUDA driver %s is for CUDA %d.%d but has no %s; gk does without: %s", path_of_library(),
           driver->version / 1000, driver->version % 1000 / 10, name,
           need == GKI_CUDA_FOR_CONDITIONAL ? "the host decides"
           : need == GKI_CUDA_FOR_CALLS     ? "lists with library calls are refused"
           : need == GKI_CUDA_FOR_DRAWINGS  ? "graphs can't be drawn"
                                            : "messages, checks or speed suffer");
    return true;
  }
  return false;
}

static void set_entry(gki_cuda_driver *driver, size_t at, void *entry) {
  memcpy((char *)driver + at, &entry, sizeof entry);
}

/* If one entry is missing, all are, as with drivers that are too old for them. */
static void leave_out_conditional(gki_cuda_driver *driver) {
  for (size_t k = 0; k < GK_COUNT(optional); ++k)
    for (size_t e = 0; e < GK_COUNT(entries); ++e)
      if (optional[k].need == GKI_CUDA_FOR_CONDITIONAL && strcmp(optional[k].name, entries[e].name) == 0)
        set_entry(driver, entries[e].at, NULL);
}

static gk_result find_entries(gki_cuda_driver *driver) {
  finder at;
  *(void **)&at.first = dlsym(library, "cuGetProcAddress");
  *(void **)&at.second = dlsym(library, "cuGetProcAddress_v2");
  if (!at.first && !at.second)
    return gk_fail(GK_ERROR_NO_DEVICE, "the CUDA driver %s has no cuGetProcAddress; install NVIDIA's driver anew",
                   path_of_library());
  for (size_t k = 0; k < GK_COUNT(entries); ++k) {
    if (entries[k].since > driver->version) continue;
    void *entry = find(&at, entries[k].name, entries[k].version);
    if (!entry && !may_lack(driver, entries[k].name))
      return gk_fail(GK_ERROR_NO_DEVICE,
                     "the CUDA driver %s is for CUDA %d.%d but has no %s of %d.%d; install NVIDIA's driver anew",
                     path_of_library(), driver->version / 1000, driver->version % 1000 / 10, entries[k].name,
                     entries[k].version / 1000, entries[k].version % 1000 / 10);
    set_entry(driver, entries[k].at, entry);
  }
  if (driver->lacks[GKI_CUDA_FOR_CONDITIONAL]) leave_out_conditional(driver);
  if (!driver->cuMemHostUnregister) driver->cuMemHostRegister = NULL;
  if (!driver->cuGraphUpload) driver->cuGraphUpload = upload_nothing;
  if (!driver->cuDeviceGraphMemTrim) driver->cuDeviceGraphMemTrim = trim_nothing;
  return GK_OK;
}

/* ---- a context that is gone -------------------------------------------------------------------------------------- */

/* They replace the driver's entries once the context is gone: drivers may crash on handles of a destroyed context. */
static CUresult stream_of_gone(CUstream stream) {
  (void)stream;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
static CUresult event_of_gone(CUevent event) {
  (void)event;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
static CUresult record_of_gone(CUevent event, CUstream stream) {
  (void)event;
  return stream_of_gone(stream);
}
static CUresult wait_of_gone(CUstream stream, CUevent event, unsigned int flags) {
  (void)flags;
  return record_of_gone(event, stream);
}
static CUresult memory_of_gone(CUdeviceptr memory) {
  (void)memory;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
static CUresult pinned_of_gone(void *memory) {
  (void)memory;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
static CUresult module_of_gone(CUmodule module) {
  (void)module;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
static CUresult exec_of_gone(CUgraphExec exec) {
  (void)exec;
  return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}
static CUresult nothing_of_gone(void) { return CUDA_ERROR_CONTEXT_IS_DESTROYED; }

static void make_gone(gki_cuda_driver *gone) {
  *gone = started;
  gone->cuCtxSynchronize = nothing_of_gone;
  gone->cuStreamDestroy = gone->cuStreamSynchronize = gone->cuStreamQuery = stream_of_gone;
  gone->cuStreamWaitEvent = wait_of_gone;
  gone->cuEventDestroy = gone->cuEventSynchronize = gone->cuEventQuery = event_of_gone;
  gone->cuEventRecord = record_of_gone;
  gone->cuMemFree = memory_of_gone;
  gone->cuMemFreeHost = gone->cuMemHostUnregister = pinned_of_gone;
  gone->cuModuleUnload = module_of_gone;
  gone->cuGraphExecDestroy = exec_of_gone;
}

const gki_cuda_driver *gki_cuda_driver_of_gone(void) { return &of_gone; }

bool gki_cuda_is_gone(CUresult result) {
  return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT ||
         result == CUDA_ERROR_DEINITIALIZED;
}

static gk_result load(gki_cuda_driver *driver) {
  library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return gk_fail(GK_ERROR_NO_DEVICE, "there is no CUDA driver (%s); install NVIDIA's, or use another backend",
                   dlerror());
  CUresult (*get_version)(int *version);
  *(void **)&get_version = dlsym(library, "cuDriverGetVersion");
  if (!get_version)
    return gk_fail(GK_ERROR_NO_DEVICE, "%s is no CUDA driver, it has no cuDriverGetVersion; install NVIDIA's",
                   path_of_library());
  CUresult result = get_version(&driver->version);
  if (result != CUDA_SUCCESS) return refuse(driver, "cuDriverGetVersion", result);
  if (driver->version < OLDEST)
    return gk_fail(GK_ERROR_NO_DEVICE,
                   "the CUDA driver %s is for CUDA %d.%d and gk needs one for %d.%d or newer; update NVIDIA's driver",
                   path_of_library(), driver->version / 1000, driver->version % 1000 / 10, OLDEST / 1000,
                   OLDEST % 1000 / 10);
  return find_entries(driver);
}

static gk_result start(void) {
  gki_cuda_driver driver = {0};
  gk_result result = load(&driver);
  if (result != GK_OK) return result;
  CUresult answer = driver.cuInit(0);
  if (answer != CUDA_SUCCESS) return refuse(&driver, "cuInit", answer);
  int count = 0;
  answer = driver.cuDeviceGetCount(&count);
  if (answer == CUDA_SUCCESS && count < 1) answer = CUDA_ERROR_NO_DEVICE;
  if (answer != CUDA_SUCCESS) return refuse(&driver, "cuDeviceGetCount", answer);
  started = driver;
  make_gone(&of_gone);
  gk_log(GK_LOG_INFO, "CUDA driver %s for CUDA %d.%d", path_of_library(), driver.version / 1000,
         driver.version % 1000 / 10);
  return GK_OK;
}

gk_result gki_cuda_driver_get(const gki_cuda_driver **driver) {
  const gk_result result =
      gki_start_once(&lock, &starter, start, "this process was forked from one that had started CUDA, which CUDA "
                     "doesn't allow; fork before the first device is opened or listed");
  *driver = result == GK_OK ? &started : NULL;
  return result;
}

static const char *hint_for(CUresult result) {
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY: return "; free some and call again";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    return "; some task touched memory that isn't its own: of a graph created with GK_ISOLATE it is named";
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_INVALID_CONTEXT:
    return "; the context that gk works in was destroyed, as cudaDeviceReset and cuCtxDestroy do: close gk's device "
           "before that, and open it again now";
  case CUDA_ERROR_DEINITIALIZED: return "; the process ends, and the driver with it: close gk's device before";
  default: return "";
  }
}

gk_result gki_cuda_result(const gki_cuda_driver *driver, CUresult result, const char *what, ...) {
  if (result == CUDA_SUCCESS) return GK_OK;
  char call[TEXT_BYTES], text[TEXT_BYTES];
  va_list args;
  va_start(args, what);
  vsnprintf(call, sizeof call, what, args);
  va_end(args);
  gki_cuda_describe_result(driver, result, text, sizeof text);
  return gk_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? GK_ERROR_MEMORY : GK_ERROR_DEVICE, "%s: %s%s", call, text,
                 hint_for(result));
}
