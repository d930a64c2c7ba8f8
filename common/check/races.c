/* Finds memory that two sections of one PARALLEL must not both touch, in one pass over the tasks. */
#include "check/races.h"

void gki_races_enter(gki_races *races, uint32_t parallel) {
  if (races->depth < GK_MAX_DEPTH) {
    races->levels[races->depth].states = 0;
    races->levels[races->depth].section = races->levels[races->depth].line = parallel;
  }
  ++races->depth;
}

void gki_races_section(gki_races *races, uint32_t section) {
  if (races->depth && races->depth <= GK_MAX_DEPTH) races->levels[races->depth - 1].section = section;
}

/* The dropped states are the innermost of their slots: states further in were dropped before. */
void gki_races_leave(gki_races *races) {
  if (races->depth-- > GK_MAX_DEPTH) return;
  uint32_t state = races->levels[races->depth].states, next;
  for (; state; state = next) {
    gki_race_state *gone = &races->states[state - 1];
    next = gone->next;
    races->tops[gone->slot] = gone->below;
    gone->next = races->unused;
    races->unused = state;
  }
}

void gki_races_free(gki_races *races) {
  gk_host_free(races->tops);
  gk_host_free(races->states);
  *races = (gki_races){0};
}

/* A touched slot has states in all enclosing PARALLELs; missing states are those of the innermost ones. */
static bool push_state(gki_races *races, gki_touch touch, uint32_t task, uint32_t level) {
  uint32_t state = races->unused;
  if (!state) {
    if (!gki_grow((void **)&races->states, &races->capacity, races->count + 1, sizeof *races->states,
                  "finding races between sections"))
      return false;
    state = (uint32_t)++races->count;
  } else {
    races->unused = races->states[state - 1].next;
  }
  uint32_t section = races->levels[level].section;
  races->states[state - 1] = (gki_race_state){
      .below = races->tops[touch.slot],
      .next = races->levels[level].states,
      .slot = touch.slot,
      .first = task,
      .first_section = section,
      .mixed = GK_NONE,
      .other = GK_NONE,
      .section = section,
      .kinds = (uint8_t)(1u << touch.kind),
      .first_kind = (uint8_t)touch.kind,
  };
  races->tops[touch.slot] = races->levels[level].states = state;
  return true;
}

/* Sections may share a slot if all of them touch it in the same way and none writes. So it is enough to remember the
 * first task that touched it, the first that touched it in another way, and the first of another section. */
static bool clashes_with(gki_race_state *state, gki_touch touch, uint32_t task, uint32_t section, gki_clash *clash) {
  if (state->reported) return false;
  bool same_kind = state->first_kind == touch.kind;
  uint32_t against = GK_NONE;
  uint8_t kind = state->first_kind;
  if (section == state->first_section) {
    if (same_kind) return false;
    against = state->other;
    if (against == GK_NONE && state->mixed == GK_NONE) {
      state->mixed = task;
      state->mixed_kind = (uint8_t)touch.kind;
    }
  } else if (!same_kind || touch.kind == GKI_WRITES) {
    against = state->first;
  } else if (state->mixed != GK_NONE) {
    against = state->mixed;
    kind = state->mixed_kind;
  } else if (state->other == GK_NONE) {
    state->other = task;
  }
  if (against == GK_NONE) return false;
  state->reported = true;
  clash->task = against;
  clash->kind = (gki_touch_kind)kind;
  return true;
}

bool gki_races_touch(gki_races *races, gki_touch touch, uint32_t task, gki_clash *clashes, uint32_t *clash_count) {
  uint32_t depth = races->depth < GK_MAX_DEPTH ? races->depth : GK_MAX_DEPTH, top = races->tops[touch.slot];
  uint32_t known = 0;
  *clash_count = 0;
  for (uint32_t state = top; state; state = races->states[state - 1].below) ++known;
  for (uint32_t state = top, level = known; state; state = races->states[state - 1].below) {
    gki_race_state *at = &races->states[state - 1];
    uint32_t section = races->levels[--level].section;
    if (at->section != section) at->kinds = 0;
    at->section = section;
    if (at->kinds >> touch.kind & 1) break; /* then the states around have it already */
    at->kinds |= (uint8_t)(1u << touch.kind);
    if (!clashes_with(at, touch, task, section, &clashes[*clash_count])) continue;
    clashes[(*clash_count)++].parallel = races->levels[level].line;
  }
  for (; known < depth; ++known)
    if (!push_state(races, touch, task, known)) return false;
  return true;
}
