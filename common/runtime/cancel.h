/* Stopping launches. */
#ifndef GKI_RUNTIME_CANCEL_H
#define GKI_RUNTIME_CANCEL_H
#include "runtime/graph.h"

/* A launch that has ended doesn't read the cancel flag any more, and the next launch clears it first. So it may be set
 * without a check. */
gk_result gki_launches_cancel(gk_graph *graph);
#endif
