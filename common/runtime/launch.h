/* From a call of gk_launch to the backend. */
#ifndef GKI_RUNTIME_LAUNCH_H
#define GKI_RUNTIME_LAUNCH_H
#include "runtime/graph.h"

gk_result gki_queue_make(gk_graph *graph);

/* Lists the existing labels. */
gk_result gki_refuse_label(const gk_plan *plan, const char *call, int32_t label);

/* Checks whether a launch may start now, then fills its place in the queue. `here`: nothing may be queued before it. */
gk_result gki_launch_prepare(gk_graph *graph, const char *call, int32_t label, bool here, gki_launch **prepared);

/* An earlier launch failed, so its slot updates may be lost: this one, which may be queued already, sends every
 * slot. */
void gki_launch_send_all(gki_launch *launch);

/* A graph of another backend than the one with that name is GK_ERROR_INVALID. */
gk_result gki_graph_refuse_other(const gk_graph *graph, const char *backend, const char *call);

void gki_launch_begin_range(const gk_graph *graph, const char *what, int32_t label);
void gki_launch_log(const gki_launch *launch);

/* A launch and its wait, within a call of the graph. */
gk_result gki_launch_and_wait(gk_graph *graph, const char *call, int32_t label, const atomic_bool *cancelled,
                              const gk_status **status);

/* Until there is a launch, a wait reports why none could start. Returns the result. */
gk_result gki_launch_note_refused(gk_graph *graph, gk_result result);
#endif
