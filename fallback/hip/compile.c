#include "hip/compile.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/trace.h"
#include "kernel/store.h"
#include <stdio.h>
#include <string.h>

enum { SPARE_BYTES = 2048 /* of a message, besides a log */, MOST_OPTIONS = 64, OPTION_BYTES = 128 };

/* Versions of HIP, and the architectures that hipRTC knows from then on. Debian's 5.2 has the first line. Such an
 * architecture's device library is in AMD's packages of that version. */
static const struct { int since; const char *names; } known[] = {
    {502, " gfx803 gfx900 gfx906 gfx908 gfx90a gfx940 gfx1010 gfx1030 gfx1031 "},
    {505, " gfx90c gfx1011 gfx1012 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103 "},
    {600, " gfx941 gfx942 "},
    {604, " gfx1150 gfx1151 gfx1200 gfx1201 "},
    {700, " gfx950 gfx1152 gfx1153 "},
};

/* Since when; 0: no version that gk knows of. */
static int known_since(const char *architecture) {
  char name[32];
  snprintf(name, sizeof name, " %.*s ", (int)strcspn(architecture, ":"), architecture);
  for (size_t k = 0; k < GK_COUNT(known); ++k)
    if (strstr(known[k].names, name)) return known[k].since;
  return 0;
}

bool gki_hip_knows(int version, const char *architecture) {
  const int since = known_since(architecture);
  return since && version >= since;
}

static gk_result refuse(const gki_hip_driver *driver, const char *architecture) {
  const int since = known_since(architecture), version = driver->version;
  char advice[128];
  if (driver->no_compiler[0])
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: kernels can't be compiled: %s", driver->no_compiler);
  if (since) snprintf(advice, sizeof advice, "install HIP %d.%d or newer", since / 100, since % 100);
  else snprintf(advice, sizeof advice, "this version of gk knows of no hipRTC that does");
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: hipRTC of HIP %d.%d isn't known to compile for %s, and one that "
                 "doesn't know an architecture may end the process, so it isn't tried; %s", version / 100,
                 version % 100, architecture, advice);
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* hipRTC of some versions isn't thread-safe. */
GKI_PROCESS_LOCK(lock)

/* Gets what hipRTC returns in two calls, size and bytes. On failure `image` stays empty. */
static hiprtcResult fetch(hiprtcProgram program, hiprtcResult (*get_size)(hiprtcProgram, size_t *),
                          hiprtcResult (*get)(hiprtcProgram, char *), gki_compiled *image) {
  size_t size = 0;
  hiprtcResult result = get_size(program, &size);
  if (result != HIPRTC_SUCCESS) return result;
  if (size == SIZE_MAX || !(image->bytes = gk_host_alloc(size + 1))) return HIPRTC_ERROR_OUT_OF_MEMORY;
  image->size = size;
  result = get(program, image->bytes);
  if (result != HIPRTC_SUCCESS) gki_compiled_free(image);
  return result;
}

/* Splits the text's options into words behind the target. False: too many, or too long. */
static bool split_options(const char *architecture, const char *options, char copy[MOST_OPTIONS * OPTION_BYTES],
                          const char **words, int *count) {
  const size_t used = (size_t)snprintf(copy, OPTION_BYTES, "--offload-arch=%s", architecture) + 1;
  words[0] = copy;
  *count = 1;
  if (used > OPTION_BYTES || strlen(options) >= (size_t)(MOST_OPTIONS - 1) * OPTION_BYTES) return false;
  char *rest = memcpy(copy + used, options, strlen(options) + 1);
  for (char *word; (word = strtok_r(rest, " \t\n", &rest)); words[(*count)++] = word)
    if (*count == MOST_OPTIONS) return false;
  return true;
}

static hiprtcResult compile(const gki_hip_driver *driver, const char *architecture, hiprtcProgram program,
                            const gki_unit *text) {
  char copy[MOST_OPTIONS * OPTION_BYTES];
  const char *words[MOST_OPTIONS];
  int count;
  if (!split_options(architecture, text->options ? text->options : "", copy, words, &count))
    return HIPRTC_ERROR_INVALID_OPTION;
  gki_trace_begin(0, "compile %s", text->file);
  const hiprtcResult result = driver->hiprtcCompileProgram(program, count, words);
  gki_trace_end();
  return result;
}

