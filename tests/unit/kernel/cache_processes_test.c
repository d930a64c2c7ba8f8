/* The cache on disk in processes of their own: with limits, on disks that are full or read-only, and many at once. */
#include "cache_world.h"
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { SKIPPED = 77 };

static pid_t start_child(int (*body)(void)) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) _exit(body());
  return child;
}

static int code_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  assert_true(WIFEXITED(status)); /* no signal ended it */
  return WEXITSTATUS(status);
}

/* In a process of its own; true: it could be tried, and went well. */
static bool in_child(int (*body)(void)) {
  fflush(NULL);
  const int code = code_of(start_child(body));
  if (code != SKIPPED) assert_int_equal(code, 0);
  return code == 0;
}

static bool is_too_large(size_t bytes) {
  static char large[64 * 1024];
  const gki_cache_key key = key_of("large");
  gki_cache_keep(&key, large, bytes);
  void *found;
  return !gki_cache_find(&key, &found, &bytes);
}

static int fill_beyond_limit(void) {
  const struct rlimit limit = {1024, 1024};
  sigset_t pending;
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return SKIPPED;
  const bool refused = is_too_large(4096);
  keep("a");
  if (sigpending(&pending) != 0 || sigismember(&pending, SIGXFSZ)) return 2;
  if (!refused || count_files() != 1) return 3;
  return is_kept("a") ? 0 : 4;
}

static int mount_small(unsigned long flags) {
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return -1;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
  return mount("gk", folder, "tmpfs", flags, "size=16k,mode=700");
}

static int fill_disk(void) {
  if (mount_small(0) != 0) return SKIPPED;
  keep("a");
  if (!is_too_large(64 * 1024) || count_files() != 1) return 2;
  return is_kept("a") ? 0 : 3;
}

static int write_to_read_only(void) {
  if (mount_small(0) != 0) return SKIPPED;
  keep("a");
  if (mount("gk", folder, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL) != 0) return SKIPPED;
  keep("b");
  return is_kept("a") && !is_kept("b") && count_files() == 1 ? 0 : 2;
}

/* A test that is done in a process of its own; the folders above its folder are there. */
#define IN_CHILD(test, body) \
  IN_FOLDER(test) { \
    keep("x"); \
    remove_all(); \
    if (!in_child(body)) skip(); \
  }
IN_CHILD(files_may_be_limited, fill_beyond_limit)
IN_CHILD(disk_may_be_full, fill_disk)
IN_CHILD(disk_may_be_read_only, write_to_read_only)

enum { PROCESSES = 50, KEYS = 8, TURNS = 20 };

static int use_it(void) {
  unsigned char bytes[4096];
  for (int turn = 0; turn < TURNS; ++turn)
    for (int k = 0; k < KEYS; ++k) {
      memset(bytes, k + 1, sizeof bytes);
      const gki_cache_key key = key_of_number(k);
      void *found = NULL;
      size_t size = 0;
      if (gki_cache_find(&key, &found, &size)) {
        const bool right = size == sizeof bytes && memcmp(found, bytes, size) == 0;
        gk_host_free(found);
        if (!right) return 2;
      }
      if ((turn + k) % 3 == 0) gki_cache_keep(&key, bytes, sizeof bytes);
    }
  return 0;
}

IN_FOLDER(fifty_processes_at_once) {
  pid_t children[PROCESSES];
  fflush(NULL);
  for (int k = 0; k < PROCESSES; ++k) children[k] = start_child(use_it);
  for (int k = 0; k < PROCESSES; ++k) assert_int_equal(code_of(children[k]), 0);
  assert_int_equal(count_files(), KEYS); /* and nothing half written */
}

int main(void) { return run_cache_tests(); }
