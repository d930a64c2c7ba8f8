#include "bench/harness/apart.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct answer {
  bench_took took;
  bool right;
} answer;

void *bench_shared(size_t bytes) {
  void *memory = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) bench_fail("out of memory");
  return memory;
}

/* The same as alloc of the OpenMP backend. */
void *bench_large(size_t bytes) {
  enum { ALIGNMENT = 256, PAGE = 2 << 20 };
  const size_t alignment = bytes >= (size_t)PAGE ? PAGE : ALIGNMENT, units = (bytes + alignment - 1) / alignment;
  void *memory = aligned_alloc(alignment, (units ? units : 1) * alignment);
  if (!memory) bench_fail("out of memory");
  if (alignment == PAGE) (void)madvise(memory, (bytes + PAGE / 2) / PAGE * PAGE, MADV_HUGEPAGE);
  return memory;
}

void *bench_large_zeros(size_t count, size_t bytes) { return memset(bench_large(count * bytes), 0, count * bytes); }

static _Noreturn void serve(bool (*run)(void *, uint64_t, bench_took *), void *with, int requests, int answers) {
  uint64_t times;
  /* Processes that start later hold the other end, too. So an end of file doesn't show that the parent is gone. */
  while (read(requests, &times, sizeof times) == (ssize_t)sizeof times && times > 0) {
    answer a = {0};
    a.right = run(with, times, &a.took);
    if (write(answers, &a, sizeof a) != (ssize_t)sizeof a) break;
  }
  _exit(0);
}

bench_apart bench_start_apart(bool (*run)(void *with, uint64_t times, bench_took *took), void *with) {
  int requests[2], answers[2];
  fflush(NULL);
  if (pipe(requests) != 0 || pipe(answers) != 0) bench_fail("a process for a variant can't be started");
  pid_t process = fork();
  if (process < 0) bench_fail("a process for a variant can't be started");
  if (process == 0) {
    close(requests[1]);
    close(answers[0]);
    serve(run, with, requests[0], answers[1]);
  }
  close(requests[0]);
  close(answers[1]);
  signal(SIGPIPE, SIG_IGN); /* write() returns the error, and the message names the process */
  return (bench_apart){process, requests[1], answers[0]};
}

bool bench_run_apart(void *apart, uint64_t times, bench_took *took) {
  const bench_apart *at = apart;
  answer a;
  if (write(at->to, &times, sizeof times) != (ssize_t)sizeof times ||
      read(at->from, &a, sizeof a) != (ssize_t)sizeof a)
    bench_fail("the process of a variant has ended early");
  took->all += a.took.all;
  took->less += a.took.less;
  return a.right;
}

void bench_end_apart(bench_apart *apart) {
  const uint64_t no_more = 0;
  if (write(apart->to, &no_more, sizeof no_more) != (ssize_t)sizeof no_more) bench_fail("a variant's process is gone");
  close(apart->to);
  close(apart->from);
  waitpid(apart->process, NULL, 0);
}
