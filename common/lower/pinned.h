/* Page-locked memory that a program has of a device, and copies of a device that has it. */
#ifndef GKI_LOWER_PINNED_H
#define GKI_LOWER_PINNED_H
#include "gk_backend.h"
#include <pthread.h>

typedef struct gki_pinned { struct gki_pinned *next; char *at; size_t bytes; } gki_pinned;

/* The blocks of a device, under its lock. */
typedef struct gki_pinned_blocks { gki_pinned *first; pthread_mutex_t *lock; } gki_pinned_blocks;

/* Takes the record `block`, of gk_host_alloc. */
void gki_pinned_add(gki_pinned_blocks *blocks, gki_pinned *block, void *memory, size_t bytes);

/* The record of the block with that address, which the caller frees; NULL: it is no such block. */
gki_pinned *gki_pinned_remove(gki_pinned_blocks *blocks, const void *memory);

/* Whether a block contains the address. */
bool gki_pinned_has(gki_pinned_blocks *blocks, const void *memory);

/* What copies call. */
typedef struct gki_copier {
  gk_result (*finish)(void *device); /* waits for all work on the device's stream */
  gk_result (*enqueue)(void *device, gk_direction direction, void *to, const void *from, size_t bytes); /* on it */
  gk_result (*alloc)(void *device, size_t bytes, void **memory); /* on the device */
  void (*free)(void *device, void *memory);
} gki_copier;

/* gk_backend.copy: returns when the copy is done. The host copies page-locked memory, once earlier work is over. A copy
 * between ranges that overlap goes through memory of its own. */
gk_result gki_copy(const gki_copier *copier, void *device, gki_pinned_blocks *blocks, gk_direction direction, void *to,
                   const void *from, size_t bytes);
#endif
