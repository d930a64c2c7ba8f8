#include "hip/driver.h"
#include "base/fork.h"
#include "base/library.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 1024, PER_MINOR = 100000 /* of hipRuntimeGetVersion */ };

/* The newest first. The plain name finds a runtime that is newer than this list. */
static const struct { const char *runtime, *compiler; } libraries[] = {
    {"libamdhip64.so.7", "libhiprtc.so.7"}, {"libamdhip64.so.6", "libhiprtc.so.6"},
    {"libamdhip64.so.5", "libhiprtc.so.5"}, {"libamdhip64.so", "libhiprtc.so"}};

GKI_PROCESS_LOCK(lock)
static gki_hip_driver loaded; /* version 0: not yet. Its libraries are never closed, since they may have threads */
static pid_t starter; /* the process that started the runtime; 0: none, or it can't be started */

enum { ALL, ONE }; /* needs, as abi.h has them */

static const gki_library_entry entries[] = {
#define ENTRY(need, type, name, parameters) {#name, offsetof(gki_hip_driver, name), need},
    GKI_HIP_ENTRIES(ENTRY)
#undef ENTRY
};
static const gki_library_entry compiler_entries[] = {
#define ENTRY(type, name, parameters) {#name, offsetof(gki_hip_driver, name), ALL},
    GKI_HIPRTC_ENTRIES(ENTRY)
#undef ENTRY
};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

void gki_hip_describe(const gki_hip_driver *driver, hipError_t code, char *text, size_t bytes) {
  const char *name = driver->hipGetErrorName(code), *description = driver->hipGetErrorString(code);
  snprintf(text, bytes, "%s (%s, %d)", description ? description : "error", name ? name : "unknown", (int)code);
}

gk_result gki_hip_result(const gki_hip_driver *driver, hipError_t code, const char *what, ...) {
  if (code == hipSuccess) return GK_OK;
  char text[TEXT_BYTES], why[300];
  va_list arguments;
  va_start(arguments, what);
  vsnprintf(text, sizeof text, what, arguments);
  va_end(arguments);
  gki_hip_describe(driver, code, why, sizeof why);
  return gk_fail(code == hipErrorOutOfMemory ? GK_ERROR_MEMORY : GK_ERROR_DEVICE, "backend hip: %s: %s", text, why);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static gk_result find_entries(gki_hip_driver *driver, void *library) {
  const char *missing = gki_library_find(library, entries, GK_COUNT(entries), ALL, driver);
  (void)gki_library_find(library, entries, GK_COUNT(entries), ONE, driver);
  if (!missing && (driver->hipGetDeviceProperties || driver->hipGetDevicePropertiesR0600)) return GK_OK;
  return gk_fail(GK_ERROR_NO_DEVICE, "backend hip: %s has no %s; install HIP 5.2 or newer", driver->path,
                 missing ? missing : "hipGetDeviceProperties");
}

/* In a library of its own, beside the runtime's, or in the runtime's. What another one makes, this runtime might not
 * take. In PyTorch's packages, no name has a version. */
static void find_compiler(gki_hip_driver *driver, void *library, const char *name) {
  char beside[sizeof driver->path + 32];
  const char *end = strrchr(driver->path, '/');
  snprintf(beside, sizeof beside, "%.*s/%s", end ? (int)(end - driver->path) : 0, driver->path, name);
  void *compiler = end ? dlopen(beside, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (compiler && !gki_library_find(compiler, compiler_entries, GK_COUNT(compiler_entries), ALL, driver)) return;
  const char *missing = gki_library_find(library, compiler_entries, GK_COUNT(compiler_entries), ALL, driver);
  if (missing)
    snprintf(driver->no_compiler, sizeof driver->no_compiler, "%s can't be used, and the runtime has no %s; install "
             "hipRTC of the runtime's version, in the runtime's folder", beside, missing);
}

/* The program's own runtime, if it has loaded one: streams and memory of another would mean nothing to it. */
static gk_result load(gki_hip_driver *driver) {
  const char *named = secure_getenv("ROCM_PATH"), *folder = named && named[0] ? named : "/opt/rocm";
  void *library = NULL;
  size_t k = 0;
  while (k < GK_COUNT(libraries) && !(library = dlopen(libraries[k].runtime, RTLD_NOW | RTLD_NOLOAD))) ++k;
  if (!library)
    for (k = 0; k < GK_COUNT(libraries) && !(library = gki_library_open(libraries[k].runtime, folder, "lib"));) ++k;
  if (!library)
    return gk_fail(GK_ERROR_NO_DEVICE, "backend hip: there is no libamdhip64.so.7, .6 or .5; install AMD's HIP runtime "
                   "(rocm-hip-runtime or libamdhip64-5), or name ROCm's folder in $ROCM_PATH");
  const char *path = gki_library_path(library);
  snprintf(driver->path, sizeof driver->path, "%s", path ? path : libraries[k].runtime);
  gk_result result = find_entries(driver, library);
  if (result != GK_OK) return result;
  find_compiler(driver, library, strstr(driver->path, ".so.") ? libraries[k].compiler : "libhiprtc.so");
  int version = 0;
  result = gki_hip_result(driver, driver->hipRuntimeGetVersion(&version), "hipRuntimeGetVersion of %s", driver->path);
  driver->version = version / PER_MINOR;
  snprintf(driver->name, sizeof driver->name, "HIP %d.%d", driver->version / 100, driver->version % 100);
  return result == GK_ERROR_DEVICE ? GK_ERROR_NO_DEVICE : result;
}

/* Under the lock. */
static gk_result load_once(void) {
  if (loaded.version) return GK_OK;
  gki_hip_driver driver = {0};
  const gk_result result = load(&driver);
  if (result != GK_OK) return result;
  loaded = driver;
  gk_log(GK_LOG_INFO, "%s (%s)", driver.name, driver.path);
  return GK_OK;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

/* The first call of a runtime starts it. */
static gk_result start(void) {
  gk_result result = load_once();
  if (result != GK_OK) return result;
  int count = 0;
  char why[300];
  hipError_t answer = loaded.hipGetDeviceCount(&count);
  if (answer == hipSuccess && count > 0) return GK_OK;
  if (answer == hipSuccess) answer = hipErrorNoDevice;
  (void)loaded.hipGetLastError(); /* it is gk's: the program doesn't see it */
  if (answer == hipErrorOutOfMemory) return gki_hip_result(&loaded, answer, "starting %s", loaded.path);
  gki_hip_describe(&loaded, answer, why, sizeof why);
  return gk_fail(GK_ERROR_NO_DEVICE, "backend hip: %s (%s) can't be used: %s; see whether rocminfo lists a GPU, "
                 "whether this user may open /dev/kfd and /dev/dri, and whether $HIP_VISIBLE_DEVICES hides it",
                 loaded.path, loaded.name, why);
}

gk_result gki_hip_driver_get(const gki_hip_driver **driver) {
  const gk_result result =
      gki_start_once(&lock, &starter, start, "backend hip: this process was forked from one that uses HIP, which HIP "
                     "doesn't allow; open devices behind the fork, or use exec");
  *driver = result == GK_OK ? &loaded : NULL;
  return result;
}

gk_result gki_hip_driver_load(const gki_hip_driver **driver) {
  pthread_mutex_lock(&lock);
  const gk_result result = load_once();
  pthread_mutex_unlock(&lock);
  *driver = result == GK_OK ? &loaded : NULL;
  return result;
}
