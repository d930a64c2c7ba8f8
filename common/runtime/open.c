/* Opening, listing and closing devices. */
#include "base/error.h"
#include "base/lifetime.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "base/within.h"
#include "runtime/create.h"
#include "runtime/device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A limit for gk_device_list, in case a backend opens or fails at every ordinal. */
enum { ORDINALS_MAX = 256, FAILURES_MAX = 16 };

static const char *missing_of(const gk_device_info *info) {
  if (!info->name) return "name";
  if (!info->driver) return "driver";
  if (info->capability_count && !info->capabilities) return "capabilities";
  for (size_t k = 0; k < info->capability_count; ++k)
    if (!info->capabilities[k].construct || !info->capabilities[k].why) return "capability that is whole";
  if (info->ordinal < 0) return "ordinal from 0 on";
  return info->threads < 1 ? "number of threads from 1 on" : NULL;
}

static gk_result describe(gk_device *device, int ordinal) {
  const gk_backend *backend = device->backend;
  device->info = (gk_device_info){.name = "", .driver = "", .ordinal = ordinal, .threads = 1, .backend = backend->name};
  backend->describe(device->state, &device->info);
  device->info.backend = backend->name;
  const char *missing = missing_of(&device->info);
  if (!missing) return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "backend %s: its entry describe gives no %s", backend->name, missing);
}

static gk_result make(const gk_backend *backend, const gk_device_desc *desc, gk_device **opened) {
  gk_result result = GK_ERROR_MEMORY;
  gk_device *device = gki_lifetime_begin(sizeof *device, "a device");
  if (!device) return result;
  device->backend = backend;
  device->forks = gki_forks;
  device->state = gki_array(1, backend->device_bytes, "a backend's device");
  if (!device->state) goto done;
  result = gki_worker_start(&device->worker);
  if (result != GK_OK) goto done;
  result = gki_answer(backend, "open", backend->open(device->state, desc));
  if (result == GK_OK) result = describe(device, desc->ordinal);
  if (result != GK_OK) {
    gk_fail(result, "backend %s failed to open its device and didn't say why", backend->name);
    backend->close(device->state);
    gki_worker_stop(&device->worker);
    goto done;
  }
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->code_lock, NULL);
  gki_memory_hold();
  *opened = device;
  return GK_OK;
done:
  gk_host_free(device->state);
  gk_host_free(device);
  return result;
}

/* Puts the name in front of the thread's message, unless the message has it already. */
static void name_backend(const gk_backend *backend, gk_result result) {
  char message[GKI_MESSAGE_BYTES];
  const bool is_named = strncmp(gk_error(), "backend ", 8) == 0;
  gki_error_save(message, sizeof message);
  gki_begin();
  gk_fail(result, "%s%s%s%s", is_named ? "" : "backend ", is_named ? "" : backend->name, is_named ? "" : ": ", message);
}

/* The thread's message without the name, if the message has it. */
static const char *reason_of(const gk_backend *backend) {
  const char *message = gk_error();
  const size_t length = strlen(backend->name);
  const bool is_named = strncmp(message, "backend ", 8) == 0 && strncmp(message + 8, backend->name, length) == 0 &&
                        strncmp(message + 8 + length, ": ", 2) == 0;
  return is_named ? message + 8 + length + 2 : message;
}

static gk_result open_one(const gk_backend *backend, const gk_device_desc *desc, gk_device **opened) {
  const int cancel_state = gki_thread_cancel_disable();
  gki_trace_listen();
  gki_trace_begin(0, "open %s %d", backend->name, desc->ordinal);
  gki_attempt_begin();
  const gk_result result = make(backend, desc, opened);
  gki_attempt_end();
  if (result != GK_OK) name_backend(backend, result);
  gki_trace_end();
  gki_thread_cancel_restore(cancel_state);
  return result;
}

