/* Making graphs, and separating them from a device that is closed. */
#ifndef GKI_RUNTIME_CREATE_H
#define GKI_RUNTIME_CREATE_H
#include "runtime/graph.h"

/* Before a device closes: ends running launches, and frees the backend's part and the memory of each of its graphs. */
void gki_graphs_detach(gk_device *device);
#endif
