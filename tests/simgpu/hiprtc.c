/* hipRTC over NVRTC, simulated or real: HIP's language is CUDA's behind a few lines. The code is PTX, which any device
 * loads. */
#include "cuda/abi.h"
#include "simhip.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What HIP has built in and CUDA hasn't. Lanes that have no thread bring nothing to a wave. */
static const char PRELUDE[] =
  "#undef __CUDACC__\n#undef __CUDACC_RTC__\n#undef __CUDA_ARCH__\n"
  "#define __HIP__ 1\n#define __HIPCC__ 1\n#define __HIPCC_RTC__ 1\n#define __HIP_PLATFORM_AMD__ 1\n"
  "#define __HIP_DEVICE_COMPILE__ 1\n"
  "template <typename T> static __device__ inline T __shfl_down(T v, unsigned by, int width = 32) {\n"
  "  if (blockDim.x * blockDim.y * blockDim.z % __AMDGCN_WAVEFRONT_SIZE != 0) __trap();\n"
  "  return __shfl_down_sync(0xffffffffu, v, by, width);\n}\n";

struct _hiprtcProgram {
  nvrtcProgram program;
  sim_hip_code head;
};

static struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
  GKI_NVRTC_ENTRIES(MEMBER)
#undef MEMBER
} nvrtc;
static bool is_found;

static void find_nvrtc(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  void *library = NULL;
  for (size_t k = 0; !library && k < sizeof names / sizeof names[0]; ++k) library = dlopen(names[k], RTLD_NOW);
  if (!library) return;
  is_found = true;
  void *found;
#define FIND(result, name, parameters) \
  found = dlsym(library, #name); \
  memcpy(&nvrtc.name, &found, sizeof found); \
  is_found = is_found && found;
  GKI_NVRTC_ENTRIES(FIND)
#undef FIND
}

static bool is_ready(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_nvrtc);
  return is_found;
}

enum { HIPRTC_ERROR_INVALID_INPUT = 3, HIPRTC_ERROR_INTERNAL_ERROR = 11 };
static hiprtcResult rtc(unsigned result) { return (hiprtcResult)result; }

#define PROTOTYPE(result, name, parameters) SIM_HIP_EXPORT result name parameters;
GKI_HIPRTC_ENTRIES(PROTOTYPE)

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char *const known[] = {
#if SIM_HIP == 5
  "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx940", "gfx1010", "gfx1030", "gfx1031",
#else
  "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1031", "gfx1100", "gfx1101", "gfx1102", "gfx1150",
  "gfx1151", "gfx1200", "gfx1201",
#endif
  NULL};

static bool begins(const char *option, const char *with) { return strncmp(option, with, strlen(with)) == 0; }

/* gfx90a:sramecc+:xnack- is gfx90a. HIP 5.2 ends the process for an architecture that it doesn't know. */
static bool set_architecture(hiprtcProgram p, const char *value) {
  const size_t length = strcspn(value, ":");
  const char *const *name = known;
  while (*name && (strlen(*name) != length || strncmp(*name, value, length) != 0)) ++name;
  if (!*name && SIM_HIP == 5) {
    fprintf(stderr, "hipRTC %d: the architecture %s has no device library\n", SIM_HIP, value);
    abort();
  }
  if (*name) snprintf(p->head.arch, sizeof p->head.arch, "%s", *name);
  return *name;
}

/* Writes NVRTC's option to `to`; NULL: there is none for it. */
static const char *translate(const char *option) {
  if (begins(option, "-D") || begins(option, "-U") || begins(option, "-I") || begins(option, "-std=")) return option;
  if (strcmp(option, "-ffp-contract=off") == 0) return "--fmad=false";
  return NULL;
}

