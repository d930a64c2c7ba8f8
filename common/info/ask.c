/* Asks a backend in a separate process, and reads the answers. */
#include "info/info.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 24, LAST_WORDS_MS = 2000, PAUSE_NS = 5000000 };

/* ---- in the process that asks ------------------------------------------------------------------------------------ */

typedef struct sender { FILE *to; bool as_json; } sender;

static void send_answer(const sender *t, info_kind kind, const char *text, size_t bytes) {
  const uint32_t length = (uint32_t)bytes;
  if (fputc((int)kind, t->to) == EOF || fwrite(&length, sizeof length, 1, t->to) != 1 ||
      fwrite(text, 1, bytes, t->to) != bytes || fflush(t->to) != 0)
    exit(1); /* the reading process has ended */
}

/* A printed text before it is sent. */
typedef struct draft { FILE *file; char *text; size_t bytes; } draft;

static draft *open_draft(draft *d) {
  *d = (draft){.file = NULL};
  d->file = open_memstream(&d->text, &d->bytes);
  if (!d->file) exit(1);
  return d;
}

static void send_draft(const sender *t, info_kind kind, draft *d) {
  if (fclose(d->file) != 0) exit(1);
  send_answer(t, kind, d->text, d->bytes);
  free(d->text);
}

static void send_library(const sender *t) {
  info_facts facts = {.all = NULL};
  draft d;
  if (gk_facts(info_note, &facts) != GK_OK) exit(1);
  info_print_facts(open_draft(&d)->file, t->as_json, &facts);
  send_draft(t, INFO_LIBRARY, &d);
  info_free(&facts);
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)); ++k)
    send_answer(t, INFO_BACKEND, backend->name, strlen(backend->name));
}

static const gk_backend *backend_named(const char *name) {
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)); ++k)
    if (strcmp(backend->name, name) == 0) return backend;
  exit(1);
}

static void send_device(const sender *t, const gk_device *device) {
  info_facts facts = {.all = NULL};
  draft d;
  const gk_device_info *info = gk_device_describe(device);
  if (!info || gk_device_facts(device, info_note, &facts) != GK_OK) exit(1);
  info_plain(open_draft(&d)->file, info->name);
  if (info->driver[0]) fputs(", ", d.file);
  info_plain(d.file, info->driver);
  send_draft(t, INFO_SUMMARY, &d);
  info_print_device(open_draft(&d)->file, t->as_json, info, &facts);
  send_draft(t, INFO_DEVICE, &d);
  info_free(&facts);
}

static void ignore(void *user, const gk_fact *fact) { (void)user, (void)fact; }

/* Why the backend can't start. Without its name, which the caller prints first. */
static const char *reason_of(const char *name) {
  const char *why = gk_error();
  const size_t length = strlen(name);
  const bool is_named = strncmp(why, "backend ", 8) == 0 && strncmp(why + 8, name, length) == 0 &&
                        strncmp(why + 8 + length, ": ", 2) == 0;
  return is_named ? why + 8 + length + 2 : why;
}

/* Has the limits of gk_device_list. Ends at a device that fails, since later ones might fail because of it. */
static void send_devices(const sender *t, const char *name, int ordinal) {
  info_facts facts = {.all = NULL};
  draft d;
  if (gk_facts(ignore, NULL) != GK_OK) exit(1); /* loads the modules */
  const gk_backend *backend = backend_named(name);
  (void)gk_backend_facts(backend, info_note, &facts);
  info_print_facts(open_draft(&d)->file, t->as_json, &facts);
  send_draft(t, INFO_FACTS, &d);
  info_free(&facts);
  if (backend->by_default && backend->by_default(&(gk_device_desc){.backend = name}) != GK_OK)
    send_answer(t, INFO_BY_NAME, "", 0);
  gk_device *device = NULL;
  gk_result result = GK_OK;
  for (; ordinal < INFO_MOST_DEVICES; ++ordinal) {
    result = gk_device_open(&(gk_device_desc){.backend = name, .ordinal = ordinal}, &device);
    if (result != GK_OK) break;
    send_device(t, device);
    gk_device_close(device);
  }
  const char *why = reason_of(name);
  if (result == GK_ERROR_NO_DEVICE && ordinal == 0) send_answer(t, INFO_NONE, why, strlen(why));
  else if (result != GK_ERROR_NO_DEVICE && result != GK_OK) send_answer(t, INFO_REFUSED, why, strlen(why));
}

