/* The smallest backend outside of gk, as a shared library that registry_test loads. It uses nothing of gk's, but with
 * OPENS, which opens a device as it is loaded, and REGISTERS, which puts itself in place then. */
#include "unit/support/spare_backend.h"
#include <pthread.h>

static gk_result open_device(void *device, const gk_device_desc *desc) {
  return device && desc ? GK_ERROR_NO_DEVICE : GK_ERROR_DEVICE;
}

#if defined(OPENS)
#define NAME "module that opens"
#elif defined(REGISTERS)
#define NAME "module that registers"
#else
#define NAME "module"
#endif
static const gk_backend module = SPARE(open_device, .name = NAME, .run = spare_run);

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
