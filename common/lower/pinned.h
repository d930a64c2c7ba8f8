/* Memory of a device, some of it page-locked, and copies. All but the drivers' calls. */
#ifndef GKI_LOWER_PINNED_H
#define GKI_LOWER_PINNED_H
#include "gk_backend.h"
#include <pthread.h>

typedef struct gki_pinned { struct gki_pinned *next; char *at; size_t bytes; } gki_pinned;

/* The blocks of a device, under its lock. */
typedef struct gki_pinned_blocks { gki_pinned *first; pthread_mutex_t *lock; } gki_pinned_blocks;

/* Whether a block contains the address. */
bool gki_pinned_has(gki_pinned_blocks *blocks, const void *memory);

/* What it needs of a driver. */
typedef struct gki_memory_driver {
  gk_result (*finish)(void *device); /* waits for all work on the device's stream */
  gk_result (*enqueue)(void *device, gk_direction direction, void *to, const void *from, size_t bytes); /* on it */
  gk_result (*alloc)(void *device, size_t bytes, gk_memory kind, void **memory);
  void (*free)(void *device, gk_memory kind, void *memory);
} gki_memory_driver;

/* gk_backend.alloc and free. The device has one address for page-locked memory with the host. */
gk_result gki_memory_alloc(const gki_memory_driver *driver, void *device, gki_pinned_blocks *blocks, size_t bytes,
                           gk_memory kind, void **memory);
void gki_memory_free(const gki_memory_driver *driver, void *device, gki_pinned_blocks *blocks, void *memory);

/* What gk_backend.reaches says of memory that a driver doesn't know.
 * @param kind, calls  "CUDA", "cuMemAlloc, cuMemHostAlloc), or register it (cuMemHostRegister)" */
gk_result gki_memory_refuse(const void *memory, const char *kind, int ordinal, const char *name, const char *calls);

/* gk_backend.copy: returns when the copy is done. The host copies page-locked memory, once earlier work is over. A copy
 * between ranges that overlap goes through memory of its own. */
gk_result gki_memory_copy(const gki_memory_driver *driver, void *device, gki_pinned_blocks *blocks,
                          gk_direction direction, void *to, const void *from, size_t bytes);
#endif
