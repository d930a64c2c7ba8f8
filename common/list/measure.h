/* The first pass over a list: its size as composed, and whether it can be read at all. Each list is measured once,
 * however often it is included. So a list that grows exponentially is refused before anything is written out. */
#ifndef GKI_LIST_MEASURE_H
#define GKI_LIST_MEASURE_H
#include "list/lines.h"

typedef struct gki_measure {
  const gk_list *list;
  uint64_t lines, inclusions, slots; /* of the composed list, itself an inclusion; at most LIMIT (measure.c) */
  uint64_t places, text;             /* in slot_map; bytes of slots' names */
  uint32_t *ranks;
  uint32_t slot_max, height;
  uint32_t first; /* its first inclusion */
  bool open; /* it is being measured: another mention means that the list includes itself */
} gki_measure;

typedef struct gki_measures {
  gki_measure *all; /* [0]: the user's list */
  size_t count, capacity;
  gki_table places; /* in all, by the list's address */
} gki_measures;

/* Measures a list with all that it includes; `measures` is all zero before. Fails as gki_blocks_read does. */
gk_result gki_measure_list(gki_measures *measures, gki_blocks *blocks, const gk_list *list);
void gki_measures_free(gki_measures *measures);

/* The key in gki_blocks.constants of what stands for a constant in a list; 0: it is none. */
static inline uint64_t gki_constant_key(gk_type type, gk_slot items) {
  const bool is_number = type == GK_I32 || type == GK_U32 || type == GK_I64;
  return is_number && items < 0 && items > INT32_MIN ? (uint64_t)type << 32 | (uint32_t)-items : 0;
}

/* The measure of a list that was measured. */
gki_measure *gki_measure_of(const gki_measures *measures, const gk_list *list);

/* What the names of an included list's slots begin with. */
const char *gki_inclusion_prefix(const gk_task *at);

/* Whether a list can't be read; then the problem, and its sentence. */
bool gki_list_is_broken(const gk_list *list, gki_problem *problem, char *text, size_t bytes);
#endif
