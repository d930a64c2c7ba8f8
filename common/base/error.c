#include "base/error.h"
#include "base/thread_cancel.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef GK_VERSION
#error "the build defines GK_VERSION"
#endif
const char *gk_version(void) { return GK_VERSION; }

#define RESULT(code, advice) #code,
static const char *const result_names[] = {
#include "base/results.def"
};
#undef RESULT

/* Static, so that a message needs no memory when there is none left. */
static _Thread_local char message[GKI_MESSAGE_BYTES];
static _Thread_local bool message_is_set;
static _Thread_local gk_result message_code;
static _Thread_local int attempts; /* nested attempts that haven't ended */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
enum { LOG_UNSET = -1 };
static atomic_int log_level = LOG_UNSET; /* atomic, so that a launch takes no lock for a line that isn't logged */
static gk_log_sink log_sink;
static void *log_user;
/* Threads in a sink. Threads that came before the last change are counted separately: gk_set_log waits for them. */
static unsigned in_sink[2], log_epoch;
static bool log_changes;
static pthread_cond_t log_changed = PTHREAD_COND_INITIALIZER;
static _Thread_local bool is_in_sink;

const char *gk_error(void) { return message; }

void gki_error_save(char *to, size_t bytes) { snprintf(to, bytes, "%s", message); }

const char *gk_result_name(gk_result result) {
  size_t index = (size_t)result;
  return index < GK_COUNT(result_names) ? result_names[index] : "no gk_result";
}

void gki_begin(void) { message_is_set = false; }
void gk_fail_again(void) { gki_begin(); }

static void set_message(const char *text, size_t length) {
  static const char tail[] = " ... (cut)";
  if (length >= sizeof message) {
    length = sizeof message - sizeof tail;
    memmove(message, text, length);
    memcpy(message + length, tail, sizeof tail);
  } else {
    memmove(message, text, length);
    message[length] = 0;
  }
  message_is_set = true;
}

gk_result gki_failure(void) { return message_is_set ? message_code : GK_OK; }

gk_result gki_fail_with(gk_result code, const char *text) {
  set_message(text, strlen(text)); /* the call that made the text has logged it */
  message_code = code;
  return code;
}

gk_result gki_fail_with_prefix(gk_result code, const char *format, ...) {
  char text[GKI_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text / 2, format, args); /* the other half is for the message */
  va_end(args);
  const size_t used = strlen(text);
  const int added = snprintf(text + used, sizeof text - used, ": %s", message);
  set_message(text, used + (size_t)added);
  message_code = code;
  return code;
}

gk_result gk_fail(gk_result code, const char *format, ...) {
  if (message_is_set) return code;
  char text[GKI_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (length < 0) length = snprintf(text, sizeof text, "%s", "(a message that can't be formatted)");
  set_message(text, (size_t)length);
  message_code = code;
  if (!attempts) gk_log(GK_LOG_ERROR, "%s", message);
  return code;
}

void gki_attempt_begin(void) { ++attempts; }
void gki_attempt_end(void) { --attempts; }

void gki_forget(const char *text) {
  set_message(text, strlen(text));
  gki_begin();
}

gk_result gki_fail_memory(const char *what, size_t bytes) {
  return gk_fail(GK_ERROR_MEMORY, "out of host memory: %zu bytes for %s; free some and call again", bytes, what);
}

static gk_log_level level_named(const char *text) {
  static const char *const names[] = {"none", "error", "warn", "info", "debug"};
  for (size_t k = 0; k < GK_COUNT(names); ++k)
    if (strcasecmp(text, names[k]) == 0) return (gk_log_level)k;
  char *end;
  long number = strtol(text, &end, 10);
  if (end == text || *end)
    fprintf(stderr, "gk: $GK_LOG is \"%s\"; let it be none, error, warn, info, debug, or 0 to 4\n", text);
  return number < 0 ? GK_LOG_NONE : number > GK_LOG_DEBUG ? GK_LOG_DEBUG : (gk_log_level)number;
}

/* A sink mustn't call gk. If it calls gk_set_log anyway, that takes effect at once and doesn't wait for sinks, because
 * it would wait for itself. */
void gk_set_log(gk_log_level level, gk_log_sink sink, void *user) {
  const int cancel_state = gki_thread_cancel_disable();
  pthread_mutex_lock(&log_lock);
  while (log_changes && !is_in_sink) pthread_cond_wait(&log_changed, &log_lock);
  atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
  log_sink = sink;
  log_user = user;
  if (!is_in_sink) {
    const unsigned before = log_epoch;
    log_changes = true;
    log_epoch = 1 - before;
    while (in_sink[before] > 0) pthread_cond_wait(&log_changed, &log_lock);
    log_changes = false;
    pthread_cond_broadcast(&log_changed);
  }
  pthread_mutex_unlock(&log_lock);
  gki_thread_cancel_restore(cancel_state);
}

void gki_log_forked(void) {
  log_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  log_changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  log_changes = false;
  in_sink[0] = in_sink[1] = 0;
}

static int level_now(void) {
  int level = atomic_load_explicit(&log_level, memory_order_relaxed);
  if (level != LOG_UNSET) return level;
  pthread_mutex_lock(&log_lock);
  level = atomic_load_explicit(&log_level, memory_order_relaxed);
  if (level == LOG_UNSET) {
    const char *wanted = secure_getenv("GK_LOG");
    level = wanted ? (int)level_named(wanted) : GK_LOG_NONE;
    atomic_store_explicit(&log_level, level, memory_order_relaxed);
  }
  pthread_mutex_unlock(&log_lock);
  return level;
}

static void log_line(gk_log_level level, const char *line) {
  const int cancel_state = gki_thread_cancel_disable();
  const bool is_nested = is_in_sink;
  pthread_mutex_lock(&log_lock);
  const gk_log_sink sink = log_sink;
  void *const user = log_user;
  const unsigned epoch = log_epoch;
  ++in_sink[epoch];
  pthread_mutex_unlock(&log_lock);
  is_in_sink = true;
  if (sink) sink(user, level, line);
  else fprintf(stderr, "gk: %s\n", line);
  is_in_sink = is_nested;
  pthread_mutex_lock(&log_lock);
  if (in_sink[epoch] > 0 && --in_sink[epoch] == 0) /* already 0 in a child that the sink forked */
    pthread_cond_broadcast(&log_changed);
  pthread_mutex_unlock(&log_lock);
  gki_thread_cancel_restore(cancel_state);
}

bool gki_log_enabled(gk_log_level level) { return level != GK_LOG_NONE && (int)level <= level_now(); }

void gk_log(gk_log_level level, const char *format, ...) {
  if (!gki_log_enabled(level)) return;
  char line[GKI_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  log_line(level, line);
}
