/* What write.c and write_slots.c share: a list that is being written, and its slots. */
#ifndef TESTS_CONFORMANCE_RANDOM_WRITE_H
#define TESTS_CONFORMANCE_RANDOM_WRITE_H
#include "story.h"

enum { MAX_GROUPS = 6 };

typedef struct group { gk_slot x, f, s, h, e; } group;

typedef struct writer {
  story *s;
  listing *l;
  uint64_t random;
  uint32_t budget, index; /* items that may still come; of the list */
  group groups[MAX_GROUPS];
  uint32_t group_count;
  gk_slot a, t, u, v, w;       /* for atomics and sums, in any section */
  gk_slot leave, kept, room;   /* of safe blocks; 0 at first */
  gk_slot door, reached[MAX_GROUPS]; /* of `stay`; of `tell`; 0 at first */
} writer;

/* Where in a list an item stands. */
typedef struct spot {
  uint32_t first, end, shared; /* groups that may be written; one that may be read, or MAX_GROUPS */
  uint32_t depth, tower;       /* levels that are still to be built upon each other */
  bool in_section, in_checkpoint;
  gk_slot pass;                /* the pass number of a loop around; 0: none */
  bool has_few;                /* passes: that number may be a count */
} spot;

static inline uint32_t below(writer *w, uint32_t n) { return pick(&w->random, n); }
static inline bool chance(writer *w, uint32_t n) { return below(w, n) == 0; }

/* Each adds a slot, or finds one that will do. */
gk_slot add_slot(writer *w, char kind, gk_slot_desc desc);
bool has_room(const writer *w);
gk_slot add_memory(writer *w, char kind, const char *element, uint32_t bytes, size_t count);
gk_slot add_number(writer *w, char kind, gk_type type, int64_t value);
gk_slot some_number(writer *w, char kind, gk_type type, int64_t value, bool same);
gk_slot constant(writer *w, uint32_t value);
gk_slot fixed(writer *w, uint32_t n);
gk_slot add_room(writer *w, gk_slot buffer);
gk_slot identity(writer *w);
gk_slot count_slot(writer *w);
void add_group(writer *w);
#endif
