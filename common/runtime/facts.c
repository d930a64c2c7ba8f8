/* Facts about this library, its modules and its backends' libraries and devices, which gk-info prints. */
#include "base/error.h"
#include "base/registry.h"
#include "base/thread_cancel.h"
#include "base/trace.h"
#include "kernel/cache.h"
#include "runtime/device.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 4096 + 256 }; /* a path and a few words */

/* The variables that gk or NVTX reads. Backends report their own. */
static const struct { const char *name, *what; } variables[] = {
  {"GK_BACKEND", "the backend that gk_device_open takes where none is named"},
  {"GK_MODULES", "backends to be loaded, paths with ':' in between"},
  {"GK_LOG", "what is said on standard error: none, error, warn, info, debug"},
  {"GK_CACHE", "the folder in which compiled kernels are kept; off: they aren't"},
  {"GK_CACHE_LIMIT", "what they may take there, in MiB; 256 if not set"},
  {"GK_TAPE_MS", "how long a device should take for what is enqueued at once, in ms; 100 if not set"},
  {"XDG_CACHE_HOME", "without GK_CACHE they are kept in its folder gk"},
  {"HOME", "without both in its folder .cache/gk"},
  {"NVTX_INJECTION64_PATH", "NVTX's: the library of a tool that gk's ranges are told; profilers set it themselves"},
};

static void report(gk_fact_visit visit, void *user, const char *group, const char *name, const char *value,
                   const char *why) {
  visit(user, &(gk_fact){group, name, value, why});
}

static void report_number(gk_fact_visit visit, void *user, const char *name, int number, const char *why) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  report(visit, user, "gk", name, text, why);
}

static gk_result refuse_null(const char *call, gk_fact_visit visit) {
  gki_begin();
  return visit ? GK_OK : gk_fail(GK_ERROR_INVALID, "%s: `visit` is NULL; give a function that gets the facts", call);
}

typedef struct listener { gk_fact_visit visit; void *user; } listener;

/* Reports a backend's fact if it is valid. */
static void pass_on(void *at, const gk_fact *fact) {
  const listener *to = at;
  if (fact && fact->group && fact->name)
    report(to->visit, to->user, fact->group, fact->name, fact->value, fact->why ? fact->why : "");
}

static const gk_fact_source *source_of(const gk_backend *backend) {
  return backend->query ? backend->query(GK_FACTS) : NULL;
}

static void report_environments(listener *to) {
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)); ++k) {
    const gk_fact_source *source = source_of(backend);
    const bool knows = source && source->bytes > offsetof(gk_fact_source, of_environment);
    if (knows && source->of_environment) source->of_environment(pass_on, to);
  }
}

gk_result gk_facts(gk_fact_visit visit, void *user) {
  gk_result result = refuse_null("gk_facts", visit);
  if (result != GK_OK) return result;
  const int cancel_state = gki_thread_cancel_disable();
  gki_modules_load();
  gki_begin();
  Dl_info here;
  const bool is_known = dladdr(&variables, &here) && here.dli_fname;
  report(visit, user, "gk", "version", gk_version(), "");
  report(visit, user, "gk", "library", is_known ? here.dli_fname : NULL, "");
  report_number(visit, user, "abi", GK_ABI, "GK_ABI, of lists and programs");
  report_number(visit, user, "backend_abi", GK_BACKEND_ABI, "GK_BACKEND_ABI, of backends in modules");
  const char *problem = gki_modules_problem(), *modules = secure_getenv("GK_MODULES");
  const bool are_listed = modules && modules[0];
  report(visit, user, "gk", "modules", are_listed && !problem[0] ? "loaded" : NULL,
         problem[0] ? problem + 2 : are_listed ? "" : "$GK_MODULES lists none");
  char folder[TEXT_BYTES], why[TEXT_BYTES];
  gki_cache_describe(folder, sizeof folder, why, sizeof why);
  report(visit, user, "gk", "cache", folder[0] ? folder : NULL,
         folder[0] && !why[0] ? "what was compiled is kept there" : why);
  for (const char *const *backend = gki_left_out; *backend; ++backend)
    report(visit, user, "gk", *backend, NULL, "gk was built without this backend; ./configure.py says what it needs");
  const char *tool;
  const bool has_ranges = gki_trace_describe(&tool);
  report(visit, user, "gk", "nvtx", has_ranges ? "built in" : NULL, tool);
  for (size_t k = 0; k < GK_COUNT(variables); ++k)
    report(visit, user, "environment", variables[k].name, secure_getenv(variables[k].name), variables[k].what);
  report_environments(&(listener){visit, user});
  gki_thread_cancel_restore(cancel_state);
  return GK_OK;
}

gk_result gk_backend_facts(const gk_backend *backend, gk_fact_visit visit, void *user) {
  gk_result result = refuse_null("gk_backend_facts", visit);
  if (result != GK_OK) return result;
  if (!backend) return gk_fail(GK_ERROR_INVALID, "gk_backend_facts: there is no backend (NULL)");
  const gk_fact_source *source = source_of(backend);
  const int cancel_state = gki_thread_cancel_disable();
  if (source && source->of_backend) source->of_backend(pass_on, &(listener){visit, user});
  gki_thread_cancel_restore(cancel_state);
  return GK_OK;
}

gk_result gk_device_facts(const gk_device *device, gk_fact_visit visit, void *user) {
  gk_result result = refuse_null("gk_device_facts", visit);
  if (result == GK_OK) result = gki_device_refuse(device, "gk_device_facts");
  if (result != GK_OK) return result;
  const gk_fact_source *source = source_of(device->backend);
  const int cancel_state = gki_thread_cancel_disable();
  if (source && source->of_device) source->of_device(device->state, pass_on, &(listener){visit, user});
  gki_thread_cancel_restore(cancel_state);
  return GK_OK;
}
