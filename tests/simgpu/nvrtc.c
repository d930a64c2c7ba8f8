/* libnvrtc's entries. The library is there under each of its names, and each is a copy that has one version or none,
 * so that no real NVRTC is found beside them. Programs are known by address; a call with one that isn't there is
 * refused. */
#include "compile.h"
#include "image.h"
#include "simnvrtc.h"
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, INTERNAL_ERROR = 11 }; /* gk doesn't tell them apart */

struct _nvrtcProgram {
  nvrtcProgram next;
  char *source, *name;
  int header_count;
  char **headers, **header_names;
  char *log;
  void *cubin, *ptx;
  size_t cubin_bytes, ptx_bytes;
};

typedef struct version { const char *name; int cuda, lowest; const int *architectures; } version;
static const int in_11_4[] = {35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 0};
static const int in_12_4[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 0};
static const int in_12_8[] = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 120, 0};
static const int in_13_0[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121, 0};
static const version versions[] = {{"11.4", 11040, 52, in_11_4}, {"12.4", 12040, 52, in_12_4},
                                   {"12.8", 12080, 52, in_12_8}, {"13.0", 13000, 75, in_13_0}, {"none", 0, 0, in_12_4}};
enum { VERSIONS = sizeof versions / sizeof versions[0], NONE = VERSIONS - 1 };
static const char DEFAULT[] = "13.0,12.8,11.4";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const version *chosen;
static nvrtcProgram programs;
static simnvrtc_counts counts;
static uint64_t fails_at; /* of counts.calls */
static nvrtcResult fails_with;
static const char *failed_entry;

/* ---- control ----------------------------------------------------------------------------------------------------- */

/* Of libnvrtc.so.12: 12; of libnvrtc.so: 0. */
static int own_major(void) {
  Dl_info info;
  const char *name = dladdr(&programs, &info) ? strstr(info.dli_fname, "libnvrtc.so.") : NULL;
  return name ? atoi(name + strlen("libnvrtc.so.")) : 0;
}

/* The version of this library's own major number among those listed. */
static void choose(const char *list) {
  chosen = &versions[NONE];
  for (const char *s = list; *s; s += *s == ',') {
    size_t length = strcspn(s, ","), k = 0;
    while (k < VERSIONS && (strlen(versions[k].name) != length || memcmp(versions[k].name, s, length) != 0)) ++k;
    if (k == VERSIONS) {
      fprintf(stderr, "SIMGPU_NVRTC=%s: it is none, or some of 11.4, 12.4, 12.8, 13.0 with commas\n", list);
      abort();
    }
    if (versions[k].cuda / 1000 == own_major() && chosen == &versions[NONE]) chosen = &versions[k];
    s += length;
  }
}

__attribute__((constructor))
static void read_environment(void) {
  const char *list = getenv("SIMGPU_NVRTC"), *fail = getenv("SIMGPU_NVRTC_FAIL");
  choose(list && *list ? list : DEFAULT);
  fails_at = fail ? strtoull(fail, NULL, 10) : 0;
  fails_with = (nvrtcResult)INTERNAL_ERROR;
}

static nvrtcResult enter(const char *entry) {
  pthread_mutex_lock(&lock);
  ++counts.calls;
  if (counts.calls == fails_at) failed_entry = entry;
  return chosen->cuda == 0 ? (nvrtcResult)INTERNAL_ERROR : counts.calls == fails_at ? fails_with : NVRTC_SUCCESS;
}

static void leave(__attribute__((unused)) const nvrtcResult *entered) { pthread_mutex_unlock(&lock); }

#define ENTER_BACK() __attribute__((cleanup(leave), unused)) const nvrtcResult entered = enter(__func__)
#define ENTER() \
  ENTER_BACK(); \
  if (entered != NVRTC_SUCCESS) return entered
/* The same for controls: no call. */
#define HOLD() \
  __attribute__((cleanup(leave), unused)) const nvrtcResult held = NVRTC_SUCCESS; \
  pthread_mutex_lock(&lock)

static void set_versions(const char *list) {
  HOLD();
  choose(list);
}

static void mark(void) {
  HOLD();
  counts = (simnvrtc_counts){0};
  fails_at = 0;
  failed_entry = NULL;
}

static simnvrtc_counts get_counts(void) {
  HOLD();
  return counts;
}

static void fail(uint64_t k, nvrtcResult code) {
  HOLD();
  fails_at = k == 0 ? 0 : counts.calls + k;
  fails_with = code;
  failed_entry = NULL;
}

