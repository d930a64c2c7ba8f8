/* gk-embed: compiles the kernels of source files by NVRTC when a program is built, and writes their images as C, for
 * gk_use_images. It needs neither a GPU nor a driver. */
#include "base/error.h"
#include "base/memory.h"
#include "cuda/compile.h"
#include "cuda/embedded.h"
#include "kernel/source.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TARGETS = 32, LINE = 32 };

static const char usage[] =
    "use: gk-embed --name NAME [options] FILE...\n"
    "Compiles the kernels behind each GK_SOURCE in the files, and writes C that defines `const gk_images NAME`.\n"
    "A file whose GK_SHARED these use must be named, too.\n"
    "  --out FILE         instead of standard output\n"
    "  --arch 75,80,90    machine code for these; the default: those of 75,80,86,89,90,100,120 that NVRTC knows; none\n"
    "  --ptx 75,90        PTX for these and all later GPUs; the default: the first of --arch, else 75; none\n"
    "  --driver 12.4      the oldest driver that is to take it; the default: any that the newest NVRTC is for\n"
    "  --moves            also gk's COPY and FILL, for drivers before 12.4\n";

typedef struct input { const char *path; char *text; } input;

/* A GK_SOURCE or GK_SHARED. */
typedef struct source_part {
  gki_token name;
  bool is_shared;
  gk_source source;
  gki_token *uses; /* the names behind & */
  size_t use_count, use_capacity;
} source_part;

typedef struct result { gk_image image; char *bytes; } result;

typedef struct job {
  const char *name, *out;
  int code[TARGETS], ptx[TARGETS];
  size_t code_count, ptx_count;
  bool are_default; /* no --arch: architectures that NVRTC doesn't know are left out */
  bool transfers;
  int driver;
  input *files;
  size_t file_count;
  source_part *parts;
  size_t part_count, part_capacity;
  result *images;
  size_t image_count, image_capacity;
} job;

static bool complain(const char *what) {
  fprintf(stderr, "gk-embed: %s\n", what);
  return false;
}

