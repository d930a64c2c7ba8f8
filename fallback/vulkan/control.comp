/* The control shader behind a run that is enqueued ahead of the decisions, behind gk_kernel.h's part for GLSL; the walk
 * (common/plan/walk.inc) and main follow. */
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer gki_block { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer gki_address { uint64_t at; };
layout(push_constant, scalar) uniform gki_push {
  gki_block points, state;
  uint64_t slots;
  gki_int cancelled;
  uint run;
} gki;

uint gki_flag(uint slot, uint at) {
  const uint64_t memory = gki_address(gki.slots + uint64_t(slot) * 8ul).at;
  return uint(gki_int(memory + uint64_t(at)).at);
}

#define GKW_FN
#define gkw_uint uint
#define GKW_POINT(i) gki.points.at[i]
#define GKW_STATE(i) gki.state.at[i]
#define GKW_FLAG(slot, at) gki_flag(slot, at)
#define GKW_CANCELLED() (gki.cancelled.at != 0)
