#include "cuda/compile.h"
#include "base/fork.h"
#include "base/library.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RTC(name) nvrtc##name
#define RTC_CODE(name) NVRTC_##name
#define RTC_LIBRARY gki_nvrtc
#include "kernel/rtc.inc"

enum { TEXT_BYTES = 1024, MAJOR = 1000 };

/* By soname, the newest first. The plain name finds an NVRTC that is newer than this list. */
static struct { const char *name; bool is_loaded; gki_nvrtc nvrtc; } libraries[] = {
    {.name = "libnvrtc.so.13"}, {.name = "libnvrtc.so.12"}, {.name = "libnvrtc.so.11.2"}, {.name = "libnvrtc.so"}};
enum { NAMED = GK_COUNT(libraries) - 1 };
GKI_PROCESS_LOCK(lock)

static const gki_library_entry entries[] = {
#define ENTRY(type, name, parameters) {#name, offsetof(gki_nvrtc, name), 0},
    GKI_NVRTC_ENTRIES(ENTRY)
#undef ENTRY
};

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* A toolkit that the loader's paths may not include. */
static const char *toolkit(void) {
  const char *home = secure_getenv("CUDA_HOME");
  if (!home || !home[0]) home = secure_getenv("CUDA_PATH");
  return home && home[0] ? home : "/usr/local/cuda";
}

/* NVRTC loads a second library by its bare name, which the loader finds only in its own paths or if it is loaded
 * already. So it is loaded here, from the folder of NVRTC. If it is missing, NVRTC reports that. */
static void open_builtins(void *library, int version) {
  char path[TEXT_BYTES];
  const char *own = gki_library_path(library), *end = own ? strrchr(own, '/') : NULL;
  if (end && snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(end - own), own,
                      version / MAJOR, version % MAJOR / 10) < (int)sizeof path)
    (void)dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Size and time distinguish files of the same version: the cache's key contains them. */
static void stat_library(void *library, gki_nvrtc *nvrtc) {
  struct stat file;
  const char *path = gki_library_path(library);
  if (!path || stat(path, &file) != 0) return;
  nvrtc->file.bytes = (unsigned long long)file.st_size;
  nvrtc->file.seconds = file.st_mtim.tv_sec;
  nvrtc->file.nanoseconds = file.st_mtim.tv_nsec;
}

/* False: it can't be used; `problem` has the reason. */
static bool find_entries(void *library, const char *name, gki_nvrtc *nvrtc, char *problem) {
  const char *missing = gki_library_find(library, entries, GK_COUNT(entries), 0, nvrtc);
  if (missing) {
    snprintf(problem, TEXT_BYTES, "%s has no %s", name, missing);
    return false;
  }
  int major = 0, minor = 0, count = 0;
  nvrtcResult result = nvrtc->nvrtcVersion(&major, &minor);
  if (result == NVRTC_SUCCESS) result = nvrtc->nvrtcGetNumSupportedArchs(&count);
  if (result == NVRTC_SUCCESS && count >= 1 && count <= GKI_NVRTC_ARCHITECTURES)
    result = nvrtc->nvrtcGetSupportedArchs(nvrtc->architectures);
  if (result != NVRTC_SUCCESS || count < 1 || count > GKI_NVRTC_ARCHITECTURES) {
    snprintf(problem, TEXT_BYTES, "%s doesn't say for which GPUs it compiles (%s, %d of them)", name,
             nvrtc->nvrtcGetErrorString(result), count);
    return false;
  }
  nvrtc->version = major * MAJOR + minor * 10;
  nvrtc->architecture_count = count;
  return true;
}

/* Under the lock. NULL: there is none, or it can't be used and `problem` has the reason. */
static const gki_nvrtc *load(size_t index, char *problem) {
  const char *name = libraries[index].name;
  if (libraries[index].is_loaded) return &libraries[index].nvrtc;
  void *library = gki_library_open(name, toolkit(), "lib64");
  if (!library) return NULL;
  gki_nvrtc nvrtc = {0};
  if (!find_entries(library, name, &nvrtc, problem)) {
    dlclose(library);
    return NULL;
  }
  open_builtins(library, nvrtc.version);
  stat_library(library, &nvrtc);
  libraries[index].nvrtc = nvrtc;
  libraries[index].is_loaded = true;
  gk_log(GK_LOG_INFO, "NVRTC %d.%d (%s) for sm_%d to sm_%d", nvrtc.version / MAJOR, nvrtc.version % MAJOR / 10, name,
         nvrtc.architectures[0], nvrtc.architectures[nvrtc.architecture_count - 1]);
  return &libraries[index].nvrtc;
}

