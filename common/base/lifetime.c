#include "base/lifetime.h"
#include "base/error.h"
#ifdef GK_DEBUG
#include "base/fork.h"
#include <stdio.h>

enum { RECORDS = 256 };

typedef struct record { const char *kind, *end; char name[64]; } record;

GKI_PROCESS_LOCK(lock)
static uintptr_t addresses[RECORDS]; /* of ended handles; separate from the records, since each call searches them */
static record records[RECORDS];
static size_t next_record;

/* Call under the lock. RECORDS: the handle has no record. */
static size_t record_of(const void *handle) {
  size_t k = handle ? 0 : RECORDS;
  while (k < RECORDS && addresses[k] != (uintptr_t)handle) ++k;
  return k;
}

gk_result gki_lifetime_check(const void *handle, const char *call) {
  record found = {0};
  pthread_mutex_lock(&lock);
  const size_t at = record_of(handle);
  if (at < RECORDS) found = records[at];
  pthread_mutex_unlock(&lock);
  if (at == RECORDS) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: this %s was %s (%s), and nothing may be asked of it any more", call, found.kind,
                 found.end, found.name);
}

void gki_lifetime_end(const void *handle, const char *kind, const char *name, const char *end) {
  pthread_mutex_lock(&lock);
  size_t at = record_of(handle);
  if (at == RECORDS) at = next_record++ % RECORDS;
  addresses[at] = (uintptr_t)handle;
  records[at] = (record){.kind = kind, .end = end};
  snprintf(records[at].name, sizeof records[at].name, "%s", name ? name : "");
  pthread_mutex_unlock(&lock);
}

/* Most allocators reuse the address that was freed last, and a new handle there would look like the destroyed one.
 * While this function holds such addresses, the allocator has to return another one. */
void *gki_lifetime_begin(size_t bytes, const char *what) {
  void *held[RECORDS], *handle = NULL;
  size_t count = 0;
  for (bool taken = true; taken;) {
    handle = gki_array(1, bytes, what);
    pthread_mutex_lock(&lock);
    const size_t at = record_of(handle);
    taken = at < RECORDS && count < RECORDS;
    if (at < RECORDS && !taken) addresses[at] = 0; /* RECORDS addresses were tried: forget this record */
    pthread_mutex_unlock(&lock);
    if (taken) held[count++] = handle;
  }
  while (count > 0) gk_host_free(held[--count]);
  return handle;
}
#endif
