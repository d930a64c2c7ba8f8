/* Graphs that are part of a graph of the caller's, who launches that. */
#ifndef GKI_EXTERNAL_H
#define GKI_EXTERNAL_H
#include "runtime/graph.h"
#include "runtime/wait.h"

/* As gk_launch, of a graph that the caller launches: `arm` gets what a launch is told, here and now. */
gk_result gki_launch_armed(gk_graph *graph, const char *call, int32_t label,
                           gk_result (*arm)(void *state, const gk_hand_over *launch, void *data), void *data);
/* Of a graph that the caller launches: `disarm` lowers *launched to the last one, beyond `over`, that there was. What
 * was bound for those since is handed over again. */
gk_result gki_launch_disarmed(gk_graph *graph, const char *call,
                              gk_result (*disarm)(void *state, uint64_t over, uint64_t *launched));

/* Whether a backend left the arrays of a record where they were; if not, the record is as it was given. */
gk_result gki_judge_arrays(const gk_graph *graph, gk_record *record, const gk_record *given);
#endif
