#include "base/trace.h"

void gki_trace_begin_run(const gk_plan *plan, uint32_t run) {
  const gk_node *first = &plan->nodes[plan->runs[run].begin], *last = &plan->nodes[plan->runs[run].end - 1];
  if (first == last) gki_trace_begin(0, "task %u (%s)", (unsigned)first->source, first->name);
  else gki_trace_begin(0, "tasks %u (%s) to %u (%s)", (unsigned)first->source, first->name, (unsigned)last->source,
                       last->name);
}

#ifdef GK_NVTX
#include "base/thread_cancel.h"
#include <nvtx3/nvToolsExt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 256 };

nvtxDomainHandle_t gki_listener;

/* NVTX's header loads the library that the environment names, even in a set-user-id program, where the caller sets the
 * environment. */
static bool is_privileged(void) {
  static const char name[] = "NVTX_INJECTION64_PATH";
  return getenv(name) && !secure_getenv(name);
}

/* NVTX's functions are pointers that the first call of any of them sets. So every thread comes through here before it
 * calls another one. */
static void listen(void) {
  if (!is_privileged()) gki_listener = nvtxDomainCreateA("gk");
}

void gki_trace_listen(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, listen);
}

/* Tools take a copy of the name. */
static nvtxEventAttributes_t event_of(uint64_t number, char *name, const char *format, va_list args) {
  vsnprintf(name, NAME_BYTES, format, args);
  nvtxEventAttributes_t event = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                 .messageType = NVTX_MESSAGE_TYPE_ASCII, .message.ascii = name};
  if (number) event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = number;
  return event;
}

void gki_trace_push(uint64_t number, const char *format, ...) {
  char name[NAME_BYTES];
  va_list args;
  va_start(args, format);
  const nvtxEventAttributes_t event = event_of(number, name, format, args);
  va_end(args);
  const int cancel_state = gki_thread_cancel_disable();
  nvtxDomainRangePushEx(gki_listener, &event);
  gki_thread_cancel_restore(cancel_state);
}

void gki_trace_pop(void) {
  const int cancel_state = gki_thread_cancel_disable();
  nvtxDomainRangePop(gki_listener);
  gki_thread_cancel_restore(cancel_state);
}

void gki_trace_put(uint64_t number, const char *format, ...) {
  char name[NAME_BYTES];
  va_list args;
  va_start(args, format);
  const nvtxEventAttributes_t event = event_of(number, name, format, args);
  va_end(args);
  const int cancel_state = gki_thread_cancel_disable();
  nvtxDomainMarkEx(gki_listener, &event);
  gki_thread_cancel_restore(cancel_state);
}

bool gki_trace_describe(const char **why) {
  gki_trace_listen();
  *why = gki_listener   ? "a tool listens to ranges and marks of gk's"
         : is_privileged() ? "a set-user-id program doesn't load the tool that its caller names"
                        : "ranges and marks for a tool that NVTX_INJECTION64_PATH names; none listens";
  return true;
}
#else
bool gki_trace_describe(const char **why) {
  *why = "gk was built without NVTX's headers, so that profilers see no ranges of it";
  return false;
}
#endif