bool gki_nvrtc_at(size_t index, const char **name, const gki_nvrtc **nvrtc, char *why, size_t bytes) {
  if (index >= GK_COUNT(libraries)) return false;
  char problem[TEXT_BYTES] = "";
  *name = libraries[index].name;
  *nvrtc = NULL;
  pthread_mutex_lock(&lock);
  bool skipped = false; /* the plain name is only tried if no other one was found */
  for (size_t k = 0; index == NAMED && k < NAMED; ++k) skipped = skipped || libraries[k].is_loaded;
  if (!skipped) *nvrtc = load(index, problem);
  pthread_mutex_unlock(&lock);
  snprintf(why, bytes, "%s", skipped ? "not looked for, as there is one of those before it" : problem);
  return true;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* A driver takes cubins of its own major version and of older ones, for the device's architecture and earlier ones of
 * its generation. It takes PTX of its own version and of older ones, for any earlier architecture. It may take cubins
 * of a newer major version. */
enum { NOTHING, RISKY_NEAR, RISKY_EXACT, NEAR, PTX, EXACT };

int gki_nvrtc_rank(const gki_nvrtc *nvrtc, int architecture, int driver_version, gki_cuda_compiler *compiler) {
  int nearest = 0;
  for (int k = 0; k < nvrtc->architecture_count; ++k)
    if (nvrtc->architectures[k] <= architecture && nvrtc->architectures[k] > nearest) nearest = nvrtc->architectures[k];
  *compiler = (gki_cuda_compiler){.nvrtc = nvrtc, .architecture = nearest};
  if (nearest == 0) return NOTHING;
  bool is_exact = nearest == architecture, is_near = nearest / 10 == architecture / 10;
  compiler->may_be_refused = nvrtc->version / MAJOR > driver_version / MAJOR;
  if (is_exact) return compiler->may_be_refused ? RISKY_EXACT : EXACT;
  if (nvrtc->version <= driver_version) {
    compiler->is_ptx = true;
    return PTX;
  }
  return !is_near ? NOTHING : compiler->may_be_refused ? RISKY_NEAR : NEAR;
}

void gki_cuda_compiler_describe(const gki_cuda_compiler *compiler, char *text, size_t bytes) {
  int version = compiler->nvrtc->version;
  snprintf(text, bytes, "NVRTC %d.%d, %s_%d", version / MAJOR, version % MAJOR / 10,
           compiler->is_ptx ? "PTX for compute" : "cubin for sm", compiler->architecture);
}

static void explain_none(int architecture, int driver_version, const gki_nvrtc *last, const char *problem, char *why,
                         size_t bytes) {
  char driver[64] = "";
  if (driver_version != GKI_CUDA_ALL_DRIVERS)
    snprintf(driver, sizeof driver, " with a driver for CUDA %d.%d", driver_version / MAJOR,
             driver_version % MAJOR / 10);
  if (last)
    snprintf(why, bytes,
             "NVRTC %d.%d compiles for sm_%d to sm_%d, and this GPU is sm_%d%s; install the NVRTC of a CUDA "
             "toolkit that knows the GPU and isn't newer than the driver",
             last->version / MAJOR, last->version % MAJOR / 10, last->architectures[0],
             last->architectures[last->architecture_count - 1], architecture, driver);
  else
    snprintf(why, bytes,
             "there is no NVRTC to compile kernels with (%s); install the CUDA toolkit's, and name its folder in "
             "$CUDA_HOME or that of the library in $LD_LIBRARY_PATH",
             problem);
}

bool gki_cuda_compiler_find(int architecture, int driver_version, gki_cuda_compiler *compiler, char *why,
                            size_t bytes) {
  char problem[TEXT_BYTES];
  snprintf(problem, sizeof problem,
           "neither the loader nor %s/lib64 has a libnvrtc.so.13, .12 or .11.2 that can be loaded", toolkit());
  const gki_nvrtc *last = NULL;
  int best = NOTHING;
  pthread_mutex_lock(&lock);
  for (size_t k = 0; k < GK_COUNT(libraries) && best != EXACT && !(k == NAMED && last); ++k) {
    const gki_nvrtc *nvrtc = load(k, problem);
    if (!nvrtc) continue;
    last = nvrtc;
    gki_cuda_compiler one;
    int rank = gki_nvrtc_rank(nvrtc, architecture, driver_version, &one);
    if (rank < best || (rank == best && !one.may_be_refused) || rank == NOTHING) continue; /* else the older */
    best = rank;
    *compiler = one;
  }
  pthread_mutex_unlock(&lock);
  if (best == NOTHING) {
    explain_none(architecture, driver_version, last, problem, why, bytes);
    return false;
  }
  char text[TEXT_BYTES];
  gki_cuda_compiler_describe(compiler, text, sizeof text);
  gk_log(GK_LOG_INFO, "kernels for sm_%d by %s%s", architecture, text,
         compiler->may_be_refused ? ", which this driver may refuse" : "");
  return true;
}

gk_result gki_cuda_compiler_get(int architecture, int driver_version, gki_cuda_compiler *compiler) {
  char why[2 * TEXT_BYTES];
  if (gki_cuda_compiler_find(architecture, driver_version, compiler, why, sizeof why)) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "%s", why);
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* The GPU in the options, "sm_90a"; NULL: none. */
static const char *target_in(const char *options) {
  static const char *const names[] = {"-arch", "-gpu-architecture"};
  for (size_t k = 0; k < GK_COUNT(names); ++k) {
    const char *at = strstr(options, names[k]), *end = at ? at + strlen(names[k]) : NULL;
    if (end && (*end == '=' || *end == ' ')) return end + 1 + strspn(end + 1, " ");
  }
  return NULL;
}

gk_result gki_cuda_compile(const gki_cuda_compiler *compiler, const gki_unit *text, gki_compiled *image) {
  const gki_nvrtc *nvrtc = compiler->nvrtc;
  const char *own = target_in(text->options ? text->options : "");
  const bool is_ptx = own ? strncmp(own, "compute", 7) == 0 : compiler->is_ptx;
  char target[64], with[TEXT_BYTES];
  snprintf(target, sizeof target, "--gpu-architecture=%s_%d", compiler->is_ptx ? "compute" : "sm",
           compiler->architecture);
  gki_cuda_compiler_describe(compiler, with, sizeof with);
  return rtc_compile(&(rtc_work){nvrtc, text, own ? NULL : target, with, is_ptx ? nvrtc->nvrtcGetPTXSize
                                                                            : nvrtc->nvrtcGetCUBINSize,
                             is_ptx ? nvrtc->nvrtcGetPTX : nvrtc->nvrtcGetCUBIN}, image);
}
