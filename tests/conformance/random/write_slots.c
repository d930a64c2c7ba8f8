/* The slots of a list that is being written. */
#include "write.h"
#include <stdio.h>

gk_slot add_slot(writer *w, char kind, gk_slot_desc desc) {
  listing *l = w->l;
  size_t at = l->list.slot_count++;
  desc.slot = (gk_slot)at + 1;
  snprintf(l->slot_names[at], NAME_BYTES, "%s_%c%zu", l->name, kind, at + 1);
  desc.name = l->slot_names[at];
  l->slots[at] = desc;
  return desc.slot;
}
bool has_room(const writer *w) { return w->l->list.slot_count + 8 < MAX_SLOTS; }

gk_slot add_memory(writer *w, char kind, const char *element, uint32_t bytes, size_t count) {
  return add_slot(w, kind, (gk_slot_desc){.type = GK_PTR, .element = element, .element_bytes = bytes, .count = count});
}

gk_slot add_number(writer *w, char kind, gk_type type, int64_t value) {
  return add_slot(w, kind, (gk_slot_desc){.type = type, .bits = GK_HAS_VALUE, .value = number_of(type, value)});
}

/* One of that kind, mostly one that is there already. */
gk_slot some_number(writer *w, char kind, gk_type type, int64_t value, bool same) {
  const listing *l = w->l;
  gk_slot found = 0;
  uint32_t seen = 0;
  for (size_t k = 0; k < l->list.slot_count; ++k) {
    const gk_slot_desc *desc = &l->slots[k];
    if (kind_of(desc->name) != kind || (same && desc->value.i32 != value)) continue;
    if (below(w, ++seen) == 0) found = desc->slot;
  }
  return found && (same || !has_room(w) || !chance(w, 3)) ? found : add_number(w, kind, type, value);
}

gk_slot constant(writer *w, uint32_t value) { return some_number(w, 'K', GK_I32, value, true); }
gk_slot fixed(writer *w, uint32_t n) { return n && chance(w, 2) ? -(gk_slot)n : constant(w, n); } /* of items */
gk_slot add_room(writer *w, gk_slot buffer) {
  return add_slot(w, 'Z', (gk_slot_desc){.type = GK_I32, .bits = GK_IS_ROOM, .value.i32 = buffer});
}
gk_slot identity(writer *w) {
  if (has_room(w) && chance(w, 12)) return add_room(w, w->groups[below(w, w->group_count)].x);
  return some_number(w, 'I', GK_I32, below(w, 100), false);
}
gk_slot count_slot(writer *w) {
  static const gk_type types[] = {GK_I32, GK_I32, GK_U32, GK_I64};
  gk_type type = types[below(w, 4)];
  if (w->s->counts && chance(w, 3)) {
    type = chance(w, 2) ? GK_U32 : GK_I64;
    return some_number(w, 'L', type, kernel_count(below(w, 1u << 20), type), false);
  }
  int value = (int)below(w, 11) - 2;
  if (value > 0 && chance(w, 4)) return -value; /* GK_ITEMS */
  return some_number(w, 'N', type, type == GK_U32 && value < 0 ? 0 : value, false);
}

void add_group(writer *w) {
  bool mine = w->index + 1 == w->s->list_count && chance(w, 3); /* the host brings its memory */
  group *g = &w->groups[w->group_count++];
  g->x = add_memory(w, 'X', "uint", 4, mine ? 0 : DATA);
  g->f = add_memory(w, 'F', "int", 4, mine && chance(w, 2) ? 0 : FLAGS);
  g->s = add_memory(w, 'S', "uint", 4, 2);
  g->h = add_slot(w, 'H', (gk_slot_desc){.type = GK_HOST_PTR});
  g->e = add_memory(w, 'E', "int", 4, 1);
}
