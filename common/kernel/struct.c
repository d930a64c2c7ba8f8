/* The layout of a struct in memory in C and GLSL, and the differences. */
#include "kernel/struct.h"
#include <string.h>

/* A struct has an unknown size if its size is beyond this or an array length isn't a plain number. */
static const uint64_t largest = UINT64_C(1) << 32;

const gki_struct *gki_find_struct(const gki_structs *structs, gki_token name) {
  size_t size = (size_t)(name.end - name.at);
  for (size_t k = 0; k < structs->count; ++k) {
    const gki_struct *one = &structs->at[k];
    if ((size_t)(one->name.end - one->name.at) == size && memcmp(one->name.at, name.at, size) == 0) return one;
  }
  return NULL;
}

gki_struct gki_layout_of(const gki_structs *structs, gki_token name) {
  const gki_struct *found = gki_find_struct(structs, name);
  if (found) return *found;
  uint64_t bytes = gki_token_in(name, " int uint float int32_t uint32_t ") ? 4 : 8;
  bool known = bytes == 4 || gki_token_in(name, " double int64_t ");
  return (gki_struct){.name = name, .bytes = bytes, .alignment = bytes, .used = bytes, .known = known};
}

/* The product of all [lengths] behind a member's name; 0: there is none; UINT64_MAX: unknown. */
static uint64_t lengths(const char **s, const char *end) {
  uint64_t product = 0;
  for (gki_token token; token = gki_next_token(*s, end), gki_token_is(token, "[");) {
    gki_token number = gki_next_token(token.end, end), close = gki_next_token(number.end, end);
    uint64_t value = 0;
    for (const char *digit = number.at; digit < number.end && value < largest; ++digit)
      value = *digit >= '0' && *digit <= '9' ? value * 10 + (uint64_t)(*digit - '0') : largest;
    bool plain = number.kind == GKI_NUMBER && *number.at != '0' && gki_token_is(close, "]");
    product = !plain || value >= largest || product >= largest ? UINT64_MAX : product ? product * value : value;
    *s = gki_group_end(token.at, end);
  }
  return product < largest ? product : UINT64_MAX;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* `glsl_used` is the end of the members so far in GLSL. The end in C is in `to`. */
static void add_member(gki_struct *to, gki_struct type, const char *at, uint64_t count, uint64_t *glsl_used) {
  uint64_t offset = round_up(to->used, type.alignment), glsl_offset = round_up(*glsl_used, type.alignment);
  if (!type.known || count == UINT64_MAX) to->known = false;
  if (type.alignment > to->alignment) to->alignment = type.alignment;
  if (!to->known) return;
  if (!to->split) to->split = type.split ? type.split : offset != glsl_offset ? at : NULL;
  uint64_t before_last = (count ? count - 1 : 0) * type.bytes;
  to->used = offset + before_last + type.bytes;
  *glsl_used = glsl_offset + before_last + type.used;
  if (to->used >= largest) to->known = false;
}

bool gki_read_struct(gki_structs *structs, const char *s, const char *end) {
  gki_token open = gki_next_token(s, end), name = gki_next_token(open.end, end), close = gki_next_token(name.end, end);
  gki_token brace = gki_next_token(close.end, end);
  if (name.kind != GKI_WORD || !gki_token_is(close, ")") || !gki_token_is(brace, "{")) return true;
  gki_struct one = {.name = name, .alignment = 1, .known = true};
  uint64_t glsl_used = 0;
  end = gki_group_end(brace.at, end);
  gki_token token = gki_next_token(brace.end, end);
  while (token.kind == GKI_WORD) {
    gki_struct type = gki_layout_of(structs, token);
    do {
      token = gki_next_token(token.end, end);
      s = token.end;
      uint64_t count = lengths(&s, end);
      add_member(&one, type, token.at, count, &glsl_used);
      token = gki_next_token(s, end);
    } while (gki_token_is(token, ","));
    if (!gki_token_is(token, ";")) break;
    token = gki_next_token(token.end, end);
  }
  if (!gki_token_is(token, "}")) one.known = false;
  one.bytes = round_up(one.used, one.alignment);
  one.used = glsl_used;
  void *at = structs->at;
  bool grown = gki_grow(&at, &structs->capacity, structs->count + 1, sizeof *structs->at, "the structs of a kernel");
  structs->at = at;
  if (grown) structs->at[structs->count++] = one;
  return grown;
}
