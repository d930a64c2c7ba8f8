#include "cuda/facts.h"
#include "base/error.h"
#include "cuda/compile.h"
#include "cuda/device.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAJOR = 1000, TEXT_BYTES = 2048 };

typedef struct listener { gk_fact_visit visit; void *user; } listener;

static void report(const listener *to, const char *group, const char *name, const char *value, const char *why) {
  to->visit(to->user, &(gk_fact){group, name, value, why});
}

__attribute__((format(printf, 5, 6)))
static void report_as(const listener *to, const char *group, const char *name, const char *why, const char *format,
                      ...) {
  char value[TEXT_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(value, sizeof value, format, args);
  va_end(args);
  report(to, group, name, value, why);
}

/* NULL: unknown. */
static const char *path_of(const void *entry) {
  Dl_info info;
  return dladdr(entry, &info) ? info.dli_fname : NULL;
}

/* ---- its libraries ----------------------------------------------------------------------------------------------- */

static void report_driver(const listener *to) {
  const gki_cuda_driver *driver;
  gki_begin();
  if (gki_cuda_driver_get(&driver) != GK_OK) {
    report(to, "driver", "library", NULL, gk_error());
    return;
  }
  const void *entry;
  memcpy(&entry, &driver->cuDeviceGetCount, sizeof entry);
  report(to, "driver", "library", path_of(entry), "");
  report_as(to, "driver", "cuda", "the newest CUDA that it is for", "%d.%d", driver->version / MAJOR,
            driver->version % MAJOR / 10);
  int count = 0;
  if (driver->cuDeviceGetCount(&count) == CUDA_SUCCESS) report_as(to, "driver", "devices", "", "%d", count);
}

static void report_nvrtc(const listener *to) {
  const char *name;
  const gki_nvrtc *nvrtc;
  char why[TEXT_BYTES];
  for (size_t k = 0; gki_nvrtc_at(k, &name, &nvrtc, why, sizeof why); ++k) {
    if (!nvrtc) {
      report(to, "nvrtc", name, NULL, why);
      continue;
    }
    const void *entry;
    memcpy(&entry, &nvrtc->nvrtcVersion, sizeof entry);
    const char *path = path_of(entry);
    snprintf(why, sizeof why, "%s, for sm_%d to sm_%d", path ? path : name, nvrtc->architectures[0],
             nvrtc->architectures[nvrtc->architecture_count - 1]);
    report_as(to, "nvrtc", name, why, "%d.%d", nvrtc->version / MAJOR, nvrtc->version % MAJOR / 10);
  }
}

static void of_backend(gk_fact_visit visit, void *user) {
  const listener to = {visit, user};
  report_driver(&to);
  report_nvrtc(&to);
}

/* ---- a device ---------------------------------------------------------------------------------------------------- */

static void report_kernels(const listener *to, const gki_cuda_device *device) {
  gki_cuda_compiler compiler;
  char none[TEXT_BYTES];
  if (!gki_cuda_compiler_find(device->arch, device->driver->version, &compiler, none, sizeof none)) {
    report(to, "kernels", "compiler", NULL, none);
  } else {
    char text[TEXT_BYTES];
    gki_cuda_compiler_describe(&compiler, text, sizeof text);
    report(to, "kernels", "compiler", text,
           compiler.may_be_refused ? "newer than the driver, which may refuse it" : "");
  }
  const gki_cuda_builtin *builtin = &device->builtin;
  const bool is_old = device->driver->version < GKI_CUDA_CONDITIONAL_SINCE;
  const char *why = is_old ? "no driver before 12.4 takes gk's images" : builtin->refused;
  if (builtin->module) report(to, "kernels", "own", builtin->translated ? "PTX" : "machine code", builtin->refused);
  else if (device->transfers) report(to, "kernels", "own", "COPY and FILL, by the compiler", why);
  else report(to, "kernels", "own", NULL, device->no_transfers[0] ? device->no_transfers : why);
}

static const char *answer_name(uint8_t answer) {
  switch (answer) {
  case GKI_CUDA_YES: return "yes";
  case GKI_CUDA_NO: return "no";
  case GKI_CUDA_NOT_SHOWN: return "not shown";
  default: return NULL;
  }
}

/* The quirk's name in the table of docs/cuda.md. */
static const char *quirk_name(uint32_t quirk) {
  if (quirk & GKI_CUDA_HOST_GATED) return "host-gated";
  if (quirk & GKI_CUDA_NO_SWITCH) return "no SWITCH";
  if (quirk & GKI_CUDA_CHAIN_BRANCHES) return "chain branches";
  if (quirk & GKI_CUDA_TARGET_BY_COPY) return "target by copy";
  if (quirk & GKI_CUDA_CODE_ON_HOST) return "code by hand host-gated";
  return quirk ? "plain gates" : "nothing, gk doesn't rely on it";
}

static void report_probe(const listener *to, const gki_cuda_caps *caps) {
  report(to, "probe", "conditional", caps->conditional ? "yes" : "no",
         caps->why[0] ? caps->why : "graphs that decide by themselves");
  report_as(to, "probe", "graphs", "that ran", "%u", (unsigned)caps->graph_count);
  report_as(to, "probe", "microseconds", "that it took", "%u", (unsigned)caps->microseconds);
  report_as(to, "probe", "overlaps", "that parallel branches were seen at work at once", "%u",
            (unsigned)caps->overlaps);
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k) {
    const gki_cuda_question_text *question = &gki_cuda_questions[k];
    const bool counts_as_no = caps->answers[k] == GKI_CUDA_NO || caps->answers[k] == GKI_CUDA_NOT_SHOWN;
    char why[TEXT_BYTES];
    snprintf(why, sizeof why, "%s%s%s", question->text, counts_as_no ? "; so: " : "",
             counts_as_no ? quirk_name(question->quirk) : "");
    report(to, "probe", question->name, answer_name(caps->answers[k]), why);
  }
}

static void of_device(void *at, gk_fact_visit visit, void *user) {
  const gki_cuda_device *device = at;
  const listener to = {visit, user};
  report_as(&to, "gpu", "architecture", "", "sm_%d", device->arch);
  report_as(&to, "gpu", "multiprocessors", "", "%d", device->multiprocessors);
  report_kernels(&to, device);
  report_probe(&to, &device->caps);
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

/* Those that gk reads, and those of the loader and the driver that decide what gk finds. */
static void of_environment(gk_fact_visit visit, void *user) {
  static const struct { const char *name, *what; } variables[] = {
    {"GK_CUDA_PROBE",
     "0: CUDA's driver isn't tried, and lists run host-gated; -P4e,-P9a: answers that shall be \"no\""},
    {"CUDA_LAUNCH_BLOCKING",
     "the CUDA driver's: 1: launches wait; then the driver isn't tried without GK_CUDA_PROBE=1"},
    {"CUDA_HOME", "a CUDA toolkit, whose lib64 may have NVRTC; where the loader looks comes first"},
    {"CUDA_PATH", "the same without CUDA_HOME; without both it is /usr/local/cuda"},
    {"LD_LIBRARY_PATH", "the loader's: where CUDA's driver and NVRTC may be"},
    {"CUDA_VISIBLE_DEVICES", "the CUDA driver's: which GPUs there are, and in which order"},
  };
  const listener to = {visit, user};
  for (size_t k = 0; k < GK_COUNT(variables); ++k)
    report(&to, "environment", variables[k].name, secure_getenv(variables[k].name), variables[k].what);
}

const gk_fact_source gki_cuda_facts = {sizeof(gk_fact_source), of_backend, of_device, of_environment};
