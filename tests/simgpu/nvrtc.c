/* libnvrtc's entries. The library is there under each of its names, and each is a copy that has one version or none,
 * so that no real NVRTC is found beside them. Programs are known by address; a call with one that isn't there is
 * refused. */
#include "compile.h"
#include "image.h"
#include "lock.h"
#include "simnvrtc.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* gk doesn't tell them apart. */
#define INVALID_INPUT ((nvrtcResult)3)
#define INVALID_PROGRAM ((nvrtcResult)4)
#define INTERNAL_ERROR ((nvrtcResult)11)

typedef struct output { void *at; size_t bytes; } output; /* by malloc */

struct _nvrtcProgram {
  nvrtcProgram next;
  char *source, *name;
  int header_count;
  char **headers, **header_names;
  output log, cubin, ptx;
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
  fails_with = INTERNAL_ERROR;
}

/* With the lock held. */
static nvrtcResult enter(const char *entry) {
  ++counts.calls;
  if (counts.calls == fails_at) failed_entry = entry;
  return chosen->cuda == 0 ? INTERNAL_ERROR : counts.calls == fails_at ? fails_with : NVRTC_SUCCESS;
}

#define ENTER() \
  SIM_HOLD(lock); \
  const nvrtcResult entered = enter(__func__); \
  if (entered != NVRTC_SUCCESS) return entered
#define ENTER_WITH(program) \
  ENTER(); \
  if (!is_program(program)) return INVALID_PROGRAM

static void set_versions(const char *list) {
  SIM_HOLD(lock);
  choose(list);
}

static void mark(void) {
  SIM_HOLD(lock);
  counts = (simnvrtc_counts){0};
  fails_at = 0;
  failed_entry = NULL;
}

static simnvrtc_counts get_counts(void) {
  SIM_HOLD(lock);
  return counts;
}

static void fail(uint64_t k, nvrtcResult code) {
  SIM_HOLD(lock);
  fails_at = k == 0 ? 0 : counts.calls + k;
  fails_with = code;
  failed_entry = NULL;
}

static const char *failed(void) { return failed_entry; }

static size_t alive(void) {
  size_t count = 0;
  SIM_HOLD(lock);
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
  FILE *macros, *options, *log;
} asked;

__attribute__((format(printf, 2, 3)))
static bool refuse(asked *a, const char *text, ...) {
  va_list arguments;
  va_start(arguments, text);
  fputs("nvrtc: error: ", a->log);
  vfprintf(a->log, text, arguments);
  fputc('\n', a->log);
  va_end(arguments);
  return false;
}

/* Lists of words end with NULL. Those that change nothing here, with or without a value: */
static const char *const ignored[] = {
  "lineinfo", "generate-line-info", "G", "device-debug", "w", "disable-warnings", "default-device",
  "device-as-default-execution-space", "restrict", "extra-device-vectorization", "use_fast_math", "ftz", "prec-sqrt",
  "prec-div", "maxrregcount", "rdc", "relocatable-device-code", "dopt", "Xptxas", "ptxas-options", "device-int128",
  "no-source-include", "minimal", "split-compile", "modify-stack-limit", "builtin-initializer-list",
  "display-error-number", "no-display-error-number", "diag-error", "diag-suppress", "diag-warn", "Ofast-compile", NULL};
/* Those that take the next word as their value if they have none: */
static const char *const with_value[] = {
  "gpu-architecture", "arch", "define-macro", "undefine-macro", "include-path", "std", "maxrregcount", "Xptxas",
  "ptxas-options", "D", "U", "I", NULL};
static const char *const languages[] = {"c++03", "c++11", "c++14", "c++17", "c++20", NULL};

static bool is_among(const char *word, const char *const *words) {
  while (*words && strcmp(*words, word) != 0) ++words;
  return *words;
}

