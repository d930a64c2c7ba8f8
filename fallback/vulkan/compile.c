#include "vulkan/compile.h"
#include "base/error.h"
#include "kernel/cache.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_BYTES = 3000, PATH_BYTES = 300, RESULT = 3, BEHIND = 10 /* files in front of it are the child's own */ };
extern char **environ;

/* Both read standard input and write file RESULT; what they say of errors is on standard output or error. */
typedef struct compiler { const char *name; char arguments[8][24]; /* zeroed behind the last */ } compiler;
static const compiler compilers[] = {
  {"glslangValidator", {"glslangValidator", "--stdin", "-S", "comp", "--target-env", "vulkan1.2", "-o", "/dev/fd/3"}},
  {"glslc", {"glslc", "-fshader-stage=compute", "--target-env=vulkan1.2", "-o", "/dev/fd/3", "-"}},
};

typedef struct tool { const compiler *compiler; char path[PATH_BYTES]; struct stat file; } tool;

/* A set-user-id program takes only tools of the system. */
static bool find(const compiler *one, tool *found) {
  const char *at = secure_getenv("PATH"), *end;
  if (!at) at = "/usr/bin";
  found->compiler = one;
  for (; *at; at = *end ? end + 1 : end) {
    end = strchrnul(at, ':');
    const int length = snprintf(found->path, PATH_BYTES, "%.*s/%s", (int)(end - at), at, one->name);
    if (length < PATH_BYTES && access(found->path, X_OK) == 0 && stat(found->path, &found->file) == 0 &&
        S_ISREG(found->file.st_mode)) return true;
  }
  return false;
}

/* ---- the child's files, in memory -------------------------------------------------------------------------------- */

typedef struct files { int text, result, log; } files;

static int make_file(void) {
  const int file = memfd_create("gk", MFD_CLOEXEC), high = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, BEHIND);
  if (file >= 0) close(file);
  return high;
}

static bool write_all(int file, const char *text) {
  size_t left = strlen(text);
  while (left > 0) {
    const ssize_t written = write(file, text, left);
    if (written < 0 && errno != EINTR) return false;
    if (written < 0) continue;
    text += written;
    left -= (size_t)written;
  }
  return lseek(file, 0, SEEK_SET) == 0;
}

static bool open_files(files *f, const char *text) {
  *f = (files){make_file(), make_file(), make_file()};
  return f->text >= 0 && f->result >= 0 && f->log >= 0 && write_all(f->text, text);
}

static void close_files(const files *f) {
  if (f->text >= 0) close(f->text);
  if (f->result >= 0) close(f->result);
  if (f->log >= 0) close(f->log);
}

/* ---- the child --------------------------------------------------------------------------------------------------- */

/* 0, or an errno */
static int spawn(const tool *with, const char *define, const files *f, pid_t *child) {
  char *arguments[GK_COUNT(with->compiler->arguments) + 2];
  size_t count = 0;
  for (; count < GK_COUNT(with->compiler->arguments) && with->compiler->arguments[count][0]; ++count)
    arguments[count] = (char *)(uintptr_t)with->compiler->arguments[count]; /* it doesn't write them */
  arguments[count++] = (char *)(uintptr_t)define;
  arguments[count] = NULL;
  posix_spawn_file_actions_t actions;
  int error = posix_spawn_file_actions_init(&actions);
  if (error) return error;
  const int moved[][2] = {{f->text, STDIN_FILENO}, {f->log, STDOUT_FILENO}, {f->log, STDERR_FILENO},
                          {f->result, RESULT}};
  for (size_t k = 0; k < GK_COUNT(moved) && !error; ++k)
    error = posix_spawn_file_actions_adddup2(&actions, moved[k][0], moved[k][1]);
  if (!error) error = posix_spawn(child, with->path, &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/* The exit code doesn't count: a program that ignores SIGCHLD can't learn it. A result that is no SPIR-V does. */
static gk_result take(const files *f, const char *with, const char *name, uint32_t **words, size_t *bytes) {
  const off_t end = lseek(f->result, 0, SEEK_END);
  *bytes = end > 0 ? (size_t)end : 0;
  *words = gk_host_alloc(*bytes + sizeof **words);
  if (!*words) return gki_fail_memory("a shader", *bytes);
  if (pread(f->result, *words, *bytes, 0) == (ssize_t)*bytes && *bytes > sizeof **words && **words == GKI_SPIRV_MAGIC)
    return GK_OK;
  gk_host_free(*words);
  *words = NULL;
  char log[LOG_BYTES];
  const ssize_t length = pread(f->log, log, sizeof log, 0);
  return gk_fail(GK_ERROR_COMPILE, "%s doesn't compile (%s):\n%.*s", name, with, length > 0 ? (int)length : 0, log);
}

/* error: receives 0, or the errno for which there is no process. */
static gk_result run(const tool *with, const char *name, const char *text, const char *define, uint32_t **words,
                     size_t *bytes, int *error) {
  files f;
  pid_t child;
  gk_result result = GK_OK;
  *error = open_files(&f, text) ? spawn(with, define, &f, &child) : errno;
  while (!*error && waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
  if (!*error) result = take(&f, with->path, name, words, bytes);
  close_files(&f);
  return result;
}

/* Behind a compiler that can't be started, such as one for another processor, comes the other one. */
gk_result gki_vulkan_compile(const char *name, const char *text, const char *define, uint32_t **words, size_t *bytes) {
  char refused[PATH_BYTES];
  int error = 0;
  for (size_t k = 0; k < GK_COUNT(compilers); ++k) {
    tool with;
    if (!find(&compilers[k], &with)) continue;
    const gki_cache_part parts[] = {{text, strlen(text)}, {define, strlen(define)}, {with.path, strlen(with.path)},
                                    {with.compiler->arguments, sizeof with.compiler->arguments},
                                    {&with.file.st_size, sizeof with.file.st_size},
                                    {&with.file.st_mtim, sizeof with.file.st_mtim}};
    const gki_cache_key key = gki_cache_key_of(parts, GK_COUNT(parts));
    void *kept;
    if (gki_cache_find(&key, &kept, bytes)) {
      *words = kept;
      return GK_OK;
    }
    const gk_result result = run(&with, name, text, define, words, bytes, &error);
    if (!error && result == GK_OK) gki_cache_keep(&key, *words, *bytes);
    if (!error) return result;
    if (error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE)
      return gk_fail(GK_ERROR_MEMORY, "backend vulkan: %s can't be compiled: no process for %s (%s)", name, with.path,
                     strerror(error));
    memcpy(refused, with.path, sizeof refused);
  }
  if (!error)
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s can't be compiled: neither glslangValidator nor glslc is "
                   "in PATH; install glslang-tools", name);
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s can't be compiled: %s can't be started (%s); install "
                 "another glslangValidator or glslc, and put it first in PATH", name, refused, strerror(error));
}
