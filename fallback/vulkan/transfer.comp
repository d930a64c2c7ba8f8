/* COPY, or FILL with GKI_FILL, behind gk_kernel.h's part for GLSL. A range is taken apart like that of
 * common/lower/transfer.inc, with words of 16, 4 or 1 bytes. Mesa before 23 ends a shader's loops after 65,536 passes,
 * so an overlapping copy has several words per item and pass. */
#extension GL_EXT_shader_8bit_storage : require

layout(buffer_reference, scalar, buffer_reference_align = 1) buffer gki_bytes { uint8_t at; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer gki_uint { uint at; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer gki_line { uvec4 at; };
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer gki_transfer {
  uint count, element, pattern, node;
  uint64_t to, from, count_at, to_room, from_room, reserved;
};
layout(push_constant, scalar) uniform gki_push { gki_transfer record; uvec2 guard; gki_control control; } gki;

/* As gki_load_transfer. */
uint64_t gki_find_bytes() {
  if (!gki_is_unchecked && gki_is_skipped(gki.guard, gki.control)) return 0ul;
  const uint known = gki.record.count;
  const uint64_t element = uint64_t(gki.record.element);
  if (gki_is_unchecked || known < GKI_UNCOUNTED) return uint64_t(known) * element;
  const int count = (known & 1u) != 0u ? gki_int(gki.record.count_at).at : 0;
  const uint64_t all = count > 0 ? uint64_t(count) * element : 0ul;
  const bool fits = all <= gki.record.to_room && all <= gki.record.from_room;
  if (known == GKI_UNCOUNTED || !fits) {
    uvec2 extents[3] = uvec2[3](uvec2(uint(count), count < 0 ? ~0u : 0u), uvec2(1u, 0u), uvec2(1u, 0u));
    gki_post_bad_count(gki.control, gki.record.node, extents);
  }
  return fits ? all : 0ul;
}

uint64_t gki_first() { return uint64_t(gl_GlobalInvocationID.x); }
uint64_t gki_stride() { return uint64_t(gl_NumWorkGroups.x) * uint64_t(gl_WorkGroupSize.x); }

#ifdef GKI_FILL
void gki_fill_bytes(uint64_t to, uint64_t count, uint pattern) {
  for (uint64_t k = gki_first(); k < count; k += gki_stride())
    gki_bytes(to + k).at = uint8_t(pattern >> (uint(k) & 3u) * 8u & 255u);
}

void main() {
  const uint64_t to = gki.record.to, bytes = gki_find_bytes();
  const uint64_t head = min((0ul - to) & 15ul, bytes), tail = (bytes - head) & 15ul, body = bytes - head - tail;
  const uint turn = uint(head & 3ul) * 8u, pattern = gki.record.pattern;
  const uint turned = turn != 0u ? pattern >> turn | pattern << (32u - turn) : pattern; /* of lines */
  gki_fill_bytes(to, head, pattern);
  gki_fill_bytes(to + head + body, tail, turned);
  for (uint64_t k = gki_first(); k < body / 16ul; k += gki_stride()) gki_line(to + head + k * 16ul).at = uvec4(turned);
}
#else
#define EACH 8u

/* `shift`: one workgroup, from the end at which reading comes before writing. */
#define GKI_COPIES(name, type, reference, bytes) \
  void gki_copy_##name(uint64_t to, uint64_t from, uint64_t count) { \
    for (uint64_t k = gki_first(); k < count; k += gki_stride()) \
      reference(to + k * bytes).at = reference(from + k * bytes).at; \
  } \
  void gki_shift_##name(uint64_t to, uint64_t from, uint64_t count) { \
    const uint64_t pass = uint64_t(gl_WorkGroupSize.x * EACH); \
    for (uint64_t begin = 0ul; begin < count; begin += pass) { \
      type kept[EACH]; \
      for (uint e = 0u; e < EACH; ++e) { \
        const uint64_t k = begin + uint64_t(gl_LocalInvocationID.x + e * gl_WorkGroupSize.x); \
        if (k < count) kept[e] = reference(from + (to < from ? k : count - 1ul - k) * bytes).at; \
      } \
      memoryBarrierBuffer(); \
      barrier(); \
      for (uint e = 0u; e < EACH; ++e) { \
        const uint64_t k = begin + uint64_t(gl_LocalInvocationID.x + e * gl_WorkGroupSize.x); \
        if (k < count) reference(to + (to < from ? k : count - 1ul - k) * bytes).at = kept[e]; \
      } \
      memoryBarrierBuffer(); \
      barrier(); \
    } \
  }
GKI_COPIES(bytes, uint8_t, gki_bytes, 1ul)
GKI_COPIES(words, uint, gki_uint, 4ul)
GKI_COPIES(lines, uvec4, gki_line, 16ul)

/* For ranges that overlap: the result is as if all were read first. */
void gki_shift(uint64_t to, uint64_t from, uint64_t bytes) {
  const uint64_t all = to | from | bytes;
  if ((all & 15ul) == 0ul) gki_shift_lines(to, from, bytes / 16ul);
  else if ((all & 3ul) == 0ul) gki_shift_words(to, from, bytes / 4ul);
  else gki_shift_bytes(to, from, bytes);
}

void main() {
  const uint64_t to = gki.record.to, from = gki.record.from, bytes = gki_find_bytes();
  if (bytes == 0ul || to == from) return;
  if ((to < from ? from - to : to - from) < bytes) {
    if (gl_WorkGroupID.x == 0u) gki_shift(to, from, bytes);
    return;
  }
  const uint64_t apart = to ^ from;
  const uint64_t width = (apart & 15ul) == 0ul ? 16ul : (apart & 3ul) == 0ul ? 4ul : 1ul;
  const uint64_t head = min((0ul - to) & (width - 1ul), bytes), tail = (bytes - head) % width;
  const uint64_t body = bytes - head - tail;
  gki_copy_bytes(to, from, head);
  gki_copy_bytes(to + head + body, from + head + body, tail);
  if (width == 16ul) gki_copy_lines(to + head, from + head, body / 16ul);
  else if (width == 4ul) gki_copy_words(to + head, from + head, body / 4ul);
  else gki_copy_bytes(to, from, body);
}
#endif
