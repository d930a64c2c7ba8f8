/* The end of launches. */
#ifndef GKI_RUNTIME_WAIT_H
#define GKI_RUNTIME_WAIT_H
#include "runtime/graph.h"

/* Retires launches that have ended, in their order, up to the given one. GK_NOT_READY: that one hasn't ended, and the
 * call mustn't block. gk calls a native backend only after the worker has sent all launches, as its entries run one at
 * a time. */
gk_result gki_launches_retire(gk_graph *graph, uint64_t upto, bool block);
/* Waits for all launches, of which there must be one, and reports them like gk_wait. */
gk_result gki_launches_finish(gk_graph *graph, const gk_status **status);
void gki_launches_end(gk_graph *graph); /* cancels, and waits for all */
void gki_launches_wait_sent(gk_graph *graph); /* waits until the backend has received all, so another entry may run */
bool gki_launches_over(gk_graph *graph); /* as far as gk knows without waiting */

/* Copies the message of a failed launch into it, for the call that reports it. */
void gki_launch_keep_message(gki_launch *launch);

/* Checks the backend's result of a successful launch. GK_ERROR_DEVICE: it isn't valid. */
gk_result gki_launch_check_result(gki_launch *launch);

/* Whether a backend left the arrays of a result in their places; if not, the result is as gk gave it. */
gk_result gki_check_arrays(const gk_graph *graph, gk_launch_result *result, const gk_launch_result *given);

/* A GK_NOT_READY, for example of a library call, becomes a failure. As a launch's result it would make gk_poll report
 * that the launch runs, without end. */
static inline gk_result gki_launch_final_result(gk_result result) {
  return gki_is_answer(result) ? result : GK_ERROR_INVALID;
}
void gki_launch_mark_end(const gki_launch *launch);

/* For a graph that the caller launches. */
gk_result gki_refuse_external(const gk_graph *graph, const char *call, const char *advice);
#endif
