/* Replaces cache.c in builds without xxHash: everything is compiled each time. */
#include "kernel/cache.h"
#include <stdio.h>

gki_cache_key gki_cache_key_of(const gki_cache_part *parts, size_t count) {
  (void)parts;
  (void)count;
  return (gki_cache_key){{0}};
}

bool gki_cache_find(const gki_cache_key *key, void **bytes, size_t *size) {
  (void)key;
  (void)bytes;
  (void)size;
  return false;
}

void gki_cache_keep(const gki_cache_key *key, const void *bytes, size_t size) {
  (void)key;
  (void)bytes;
  (void)size;
}

void gki_cache_describe(char *folder, size_t folder_bytes, char *why, size_t why_bytes) {
  snprintf(folder, folder_bytes, "%s", "");
  snprintf(why, why_bytes, "this gk was built without xxHash (apt-get install libxxhash-dev, then ./configure.py)");
}
