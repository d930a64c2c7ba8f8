/* The end of launches. */
#ifndef GKI_RUNTIME_WAIT_H
#define GKI_RUNTIME_WAIT_H
#include "runtime/graph.h"

/* Takes note of launches that are over, in their order, up to one of them. GK_NOT_READY: it isn't, and mustn't block. A
 * native backend is asked once the worker has handed all launches over: its entries come one at a time. */
gk_result gki_launches_retire(gk_graph *graph, uint64_t upto, bool block);
void gki_launches_end(gk_graph *graph); /* cancels, and waits for all */
void gki_launches_handed(gk_graph *graph); /* waits until the backend has got all: another entry may be called */
bool gki_launches_over(gk_graph *graph); /* as far as is known without waiting */

/* The message of a failure, as the launch keeps it for the call that waits. */
void gki_launch_keep_message(gki_launch *launch);

/* What a backend says of a launch that ended well is what its user sees: GK_ERROR_DEVICE where it can't be. */
gk_result gki_launch_judge_record(gki_launch *launch);

/* Whether a backend left the arrays of a record where they were; if not, the record is as it was given. */
gk_result gki_judge_arrays(const gk_graph *graph, gk_launch_result *record, const gk_launch_result *given);

/* A launch that is over is ready, whatever a library call answered: else gk_poll would say for ever that it runs. */
static inline gk_result gki_launch_ended(gk_result result) { return gki_is_answer(result) ? result : GK_ERROR_INVALID; }
void gki_launch_mark_end(const gki_launch *launch);

/* Of a graph that the caller launches. */
gk_result gki_refuse_external(const gk_graph *graph, const char *call, const char *instead);
#endif
