#include "base/registry.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/memory.h"
#include "base/thread_cancel.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


enum { MODULES_MAX = 32 };
GKI_PROCESS_LOCK(lock)
static gk_backend modules[MODULES_MAX]; /* copies: an older module's struct may be shorter than ours */
static size_t module_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local bool is_loading; /* what $GK_MODULES lists, on this thread */
static char problems[1024];

/* Under the lock. */
static const gk_backend *backend_at(size_t index) {
  if (index < module_count) return &modules[module_count - 1 - index];
  for (const gk_backend *const *at = gki_built_in; *at; ++at)
    if (at - gki_built_in == (ptrdiff_t)(index - module_count)) return *at;
  return NULL;
}

const gk_backend *gk_backend_at(size_t index) {
  pthread_mutex_lock(&lock);
  const gk_backend *backend = backend_at(index);
  pthread_mutex_unlock(&lock);
  return backend;
}

const gk_backend *gki_backend_named(const char *name) {
  const gk_backend *backend;
  for (size_t k = 0; (backend = gk_backend_at(k)); ++k)
    if (strcmp(backend->name, name) == 0) return backend;
  return NULL;
}

void gki_backend_names(char *text, size_t bytes) {
  const gk_backend *backend;
  size_t used = 0;
  text[0] = 0;
  for (size_t k = 0; used < bytes && (backend = gk_backend_at(k)); ++k)
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", k > 0 ? ", " : "", backend->name);
}

bool gki_backend_is_planned(const char *name) {
  const gki_code_place *place = gki_code_places;
  while (place->backend && strcmp(place->backend, name) != 0) ++place;
  return place->backend != NULL;
}

static bool has_handwritten_code(const gk_kernel *kernel) {
  const gki_code_place *place = gki_code_places;
  while (place->backend && !*(const gk_code *const *)((const char *)kernel + place->at)) ++place;
  return place->backend != NULL;
}

const gk_code *gki_backend_code(const gk_backend *backend, const gk_kernel *kernel) {
  if (backend) return backend->code ? backend->code(kernel, NULL) : NULL;
  const gk_code *code = NULL;
  if (!has_handwritten_code(kernel)) return NULL; /* few kernels have it, and each backend takes a lock */
  for (size_t k = 0; !code && (backend = gk_backend_at(k)); ++k) code = gki_backend_code(backend, kernel);
  return code;
}

/* The entry that a backend lacks; NULL: none. */
static const char *lacking(const gk_backend *b) {
  if (!b->open) return "open";
  if (!b->close) return "close";
  if (!b->describe) return "describe";
  if (!b->alloc) return "alloc";
  if (!b->free) return "free";
  if (!b->copy) return "copy";
  if (!b->lower) return "lower";
  if (!b->drop) return "drop";
  if (b->load && !b->unload) return "unload";
  if (!b->run && !b->launch) return "run, or launch with wait, or launch with submit and read_flag";
  if (b->launch && !b->wait && !b->submit && !b->ahead) return "wait, or submit and read_flag";
  if (b->submit && !b->read_flag) return "read_flag";
  if (b->ahead && !b->state) return "state";
  if (b->own && !b->disown) return "disown";
  return NULL;
}

