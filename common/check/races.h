/* Sections of a PARALLEL that touch the same memory. */
#ifndef GKI_CHECK_RACES_H
#define GKI_CHECK_RACES_H
#include "list/touches.h"

/* Follows a list in its order and finds the memory that two sections of one PARALLEL touch. There is one state per open
 * PARALLEL and slot touched in it. The states of a slot are linked, the innermost PARALLEL's first. The states of a
 * PARALLEL are linked, too, to be dropped with it. So a touch costs as much as there are enclosing PARALLELs; a
 * repeated touch costs less. */
typedef struct gki_race_state {
  uint32_t below; /* the same slot's state of the enclosing PARALLEL, from 1 */
  uint32_t next;  /* in its level's list, or among the unused, from 1 */
  uint32_t slot;
  uint32_t first, first_section; /* the task that touched it first, and its section */
  uint32_t mixed;                /* the first task in that section that touched it in another way; GK_NONE: none */
  uint32_t other;                /* the first task of another section; GK_NONE: none */
  uint32_t section;              /* of the last touch */
  uint8_t kinds;                 /* of touches in that section, as bits */
  uint8_t first_kind, mixed_kind;
  bool reported;
} gki_race_state;
typedef struct gki_races {
  uint32_t *tops; /* per slot its innermost state, from 1 */
  gki_race_state *states;
  size_t capacity, count;
  uint32_t unused; /* states to be used again, from 1 */
  uint32_t depth;  /* PARALLELs that are open; those beyond GK_MAX_DEPTH aren't followed */
  struct { uint32_t states, section, line; } levels[GK_MAX_DEPTH];
} gki_races;

/* A clash: the earlier task, and the PARALLEL in whose sections both are. */
typedef struct gki_clash {
  uint32_t task, parallel;
  gki_touch_kind kind;
} gki_clash;

void gki_races_enter(gki_races *races, uint32_t parallel);
void gki_races_section(gki_races *races, uint32_t section);
void gki_races_leave(gki_races *races);

/* Task `task` touches a slot. Each PARALLEL's clash over a slot is reported once. false: out of memory, gk_fail has
 * been called. */
bool gki_races_touch(gki_races *races, gki_touch touch, uint32_t task, gki_clash *clashes, uint32_t *clash_count);
void gki_races_free(gki_races *races);
#endif
