/* The smallest backend outside of gk, as a shared library that registry_test loads. It uses nothing of gk's, but with
 * OPENS, which opens a device as it is loaded, and REGISTERS, which puts itself in place then. */
#include "gk_backend.h"
#include <pthread.h>

static gk_result open_device(void *device, const gk_device_desc *desc) {
  return device && desc ? GK_ERROR_NO_DEVICE : GK_ERROR_DEVICE;
}
static void close_device(void *device) { (void)device; }
static void describe(void *device, gk_device_info *info) { (void)device, (void)info; }
static gk_result alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  (void)device, (void)bytes, (void)kind, (void)memory;
  return GK_ERROR_MEMORY;
}
static void release(void *device, void *memory) { (void)device, (void)memory; }
static gk_result copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  (void)device, (void)direction, (void)to, (void)from, (void)bytes;
  return GK_ERROR_DEVICE;
}
static gk_result lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  (void)device, (void)graph, (void)plan, (void)code, (void)mode;
  return GK_ERROR_UNSUPPORTED;
}
static void drop(void *graph) { (void)graph; }
static gk_result run(void *graph, const gk_launch_args *launch, gk_launch_result *record) {
  (void)graph, (void)launch, (void)record;
  return GK_ERROR_DEVICE;
}

#if defined(OPENS)
#define NAME "module that opens"
#elif defined(REGISTERS)
#define NAME "module that registers"
#else
#define NAME "module"
#endif
static const gk_backend module = {.abi = GK_BACKEND_ABI,
                                  .bytes = sizeof(gk_backend),
                                  .name = NAME,
                                  .device_bytes = 8,
                                  .graph_bytes = 8,
                                  .open = open_device,
                                  .close = close_device,
                                  .describe = describe,
                                  .alloc = alloc,
                                  .free = release,
                                  .copy = copy,
                                  .lower = lower,
                                  .drop = drop,
                                  .run = run};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const gk_backend *gk_backend_export(void);
const gk_backend *gk_backend_export(void) {
  pthread_testcancel(); /* one that looks for a library on disk may be cancelled there */
  return &module;
}

#ifdef OPENS
static void note_nothing(void *user, const gk_device_entry *entry) { (void)user, (void)entry; }

__attribute__((constructor)) static void open_one(void) {
  gk_device *device;
  if (gk_device_open(&(gk_device_desc){.backend = "openmp", .threads = 1}, &device) == GK_OK) gk_device_close(device);
  (void)gk_device_list(note_nothing, NULL);
}
#endif

#ifdef REGISTERS
__attribute__((constructor)) static void register_it(void) { (void)gk_backend_register(&module); }
#endif
