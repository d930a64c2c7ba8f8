#include "runtime/device.h"
#include "base/error.h"
#include "base/lifetime.h"
#include "base/registry.h"
#include "base/trace.h"
#include "base/within.h"
#include <string.h>

unsigned gki_forks;
static void note_fork(void) {
  ++gki_forks;
  gki_log_forked();
}
__attribute__((constructor)) static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, note_fork); }

gk_result gki_refuse_forked(const char *call, const char *which, const char *name) {
  return gk_fail(GK_ERROR_DEVICE, "%s: %s %s was opened before a fork, and only the parent process can use it; open "
                 "one in this process", call, which, name);
}

gk_result gki_device_refuse(const gk_device *device, const char *call) {
  if (!device) return gk_fail(GK_ERROR_INVALID, "%s: there is no device (NULL)", call);
  if (gki_lifetime_check(device, call) != GK_OK) return GK_ERROR_INVALID;
  if (device->forks != gki_forks) return gki_refuse_forked(call, "device", device->info.name);
  return gki_refuse_within(&device->worker, call);
}

/* ---- code of kernels --------------------------------------------------------------------------------------------- */

gk_result gki_device_code(gk_device *device, const gk_kernel *kernel, void **code) {
  *code = NULL;
  if (!device->backend->load) return GK_OK;
  gk_result result = GK_OK;
  pthread_mutex_lock(&device->code_lock);
  if (!gki_table_grow(&device->codes, 1, "the table of kernels")) {
    result = GK_ERROR_MEMORY;
    goto done;
  }
  const gki_entry *entry = gki_table_find(&device->codes, (uintptr_t)kernel);
  if (!entry->key) {
    void *made = NULL;
    gki_trace_begin(0, "kernel %s", kernel->name);
    result = gki_answer(device->backend, "load", device->backend->load(device->state, kernel, &made));
    gki_trace_end();
    if (result != GK_OK) goto done;
    gki_table_add(&device->codes, (uintptr_t)kernel, (uintptr_t)made);
  }
  *code = (void *)entry->value;
done:
  pthread_mutex_unlock(&device->code_lock);
  return result;
}

gk_result gk_device_state(gk_device *device, const char *backend, const char *call, void **state) {
  gki_begin();
  *state = NULL;
  const gk_result result = gki_device_refuse(device, call);
  if (result != GK_OK) return result;
  if (strcmp(device->backend->name, backend) != 0)
    return gk_fail(GK_ERROR_INVALID, "%s: the device is one of backend %s; open one of backend %s", call,
                   device->backend->name, backend);
  *state = device->state;
  return GK_OK;
}
