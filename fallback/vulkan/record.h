/* Recorded commands: tapes, or parts of them, and parts of runs. */
#ifndef GKI_VULKAN_RECORD_H
#define GKI_VULKAN_RECORD_H
#include "vulkan/graph.h"

/* Records a part of a run with library calls. Going ahead, the control shader follows if the run ends there. */
gk_result gki_vulkan_record_part(gki_vulkan_graph *graph, uint32_t run, gki_vulkan_part *part);

/* The commands for entries of a tape, recorded now or before. They run what the entries say, one after the other but
 * for those with GK_AHEAD_BESIDE, and then copy the state to copy `copy`, unless that is GK_NONE. None of the entries'
 * runs has a library call. */
gk_result gki_vulkan_piece_of(gki_vulkan_graph *graph, const uint32_t *entries, uint32_t count, uint32_t copy,
                              VkCommandBuffer *commands);

/* Records graph->upload: copies of these ranges from `staging` to `block`. */
gk_result gki_vulkan_record_upload(gki_vulkan_graph *graph, const VkBufferCopy *ranges, uint32_t count);

/* Forgets all but `upload`. None of it is under way. */
void gki_vulkan_forget(gki_vulkan_graph *graph);
#endif
