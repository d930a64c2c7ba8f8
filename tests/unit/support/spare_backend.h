/* A backend that has what every backend must have, runs nothing, and chooses the mode that a test wants. */
#ifndef SPARE_BACKEND_H
#define SPARE_BACKEND_H
#include "gk_backend.h"
#include <stdlib.h>
#include <string.h>

static gk_mode spare_mode;

static inline gk_result spare_open(void *device, const gk_device_desc *desc) {
  return (void)device, (void)desc, GK_OK;
}
static inline void spare_close(void *device) { (void)device; }
static inline void spare_describe(void *device, gk_device_info *info) { (void)device, (void)info; }
static inline gk_result spare_alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  (void)device, (void)kind;
  *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *memory ? GK_OK : GK_ERROR_MEMORY;
}
static inline void spare_free(void *device, void *memory) { (void)device, free(memory); }
static inline gk_result spare_copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  (void)device;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else memmove(to, from, bytes);
  return GK_OK;
}
static inline bool spare_takes(const gk_kernel *kernel) { return (void)kernel, true; }
static inline gk_result spare_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  (void)device, (void)graph, (void)plan, (void)code;
  *mode = spare_mode;
  return GK_OK;
}
static inline void spare_drop(void *graph) { (void)graph; }
static inline gk_result spare_run(void *graph, const gk_launch_args *launch, gk_launch_result *record) {
  return (void)graph, (void)launch, (void)record, GK_OK;
}
static inline gk_result spare_launch(void *graph, const gk_launch_args *launch) {
  return (void)graph, (void)launch, GK_OK;
}
static inline gk_result spare_submit(void *graph, uint32_t run) { return (void)graph, (void)run, GK_OK; }

/* SPARE(how it opens, further members...) */
#define SPARE(open_, ...) \
  {.abi = GK_BACKEND_ABI, .bytes = sizeof(gk_backend), .device_bytes = 8, .graph_bytes = 8, .open = (open_), \
   .close = spare_close, .describe = spare_describe, .alloc = spare_alloc, .free = spare_free, .copy = spare_copy, \
   .takes = spare_takes, .lower = spare_lower, .drop = spare_drop, __VA_ARGS__}
#endif
