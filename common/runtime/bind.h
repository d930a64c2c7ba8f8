/* The values bound to a graph's slots. */
#ifndef GKI_RUNTIME_BIND_H
#define GKI_RUNTIME_BIND_H
#include "runtime/graph.h"

enum { GKI_FAILED_BYTES = 1024 }; /* of gk_graph.failed_message */

/* The slot's description if it has one of the types (1 << gk_type); otherwise NULL and the message. */
const gk_slot_desc *gki_slot_find(const gk_graph *graph, gk_slot slot, const char *call, uint32_t types);

/* The elements that a room's buffer has. False: its memory's size isn't known, or they are more than the room holds. */
bool gki_slot_room(const gk_graph *graph, uint32_t slot, size_t *room);

/* Gives the rooms of a buffer, whose memory has changed, their numbers. */
void gki_slot_update_rooms(gk_graph *graph, uint32_t buffer);

/* Binds memory to a slot of type GK_PTR, and numbers to its rooms. */
gk_result gki_slot_bind_memory(gk_graph *graph, uint32_t slot, void *memory);
void gki_slot_mark_changed(gk_graph *graph, uint32_t slot); /* the next launch sends its value */

/* Keeps a failure until the next launch reports it, or a successful bind of the slot removes it. Only the first failure
 * keeps its message. */
void gki_slot_keep_failure(gk_graph *graph, uint32_t slot, gk_result result);
#endif
