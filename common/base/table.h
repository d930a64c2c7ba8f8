/* A hash table by address or number: open addressing, at most half full. All zero is an empty table. */
#ifndef GKI_BASE_TABLE_H
#define GKI_BASE_TABLE_H
#include "base/memory.h"

typedef struct gki_entry { uint64_t key; uintptr_t value; } gki_entry;         /* key 0: a free place */
typedef struct gki_table { gki_entry *entries; size_t size, count; } gki_table; /* size: 0 or a power of two */

static inline size_t gki_hash(uint64_t key) { return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32); }

/* The entry of a key, or the free place for it. Needs gki_table_grow once before. */
static inline gki_entry *gki_table_find(const gki_table *table, uint64_t key) {
  size_t at = gki_hash(key) & (table->size - 1);
  while (table->entries[at].key && table->entries[at].key != key) at = (at + 1) & (table->size - 1);
  return &table->entries[at];
}

/* Adds a new key; call gki_table_grow before. */
static inline void gki_table_add(gki_table *table, uint64_t key, uintptr_t value) {
  *gki_table_find(table, key) = (gki_entry){key, value};
  ++table->count;
}

/* Makes room for so many more keys. False: out of memory, and gk_fail has been called with `what`. */
static inline bool gki_table_grow(gki_table *table, size_t more, const char *what) {
  if (2 * (table->count + more) <= table->size) return true;
  gki_table grown = {.size = 16};
  while (grown.size < 2 * (table->count + more)) grown.size *= 2;
  grown.entries = gki_array(grown.size, sizeof *grown.entries, what);
  if (!grown.entries) return false;
  for (size_t k = 0; k < table->size; ++k)
    if (table->entries[k].key) gki_table_add(&grown, table->entries[k].key, table->entries[k].value);
  gk_host_free(table->entries);
  *table = grown;
  return true;
}
#endif
