/* The control shader behind runs that are enqueued ahead of the decisions. With GKI_STEPS, the one that takes a single
 * decision, from push constants alone. With GKI_SETS_GRIDS, the shader behind the first, which opens and closes runs by
 * their grids; these are two because one shader with a barrier takes Mesa's lavapipe several times as long to compile
 * and to run. In front are gk_kernel.h's part for GLSL and the constants of the walk (common/plan/walk.inc); the
 * functions of the walk follow. */
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer gki_points { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer gki_cells { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer gki_addresses { uint64_t at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer gki_gates {
  uint node_count, lane_count;
  gki_cells grids; /* a VkDispatchIndirectCommand per node */
  uint at[];       /* by node: its grid's size along x; then by run: its first node and the one behind its last */
};

layout(push_constant, scalar) uniform gki_push {
#ifdef GKI_STEPS /* gki_vulkan_pushed_step */
  layout(offset = 24) gki_cells state; /* behind a gki_task */
  gki_addresses slots;
  gki_int cancelled;
  uint words[17];
#else /* gki_vulkan_control */
  gki_points points;
  gki_cells state;
  gki_addresses slots;
  gki_int cancelled;
  gki_gates gates;
  uint run, walks;
#endif
} gki;

uint gki_flag(uint slot, uint at) { return uint(gki_int(unpackUint2x32(gki.slots.at[slot] + at)).at); }

layout(constant_id = 2) const uint gki_kinds = 0xffffffffu; /* by kind of point; then GKI_VULKAN_ALWAYS and so on */

#define GKW_FN
#define gkw_uint uint
#ifdef GKI_STEPS
#define GKW_STEP(k) gki.words[k]
#else
#define GKW_POINT(i) gki.points.at[i]
#endif
#define GKW_STATE(i) gki.state.at[i]
#define GKW_FLAG(slot, at) gki_flag(slot, at)
#define GKW_HAS(kind) ((gki_kinds >> kind & 1u) != 0u)
#define GKW_HAS_ALWAYS GKW_HAS(13)                              /* GKI_VULKAN_ALWAYS */
#define GKW_HAS_BOUNDS GKW_HAS(14)                              /* GKI_VULKAN_BOUND */
#define GKW_HAS_EVERY GKW_HAS(17)                               /* GKI_VULKAN_EVERY */
#define GKW_CANCELLED() (GKW_HAS(15) && gki.cancelled.at != 0) /* GKI_VULKAN_CANCELS */

uint gkw_end_run(uint run);
void gkw_ran(uint run);
void gkw_walk_from(uint at, uint budget);
void gkw_step();

#ifdef GKI_STEPS
void main() { gkw_step(); }
#elif defined(GKI_SETS_GRIDS)
/* Gives the tasks of a run their grids if it is open, else grids of no groups. */
void gki_set_grids(uint point) {
  const bool is_open = GKW_STATE(GKW_POINT(point + GKW_RECORD) + GKW_TASKS) == GKW_OPEN;
  const uint range = gki.gates.node_count + 2u * GKW_POINT(point + GKW_NODE), end = gki.gates.at[range + 1u];
  for (uint k = gki.gates.at[range] + gl_LocalInvocationID.x; k < end; k += gl_WorkGroupSize.x)
    gki.gates.grids.at[3u * k] = is_open ? gki.gates.at[k] : 0u;
}

/* The run that has ended may be open again, and each lane may wait for another run. */
void main() {
  if (gki.run != GKW_NONE) gki_set_grids(gki.run);
  for (uint lane = 0u; lane < gki.gates.lane_count; ++lane) {
    const uint at = GKW_STATE(GKW_LANES + lane * GKW_LANE_WORDS + GKW_AT);
    if (GKW_POINT(at + GKW_KIND) == GKW_RUN) gki_set_grids(at);
  }
}
#else
void main() {
  if (gki.walks == 0u) gkw_ran(gki.run);
  else gkw_walk_from(gki.run == GKW_NONE ? GKW_NONE : gkw_end_run(gki.run), 1000u);
}
#endif