/* Maps hipRTC's result. Takes the log of `program` into the message, or logs it. */
static gk_result compile_result(const gki_hip_driver *driver, const char *architecture, hiprtcProgram program,
                                const gki_unit *text, hiprtcResult result, gki_compiled *image) {
  gki_compiled log = {0};
  if (program) fetch(program, driver->hiprtcGetProgramLogSize, driver->hiprtcGetProgramLog, &log);
  char *messages = log.bytes, name[GKI_UNIT_NAME_BYTES], with[128];
  size_t length = messages ? strlen(messages) : 0;
  while (length > 0 && strchr(" \n\r\t", messages[length - 1])) messages[--length] = 0;
  snprintf(with, sizeof with, "hipRTC of HIP %d.%d for %.60s", driver->version / 100, driver->version % 100,
           architecture);
  gki_unit_name(text, name);
  gk_result code = GK_OK;
  if (result == HIPRTC_ERROR_COMPILATION)
    code = gk_fail(GK_ERROR_COMPILE, "%s doesn't compile (%s):\n%.*s", name, with, GKI_MESSAGE_BYTES - SPARE_BYTES,
                   length ? messages : "");
  else if (result == HIPRTC_ERROR_OUT_OF_MEMORY)
    code = gk_fail(GK_ERROR_MEMORY, "out of host memory compiling %s (%s); free some and call again", name, with);
  else if (result != HIPRTC_SUCCESS)
    code = gk_fail(GK_ERROR_UNSUPPORTED, "%s can't be compiled (%s): %s%s%s", name, with,
                   driver->hiprtcGetErrorString(result), length ? "\n" : "", length ? messages : "");
  else if (length) {
    gk_log(GK_LOG_WARN, "%s (%s):\n%s", name, with, messages);
    image->log = messages;
    return GK_OK;
  }
  gki_compiled_free(&log);
  return code;
}

gk_result gki_hip_compile(const gki_hip_driver *driver, const char *architecture, const gki_unit *text,
                          gki_compiled *image) {
  *image = (gki_compiled){0};
  if (driver->no_compiler[0] || !gki_hip_knows(driver->version, architecture)) return refuse(driver, architecture);
  hiprtcProgram program = NULL;
  pthread_mutex_lock(&lock);
  hiprtcResult result = driver->hiprtcCreateProgram(&program, text->text, text->file, 0, NULL, NULL);
  if (result != HIPRTC_SUCCESS) program = NULL;
  else result = compile(driver, architecture, program, text);
  if (result == HIPRTC_SUCCESS) result = fetch(program, driver->hiprtcGetCodeSize, driver->hiprtcGetCode, image);
  const gk_result code = compile_result(driver, architecture, program, text, result, image);
  if (program) driver->hiprtcDestroyProgram(&program);
  pthread_mutex_unlock(&lock);
  return code;
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

static bool key_of(const gki_hip_device *device, const gki_unit *text, gki_cache_key *key) {
  const gki_hip_driver *driver = device->driver;
  char made_for[640];
  int major = 0, minor = 0;
  if (driver->no_compiler[0] || driver->hiprtcVersion(&major, &minor) != HIPRTC_SUCCESS) return false;
  snprintf(made_for, sizeof made_for, "gk %s, hipRTC %d.%d, HIP %d, %s, %s", GK_VERSION, major, minor, driver->version,
           driver->path, device->architecture);
  return gki_store_key(text, made_for, key);
}

static bool load_stored(const gki_hip_device *device, const gki_unit *text, const gki_cache_key *key,
                        hipModule_t *module) {
  gki_compiled image = {0};
  char name[GKI_UNIT_NAME_BYTES], why[300];
  gki_unit_name(text, name);
  if (!gki_store_find(key, name, "hipRTC", &image)) return false;
  const hipError_t answer = device->driver->hipModuleLoadData(module, image.bytes);
  gki_compiled_free(&image);
  if (answer == hipSuccess) return true;
  gki_hip_describe(device->driver, answer, why, sizeof why);
  gk_log(GK_LOG_INFO, "%s is compiled anew, as the runtime refuses what was kept: %s", name, why);
  return false;
}

gk_result gki_hip_load_text(gki_hip_device *device, const gki_unit *text, hipModule_t *module) {
  gki_compiled image = {0};
  gki_cache_key key;
  char name[GKI_UNIT_NAME_BYTES];
  const bool keeps = key_of(device, text, &key);
  if (keeps && load_stored(device, text, &key, module)) return GK_OK;
  gk_result result = gki_hip_compile(device->driver, device->architecture, text, &image);
  gki_unit_name(text, name);
  if (result == GK_OK)
    result = gki_hip_check(device, device->driver->hipModuleLoadData(module, image.bytes), "hipModuleLoadData of %s",
                           name);
  if (result == GK_OK && keeps) gki_store_keep(&key, &image);
  gki_compiled_free(&image);
  return result;
}
