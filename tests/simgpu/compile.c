#include "compile.h"
#include "image.h"
#include "translate.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The build says which compiler and with which flags (those of the tree: sanitizers). */
#ifndef SIM_COMPILER
#error "SIM_COMPILER and SIM_FLAGS come from build.ninja"
#endif

extern char **environ;
extern const char gki_text_sim_code[], gki_text_sim_shim[];

enum { PATH = 4096 };
static const char MAGIC[8] = "simkept2";

typedef struct kept_head {
  char magic[8];
  uint64_t code_bytes, log_bytes; /* of what is behind it, */
  uint64_t hash;                  /* and of both */
} kept_head;

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* By malloc, with a zero behind it; NULL: it can't be read. */
static char *read_file(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long size = -1;
  if (file && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
  if (size >= 0) text = malloc((size_t)size + 1);
  if (text) {
    rewind(file);
    *bytes = fread(text, 1, (size_t)size, file);
    text[*bytes] = 0;
  }
  if (file) fclose(file);
  return text;
}

static bool write_file(const char *path, const void *head, size_t head_bytes, const void *body, size_t body_bytes) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  bool right = fwrite(head, 1, head_bytes, file) == head_bytes && fwrite(body, 1, body_bytes, file) == body_bytes;
  return fclose(file) == 0 && right;
}

static void key_of(const sim_job *job, char key[40]) {
  uint64_t hash[2] = {1, 2};
  for (int k = 0; k < 2; ++k) {
    const char *const parts[] = {SIM_COMPILER, SIM_FLAGS, __VERSION__, gki_text_sim_code, gki_text_sim_shim,
                                 job->macros, job->options, job->name, job->source};
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; ++p)
      hash[k] = sim_hash(parts[p], strlen(parts[p]) + 1, hash[k] * 31 + p);
    for (int h = 0; h < job->header_count; ++h) {
      hash[k] = sim_hash(job->header_names[h], strlen(job->header_names[h]) + 1, hash[k] * 37);
      hash[k] = sim_hash(job->headers[h], strlen(job->headers[h]) + 1, hash[k] * 41);
    }
  }
  snprintf(key, 40, "%016llx%016llx", (unsigned long long)hash[0], (unsigned long long)hash[1]);
}

/* False: it isn't there, or isn't what was written. */
static bool read_kept(const char *path, sim_made *made) {
  size_t bytes = 0;
  char *text = read_file(path, &bytes);
  kept_head head;
  bool right = text && bytes > sizeof head;
  if (right) {
    memcpy(&head, text, sizeof head);
    right = memcmp(head.magic, MAGIC, sizeof MAGIC) == 0 && head.code_bytes > 0 && head.code_bytes < bytes &&
      head.log_bytes < bytes && sizeof head + head.code_bytes + head.log_bytes == bytes &&
      sim_hash(text + sizeof head, bytes - sizeof head, 0) == head.hash;
  }
  if (right) {
    made->code = malloc(head.code_bytes);
    made->log = strndup(text + sizeof head + head.code_bytes, head.log_bytes);
    right = made->code && made->log;
  }
  if (right) {
    memcpy(made->code, text + sizeof head, head.code_bytes);
    made->code_bytes = head.code_bytes;
    made->was_kept = true;
  }
  free(text);
  return right;
}

/* A result that can't be kept is made again each time. */
static void keep(const char *path, const char *scratch, const sim_made *made) {
  size_t log_bytes = strlen(made->log), bytes = made->code_bytes + log_bytes;
  char *body = malloc(bytes);
  if (!body) return;
  memcpy(body, made->code, made->code_bytes);
  memcpy(body + made->code_bytes, made->log, log_bytes);
  kept_head head = {.code_bytes = made->code_bytes, .log_bytes = log_bytes, .hash = sim_hash(body, bytes, 0)};
  memcpy(head.magic, MAGIC, sizeof MAGIC);
  if (!write_file(scratch, &head, sizeof head, body, bytes) || rename(scratch, path) != 0) unlink(scratch);
  free(body);
}

/* ---- the compiler ------------------------------------------------------------------------------------------------ */

/* Not LD_PRELOAD and the like: the compiler is another program. */
static char **compilers_environment(char *language) {
  size_t count = 0, kept = 0;
  while (environ[count]) ++count;
  char **made = calloc(count + 2, sizeof *made);
  for (size_t k = 0; made && k < count; ++k)
    if (strncmp(environ[k], "LD_", 3) != 0 && strncmp(environ[k], "LC_ALL=", 7) != 0) made[kept++] = environ[k];
  if (made) made[kept] = language;
  return made;
}

