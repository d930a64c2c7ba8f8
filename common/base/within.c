#include "base/within.h"

_Thread_local const gki_within *gki_within_now;
static _Thread_local const gk_node *calling; /* the library call that this thread is in */

gk_result gki_refuse_within(const void *worker, const char *call) {
  const gki_within *within = gki_within_now;
  while (within && within->worker != worker) within = within->outer;
  if (!within) return GK_OK;
  static const char advice[] = "calls it on its own device, which would wait for itself; call it before the launch or "
                               "after gk_wait";
  return calling ? gk_fail(GK_ERROR_INVALID, "%s: task %u (%s) %s", call, (unsigned)calling->source, calling->name,
                           advice)
                 : gk_fail(GK_ERROR_INVALID, "%s: a task %s", call, advice);
}

gk_result gki_call(const gk_node *node, const gk_value *args, void *native) {
  const gk_node *outer = calling;
  calling = node;
  const gk_result result = node->call(args, native);
  calling = outer;
  return result;
}

gk_result gki_call_task(const gk_node *node, const gk_value *args, void *native) {
  const gk_result result = gki_call(node, args, native);
  if (result == GK_OK) return GK_OK;
  return gk_fail(result, "task %u (%s): the call answered %s", (unsigned)node->source, node->name,
                 gk_result_name(result));
}