static bool complain_about(const char *about, const char *what) {
  fprintf(stderr, "gk-embed: %s: %s\n", about, what);
  return false;
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static bool read_targets(const char *text, int targets[TARGETS], size_t *count) {
  *count = 0;
  if (strcmp(text, "none") == 0) return true;
  for (char *end; *count < TARGETS; text = end + 1) {
    if (strncmp(text, "sm_", 3) == 0) text += 3;
    const long target = strtol(text, &end, 10);
    if (end == text || target < 10 || target > 999 || (*end && *end != ',')) break;
    targets[(*count)++] = (int)target;
    if (!*end) return true;
  }
  return complain("--arch and --ptx are followed by numbers with commas between them, as 75,90, or by none");
}

static bool read_driver(const char *text, int *driver) {
  char *end;
  const long major = strtol(text, &end, 10), minor = *end == '.' ? strtol(end + 1, &end, 10) : 0;
  *driver = (int)(major * 1000 + minor * 10);
  return (major >= 11 && major < 90 && minor >= 0 && minor < 100 && !*end) ||
         complain("--driver is followed by its CUDA version, as 12.4");
}

static bool is_name(const char *name) {
  const size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  return letters && !name[letters] && !strchr("0123456789", name[0]);
}

static bool read_option(job *work, const char *option, const char *value) {
  const char **text = strcmp(option, "--name") == 0 ? &work->name : strcmp(option, "--out") == 0 ? &work->out : NULL;
  if (text) {
    *text = value;
    return true;
  }
  if (strcmp(option, "--arch") == 0) {
    work->are_default = false;
    return read_targets(value, work->code, &work->code_count);
  }
  if (strcmp(option, "--ptx") == 0) return read_targets(value, work->ptx, &work->ptx_count);
  if (strcmp(option, "--driver") == 0) return read_driver(value, &work->driver);
  return complain_about(option, "no such option");
}

/* Moves the names of files to the beginning of `words`. */
static bool read_words(job *work, int count, char **words) {
  static const int usual[] = {75, 80, 86, 89, 90, 100, 120};
  bool ptx_is_given = false;
  memcpy(work->code, usual, sizeof usual);
  work->code_count = GK_COUNT(usual);
  work->are_default = true;
  work->driver = GKI_CUDA_ALL_DRIVERS;
  for (int k = 1; k < count; ++k) {
    if (strcmp(words[k], "--moves") == 0) work->transfers = true;
    else if (words[k][0] != '-') words[work->file_count++] = words[k];
    else if (k + 1 == count) return complain_about(words[k], "no such option, or it lacks what is to follow");
    else if (!read_option(work, words[k], words[k + 1])) return false;
    else ptx_is_given = strcmp(words[k++], "--ptx") == 0 || ptx_is_given;
  }
  if (!ptx_is_given) {
    work->ptx[0] = work->code_count ? work->code[0] : usual[0];
    work->ptx_count = 1;
  }
  if (!work->name || !is_name(work->name)) return complain("--name NAME is missing, or no name in C");
  return work->file_count || work->transfers || complain("no file is named");
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static bool read_file(input *file) {
  size_t capacity = 0, length = 0;
  FILE *from = fopen(file->path, "rb");
  if (!from) return complain_about(file->path, strerror(errno));
  for (size_t got = 1; got;) {
    char *grown = length + 1 < capacity ? file->text : gki_resize(file->text, capacity = 2 * capacity + 4096);
    if (!grown) break;
    file->text = grown;
    length += got = fread(file->text + length, 1, capacity - length - 1, from);
  }
  const bool is_read = file->text && feof(from) && !ferror(from);
  fclose(from);
  if (!is_read) return complain_about(file->path, "it can't be read");
  file->text[length] = 0;
  return !memchr(file->text, 0, length) || complain_about(file->path, "no text: there is a zero byte in it");
}

/* `(name, &one, &two)` behind GK_SOURCE. False: out of memory. */
static bool read_names(source_part *part, const char *s, const char *end) {
  gki_token token = gki_next_token(s, end);
  for (bool first = true; token.kind != GKI_END && !gki_token_is(token, ")"); token = gki_next_token(token.end, end)) {
    if (token.kind != GKI_WORD) continue;
    if (first) part->name = token;
    else {
      if (!gki_grow((void **)&part->uses, &part->use_capacity, part->use_count + 1, sizeof *part->uses, "its sources"))
        return false;
      part->uses[part->use_count++] = token;
    }
    first = false;
  }
  return true;
}

/* --out must not overwrite a source. */
static bool is_no_input(const job *work, const char *path) {
  struct stat out, in;
  if (!work->out || stat(work->out, &out) != 0 || stat(path, &in) != 0) return true;
  return out.st_dev != in.st_dev || out.st_ino != in.st_ino ||
         complain_about(work->out, "--out names a file that is read; let it be another one");
}

static bool find_parts(job *work, const input *file) {
  const char *s = file->text, *end = s + strlen(s);
  for (gki_token token; token = gki_next_token(s, end), token.kind != GKI_END;) {
    s = gki_token_is(token, "#") ? gki_directive_end(token.at, end) : token.end;
    if (!gki_token_in(token, " GK_SOURCE GK_SHARED ")) continue;
    const gki_token open = gki_next_token(s, end);
    if (!gki_token_is(open, "(")) continue;
    if (!gki_grow((void **)&work->parts, &work->part_capacity, work->part_count + 1, sizeof *work->parts,
                  "the sources"))
      return complain(gk_error());
    source_part *made = &work->parts[work->part_count++];
    *made = (source_part){.is_shared = gki_token_is(token, "GK_SHARED")};
    made->source = (gk_source){.file = file->path, .text = file->text};
    made->source.line = gki_source_line(&made->source, token.at);
    if (!read_names(made, open.end, end)) return complain(gk_error());
    s = gki_group_end(open.at, end);
  }
  return true;
}

static const source_part *find_shared(const job *work, gki_token name) {
  for (size_t k = 0; k < work->part_count; ++k) {
    const gki_token its = work->parts[k].name;
    if (work->parts[k].is_shared && its.end - its.at == name.end - name.at &&
        memcmp(its.at, name.at, (size_t)(name.end - name.at)) == 0)
      return &work->parts[k];
  }
  return NULL;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* False, after gk_fail. `is_unknown`: no installed NVRTC knows such a GPU. */
static bool find_compiler(const job *work, int target, bool is_ptx, gki_cuda_compiler *compiler, bool *is_unknown) {
  gki_begin();
  *is_unknown = false;
  if (gki_cuda_compiler_get(target, work->driver, compiler) != GK_OK) return false;
  *is_unknown = compiler->architecture != target || compiler->is_ptx;
  const int version = compiler->nvrtc->version;
  compiler->is_ptx = is_ptx;
  if (*is_unknown)
    gk_fail(GK_ERROR_UNSUPPORTED, "NVRTC %d.%d doesn't know sm_%d", version / 1000, version % 1000 / 10, target);
  else if (compiler->may_be_refused || (is_ptx && version > work->driver))
    gk_fail(GK_ERROR_UNSUPPORTED, "what NVRTC %d.%d makes for sm_%d, drivers for CUDA %d.%d don't take; install an "
            "older one, whose folder may stand in $LD_LIBRARY_PATH", version / 1000, version % 1000 / 10, target,
            work->driver / 1000, work->driver % 1000 / 10);
  return gki_failure() == GK_OK;
}

static bool add_image(job *work, const gki_unit *text, const char *path, int target, bool is_ptx) {
  gki_cuda_compiler compiler = {0};
  gki_compiled code = {0};
  bool is_unknown;
  if (!find_compiler(work, target, is_ptx, &compiler, &is_unknown)) {
    if (!work->are_default || !is_unknown) return complain(gk_error());
    fprintf(stderr, "gk-embed: left out: %s\n", gk_error());
    return true;
  }
  gki_begin();
  if (gki_cuda_compile(&compiler, text, &code) != GK_OK) return complain(gk_error());
  result made = {.bytes = code.bytes};
  code.bytes = NULL;
  made.image = (gk_image){.file = path, .target = (uint32_t)target, .kind = is_ptx ? GK_IMAGE_PTX : GK_IMAGE_CODE,
                          .made_by = (uint32_t)compiler.nvrtc->version, .size = code.size};
  gki_compiled_free(&code);
  if (gki_unit_hash(text, made.image.text) &&
      gki_grow((void **)&work->images, &work->image_capacity, work->image_count + 1, sizeof *work->images, "images")) {
    work->images[work->image_count++] = made;
    return true;
  }
  gk_host_free(made.bytes);
  return complain("out of memory");
}

static bool add_images(job *work, const gki_unit *text, const char *path) {
  if (gki_unit_includes(text))
    return complain_about(path, "the text for devices includes files; whether these changed can't be told when the "
                          "program runs, so put what is in them into a GK_SHARED");
  for (size_t k = 0; k < work->code_count; ++k)
    if (!add_image(work, text, path, work->code[k], false)) return false;
  for (size_t k = 0; k < work->ptx_count; ++k)
    if (!add_image(work, text, path, work->ptx[k], true)) return false;
  return true;
}

static bool compile_part(job *work, const source_part *part) {
  const gk_source **uses = gki_array(part->use_count + 1, sizeof(void *), "the sources that it uses");
  if (!uses) return complain(gk_error());
  bool done = true;
  for (size_t k = 0; k < part->use_count && done; ++k) {
    const source_part *shared = find_shared(work, part->uses[k]);
    if (shared) uses[k] = &shared->source;
    else {
      fprintf(stderr, "gk-embed: %s uses %.*s, but GK_SHARED(%.*s) stands in none of the files: name its file, too\n",
              part->source.file, (int)(part->uses[k].end - part->uses[k].at), part->uses[k].at,
              (int)(part->uses[k].end - part->uses[k].at), part->uses[k].at);
      done = false;
    }
  }
  gk_source source = part->source;
  source.uses = uses;
  source.use_count = (uint32_t)part->use_count;
  const gk_kernel any = {.name = "of this source", .source = &source};
  char *text = done ? gk_compose(&any, "cuda") : NULL;
  if (done && !text) done = complain(gk_error());
  if (done) done = add_images(work, &(gki_unit){.text = text, .file = source.file}, source.file);
  gk_free_text(text);
  gk_host_free((void *)uses);
  return done;
}

static bool compile_transfers(job *work) {
  const gki_unit transfers = {.text = gki_text_transfer, .file = GKI_CUDA_TRANSFERS, .is_whole = true};
  return add_images(work, &transfers, GKI_CUDA_TRANSFERS);
}

static bool compile_all(job *work) {
  size_t sources = 0;
  for (size_t k = 0; k < work->part_count; ++k) {
    if (work->parts[k].is_shared) continue;
    if (!compile_part(work, &work->parts[k])) return false;
    ++sources;
  }
  if (work->transfers && !compile_transfers(work)) return false;
  if (!sources && !work->transfers) return complain("there is no GK_SOURCE in the files");
  return work->image_count || complain("no image was made: NVRTC knows none of these GPUs, or none was asked for");
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void write_bytes(FILE *out, const result *image, size_t number) {
  fprintf(out, "\nstatic const unsigned char image_%zu[] __attribute__((aligned(64))) = {", number);
  for (size_t k = 0; k < image->image.size; ++k)
    fprintf(out, "%s%u,", k % LINE ? "" : "\n  ", (unsigned)(unsigned char)image->bytes[k]);
  fprintf(out, "\n  0};\n");
}

static void write_string(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c < 32 || c > 126 || c == '"' || c == '\\' || c == '?') fprintf(out, "\\%03o", (unsigned)c);
    else fputc(c, out);
  }
  fputc('"', out);
}

static void write_all(FILE *out, const job *work) {
  fprintf(out, "/* Written by gk-embed %s: to be compiled into the program, and given to gk_use_images. */\n"
          "#include <gk_code.h>\n", GK_VERSION);
  for (size_t k = 0; k < work->image_count; ++k) write_bytes(out, &work->images[k], k);
  fprintf(out, "\nstatic const gk_image each[] = {\n");
  for (size_t k = 0; k < work->image_count; ++k) {
    const gk_image *image = &work->images[k].image;
    const char *slash = strrchr(image->file, '/');
    fprintf(out, "  {");
    write_string(out, slash ? slash + 1 : image->file);
    fprintf(out, ", {0x%016llxu, 0x%016llxu}, %u, %s, %u, 0, image_%zu, %zu},\n", (unsigned long long)image->text[0],
            (unsigned long long)image->text[1], (unsigned)image->target,
            image->kind == GK_IMAGE_PTX ? "GK_IMAGE_PTX" : "GK_IMAGE_CODE", (unsigned)image->made_by, k, image->size);
  }
  fprintf(out, "};\nextern const gk_images %s;\nconst gk_images %s = {%u, %zu, each};\n", work->name, work->name,
          (unsigned)GK_ABI, work->image_count);
}

/* A file that can't be written completely is removed. */
static bool write_output(const job *work) {
  FILE *out = work->out ? fopen(work->out, "w") : stdout;
  if (!out) return complain_about(work->out, strerror(errno));
  struct stat status;
  const bool is_file = work->out && fstat(fileno(out), &status) == 0 && S_ISREG(status.st_mode);
  write_all(out, work);
  bool written = fflush(out) == 0 && !ferror(out);
  if (work->out && fclose(out) != 0) written = false;
  if (written) return true;
  if (is_file) remove(work->out);
  return complain_about(work->out ? work->out : "standard output", "it can't be written");
}

static void print_line(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_WARN) fprintf(stderr, "gk-embed: %s\n", line);
}

static void free_all(job *work) {
  for (size_t k = 0; work->files && k < work->file_count; ++k) gk_host_free(work->files[k].text);
  for (size_t k = 0; k < work->part_count; ++k) gk_host_free(work->parts[k].uses);
  for (size_t k = 0; k < work->image_count; ++k) gk_host_free(work->images[k].bytes);
  gk_host_free(work->files);
  gk_host_free(work->parts);
  gk_host_free(work->images);
}

static bool do_all(job *work, char **words) {
  work->files = gki_array(work->file_count + 1, sizeof *work->files, "the files");
  if (!work->files) return complain(gk_error());
  for (size_t k = 0; k < work->file_count; ++k) {
    work->files[k].path = words[k];
    if (!is_no_input(work, words[k]) || !read_file(&work->files[k]) || !find_parts(work, &work->files[k])) return false;
  }
  return compile_all(work) && write_output(work);
}

int main(int count, char **words) {
  job work = {0};
  signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails, and the file is removed */
  gk_set_log(GK_LOG_WARN, print_line, NULL);
  if (count > 1 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0)) {
    fputs(usage, stdout);
    return 0;
  }
  if (!read_words(&work, count, words)) {
    fputs(usage, stderr);
    return 2;
  }
  const bool done = do_all(&work, words);
  free_all(&work);
  return done ? 0 : 1;
}