gk_result gk_backend_register(const gk_backend *backend) {
  gki_begin();
  if (!backend) return gk_fail(GK_ERROR_INVALID, "gk_backend_register: there is no backend (NULL)");
  if (backend->abi != GK_BACKEND_ABI)
    return gk_fail(GK_ERROR_INVALID,
                   "gk_backend_register: the backend was built for ABI %u, this library has %d; rebuild it",
                   (unsigned)backend->abi, GK_BACKEND_ABI);
  if (backend->bytes < offsetof(gk_backend, open))
    return gk_fail(GK_ERROR_INVALID, "gk_backend_register: `bytes` is %u; set it to sizeof(gk_backend)",
                   (unsigned)backend->bytes);
  gk_backend whole = {0};
  memcpy(&whole, backend, backend->bytes < sizeof whole ? backend->bytes : sizeof whole);
  if (!whole.name || !whole.name[0]) return gk_fail(GK_ERROR_INVALID, "gk_backend_register: the backend has no name");
  const char *lacks = lacking(&whole);
  if (lacks) return gk_fail(GK_ERROR_INVALID, "gk_backend_register: backend %s lacks the entry %s", whole.name, lacks);
  const gk_backend *other;
  pthread_mutex_lock(&lock);
  for (size_t k = 0; (other = backend_at(k)) && strcmp(other->name, whole.name) != 0;) ++k;
  bool room = module_count < MODULES_MAX;
  if (!other && room) {
    modules[module_count] = whole;
    atomic_thread_fence(memory_order_release); /* a forked child sees no unfinished module */
    ++module_count;
  }
  pthread_mutex_unlock(&lock);
  if (other)
    return gk_fail(GK_ERROR_INVALID, "gk_backend_register: there is a backend named %s already; choose another name",
                   whole.name);
  if (!room)
    return gk_fail(GK_ERROR_INVALID, "gk_backend_register: %d backends are registered, no more fit", MODULES_MAX);
  gk_log(GK_LOG_INFO, "backend %s registered", whole.name);
  return GK_OK;
}

gk_result gki_answer(const gk_backend *backend, const char *entry, gk_result result) {
  if (gki_is_answer(result)) return result;
  char text[256];
  snprintf(text, sizeof text, "backend %s: its entry %s answered %d, which it can't", backend->name, entry,
           (int)result);
  return gki_fail_with(GK_ERROR_DEVICE, text);
}

static size_t count_modules(void) {
  pthread_mutex_lock(&lock);
  const size_t count = module_count;
  pthread_mutex_unlock(&lock);
  return count;
}

static gk_result load_module(const char *path) {
  const size_t before = count_modules();
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return gk_fail(GK_ERROR_INVALID, "gk_backend_load: %s can't be loaded: %s", path, dlerror());
  const gk_backend *(*export)(void);
  *(void **)&export = dlsym(library, "gk_backend_export");
  gk_result result = GK_OK;
  if (!export)
    result = gk_fail(GK_ERROR_INVALID, "gk_backend_load: %s has no function gk_backend_export; it is no backend of gk",
                     path);
  else result = gk_backend_register(export());
  /* Never closed: the module's memory from the allocator may stay in use. A refused module may have registered a
   * backend by itself while it was loaded. */
  if (count_modules() != before) gki_memory_hold();
  else dlclose(library);
  return result;
}

gk_result gk_backend_load(const char *path) {
  gki_begin();
  if (!path || !path[0]) return gk_fail(GK_ERROR_INVALID, "gk_backend_load: no path was given");
  const int cancel_state = gki_thread_cancel_disable();
  const gk_result result = load_module(path);
  gki_thread_cancel_restore(cancel_state);
  return result;
}

static void note_trouble(const char *what) {
  size_t used = strlen(problems);
  snprintf(problems + used, sizeof problems - used, "; $GK_MODULES: %s", what);
  gk_log(GK_LOG_WARN, "$GK_MODULES: %s", what);
}

static void load_listed(void) {
  const char *at = secure_getenv("GK_MODULES");
  char before[GKI_MESSAGE_BYTES];
  gki_error_save(before, sizeof before);
  is_loading = true;
  while (at && *at) {
    size_t length = strcspn(at, ":");
    char path[1024];
    if (length >= sizeof path) note_trouble("it has a path of more than 1023 letters");
    else if (length > 0) {
      memcpy(path, at, length);
      path[length] = 0;
      if (gk_backend_load(path) != GK_OK) note_trouble(gk_error());
    }
    at += length + (at[length] == ':');
  }
  gki_forget(before); /* this call may work without them */
  is_loading = false;
}

void gki_modules_load(void) {
  if (is_loading) return; /* a module may open a device while it is loaded; it finds the backends loaded so far */
  const int cancel_state = gki_thread_cancel_disable();
  pthread_once(&once, load_listed);
  gki_thread_cancel_restore(cancel_state);
}
const char *gki_modules_problem(void) { return problems; }