static const char *failed(void) { return failed_entry; }

static size_t alive(void) {
  size_t count = 0;
  HOLD();
  for (nvrtcProgram p = programs; p; p = p->next) ++count;
  return count;
}

EXPORT extern const simnvrtc_control simnvrtc_control_table __asm__("simnvrtc_control");
const simnvrtc_control simnvrtc_control_table = {sizeof(simnvrtc_control), set_versions, mark, get_counts, fail, failed,
                                                 alive};

/* ---- options ----------------------------------------------------------------------------------------------------- */

typedef struct asked {
  sim_arch arch;
  bool real; /* sm_: machine code, too */
  FILE *macros, *options;
  FILE *log;
} asked;

/* Those that change nothing here, with or without a value. */
static const char *const ignored[] = {
  "lineinfo", "generate-line-info", "G", "device-debug", "w", "disable-warnings", "default-device",
  "device-as-default-execution-space", "restrict", "extra-device-vectorization", "use_fast_math", "ftz", "prec-sqrt",
  "prec-div", "maxrregcount", "rdc", "relocatable-device-code", "dopt", "Xptxas", "ptxas-options", "device-int128",
  "no-source-include", "minimal", "split-compile", "modify-stack-limit", "builtin-initializer-list",
  "display-error-number", "no-display-error-number", "diag-error", "diag-suppress", "diag-warn", "Ofast-compile"};

/* Words that take the next one as their value if they have none. */
static const char *const with_value[] = {"gpu-architecture", "arch", "define-macro", "undefine-macro", "include-path",
                                         "std", "maxrregcount", "Xptxas", "ptxas-options", "D", "U", "I"};
static const char *const standards[] = {"c++03", "c++11", "c++14", "c++17", "c++20"};

static bool is_among(const char *word, const char *const *words, size_t count) {
  while (count > 0 && strcmp(words[count - 1], word) != 0) --count;
  return count > 0;
}
#define IS_AMONG(word, words) is_among(word, words, sizeof(words) / sizeof *(words))

