#include "base/lifetime.h"
#include "base/error.h"
#ifdef GK_DEBUG
#include "base/fork.h"
#include <stdio.h>

enum { GRAVES = 256 };

typedef struct grave { const char *kind, *end; char name[64]; } grave;

GKI_PROCESS_LOCK(lock)
static uintptr_t addresses[GRAVES]; /* of the last so many; apart from the rest, as every call looks through them */
static grave graves[GRAVES];
static size_t next_grave;

/* Under the lock. GRAVES: nothing was buried there. */
static size_t grave_at(const void *handle) {
  size_t k = handle ? 0 : GRAVES;
  while (k < GRAVES && addresses[k] != (uintptr_t)handle) ++k;
  return k;
}

gk_result gki_lifetime_check(const void *handle, const char *call) {
  grave found = {0};
  pthread_mutex_lock(&lock);
  const size_t at = grave_at(handle);
  if (at < GRAVES) found = graves[at];
  pthread_mutex_unlock(&lock);
  if (at == GRAVES) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: this %s was %s (%s), and nothing may be asked of it any more", call, found.kind,
                 found.end, found.name);
}

void gki_lifetime_end(const void *handle, const char *kind, const char *name, const char *end) {
  pthread_mutex_lock(&lock);
  size_t at = grave_at(handle);
  if (at == GRAVES) at = next_grave++ % GRAVES;
  addresses[at] = (uintptr_t)handle;
  graves[at] = (grave){.kind = kind, .end = end};
  snprintf(graves[at].name, sizeof graves[at].name, "%s", name ? name : "");
  pthread_mutex_unlock(&lock);
}

/* Most allocators reuse the address that was freed last. A new handle there would make the destroyed one look alive.
 * The addresses held here can't be reused, so the allocator returns a new address in the end. */
void *gki_lifetime_begin(size_t bytes, const char *what) {
  void *held[GRAVES], *handle = NULL;
  size_t count = 0;
  for (bool taken = true; taken;) {
    handle = gki_array(1, bytes, what);
    pthread_mutex_lock(&lock);
    const size_t at = grave_at(handle);
    taken = at < GRAVES && count < GRAVES;
    if (at < GRAVES && !taken) addresses[at] = 0; /* other threads took that place in the meantime */
    pthread_mutex_unlock(&lock);
    if (taken) held[count++] = handle;
  }
  while (count > 0) gk_host_free(held[--count]);
  return handle;
}
#endif
