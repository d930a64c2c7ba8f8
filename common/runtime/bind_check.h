/* Whether a launch may run with the values bound to a graph's slots. */
#ifndef GKI_RUNTIME_BIND_CHECK_H
#define GKI_RUNTIME_BIND_CHECK_H
#include "runtime/graph.h"

gk_result gki_bindings_check(gk_graph *graph, const char *call);
#endif
