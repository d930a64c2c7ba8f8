/* Every call of a graph, where all of them fail in the same way. */
#ifndef GRAPH_CALLS_H
#define GRAPH_CALLS_H
#include "runtime.h"

static inline void assert_call_failed(const char *call, gk_result result, gk_result code, const char *words) {
  const char *behind = strchr(gk_error(), ':');
  if (result == code && behind && (size_t)(behind - gk_error()) == strlen(call) && strstr(behind, words) &&
      strncmp(gk_error(), call, strlen(call)) == 0)
    return;
  fail_msg("%s: %s, \"%s\", not %s with \"%s\"", call, gk_result_name(result), gk_error(), gk_result_name(code), words);
}

/* Each but gk_cancel and gk_graph_destroy fails with that code, and its message begins with its name and has these
 * words. Slot 1 of the graph's list is memory, slot 2 a number. */
static inline void assert_graph_calls_fail(gk_graph *graph, gk_result code, const char *words) {
  int value = 0;
  const gk_status *status = (const gk_status *)&value;
  assert_call_failed("gk_bind", gk_bind(graph, 1, &value), code, words);
  assert_call_failed("gk_bind_int", gk_bind_int(graph, 2, 1), code, words);
  assert_call_failed("gk_bind_float", gk_bind_float(graph, 2, 1), code, words);
  assert_call_failed("gk_bind_bytes", gk_bind_bytes(graph, 2, &value, sizeof value), code, words);
  assert_call_failed("gk_resize", gk_resize(graph, 1, 1), code, words);
  assert_call_failed("gk_bound", gk_bound(graph, 1) ? GK_OK : code, code, words);
  assert_call_failed("gk_find_slot", gk_find_slot(graph, "X") ? GK_OK : code, code, words);
  assert_call_failed("gk_launch", gk_launch(graph, 0), code, words);
  assert_call_failed("gk_launch_on", gk_launch_on(graph, 0, NULL), code, words);
  assert_call_failed("gk_wait", gk_wait(graph, &status), code, words);
  assert_null(status);
  status = (const gk_status *)&value;
  assert_call_failed("gk_poll", gk_poll(graph, &status), code, words);
  assert_null(status);
  assert_call_failed("gk_dump", gk_dump(NULL, graph, "text") ? GK_OK : code, code, graph ? words : "");
}
#endif
