/* gk's own host memory: the allocator hook, and an arena for memory that is freed at once. gk_host_alloc and
 * gk_host_free, which call the hook for one block, are in gk_backend.h. */
#ifndef GKI_BASE_MEMORY_H
#define GKI_BASE_MEMORY_H
#include "gk_backend.h"

/* Like realloc, by the hook. New bytes aren't zeroed. */
void *gki_resize(void *memory, size_t bytes);

/* Keeps the hook from being changed while memory of it is in use (by a device, a module). */
void gki_memory_hold(void);
void gki_memory_drop(void);

/* False: the product or sum doesn't fit. */
static inline bool gki_multiply(size_t a, size_t b, size_t *product) { return !__builtin_mul_overflow(a, b, product); }
static inline bool gki_add(size_t a, size_t b, size_t *sum) { return !__builtin_add_overflow(a, b, sum); }

/* Zeroed array of count elements; NULL: out of memory, and gk_fail has been called with `what`. */
void *gki_array(size_t count, size_t element_bytes, const char *what);

/* Grows an array geometrically so that it holds `wanted` elements; false: out of memory, gk_fail has been called, and
 * the array is as it was. */
bool gki_grow(void **array, size_t *capacity, size_t wanted, size_t element_bytes, const char *what);

enum { GKI_STRUCT_ALIGNMENT = 64 }; /* of structs bound to slots; enough for any vector type */
static inline size_t gki_struct_align(size_t bytes) {
  return (bytes + GKI_STRUCT_ALIGNMENT - 1) / GKI_STRUCT_ALIGNMENT * GKI_STRUCT_ALIGNMENT;
}

/* Blocks chained together, freed at once. All zero is an empty arena. */
typedef struct gki_arena {
  struct gki_chunk *last;
  size_t used, total_bytes; /* in the last chunk; of all chunks */
} gki_arena;
void *gki_arena_alloc(gki_arena *arena, size_t count, size_t element_bytes); /* zeroed, for any type; NULL: no memory */
void *gki_arena_alloc_aligned(gki_arena *arena, size_t bytes, size_t alignment); /* alignment: a power of two */
void gki_arena_free(gki_arena *arena);
#endif