/* Whether gk may take the device for a program that names no backend. */
static gk_result ask_by_default(const gk_backend *backend, const gk_device_desc *desc) {
  if (!backend->by_default) return GK_OK;
  gki_begin();
  const int cancel_state = gki_thread_cancel_disable();
  gki_attempt_begin();
  const gk_result result = gki_answer(backend, "by_default", backend->by_default(desc));
  if (result != GK_OK) gk_fail(result, "backend %s refused its device and didn't say why", backend->name);
  gki_attempt_end();
  gki_thread_cancel_restore(cancel_state);
  if (result != GK_OK) name_backend(backend, result);
  return result;
}

/* A failure is no error yet: another backend or device may follow. */
static gk_result try_one(const gk_backend *backend, const gk_device_desc *desc, gk_device **opened) {
  gki_begin();
  gki_attempt_begin();
  const gk_result result = open_one(backend, desc, opened);
  gki_attempt_end();
  if (result == GK_ERROR_MEMORY) gk_log(GK_LOG_ERROR, "%s", gk_error());
  return result;
}

static gk_result refuse_desc(const gk_device_desc *desc) {
  for (size_t k = 0; k < GK_COUNT(desc->reserved); ++k)
    if (desc->reserved[k])
      return gk_fail(GK_ERROR_INVALID,
                     "gk_device_open: reserved[%zu] is not zero; clear the whole gk_device_desc first", k);
  if (desc->ordinal < 0) return gk_fail(GK_ERROR_INVALID, "gk_device_open: ordinal %d; count from 0", desc->ordinal);
  if (desc->threads < 0)
    return gk_fail(GK_ERROR_INVALID, "gk_device_open: %d threads; give 1 or more, or 0 for the default", desc->threads);
  return GK_OK;
}

/* Tries every backend in turn; the message has the reason of each. */
static gk_result open_first(const gk_device_desc *desc, gk_device **device) {
  char reasons[GKI_MESSAGE_BYTES];
  size_t used = 0;
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)); ++k) {
    gk_device_desc named = *desc;
    named.backend = backend->name;
    gk_result result = ask_by_default(backend, &named);
    if (result == GK_OK) result = try_one(backend, &named, device);
    if (result == GK_OK) return GK_OK;
    if (result == GK_ERROR_MEMORY) return result;
    gk_log(GK_LOG_WARN, "backend %s can't start: %s", backend->name, reason_of(backend));
    if (used < sizeof reasons)
      used += (size_t)snprintf(reasons + used, sizeof reasons - used, "; %s", gk_error());
  }
  gki_begin();
  return gk_fail(GK_ERROR_NO_DEVICE, "no backend can start%s%s", used ? reasons : "", gki_modules_problem());
}

static gk_result open_named(const char *wanted, gk_device_desc *desc, gk_device **device) {
  const gk_backend *backend = gki_backend_named(wanted);
  const bool planned = gki_backend_is_planned(wanted);
  char names[512];
  if (!backend) {
    gki_backend_names(names, sizeof names);
    return gk_fail(GK_ERROR_INVALID, "gk_device_open: %s \"%.100s\"%s%s; there are: %s%s",
                   planned ? "the backend" : "there is no backend named", wanted,
                   planned ? " is not in this build" : "",
                   desc->backend && desc->backend[0] ? "" : " (from $GK_BACKEND)", names, gki_modules_problem());
  }
  desc->backend = backend->name;
  return open_one(backend, desc, device);
}

gk_result gk_device_open(const gk_device_desc *given, gk_device **device) {
  gki_begin();
  if (!device) return gk_fail(GK_ERROR_INVALID, "gk_device_open: nowhere to put the device (NULL)");
  *device = NULL;
  char before[GKI_MESSAGE_BYTES];
  gki_error_save(before, sizeof before);
  gk_device_desc desc = given ? *given : (gk_device_desc){0};
  gk_result result = refuse_desc(&desc);
  if (result != GK_OK) return result;
  gki_modules_load();
  gki_begin();
  const char *wanted = desc.backend && desc.backend[0] ? desc.backend : secure_getenv("GK_BACKEND");
  if (!wanted || !wanted[0]) result = open_first(&desc, device);
  else result = open_named(wanted, &desc, device);
  if (result != GK_OK) return result;
  gki_forget(before);
  gk_log(GK_LOG_INFO, "device opened: %s, %s, %s", (*device)->info.backend, (*device)->info.name,
         (*device)->info.driver);
  return GK_OK;
}