/* Its exit code; -1: it couldn't be started or was killed. */
static int run(const char *command) {
  char language[] = "LC_ALL=C", *words[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(command), NULL};
  char **environment = compilers_environment(language);
  pid_t child, ended = -1;
  int status = -1;
  if (environment && words[2] && posix_spawn(&child, "/bin/sh", NULL, NULL, words, environment) == 0)
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
  free(words[2]);
  free(environment);
  return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A path as a word for the shell. */
static void quote(char *to, size_t bytes, const char *path) {
  size_t at = 0;
  to[at++] = '\'';
  for (; *path && at + 6 < bytes; ++path) {
    if (*path == '\'') at += (size_t)snprintf(to + at, bytes - at, "'\\''");
    else to[at++] = *path;
  }
  to[at++] = '\'';
  to[at] = 0;
}

/* file:line:column: error: ... becomes file(line): error: ... */
static char *nvrtc_log(const char *text, const char *name) {
  char *log = NULL;
  size_t bytes = 0;
  unsigned errors = 0;
  FILE *out = open_memstream(&log, &bytes);
  if (!out) return NULL;
  for (const char *s = text; *s;) {
    size_t length = strcspn(s, "\n");
    int line = 0, used = 0;
    const char *colon = s, *end = s + length;
    while (colon < end && (*colon != ':' || sscanf(colon, ":%d:%*d: %n", &line, &used) != 1)) ++colon;
    if (colon < end && used > 0) {
      const char *rest = colon + used;
      errors += strncmp(rest, "error:", 6) == 0 || strncmp(rest, "fatal error:", 12) == 0;
      fprintf(out, "%.*s(%d): %.*s\n", (int)(colon - s), s, line, (int)(end - rest), rest);
    } else fprintf(out, "%.*s\n", (int)length, s);
    s += length + (s[length] == '\n');
  }
  if (errors > 0)
    fprintf(out, "\n%u error%s detected in the compilation of \"%s\".\n", errors, errors == 1 ? "" : "s", name);
  return fclose(out) == 0 ? log : NULL;
}

/* ---- one job ----------------------------------------------------------------------------------------------------- */

typedef struct file_path { char text[2 * PATH]; } file_path;
static file_path path_of(const char *folder, const char *name) {
  file_path path;
  snprintf(path.text, sizeof path.text, "%s/%s", folder, name);
  return path;
}

static bool write_input(const char *folder, const sim_job *job) {
  FILE *in = fopen(path_of(folder, "in.cpp").text, "w");
  if (!in) return false;
  sim_write_source(in, job->macros, job->source, job->name);
  bool right = fclose(in) == 0;
  for (int h = 0; right && h < job->header_count; ++h)
    if (!strchr(job->header_names[h], '/')) /* gk gives none */
      right = write_file(path_of(folder, job->header_names[h]).text, job->headers[h], strlen(job->headers[h]), "", 0);
  return right;
}

static void remove_files(const char *folder, const sim_job *job) {
  static const char *const names[] = {"in.cpp", "flat.ii", "ready.ii", "out.so", "log"};
  for (size_t k = 0; k < sizeof names / sizeof names[0]; ++k) unlink(path_of(folder, names[k]).text);
  for (int h = 0; h < job->header_count; ++h)
    if (!strchr(job->header_names[h], '/')) unlink(path_of(folder, job->header_names[h]).text);
  rmdir(folder);
}

/* NVRTC has no system headers. */
static int compile_step(const char *folder, const char *flags, const char *options, const char *in, const char *out) {
  char word[PATH + 64], *command = NULL;
  quote(word, sizeof word, folder);
  if (asprintf(&command, "exec " SIM_COMPILER " " SIM_FLAGS " -nostdinc %s -I%s %s %s/%s -o %s/%s >%s/log 2>&1",
               options, word, flags, word, in, word, out, word) < 0) return -1;
  int code = run(command);
  free(command);
  return code;
}

static bool translate(const char *folder) {
  size_t bytes;
  char *flat = read_file(path_of(folder, "flat.ii").text, &bytes);
  FILE *ready = flat ? fopen(path_of(folder, "ready.ii").text, "w") : NULL;
  if (ready) sim_translate(ready, flat, "sim_code_of_module");
  free(flat);
  return ready && fclose(ready) == 0;
}

static bool take_log(const char *folder, const sim_job *job, sim_made *made) {
  size_t bytes;
  char *text = read_file(path_of(folder, "log").text, &bytes);
  free(made->log);
  made->log = text ? nvrtc_log(text, job->name) : NULL;
  free(text);
  return made->log;
}

static bool build(const char *folder, const sim_job *job, sim_made *made) {
  if (!write_input(folder, job)) return false;
  int code = compile_step(folder, "-x c++ -E", job->options, "in.cpp", "flat.ii");
  if (code == 0) {
    if (!translate(folder)) return false;
    code = compile_step(folder, "-x c++-cpp-output -shared -Wl,-Bsymbolic", job->options, "ready.ii", "out.so");
  }
  if (!take_log(folder, job, made)) return false;
  if (code != 0) return code > 0 && strstr(made->log, "error:"); /* of the source's */
  made->code = read_file(path_of(folder, "out.so").text, &made->code_bytes);
  return made->code && made->code_bytes > 0;
}

bool sim_compile(const char *folder, const sim_job *job, sim_made *made) {
  *made = (sim_made){0};
  char key[40], scratch[PATH];
  key_of(job, key);
  mkdir(folder, 0777);
  if (strlen(folder) + sizeof key > sizeof scratch) return false;
  snprintf(scratch, sizeof scratch, "%s/made-XXXXXX", folder);
  const file_path path = path_of(folder, key);
  if (read_kept(path.text, made)) return true;
  /* One process at a time: the others then find the result. The lock ends with the process. */
  int lock = open(path_of(folder, strcat(key, ".lock")).text, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR) continue;
  bool right = read_kept(path.text, made);
  if (!right && mkdtemp(scratch)) {
    right = build(scratch, job, made);
    if (right && made->code) keep(path.text, path_of(scratch, "new").text, made);
    remove_files(scratch, job);
  }
  if (lock >= 0) close(lock);
  return right;
}