static bool is_one(const char *name, const char *a, const char *b) {
  return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static bool set_architecture(asked *a, const char *value) {
  const char *s = strncmp(value, "sm_", 3) == 0 ? value + 3 : strncmp(value, "compute_", 8) == 0 ? value + 8 : "";
  a->real = *value == 's';
  a->arch = sim_arch_of(s, &s);
  bool is_known = *s == 0 && (a->arch.feature != 'a' || a->arch.number >= 90) &&
    (a->arch.feature != 'f' || (a->arch.number >= 100 && chosen->cuda >= 12090));
  for (const int *arch = chosen->architectures; is_known && *arch; ++arch)
    if (*arch == a->arch.number) return true;
  return refuse(a, "invalid value for --gpu-architecture (-arch)");
}

static bool apply(asked *a, const char *option, const char *name, const char *value) {
  const char *equals = strchr(value, '=');
  if (is_one(name, "gpu-architecture", "arch")) return set_architecture(a, value);
  if (strcmp(name, "std") == 0) return is_among(value, languages) || refuse(a, "invalid value for --std (-std)");
  if (is_one(name, "define-macro", "D"))
    fprintf(a->macros, "#define %.*s %s\n", (int)strcspn(value, "="), value, equals ? equals + 1 : "1");
  else if (is_one(name, "undefine-macro", "U")) fprintf(a->macros, "#undef %s\n", value);
  else if (is_one(name, "include-path", "I")) {
    if (strchr(value, '\'')) return false;
    fprintf(a->options, " '-I%s'", value);
  } else if (strcmp(name, "fmad") == 0) fputs(strcmp(value, "false") == 0 ? " -ffp-contract=off" : "", a->options);
  else return is_among(name, ignored) || refuse(a, "unrecognized option %s found", option);
  return true;
}

/* -name=value, --name=value, -name value, -Dname. */
static bool read_options(asked *a, int count, const char *const *options) {
  for (int k = 0; k < count; ++k) {
    const char *option = options[k], *word = option + strspn(option, "-"), *value = strchr(word, '=');
    char name[64];
    if (*option != '-') return refuse(a, "unrecognized option %s found", option);
    const bool is_letter = word == option + 1 && strchr("DUI", *word) && *word;
    snprintf(name, sizeof name, "%.*s", is_letter ? 1 : (int)strcspn(word, "="), word);
    value = is_letter ? word + 1 : value ? value + 1 : "";
    if (!*value && is_among(name, with_value)) {
      if (++k == count) return refuse(a, "option %s has no value", option);
      value = options[k];
    }
    if (!apply(a, option, name, value)) return false;
  }
  return true;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static bool is_program(nvrtcProgram program) {
  for (nvrtcProgram p = programs; p; p = p->next)
    if (p == program) return true;
  return false;
}

static void forget(output *made) {
  free(made->at);
  *made = (output){0};
}

static void forget_results(nvrtcProgram p) {
  forget(&p->log);
  forget(&p->cubin);
  forget(&p->ptx);
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
  p->ptx.at = sim_image_ptx(chosen->cuda, a->arch, made->code, made->code_bytes, &p->ptx.bytes);
  if (a->real) p->cubin.at = sim_image_cubin(chosen->cuda, a->arch, made->code, made->code_bytes, &p->cubin.bytes);
  return p->ptx.at && (p->cubin.at || !a->real) ? NVRTC_SUCCESS : NVRTC_ERROR_OUT_OF_MEMORY;
}

static nvrtcResult compile_program(asked *a, nvrtcProgram p, int count, const char *const *options) {
  char *texts[3] = {NULL};
  size_t sizes[3];
  FILE **const files[] = {&a->macros, &a->options, &a->log};
  sim_made made = {0};
  bool open = true;
  for (int k = 0; k < 3; ++k) open = (*files[k] = open_memstream(&texts[k], &sizes[k])) && open;
  nvrtcResult result = !open                              ? NVRTC_ERROR_OUT_OF_MEMORY
                       : read_options(a, count, options) ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_OPTION;
  for (int k = 0; k < 3; ++k)
    if (*files[k]) fclose(*files[k]);
  if (result == NVRTC_SUCCESS) {
    result = !compile(a, p, texts[0], texts[1], &made) ? INTERNAL_ERROR
             : made.code ? make_images(a, p, &made) : NVRTC_ERROR_COMPILATION;
    free(texts[2]);
    texts[2] = made.log;
  }
  p->log = (output){texts[2], texts[2] ? strlen(texts[2]) + 1 : 0};
  free(made.code);
  free(texts[0]);
  free(texts[1]);
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
  if (!major || !minor) return INVALID_INPUT;
  *major = chosen->cuda / 1000;
  *minor = chosen->cuda % 1000 / 10;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
  ENTER();
  if (!count) return INVALID_INPUT;
  for (*count = 0; chosen->architectures[*count]; ++*count) continue;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *architectures) {
  ENTER();
  if (!architectures) return INVALID_INPUT;
  for (int k = 0; chosen->architectures[k]; ++k) architectures[k] = chosen->architectures[k];
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int header_count,
                               const char *const *headers, const char *const *names) {
  ENTER();
  if (!program || !source || header_count < 0 || (header_count > 0 && (!headers || !names)))
    return INVALID_INPUT;
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
  SIM_HOLD(lock);
  const nvrtcResult entered = enter(__func__);
  if (!program || !is_program(*program)) return INVALID_PROGRAM;
  nvrtcProgram *at = &programs;
  while (*at != *program) at = &(*at)->next;
  *at = (*program)->next;
  end_program(*program);
  *program = NULL;
  return entered;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  ENTER_WITH(program);
  if (count < 0 || (count > 0 && !options)) return INVALID_INPUT;
  forget_results(program);
  asked a = {.arch = {chosen->lowest, 0}};
  return compile_program(&a, program, count, options);
}

/* The bytes of a missing output: those of an empty text. */
#define OUTPUT_ENTRIES(size_entry, entry, member, empty) \
  nvrtcResult size_entry(nvrtcProgram program, size_t *bytes) { \
    ENTER_WITH(program); \
    if (!bytes) return INVALID_INPUT; \
    *bytes = program->member.at ? program->member.bytes : (empty); \
    return NVRTC_SUCCESS; \
  } \
  nvrtcResult entry(nvrtcProgram program, char *to) { \
    ENTER_WITH(program); \
    const output made = program->member.at ? program->member : (output){(empty) ? (char[]){""} : NULL, empty}; \
    if (!to || !made.at) return INVALID_INPUT; \
    memcpy(to, made.at, made.bytes); \
    return NVRTC_SUCCESS; \
  }
OUTPUT_ENTRIES(nvrtcGetCUBINSize, nvrtcGetCUBIN, cubin, 0)
OUTPUT_ENTRIES(nvrtcGetPTXSize, nvrtcGetPTX, ptx, 1)
OUTPUT_ENTRIES(nvrtcGetProgramLogSize, nvrtcGetProgramLog, log, 1)
