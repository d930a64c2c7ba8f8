/* A set-user-id program's environment is its caller's: gk loads nothing that it names, and follows nothing in it. The
 * program runs again: root's as set-group-id, other users' with a secure_getenv that answers as it does then. */
#include "unit/support/runtime.h"
#include "cuda/compile.h"
#include "base/trace.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <limits.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_faked;
static char folder[PATH_MAX]; /* of this program and of the libraries that the environment names */

/* In front of the C library's. */
char *secure_getenv(const char *name);
char *secure_getenv(const char *name) { return is_faked || getauxval(AT_SECURE) ? NULL : getenv(name); }

static int note_library(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size, (void)user;
  if (strncmp(info->dlpi_name, folder, strlen(folder)) == 0)
    printf(" %s", strrchr(info->dlpi_name, '/') + 1);
  return 0;
}

static void note_variable(void *user, const gk_fact *fact) {
  if (strcmp(fact->group, "environment") == 0 && fact->value) ++*(int *)user;
}

static int tell(bool secure) {
  is_faked = secure && !getauxval(AT_SECURE);
  gk_device *device = NULL;
  const gk_result opened = gk_device_open(NULL, &device);
  printf("%s;", opened == GK_OK ? "opened" : strstr(gk_error(), "nobody") ? "no backend nobody" : gk_error());
  gk_device_close(device);
  gki_cuda_compiler compiler;
  (void)gki_cuda_compiler_get(90, 13000, &compiler);
  gki_trace_listen(); /* as the first device does */
  int variables = 0;
  (void)gk_facts(note_variable, &variables);
  printf(" %d variables;", variables);
  dl_iterate_phdr(note_library, NULL);
  printf("%s\n", gki_trace_enabled() ? " heard" : "");
  return 0;
}

static void find_folder(void) {
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  assert_true(length > 0);
  folder[length] = 0;
  strrchr(folder, '/')[0] = 0;
}

static void set_path(const char *name, const char *file) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  setenv(name, path, 1);
}

/* A copy of this program that is set-group-id; false: only root can make one. */
static bool make_copy(char path[]) {
  enum { OTHERS = 65534 };
  char bytes[1 << 16];
  const int from = open("/proc/self/exe", O_RDONLY), to = geteuid() == 0 ? mkstemp(path) : -1;
  bool made = from >= 0 && to >= 0;
  for (ssize_t count; made && (count = read(from, bytes, sizeof bytes)) != 0;)
    made = count > 0 && write(to, bytes, (size_t)count) == count;
  made = made && fchown(to, 0, OTHERS) == 0 && fchmod(to, S_ISGID | 0755) == 0;
  if (from >= 0) close(from);
  if (to >= 0) close(to);
  return made;
}

static void run_elsewhere(const char *program, const char *word, char *said, size_t bytes) {
  int pipes[2], status;
  size_t used = 0;
  assert_int_equal(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipes[1], STDOUT_FILENO);
    execl(program, program, word, folder, (char *)NULL);
    execl("/proc/self/exe", program, word, folder, (char *)NULL); /* nothing in /tmp may be run */
    _exit(3);
  }
  close(pipes[1]);
  for (ssize_t got; (got = read(pipes[0], said + used, bytes - used - 1)) > 0;) used += (size_t)got;
  said[used] = 0;
  close(pipes[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("status %d; it said: %s", status, said);
}

static void set_environment(void) {
  set_path("GK_MODULES", "module.so");
  set_path("CUDA_HOME", "../cuda/fake_nvrtc/home");
  set_path("NVTX_INJECTION64_PATH", "trace_tool.so");
  set_path("OMP_TOOL_LIBRARIES", "trace_tool.so");
  setenv("FAKE_NVRTC_13", "13000 90", 1);
  setenv("GK_BACKEND", "nobody", 1);
  setenv("GK_CACHE", "/nowhere", 1);
  setenv("GK_CUDA_PROBE", "0", 1);
  setenv("OMP_NUM_THREADS", "2", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it can't trace a set-group-id process */
}

TEST(test_caller_loads_nothing) {
  char said[1024], copy[] = "/tmp/gk_secure_XXXXXX";
  const bool is_made = make_copy(copy);
  set_environment();
  run_elsewhere(is_made ? copy : "/proc/self/exe", "secure", said, sizeof said);
  if (is_made) unlink(copy);
  assert_string_equal(said, "opened; 0 variables;\n");
}

/* The same environment, and no reason not to follow it. */
TEST(test_user_loads_all) {
  char said[1024];
  set_environment();
  run_elsewhere("/proc/self/exe", "plain", said, sizeof said);
  if (strncmp(said, "no backend nobody; ", 19) != 0 || strstr(said, " 0 variables") || !strstr(said, " module.so"))
    fail_msg("it said: %s", said);
#ifdef GK_NVTX
  if (!strstr(said, " trace_tool.so heard")) fail_msg("it said: %s", said);
#endif
}

int main(int argc, char **argv) {
  if (argc == 3) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    return tell(strcmp(argv[1], "secure") == 0);
  }
  find_folder();
  return run_all_tests();
}
