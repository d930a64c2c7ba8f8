#include "base/memory.h"
#include "base/error.h"
#include "base/thread_cancel.h"
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void *plain_alloc(void *user, size_t bytes) { (void)user; return malloc(bytes); }
static void *plain_resize(void *user, void *at, size_t bytes) { (void)user; return realloc(at, bytes); }
static void plain_free(void *user, void *at) { (void)user; free(at); }

static const gk_allocator plain = {NULL, plain_alloc, plain_resize, plain_free};
static gk_allocator hook = {NULL, plain_alloc, plain_resize, plain_free};
static atomic_int holders;

gk_result gk_set_allocator(const gk_allocator *allocator) {
  gki_begin();
  if (allocator && (!allocator->alloc || !allocator->resize || !allocator->free))
    return gk_fail(GK_ERROR_INVALID, "gk_set_allocator: alloc, resize and free are all needed; one of them is NULL");
  if (atomic_load(&holders) > 0)
    return gk_fail(GK_ERROR_BUSY, "gk_set_allocator: a device is open or a module is loaded; set the allocator before");
  hook = allocator ? *allocator : plain;
  return GK_OK;
}

void gki_memory_hold(void) { atomic_fetch_add(&holders, 1); }
void gki_memory_drop(void) { atomic_fetch_sub(&holders, 1); }

/* The allocator may write into a file, and its callers hold locks and graphs. */
void *gk_host_alloc(size_t bytes) {
  const int cancel_state = gki_thread_cancel_disable();
  void *memory = hook.alloc(hook.user, bytes ? bytes : 1);
  gki_thread_cancel_restore(cancel_state);
  if (memory) memset(memory, 0, bytes);
  return memory;
}

void *gki_resize(void *memory, size_t bytes) {
  const int cancel_state = gki_thread_cancel_disable();
  void *resized = hook.resize(hook.user, memory, bytes ? bytes : 1);
  gki_thread_cancel_restore(cancel_state);
  return resized;
}

void gk_host_free(void *memory) {
  if (!memory) return;
  const int cancel_state = gki_thread_cancel_disable();
  hook.free(hook.user, memory);
  gki_thread_cancel_restore(cancel_state);
}

void *gki_array(size_t count, size_t element_bytes, const char *what) {
  size_t bytes;
  void *memory = gki_multiply(count, element_bytes, &bytes) ? gk_host_alloc(bytes) : (bytes = SIZE_MAX, NULL);
  if (!memory) gki_fail_memory(what, bytes);
  return memory;
}

bool gki_grow(void **array, size_t *capacity, size_t wanted, size_t element_bytes, const char *what) {
  if (wanted <= *capacity) return true;
  size_t next = *capacity + *capacity / 2 + 16, bytes;
  if (next < wanted) next = wanted;
  void *grown = gki_multiply(next, element_bytes, &bytes) ? gki_resize(*array, bytes) : (bytes = SIZE_MAX, NULL);
  if (!grown) {
    gki_fail_memory(what, bytes);
    return false;
  }
  *array = grown;
  *capacity = next;
  return true;
}

struct gki_chunk {
  struct gki_chunk *before;
  size_t bytes;
  alignas(max_align_t) unsigned char data[];
};

void *gki_arena_alloc(gki_arena *arena, size_t count, size_t element_bytes) {
  enum { unit = alignof(max_align_t), chunk_bytes = 16384 };
  size_t bytes, padded;
  if (!gki_multiply(count, element_bytes, &bytes) || !gki_add(bytes, unit - 1, &padded)) return NULL;
  padded -= padded % unit;
  if (!arena->last || arena->last->bytes - arena->used < padded) {
    size_t room = padded > chunk_bytes ? padded : chunk_bytes, whole;
    if (!gki_add(room, sizeof(struct gki_chunk), &whole)) return NULL;
    struct gki_chunk *chunk = gk_host_alloc(whole);
    if (!chunk) return NULL;
    chunk->before = arena->last;
    chunk->bytes = room;
    arena->last = chunk;
    arena->used = 0;
    arena->total_bytes += whole;
  }
  void *memory = arena->last->data + arena->used;
  arena->used += padded;
  return memory;
}

void *gki_arena_alloc_aligned(gki_arena *arena, size_t bytes, size_t alignment) {
  size_t padded;
  if (!gki_add(bytes, alignment - 1, &padded)) return NULL;
  unsigned char *memory = gki_arena_alloc(arena, padded, 1);
  return memory ? memory + (-(uintptr_t)memory & (alignment - 1)) : NULL;
}

void gki_arena_free(gki_arena *arena) {
  for (struct gki_chunk *chunk = arena->last, *before; chunk; chunk = before) {
    before = chunk->before;
    gk_host_free(chunk);
  }
  *arena = (gki_arena){0};
}
