#include "error.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RESULT(code, advice) #code,
static const char *const result_names[] = {
#include "results.def"
};
#undef RESULT

/* Static, so that a message needs no memory when there is none left. */
static _Thread_local char message[GKI_MESSAGE_BYTES];
static _Thread_local bool message_is_set;
static _Thread_local gk_result message_code;
static _Thread_local int attempts; /* that are under way, one in another */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
enum { LOG_UNSET = -1 };
static atomic_int log_level = LOG_UNSET; /* by itself, so that a launch which nobody listens to takes no lock */
static gk_log_sink log_sink;
static void *log_user;

const char *gk_error(void) { return message; }

const char *gk_result_name(gk_result result) {
  size_t index = (size_t)result;
  return index < GK_COUNT(result_names) ? result_names[index] : "no gk_result";
}

const char *gki_type_name(gk_type type) {
  static const char *const names[] = {"GK_NO_TYPE", "GK_PTR", "GK_I32", "GK_U32",   "GK_I64",
                                      "GK_F32",     "GK_F64", "GK_BYTES", "GK_HOST_PTR"};
  return (size_t)type < GK_COUNT(names) ? names[type] : NULL;
}

void gki_begin(void) { message_is_set = false; }

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
  set_message(text, strlen(text)); /* The log has it from where it was collected. */
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
  gk_log(attempts ? GK_LOG_DEBUG : GK_LOG_ERROR, "%s", message);
  return code;
}

void gki_attempt_begin(void) { ++attempts; }
void gki_attempt_end(void) { --attempts; }

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

void gk_set_log(gk_log_level level, gk_log_sink sink, void *user) {
  pthread_mutex_lock(&log_lock);
  atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
  log_sink = sink;
  log_user = user;
  pthread_mutex_unlock(&log_lock);
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

void gk_log(gk_log_level level, const char *format, ...) {
  if (level == GK_LOG_NONE || (int)level > level_now()) return;
  pthread_mutex_lock(&log_lock);
  gk_log_sink sink = log_sink;
  void *user = log_user;
  pthread_mutex_unlock(&log_lock);
  char line[GKI_MESSAGE_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (sink) sink(user, level, line);
  else fprintf(stderr, "gk: %s\n", line);
}
