#include "alive.h"
#include "error.h"
#ifdef GK_DEBUG
#include "forked.h"
#include <stdio.h>

enum { GRAVES = 256 };

typedef struct grave { uintptr_t at; const char *kind, *end; char name[64]; } grave;

GKI_PROCESS_LOCK(lock)
static grave graves[GRAVES]; /* the last so many */
static size_t next_grave;

/* Under the lock. */
static grave *grave_of(uintptr_t at) {
  for (size_t k = 0; k < GRAVES; ++k)
    if (graves[k].at == at) return &graves[k];
  return NULL;
}

gk_result gki_refuse_dead(const void *handle, const char *call) {
  grave found = {0};
  pthread_mutex_lock(&lock);
  const grave *at = handle ? grave_of((uintptr_t)handle) : NULL;
  if (at) found = *at;
  pthread_mutex_unlock(&lock);
  if (!found.at) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: this %s was %s (%s), and nothing may be asked of it any more", call, found.kind,
                 found.end, found.name);
}

void gki_bury(const void *handle, const char *kind, const char *name, const char *end) {
  pthread_mutex_lock(&lock);
  grave *at = grave_of((uintptr_t)handle);
  if (!at) at = &graves[next_grave++ % GRAVES];
  *at = (grave){.at = (uintptr_t)handle, .kind = kind, .end = end};
  snprintf(at->name, sizeof at->name, "%s", name ? name : "");
  pthread_mutex_unlock(&lock);
}

/* Most allocators give the address that was freed last; the handle there would seem alive again. What is held is
 * given to nobody, so at last an address comes that isn't a grave's. */
void *gki_handle(size_t bytes, const char *what) {
  void *held[GRAVES], *handle = NULL;
  size_t count = 0;
  for (bool taken = true; taken;) {
    handle = gki_array(1, bytes, what);
    pthread_mutex_lock(&lock);
    grave *at = handle ? grave_of((uintptr_t)handle) : NULL;
    taken = at && count < GRAVES;
    if (at && !taken) at->at = 0; /* others went there meanwhile */
    pthread_mutex_unlock(&lock);
    if (taken) held[count++] = handle;
  }
  while (count > 0) gk_release(held[--count]);
  return handle;
}
#endif
