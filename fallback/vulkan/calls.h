/* Library calls: the host makes them, with memory where it can reach it. */
#ifndef GKI_VULKAN_CALLS_H
#define GKI_VULKAN_CALLS_H
#include "vulkan/graph.h"

/* Makes the call of a node. The device has done all that comes before it. */
gk_result gki_vulkan_call(gki_vulkan_graph *graph, const gk_node *node);

/* Says that a task's slot holds memory that isn't the device's. */
gk_result gki_vulkan_refuse_slot(const gki_vulkan_graph *graph, const gk_node *node, uint32_t slot);
#endif