static bool set_architecture(asked *a, const char *value) {
  const char *s = strncmp(value, "sm_", 3) == 0 ? value + 3 : strncmp(value, "compute_", 8) == 0 ? value + 8 : "";
  a->real = *value == 's';
  a->arch = sim_arch_of(s, &s);
  bool is_known = *s == 0 && (a->arch.feature != 'a' || a->arch.number >= 90) &&
    (a->arch.feature != 'f' || (a->arch.number >= 100 && chosen->cuda >= 12090));
  for (const int *arch = chosen->architectures; is_known && *arch; ++arch)
    if (*arch == a->arch.number) return true;
  fprintf(a->log, "nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
  return false;
}

static bool is_one(const char *name, const char *a, const char *b) {
  return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static void define(asked *a, const char *value) {
  const char *equals = strchr(value, '=');
  if (equals) fprintf(a->macros, "#define %.*s %s\n", (int)(equals - value), value, equals + 1);
  else fprintf(a->macros, "#define %s 1\n", value);
}

static bool apply(asked *a, const char *option, const char *name, const char *value) {
  if (is_one(name, "gpu-architecture", "arch")) return set_architecture(a, value);
  if (is_one(name, "define-macro", "D")) define(a, value);
  else if (is_one(name, "undefine-macro", "U")) fprintf(a->macros, "#undef %s\n", value);
  else if (is_one(name, "include-path", "I")) {
    if (strchr(value, '\'')) return false;
    fprintf(a->options, " '-I%s'", value);
  } else if (strcmp(name, "fmad") == 0) fputs(strcmp(value, "false") == 0 ? " -ffp-contract=off" : "", a->options);
  else if (strcmp(name, "std") == 0 ? !IS_AMONG(value, standards) : !IS_AMONG(name, ignored)) {
    if (strcmp(name, "std") == 0) fprintf(a->log, "nvrtc: error: invalid value for --std (-std)\n");
    else fprintf(a->log, "nvrtc: error: unrecognized option %s found\n", option);
    return false;
  }
  return true;
}

/* -name=value, --name=value, -name value, -Dname. */
static bool read_options(asked *a, int count, const char *const *options) {
  for (int k = 0; k < count; ++k) {
    const char *option = options[k], *word = option + strspn(option, "-");
    char name[64];
    if (*option != '-') {
      fprintf(a->log, "nvrtc: error: unrecognized option %s found\n", option);
      return false;
    }
    const char *value = strchr(word, '=');
    if (word == option + 1 && strchr("DUI", *word) && *word) {
      snprintf(name, sizeof name, "%c", *word);
      value = word + 1;
    } else {
      snprintf(name, sizeof name, "%.*s", (int)(value ? value - word : (long)strlen(word)), word);
      if (value) ++value;
    }
    if (IS_AMONG(name, with_value) && (!value || !*value)) {
      if (++k == count) {
        fprintf(a->log, "nvrtc: error: option %s has no value\n", option);
        return false;
      }
      value = options[k];
    }
    if (!apply(a, option, name, value ? value : "")) return false;
  }
  return true;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static bool is_program(nvrtcProgram program) {
  for (nvrtcProgram p = programs; p; p = p->next)
    if (p == program) return true;
  return false;
}

static void forget_results(nvrtcProgram p) {
  free(p->log);
  free(p->cubin);
  free(p->ptx);
  p->log = NULL;
  p->cubin = p->ptx = NULL;
  p->cubin_bytes = p->ptx_bytes = 0;
}

static void end_program(nvrtcProgram p) {
  forget_results(p);
  for (int k = 0; k < p->header_count; ++k) {
    if (p->headers) free(p->headers[k]);
    if (p->header_names) free(p->header_names[k]);
  }
  free(p->headers);
  free(p->header_names);
  free(p->source);
  free(p->name);
  free(p);
}

/* Beside the library itself. */
static void cache_folder(char *path, size_t bytes) {
  Dl_info info;
  char real[PATH_MAX];
  if (!dladdr(&programs, &info) || !realpath(info.dli_fname, real)) snprintf(real, sizeof real, "./x");
  snprintf(path, bytes, "%.*s/cache", (int)(strrchr(real, '/') - real), real);
}

/* The lock is open meanwhile, so that two threads may compile at once. */
static bool compile(const asked *a, nvrtcProgram p, const char *macros, const char *options, sim_made *made) {
  char folder[PATH_MAX + 16], *all = NULL;
  bool by_architecture = strstr(p->source, "__CUDA_ARCH__");
  for (int k = 0; k < p->header_count; ++k) by_architecture = by_architecture || strstr(p->headers[k], "__CUDA_ARCH__");
  if (asprintf(&all, "#define __CUDACC_RTC__ 1\n#define SIM_ARCH %d\n%s", by_architecture ? a->arch.number * 10 : 750,
               macros) < 0) return false;
  cache_folder(folder, sizeof folder);
  const sim_job job = {p->source, p->name, all, options, p->header_count, (const char *const *)p->headers,
                       (const char *const *)p->header_names};
  pthread_mutex_unlock(&lock);
  bool right = sim_compile(folder, &job, made);
  pthread_mutex_lock(&lock);
  if (made->was_kept) ++counts.kept;
  else ++counts.compiled;
  free(all);
  return right;
}

static nvrtcResult make_images(const asked *a, nvrtcProgram p, const sim_made *made) {
  p->ptx = sim_image_ptx(chosen->cuda, a->arch, made->code, made->code_bytes, &p->ptx_bytes);
  if (a->real) p->cubin = sim_image_cubin(chosen->cuda, a->arch, made->code, made->code_bytes, &p->cubin_bytes);
  return p->ptx && (p->cubin || !a->real) ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

static nvrtcResult compile_program(asked *a, nvrtcProgram p, int count, const char *const *options) {
  char *macros = NULL, *rest = NULL, *log = NULL;
  size_t sizes[3];
  sim_made made = {0};
  a->macros = open_memstream(&macros, &sizes[0]);
  a->options = open_memstream(&rest, &sizes[1]);
  a->log = open_memstream(&log, &sizes[2]);
  if (!a->macros || !a->options || !a->log) abort();
  nvrtcResult result = read_options(a, count, options) ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_OPTION;
  fclose(a->macros);
  fclose(a->options);
  fclose(a->log);
  if (result == NVRTC_SUCCESS) {
    result = !compile(a, p, macros, rest, &made) ? (nvrtcResult)INTERNAL_ERROR :
      made.code ? make_images(a, p, &made) : NVRTC_ERROR_COMPILATION;
    free(log);
    log = made.log;
  }
  p->log = log;
  free(made.code);
  free(macros);
  free(rest);
  return result;
}

/* ---- the entries ------------------------------------------------------------------------------------------------- */

#define PROTOTYPE(type, name, parameters) EXPORT type name parameters;
GKI_NVRTC_ENTRIES(PROTOTYPE)

const char *nvrtcGetErrorString(nvrtcResult result) {
  static const char *const names[] = {
    "NVRTC_SUCCESS", "NVRTC_ERROR_OUT_OF_MEMORY", "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", "NVRTC_ERROR_INVALID_INPUT",
    "NVRTC_ERROR_INVALID_PROGRAM", "NVRTC_ERROR_INVALID_OPTION", "NVRTC_ERROR_COMPILATION",
    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION", "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    "NVRTC_ERROR_INTERNAL_ERROR"};
  unsigned number = (unsigned)result;
  return number < sizeof names / sizeof names[0] ? names[number] : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
  ENTER();
  if (!major || !minor) return (nvrtcResult)INVALID_INPUT;
  *major = chosen->cuda / 1000;
  *minor = chosen->cuda % 1000 / 10;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  ENTER();
  if (!count) return (nvrtcResult)INVALID_INPUT;
  for (*count = 0; chosen->architectures[*count]; ++*count) continue;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *architectures) {
  ENTER();
  if (!architectures) return (nvrtcResult)INVALID_INPUT;
  for (int k = 0; chosen->architectures[k]; ++k) architectures[k] = chosen->architectures[k];
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int header_count,
                               const char *const *headers, const char *const *names) {
  ENTER();
  if (!program || !source || header_count < 0 || (header_count > 0 && (!headers || !names)))
    return (nvrtcResult)INVALID_INPUT;
  nvrtcProgram p = calloc(1, sizeof *p);
  if (!p) return NVRTC_ERROR_OUT_OF_MEMORY;
  p->source = strdup(source);
  p->name = strdup(name ? name : "default_program");
  p->headers = calloc((size_t)header_count + 1, sizeof *p->headers);
  p->header_names = calloc((size_t)header_count + 1, sizeof *p->header_names);
  bool right = p->source && p->name && p->headers && p->header_names;
  for (; right && p->header_count < header_count; ++p->header_count) {
    p->headers[p->header_count] = strdup(headers[p->header_count]);
    p->header_names[p->header_count] = strdup(names[p->header_count]);
    right = p->headers[p->header_count] && p->header_names[p->header_count];
  }
  if (!right) {
    end_program(p);
    return NVRTC_ERROR_OUT_OF_MEMORY;
  }
  p->next = programs;
  *program = programs = p;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
  ENTER_BACK();
  if (!program || !is_program(*program)) return (nvrtcResult)INVALID_PROGRAM;
  nvrtcProgram *at = &programs;
  while (*at != *program) at = &(*at)->next;
  *at = (*program)->next;
  end_program(*program);
  *program = NULL;
  return entered;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  ENTER();
  if (!is_program(program)) return (nvrtcResult)INVALID_PROGRAM;
  if (count < 0 || (count > 0 && !options)) return (nvrtcResult)INVALID_INPUT;
  forget_results(program);
  asked a = {.arch = {chosen->lowest, 0}};
  return compile_program(&a, program, count, options);
}

static nvrtcResult size_of(size_t bytes, size_t *to) {
  if (!to) return (nvrtcResult)INVALID_INPUT;
  *to = bytes;
  return NVRTC_SUCCESS;
}

static nvrtcResult give(const void *from, size_t bytes, char *to) {
  if (!to || !from) return (nvrtcResult)INVALID_INPUT;
  memcpy(to, from, bytes);
  return NVRTC_SUCCESS;
}

/* Two entries; `from` and `bytes` are of the program p. Without PTX or a log that is the empty text. */
#define GETTERS(name, from, bytes) \
  nvrtcResult nvrtcGet##name##Size(nvrtcProgram p, size_t *to) { \
    ENTER(); \
    return is_program(p) ? size_of(bytes, to) : (nvrtcResult)INVALID_PROGRAM; \
  } \
  nvrtcResult nvrtcGet##name(nvrtcProgram p, char *to) { \
    ENTER(); \
    return is_program(p) ? give(from, bytes, to) : (nvrtcResult)INVALID_PROGRAM; \
  }
GETTERS(CUBIN, p->cubin, p->cubin_bytes)
GETTERS(PTX, p->ptx ? p->ptx : "", p->ptx ? p->ptx_bytes : 1)
GETTERS(ProgramLog, p->log ? p->log : "", p->log ? strlen(p->log) + 1 : 1)
