/* The work of gk_bind and its kin, and the names of slots. */
#include "composed.h"
#include <stdlib.h>
#include <string.h>

size_t reference_slot_count(const reference *r) { return r->place_count; }
const reference_slot *reference_slot_at(const reference *r, size_t index) { return &r->places[index].shown; }

size_t reference_find(const reference *r, gk_slot slot) {
  for (size_t k = 0; k < r->own_count; ++k)
    if (r->places[k].shown.desc->slot == slot) return k;
  return NONE;
}

size_t reference_find_name(const reference *r, const char *name) {
  for (size_t k = 0; k < r->place_count; ++k)
    if (strcmp(r->places[k].name, name) == 0) return k;
  return NONE;
}

void reference_bind(reference *r, size_t index, void *memory, size_t bytes) {
  reference_slot *slot = &r->places[index].shown;
  slot->value.ptr = memory;
  slot->bytes = bytes;
  slot->owned = false;
}

void reference_bind_value(reference *r, size_t index, gk_value number) { r->places[index].shown.value = number; }
void reference_bind_bytes(reference *r, size_t index, const void *value) {
  memcpy(r->places[index].memory, value, r->places[index].shown.desc->element_bytes);
}

bool reference_resize(reference *r, size_t index, size_t count) {
  place *p = &r->places[index];
  size_t unit = p->shown.desc->element_bytes ? p->shown.desc->element_bytes : 1;
  if (!p->memory || p->count != count) {
    char *memory = calloc(count ? count : 1, unit);
    if (!memory) return false;
    if (p->memory) memcpy(memory, p->memory, (p->count < count ? p->count : count) * unit);
    free(p->memory);
    p->memory = memory;
    p->count = count;
  }
  reference_bind(r, index, p->memory, count * unit);
  p->shown.owned = true;
  return true;
}