static void answer(int to, const char *backend, int first_ordinal, bool as_json) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  to = fcntl(to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* the caller of gk-info may have closed the first three */
  dup2(STDERR_FILENO, STDOUT_FILENO); /* drivers may print; their output isn't part of the report */
  const sender t = {fdopen(to, "w"), as_json};
  if (!t.to) exit(1);
  if (backend) send_devices(&t, backend, first_ordinal);
  else send_library(&t);
  send_answer(&t, INFO_END, "", 0);
  fclose(t.to);
  exit(0);
}

/* ---- in the one that prints -------------------------------------------------------------------------------------- */

bool info_ask(info_process *process, const char *backend, int first_ordinal, bool as_json, int seconds) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    answer(ends[1], backend, first_ordinal, as_json);
  }
  close(ends[1]);
  *process = (info_process){pid, ends[0], seconds};
  if (pid > 0) return true;
  close(ends[0]);
  return false;
}

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

typedef enum read_result { READ, LATE, ENDED } read_result;

static read_result read_until(int from, void *to, size_t bytes, int64_t deadline) {
  for (size_t done = 0; done < bytes;) {
    const int64_t left = deadline - now_ms();
    const int ready = left > 0 ? poll(&(struct pollfd){from, POLLIN, 0}, 1, (int)(left < 60000 ? left : 60000)) : 0;
    if (left <= 0) return LATE;
    if (ready <= 0) continue;
    const ssize_t count = read(from, (char *)to + done, bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return ENDED;
    done += (size_t)count;
  }
  return READ;
}

/* Whether the process has ended by itself within that many milliseconds; *status is then as from waitpid. */
static bool wait_for(info_process *process, int milliseconds, int *status) {
  for (const int64_t end = now_ms() + milliseconds; process->pid > 0;) {
    const pid_t ended = waitpid(process->pid, status, WNOHANG);
    if (ended == process->pid) process->pid = 0;
    else if (now_ms() >= end) return false;
    else nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
  return true;
}

/* A process that the kernel doesn't end is left alone. */
static void end_process(info_process *process) {
  int status;
  if (process->pid <= 0) return;
  kill(process->pid, SIGKILL);
  if (!wait_for(process, LAST_WORDS_MS, &status)) process->pid = 0;
}

static void describe_end(int status, char *text, size_t bytes) {
  if (WIFSIGNALED(status)) {
    snprintf(text, bytes, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else {
    snprintf(text, bytes, "ended with exit code %d", WEXITSTATUS(status));
  }
}

static info_answer gone_answer(info_process *process, read_result how) {
  char text[256], end[200];
  int status = 0;
  if (how == LATE) {
    snprintf(text, sizeof text, "nothing came of it within %d s (--timeout), it hangs", process->seconds);
  } else if (!wait_for(process, LAST_WORDS_MS, &status)) {
    snprintf(text, sizeof text, "the process that asked fell silent");
  } else {
    describe_end(status, end, sizeof end);
    snprintf(text, sizeof text, "the process that asked %s", end);
  }
  end_process(process);
  return (info_answer){INFO_GONE, info_copy(text)};
}

info_answer info_next(info_process *process) {
  const int64_t deadline = now_ms() + 1000 * (int64_t)process->seconds;
  char kind;
  uint32_t length;
  read_result how = read_until(process->from, &kind, sizeof kind, deadline);
  if (how == READ) how = read_until(process->from, &length, sizeof length, deadline);
  if (how != READ) return gone_answer(process, how);
  if (length > MOST_BYTES) return gone_answer(process, ENDED);
  char *text = info_realloc(NULL, length + 1);
  how = read_until(process->from, text, length, deadline);
  text[length] = 0;
  if (how == READ) return (info_answer){(info_kind)kind, text};
  free(text);
  return gone_answer(process, how);
}

void info_close(info_process *process, char *problem, size_t bytes) {
  int status = 0;
  char end[200];
  problem[0] = 0;
  close(process->from);
  if (process->pid <= 0) return;
  if (!wait_for(process, LAST_WORDS_MS, &status)) {
    snprintf(problem, bytes, "the process that asked had said all, and didn't end");
    end_process(process);
  } else if (status != 0) {
    describe_end(status, end, sizeof end);
    snprintf(problem, bytes, "the process that asked had said all, and %s", end);
  }
}
