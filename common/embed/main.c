/* gk-embed: compiles the kernels of source files when a program is built, and writes their images as C, for
 * gk_use_images. It needs neither a GPU nor a driver. */
#include "base/error.h"
#include "base/registry.h"
#include "embed/kernel.h"
#include "kernel/embedder.h"
#include "kernel/source.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAKERS = 8, LINE = 32 };

static const char usage[] =
    "use: gk-embed --name NAME [options] FILE...\n"
    "Compiles the kernels behind each GK_SOURCE in the files, and writes C that defines `const gk_images NAME`.\n"
    "A file whose GK_SHARED these use must be named, too.\n"
    "  --out FILE         instead of standard output\n"
    "  --for BACKEND,...  some of these backends; the default: the first\n";

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

typedef struct maker { const gki_embedder *embedder; void *options; } maker;

typedef struct job {
  const char *name, *out;
  maker makers[MAKERS];
  size_t maker_count;
  input *files;
  size_t file_count;
  source_part *parts;
  size_t part_count, part_capacity;
  const gki_unit *text; /* that is being compiled */
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

static const gki_embedder *embedder_of(const gk_backend *backend) {
  return backend->query ? backend->query(GKI_EMBEDDER) : NULL;
}

static void print_usage(FILE *to) {
  fputs(usage, to);
  for (const gk_backend *const *at = gki_built_in; *at; ++at) {
    const gki_embedder *one = embedder_of(*at);
    if (one) fprintf(to, "%s:\n%s", (*at)->name, *one->help ? one->help : "  no options\n");
  }
}

static bool is_in(const char *list, const char *name) {
  for (const size_t length = strlen(name); list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
    if (strncmp(list, name, length) == 0 && (!list[length] || list[length] == ',')) return true;
  return false;
}

/* `list`: what is behind --for, or NULL. */
static bool choose_makers(job *work, const char *list) {
  for (const gk_backend *const *at = gki_built_in; *at; ++at) {
    const gki_embedder *one = embedder_of(*at);
    if (!one || work->maker_count == MAKERS || (list ? !is_in(list, (*at)->name) : work->maker_count > 0)) continue;
    void *options = gki_array(1, one->option_bytes + 1, "the options");
    if (!options) return complain(gk_error());
    memset(options, 0, one->option_bytes + 1);
    work->makers[work->maker_count++] = (maker){one, options};
  }
  size_t wanted = 1;
  for (const char *at = list; at && (at = strchr(at, ',')); ++at) ++wanted;
  if (work->maker_count == wanted) return true;
  return complain(list ? "--for is followed by backends with commas between them, of those below"
                       : "this gk can compile kernels for none of its backends beforehand");
}

static bool is_name(const char *name) {
  const size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  return letters && !name[letters] && !strchr("0123456789", name[0]);
}

/* As gki_embedder.read_option. */
static int read_option(job *work, char **words) {
  if (words[1] && strcmp(words[0], "--for") == 0) return 2; /* choose_makers has read it */
  const char **text = strcmp(words[0], "--name") == 0  ? &work->name
                      : strcmp(words[0], "--out") == 0 ? &work->out
                                                       : NULL;
  if (text && words[1]) {
    *text = words[1];
    return 2;
  }
  int taken = 0;
  for (size_t k = 0; k < work->maker_count && taken == 0; ++k)
    if (work->makers[k].embedder->read_option)
      taken = work->makers[k].embedder->read_option(work->makers[k].options, words);
  return taken;
}

static const gki_unit *own_of(const maker *with) {
  return with->embedder->own ? with->embedder->own(with->options) : NULL;
}

/* Moves the names of files to the beginning of `words`. */
static bool read_words(job *work, int count, char **words) {
  const char *backends = NULL;
  for (int k = 1; k + 1 < count; ++k)
    if (strcmp(words[k], "--for") == 0) backends = words[k + 1];
  if (!choose_makers(work, backends)) return false;
  for (int k = 1, taken; k < count; k += taken) {
    taken = words[k][0] == '-' ? read_option(work, &words[k]) : 1;
    if (taken < 0) return complain(gk_error());
    if (taken == 0) return complain_about(words[k], "no such option, or it lacks what is to follow");
    if (words[k][0] != '-') words[work->file_count++] = words[k];
  }
  if (!work->name || !is_name(work->name)) return complain("--name NAME is missing, or no name in C");
  bool has_own = false;
  for (size_t k = 0; k < work->maker_count; ++k) has_own = has_own || own_of(&work->makers[k]);
  return work->file_count || has_own || complain("no file is named");
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

/* As gki_embed_take. */
static gk_result take_image(void *user, const gk_image *image, void *bytes) {
  job *work = user;
  result made = {*image, bytes};
  made.image.file = work->text->file;
  if (gki_unit_hash(work->text, made.image.text) &&
      gki_grow((void **)&work->images, &work->image_capacity, work->image_count + 1, sizeof *work->images, "images")) {
    work->images[work->image_count++] = made;
    return GK_OK;
  }
  gk_host_free(bytes);
  return gki_fail_memory("images", sizeof *work->images);
}

static gk_result compile_text(job *work, const maker *with, const gki_unit *text) {
  if (gki_unit_includes(text))
    return gk_fail(GK_ERROR_UNSUPPORTED, "%s: the text for devices includes files; whether these changed can't be told "
                   "when the program runs, so put what is in them into a GK_SHARED", text->file);
  work->text = text;
  return with->embedder->compile(with->options, text, take_image, work);
}

/* A kernel, or a whole source. */
static gk_result compile_kernel(job *work, const maker *with, const gk_kernel *kernel) {
  char *text = gk_compose(kernel, with->embedder->language);
  if (!text) return gki_failure();
  const gk_result done = compile_text(work, with,
                                      &(gki_unit){.text = text, .file = kernel->source->file,
                                                  .kernel = with->embedder->is_per_kernel ? kernel->name : NULL});
  gk_free_text(text);
  return done;
}

static gk_result read_structs(gki_structs *structs, const gk_source *source) {
  const char *end, *s = gki_source_region(source, &end);
  for (gki_token token; token = gki_next_token(s, end), token.kind != GKI_END;) {
    s = gki_token_is(token, "#") ? gki_directive_end(token.at, end) : token.end;
    if (gki_token_is(token, "GK_STRUCT") && !gki_read_struct(structs, s, end)) return GK_ERROR_MEMORY;
  }
  return GK_OK;
}

/* A kernel within #if may be one that this language can't express. */
static gk_result compile_read_kernel(job *work, const maker *with, const gk_source *source, gki_token word,
                                     const gki_structs *structs, bool is_optional) {
  gki_kernel_text read;
  gk_result done = GK_ERROR_COMPILE;
  gki_begin();
  if (gki_read_kernel(&read, source, word, source->text + strlen(source->text), structs)) {
    done = compile_kernel(work, with, &read.kernel);
    gk_host_free(read.names);
  }
  if (done != GK_ERROR_COMPILE || !is_optional) return done;
  complain_about("left out, as it stands within #if", gk_error());
  return GK_OK;
}

static gk_result compile_each_kernel(job *work, const maker *with, const gk_source *source) {
  gki_structs structs = {0};
  gk_result done = GK_OK;
  int conditions = 0; /* of #if */
  for (uint32_t k = 0; k < source->use_count && done == GK_OK; ++k) done = read_structs(&structs, source->uses[k]);
  if (done == GK_OK) done = read_structs(&structs, source);
  const char *end, *s = gki_source_region(source, &end);
  for (gki_token token; token = gki_next_token(s, end), done == GK_OK && token.kind != GKI_END;) {
    s = token.end;
    if (gki_token_is(token, "#")) {
      const gki_token word = gki_next_token(s, end);
      conditions += gki_token_in(word, " if ifdef ifndef ") - gki_token_is(word, "endif");
      s = gki_directive_end(token.at, end);
    } else if (gki_is_kernel_word(token))
      done = compile_read_kernel(work, with, source, token, &structs, conditions > 0);
  }
  gk_host_free(structs.at);
  return done;
}

static bool compile_part(job *work, const maker *with, const source_part *part) {
  const gk_source **uses = gki_array(part->use_count + 1, sizeof(void *), "the sources that it uses");
  if (!uses) return complain(gk_error());
  gk_result done = GK_OK;
  gki_begin();
  for (size_t k = 0; k < part->use_count && done == GK_OK; ++k) {
    const source_part *shared = find_shared(work, part->uses[k]);
    const int length = (int)(part->uses[k].end - part->uses[k].at);
    if (shared) uses[k] = &shared->source;
    else
      done = gk_fail(GK_ERROR_INVALID, "%s uses %.*s, but GK_SHARED(%.*s) stands in none of the files: name its file, "
                     "too", part->source.file, length, part->uses[k].at, length, part->uses[k].at);
  }
  gk_source source = part->source;
  source.uses = uses;
  source.use_count = (uint32_t)part->use_count;
  const gk_kernel any = {.name = "of this source", .source = &source};
  if (done == GK_OK)
    done = with->embedder->is_per_kernel ? compile_each_kernel(work, with, &source) : compile_kernel(work, with, &any);
  gk_host_free((void *)uses);
  return done == GK_OK || complain(gk_error());
}

static bool compile_all(job *work, const maker *with) {
  const gki_unit *own = own_of(with);
  size_t sources = 0;
  for (size_t k = 0; k < work->part_count; ++k) {
    if (work->parts[k].is_shared) continue;
    if (!compile_part(work, with, &work->parts[k])) return false;
    ++sources;
  }
  if (own && compile_text(work, with, own) != GK_OK) return complain(gk_error());
  if (!sources && !own) return complain("there is no GK_SOURCE in the files");
  return work->image_count || complain("no image was made: the compiler knows none of these GPUs, none was asked for, "
                                       "or there is no kernel");
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
  static const char *const kinds[] = {[GK_IMAGE_NONE] = "GK_IMAGE_NONE", [GK_IMAGE_CODE] = "GK_IMAGE_CODE",
                                      [GK_IMAGE_PTX] = "GK_IMAGE_PTX", [GK_IMAGE_SPIRV] = "GK_IMAGE_SPIRV",
                                      [GK_IMAGE_AMD] = "GK_IMAGE_AMD"};
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
            (unsigned long long)image->text[1], (unsigned)image->target, kinds[image->kind], (unsigned)image->made_by,
            k, image->size);
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
  for (size_t k = 0; k < work->maker_count; ++k) gk_host_free(work->makers[k].options);
}

static bool do_all(job *work, char **words) {
  work->files = gki_array(work->file_count + 1, sizeof *work->files, "the files");
  if (!work->files) return complain(gk_error());
  for (size_t k = 0; k < work->file_count; ++k) {
    work->files[k].path = words[k];
    if (!is_no_input(work, words[k]) || !read_file(&work->files[k]) || !find_parts(work, &work->files[k])) return false;
  }
  for (size_t k = 0; k < work->maker_count; ++k)
    if (!compile_all(work, &work->makers[k])) return false;
  return write_output(work);
}

int main(int count, char **words) {
  job work = {0};
  signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit fails, and the file is removed */
  gk_set_log(GK_LOG_WARN, print_line, NULL);
  setenv("GK_CACHE", "off", 1); /* what is written depends on the files and the compiler alone */
  if (count > 1 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0)) {
    print_usage(stdout);
    return 0;
  }
  if (!read_words(&work, count, words)) {
    print_usage(stderr);
    free_all(&work);
    return 2;
  }
  const bool done = do_all(&work, words);
  free_all(&work);
  return done ? 0 : 1;
}
