/* Making graphs, and taking them from a device that is closed. */
#ifndef GKI_CREATE_H
#define GKI_CREATE_H
#include "runtime/graph.h"

/* How a graph is lowered, if not by the backend's entry: into a graph of the caller's. */
typedef struct gki_lowering {
  gk_result (*lower)(void *device, void *state, const gk_plan *plan, void *const *code, gk_mode *mode, void *data);
  void *data;
} gki_lowering;
/* What gk_graph_create does, with bits and pointers that are fine. way: NULL: by the backend's entry. */
gk_result gki_graph_create(gk_device *device, const gk_list *list, uint32_t bits, const gki_lowering *way,
                           gk_graph **created);

/* Before a device closes: ends what runs, takes the backend's part and the memory from each of its graphs. */
void gki_graphs_detach(gk_device *device);
#endif
