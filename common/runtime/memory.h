/* A device's blocks of memory. */
#ifndef GKI_RUNTIME_MEMORY_H
#define GKI_RUNTIME_MEMORY_H
#include "runtime/device.h"

/* Memory from the backend, zeroed and known by its range. */
gk_result gki_device_alloc(gk_device *device, size_t bytes, gk_memory kind, const void *owner, void **memory);
/* Memory that a graph owns, from the backend's `own`, known by its range. */
gk_result gki_device_own(gk_device *device, void *state, const void *from, size_t kept, size_t bytes,
                         const void *owner, void **memory);
/* Whether a slot of another graph was bound to that block of the graph. Launches of the other graph may use it then. */
bool gki_device_is_lent(gk_device *device, const void *memory);
/* Frees in the order of the device's work; with `disowns` by the backend's `disown` instead, unless the block is lent.
 * False: the owner has no block at that address. */
bool gki_device_free(gk_device *device, void *memory, const void *owner, bool disowns);
/* Bytes from the address to the end of its block; marks the block as bound by the graph. SIZE_MAX: the address is in no
 * block of the device. *number: the block's; 0: none. */
size_t gki_device_capacity(gk_device *device, const void *graph, const void *address, uint64_t *number);
/* Whether a block of the device ends at the address. */
bool gki_device_ends_block(gk_device *device, const void *address);
/* Copies in the order of the device's work, and waits for the end. */
gk_result gki_device_copy(gk_device *device, gk_direction direction, void *to, const void *from, size_t bytes);
#endif