static bool is_taken(pthread_mutex_t *lock) {
  if (pthread_mutex_trylock(lock) != 0) return true;
  pthread_mutex_unlock(lock);
  return false;
}

/* A fork's child has no worker. A driver belongs to the parent, and so does everything that a thread of the parent was
 * changing at the fork. */
static void end_backend(gk_device *device) {
  if (device->forks == gki_forks) gki_worker_stop(&device->worker);
  else if (!(device->backend->bits & GK_BACKEND_FORKED) || is_taken(&device->lock) || is_taken(&device->code_lock))
    return;
  for (size_t k = 0; k < device->codes.size; ++k)
    if (device->codes.entries[k].key && device->backend->unload)
      device->backend->unload(device->state, (void *)device->codes.entries[k].value);
  for (size_t k = 0; k < device->block_count; ++k)
    device->backend->free(device->state, (void *)device->blocks[k].begin);
  device->backend->close(device->state);
  pthread_mutex_destroy(&device->code_lock);
  pthread_mutex_destroy(&device->lock);
}

void gk_device_close(gk_device *device) {
  gki_begin();
  if (!device || gki_lifetime_check(device, "gk_device_close") != GK_OK) return;
  if (device->forks == gki_forks && gki_refuse_within(&device->worker, "gk_device_close") != GK_OK) return;
  const int cancel_state = gki_thread_cancel_disable();
  gki_lifetime_end(device, "device", device->info.name, "closed");
  gki_graphs_detach(device);
  end_backend(device);
  gk_host_free(device->codes.entries);
  gk_host_free(device->blocks);
  gk_host_free(device->state);
  gk_host_free(device);
  gki_memory_drop();
  gki_thread_cancel_restore(cancel_state);
}

const gk_device_info *gk_device_describe(const gk_device *device) {
  gki_begin();
  if (gki_lifetime_check(device, "gk_device_describe") != GK_OK) return NULL;
  if (device) return &device->info;
  gk_fail(GK_ERROR_INVALID, "gk_device_describe: there is no device (NULL)");
  return NULL;
}

/* An existing device that fails may be followed by others. */
static gk_result list_devices(const gk_backend *backend, gk_device_visit visit, void *user) {
  gk_device_desc desc = {.backend = backend->name};
  for (int failures = 0; desc.ordinal < ORDINALS_MAX && failures < FAILURES_MAX; ++desc.ordinal) {
    gk_device *device = NULL;
    char before[GKI_MESSAGE_BYTES], why[GKI_MESSAGE_BYTES];
    gki_error_save(before, sizeof before);
    gk_result result = try_one(backend, &desc, &device);
    if (result == GK_ERROR_MEMORY) return result;
    snprintf(why, sizeof why, "%s", reason_of(backend));
    gki_forget(before);
    if (result == GK_OK) visit(user, &(gk_device_entry){backend->name, desc.ordinal, true, device->info.name, ""});
    else if (result != GK_ERROR_NO_DEVICE || desc.ordinal == 0)
      visit(user, &(gk_device_entry){backend->name, desc.ordinal, false, "", why});
    gk_device_close(device);
    /* The first device may be one that the backend can't use, with others behind it. */
    if (result != GK_OK && result != GK_ERROR_DEVICE && (result != GK_ERROR_NO_DEVICE || desc.ordinal > 0)) break;
    failures = result == GK_OK ? 0 : failures + 1;
  }
  return GK_OK;
}

gk_result gk_device_list(gk_device_visit visit, void *user) {
  gki_begin();
  if (!visit)
    return gk_fail(GK_ERROR_INVALID, "gk_device_list: `visit` is NULL; give a function that gets the devices");
  const int cancel_state = gki_thread_cancel_disable();
  gki_modules_load();
  const gk_backend *backend;
  gk_result result = GK_OK;
  for (size_t k = 0; result == GK_OK && (backend = gk_backend_at(k)); ++k) result = list_devices(backend, visit, user);
  gki_thread_cancel_restore(cancel_state);
  return result;
}