static bool is_of_clang(const char *option) {
  return begins(option, "-O") || begins(option, "-f") || begins(option, "-W") || begins(option, "-m") ||
    strcmp(option, "-w") == 0 || strcmp(option, "-g") == 0;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

const char *hiprtcGetErrorString(hiprtcResult result) {
  static const char *const names[] = {
    "HIPRTC_SUCCESS", "HIPRTC_ERROR_OUT_OF_MEMORY", "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "HIPRTC_ERROR_INVALID_INPUT", "HIPRTC_ERROR_INVALID_PROGRAM", "HIPRTC_ERROR_INVALID_OPTION",
    "HIPRTC_ERROR_COMPILATION", "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    "HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", "HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    "HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "HIPRTC_ERROR_INTERNAL_ERROR"};
  const unsigned number = (unsigned)result;
  return number < sizeof names / sizeof names[0] ? names[number] : "HIPRTC_ERROR unknown";
}

/* What that of HIP 5.2 answers. */
hiprtcResult hiprtcVersion(int *major, int *minor) {
  if (!major || !minor) return rtc(HIPRTC_ERROR_INVALID_INPUT);
  *major = 9;
  *minor = 0;
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcCreateProgram(hiprtcProgram *program, const char *source, const char *name, int header_count,
                                 const char **headers, const char **names) {
  if (!is_ready()) return rtc(HIPRTC_ERROR_INTERNAL_ERROR);
  if (!program || !source) return rtc(HIPRTC_ERROR_INVALID_INPUT);
  char *text = NULL;
  hiprtcProgram p = calloc(1, sizeof *p);
  unsigned result = HIPRTC_ERROR_OUT_OF_MEMORY;
  if (p && asprintf(&text, "%s#line 1 \"%s\"\n%s", PRELUDE, name ? name : "program", source) >= 0)
    result = nvrtc.nvrtcCreateProgram(&p->program, text, name, header_count, headers, names);
  free(text);
  if (result == HIPRTC_SUCCESS) *program = p;
  else free(p);
  return rtc(result);
}

hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count, const char **options) {
  const char **passed = calloc((size_t)count + 2, sizeof *passed);
  if (!passed) return HIPRTC_ERROR_OUT_OF_MEMORY;
  static const char ARCHITECTURE[] = "--offload-arch=";
  int used = 0;
  unsigned result = HIPRTC_SUCCESS;
  memcpy(program->head.magic, SIM_HIP_MAGIC, sizeof SIM_HIP_MAGIC);
  passed[used++] = "--gpu-architecture=compute_75";
  for (int k = 0; k < count; ++k) {
    const char *const option = translate(options[k]);
    if (option) passed[used++] = option;
    else if (begins(options[k], ARCHITECTURE)) {
      if (!set_architecture(program, options[k] + sizeof ARCHITECTURE - 1)) result = HIPRTC_ERROR_COMPILATION;
      else continue;
    } else if (!is_of_clang(options[k])) result = HIPRTC_ERROR_INVALID_OPTION;
  }
  if (result == HIPRTC_SUCCESS && !*program->head.arch) result = HIPRTC_ERROR_INVALID_OPTION;
  passed[used++] = begins(program->head.arch, "gfx9") ? "-D__AMDGCN_WAVEFRONT_SIZE=64" : "-D__AMDGCN_WAVEFRONT_SIZE=32";
  if (result == HIPRTC_SUCCESS) result = nvrtc.nvrtcCompileProgram(program->program, used, passed);
  free(passed);
  return rtc(result);
}

hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program) {
  if (!program || !*program) return rtc(HIPRTC_ERROR_INVALID_INPUT);
  const unsigned result = nvrtc.nvrtcDestroyProgram(&(*program)->program);
  free(*program);
  *program = NULL;
  return rtc(result);
}

hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t *bytes) {
  return rtc(nvrtc.nvrtcGetProgramLogSize(program->program, bytes));
}

hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char *log) {
  return rtc(nvrtc.nvrtcGetProgramLog(program->program, log));
}

hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *bytes) {
  const unsigned result = nvrtc.nvrtcGetPTXSize(program->program, bytes);
  if (result == HIPRTC_SUCCESS) *bytes += sizeof program->head;
  return rtc(result);
}

hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code) {
  memcpy(code, &program->head, sizeof program->head);
  return rtc(nvrtc.nvrtcGetPTX(program->program, code + sizeof program->head));
}
