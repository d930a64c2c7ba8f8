#include "cuda/embed.h"
#include "base/error.h"
#include "cuda/compile.h"
#include <stdlib.h>
#include <string.h>

enum { TARGETS = 32 };

typedef struct options {
  int code[TARGETS], ptx[TARGETS]; /* of --arch and --ptx */
  size_t code_count, ptx_count;
  bool has_code, has_ptx, transfers;
  int driver; /* 0: any */
} options;

static const int usual[] = {75, 80, 86, 89, 90, 100, 120};
static const char help[] =
    "  --arch 75,80,90    machine code for these; the default: those of 75,80,86,89,90,100,120 that NVRTC knows; none\n"
    "  --ptx 75,90        PTX for these and all later GPUs; the default: the first of --arch, else 75; none\n"
    "  --driver 12.4      the oldest driver that is to take it; the default: any that the newest NVRTC is for\n"
    "  --moves            also gk's COPY and FILL, for drivers before 12.4\n";

/* ---- options ----------------------------------------------------------------------------------------------------- */

static gk_result read_targets(const char *text, int targets[TARGETS], size_t *count) {
  *count = 0;
  if (strcmp(text, "none") == 0) return GK_OK;
  for (char *end; *count < TARGETS; text = end + 1) {
    if (strncmp(text, "sm_", 3) == 0) text += 3;
    const long target = strtol(text, &end, 10);
    if (end == text || target < 10 || target > 999 || (*end && *end != ',')) break;
    targets[(*count)++] = (int)target;
    if (!*end) return GK_OK;
  }
  return gk_fail(GK_ERROR_INVALID, "--arch and --ptx are followed by numbers with commas between them, as 75,90, or by "
                 "none");
}

static gk_result read_driver(const char *text, int *driver) {
  char *end;
  const long major = strtol(text, &end, 10), minor = *end == '.' ? strtol(end + 1, &end, 10) : 0;
  *driver = (int)(major * 1000 + minor * 10);
  if (major >= 11 && major < 90 && minor >= 0 && minor < 100 && !*end) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "--driver is followed by its CUDA version, as 12.4");
}

static int read_option(void *to, char **words) {
  options *o = to;
  gk_result result;
  if (strcmp(words[0], "--moves") == 0) {
    o->transfers = true;
    return 1;
  }
  if (!words[1]) return 0;
  if (strcmp(words[0], "--arch") == 0) {
    o->has_code = true;
    result = read_targets(words[1], o->code, &o->code_count);
  } else if (strcmp(words[0], "--ptx") == 0) {
    o->has_ptx = true;
    result = read_targets(words[1], o->ptx, &o->ptx_count);
  } else if (strcmp(words[0], "--driver") == 0) result = read_driver(words[1], &o->driver);
  else return 0;
  return result == GK_OK ? 2 : -1;
}

static const gki_unit *own(const void *from) {
  static const gki_unit transfers = {.text = gki_text_transfer, .file = GKI_CUDA_TRANSFERS, .is_whole = true};
  const options *o = from;
  return o->transfers ? &transfers : NULL;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* `is_unknown`: no installed NVRTC knows such a GPU. */
static gk_result find_compiler(int driver, int target, bool is_ptx, gki_cuda_compiler *compiler, bool *is_unknown) {
  gki_begin();
  *is_unknown = false;
  const gk_result result = gki_cuda_compiler_get(target, driver, compiler);
  if (result != GK_OK) return result;
  *is_unknown = compiler->architecture != target || compiler->is_ptx;
  const int version = compiler->nvrtc->version;
  compiler->is_ptx = is_ptx;
  if (*is_unknown)
    return gk_fail(GK_ERROR_UNSUPPORTED, "NVRTC %d.%d doesn't know sm_%d", version / 1000, version % 1000 / 10, target);
  if (compiler->may_be_refused || (is_ptx && version > driver))
    return gk_fail(GK_ERROR_UNSUPPORTED, "what NVRTC %d.%d makes for sm_%d, drivers for CUDA %d.%d don't take; install "
                   "an older one, whose folder may stand in $LD_LIBRARY_PATH", version / 1000, version % 1000 / 10,
                   target, driver / 1000, driver % 1000 / 10);
  return GK_OK;
}

typedef struct request { const options *options; const gki_unit *text; gki_embed_take *take; void *user; } request;

static gk_result compile_for(const request *r, int target, bool is_ptx) {
  gki_cuda_compiler compiler = {0};
  gki_compiled code = {0};
  bool is_unknown;
  const int driver = r->options->driver ? r->options->driver : GKI_CUDA_ALL_DRIVERS;
  gk_result result = find_compiler(driver, target, is_ptx, &compiler, &is_unknown);
  if (result != GK_OK && !r->options->has_code && is_unknown) {
    gk_log(GK_LOG_WARN, "left out: %s", gk_error());
    return GK_OK;
  }
  if (result != GK_OK) return result;
  gki_begin();
  result = gki_cuda_compile(&compiler, r->text, &code);
  if (result != GK_OK) return result;
  const gk_image image = {.target = (uint32_t)target, .kind = is_ptx ? GK_IMAGE_PTX : GK_IMAGE_CODE,
                          .made_by = (uint32_t)compiler.nvrtc->version, .size = code.size};
  gk_host_free(code.log);
  return r->take(r->user, &image, code.bytes);
}

static gk_result compile(const void *from, const gki_unit *text, gki_embed_take *take, void *user) {
  const options *o = from;
  const request r = {o, text, take, user};
  const int *code = o->has_code ? o->code : usual;
  const size_t codes = o->has_code ? o->code_count : GK_COUNT(usual);
  const int *ptx = o->has_ptx ? o->ptx : codes ? code : usual;
  const size_t ptxs = o->has_ptx ? o->ptx_count : 1;
  gk_result result = GK_OK;
  for (size_t k = 0; k < codes && result == GK_OK; ++k) result = compile_for(&r, code[k], false);
  for (size_t k = 0; k < ptxs && result == GK_OK; ++k) result = compile_for(&r, ptx[k], true);
  return result;
}

const gki_embedder gki_cuda_embedder = {.language = "cuda", .help = help, .option_bytes = sizeof(options),
                                        .read_option = read_option, .own = own, .compile = compile};
