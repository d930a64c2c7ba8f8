/* gk's own kernels: control kernels, prologue and epilogue of a launch, those in callers' graphs, COPY and FILL, and
 * those of the probe. The functions that they call are in gates_walk.inc and gates_points.inc. nvcc and NVRTC compile
 * this file; so does any C compiler, after a preamble that defines CUDA's words.
 *
 * One thread of one block walks a chain of points and writes every handle, because calls that set handles must not run
 * at the same time. Volatile loads read memory that other kernels of the graph or the host write; tables are read
 * through the read-only path. Loads take most of a chain's time, so independent loads are kept together. */
#include "gates.h"
#include "lower/device.h"

#ifdef __CUDACC_RTC__ /* nvcc's headers declare it */
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
#endif

#include "gates_walk.inc"
#include "gates_points.inc"

/* ---- control, prologue, epilogue --------------------------------------------------------------------------------- */

GKI_ENTRY gki_control_plain(const gki_cuda_tables *t, uint32_t point, uint32_t guard) {
  if (threadIdx.x == 0) gki_walk_plain_chain(t, point, guard);
}

GKI_ENTRY gki_control(const gki_cuda_tables *t, uint32_t point, uint32_t guard) {
  if (threadIdx.x == 0) gki_walk_chain(t, point, guard);
}

GKI_ENTRY gki_prologue(const gki_cuda_tables *t, uint32_t point, uint32_t target) {
  if (threadIdx.x != 0) return;
  if (target == GKI_CUDA_COPIED) target = GKI_LOOK(uint32_t, &((gki_cuda_control *)t->control)->target_sent);
  if (target == GKI_CUDA_NONE) {
    if (point != GKI_CUDA_NONE) gki_walk_chain(t, point, GKI_CUDA_NONE);
    return;
  }
  gki_walk w = gki_begin_walk(t, t);
  w.control->target = w.target = target;
  w.control->reopens = w.number;
  gki_set_target(w, target, 0);
}

/* 8 bytes of 1 or 0. For loops: it hit its bound. For checkpoints, which follow: it ran. */
GKI_INLINE uint64_t gki_eight_bytes(const gki_cuda_tables *t, uint64_t number, uint32_t first) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < 8; ++k) {
    const uint32_t at = first + k;
    uint64_t last = 0;
    if (at < t->loop_count) last = ((const gki_cuda_loop *)t->loops)[at].limited;
    else if (at - t->loop_count < t->checkpoint_count) last = ((const uint64_t *)t->ran)[at - t->loop_count];
    bytes |= (uint64_t)(last == number) << 8 * k;
  }
  return bytes;
}

/* Word k of the status, behind its number. Threads side by side write words side by side. */
GKI_INLINE uint64_t gki_status_word(const gki_cuda_tables *t, const gki_cuda_control *control, uint64_t number,
                                    uint32_t k) {
  if (k == 0) {
    if (control->stopped != number) return GKI_CUDA_FINISHED;
    const uint64_t at = control->stopped_at;
    return at == GKI_CUDA_NONE ? GKI_CUDA_CANCELLED : GKI_CUDA_YIELDED | at << 32;
  }
  if (k == 1) return control->limited == number ? control->limit : 0;
  if (k - 2 < t->loop_count) {
    const gki_cuda_loop *const r = (const gki_cuda_loop *)t->loops + (k - 2);
    return r->launch == number ? r->passes : 0;
  }
  return gki_eight_bytes(t, number, (k - 2 - t->loop_count) * 8);
}

GKI_ENTRY gki_epilogue(const gki_cuda_tables *t) {
  gki_cuda_control *const control = (gki_cuda_control *)t->control;
  const uint64_t number = GKI_LOOK(uint64_t, &control->number);
  const uint64_t posts_as = t->bits & GKI_CUDA_WITH_ARMING ? GKI_LOOK(uint64_t, &control->posts_as) : number;
  uint64_t *const status = (uint64_t *)(t->status + (posts_as - 1) % GKI_LAUNCH_RING * t->status_bytes);
  const uint32_t count = posts_as ? 2 + t->loop_count + (t->loop_count + t->checkpoint_count + 7) / 8 : 0;
  GKI_SMALL
  for (uint32_t k = threadIdx.x; k < count; k += blockDim.x) status[1 + k] = gki_status_word(t, control, number, k);
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system(); /* for the writes of all threads before the barrier */
  if (posts_as) *(volatile uint64_t *)status = posts_as;
  if (control->target == GKI_CUDA_NONE) control->fresh = number;
  control->target = GKI_CUDA_NONE;
  control->number = number + 1;
}

/* ---- in graphs of callers ---------------------------------------------------------------------------------------- */

/* The first node of a list. A launch without its own arming repeats the launch before, and posts no status. */
GKI_ENTRY gki_arm(const gki_cuda_arming a) {
  gki_cuda_control *const control = (gki_cuda_control *)a.control;
  const int is_new = GKI_LOOK(uint64_t, &control->armed) != a.number;
  __syncthreads(); /* every thread has read `armed` */
  const uint32_t lines = is_new ? a.bytes / 16 : 0;
  GKI_SMALL
  for (uint32_t k = threadIdx.x; k < lines; k += blockDim.x) ((uint4 *)a.to)[k] = ((const uint4 *)a.from)[k];
  if (threadIdx.x != 0) return;
  control->armed = a.number;
  control->posts_as = is_new ? a.number : 0;
  control->target_sent = a.target;
}

GKI_ENTRY gki_enter(const int32_t *flag, uint32_t *count, uint64_t handle, uint64_t other, uint32_t has_other) {
  if (threadIdx.x != 0) return;
  const uint32_t enters = !flag || GKI_LOOK(int32_t, flag) != 0;
  if (count) *count = 0;
  cudaGraphSetConditional(handle, enters);
  if (has_other) cudaGraphSetConditional(other, !enters);
}

GKI_ENTRY gki_repeat(const int32_t *flag, uint32_t *count, uint64_t handle, uint32_t bound) {
  if (threadIdx.x != 0) return;
  const uint32_t passes = bound ? *count + 1 : 0;
  const uint32_t again = GKI_LOOK(int32_t, flag) != 0 && (!bound || passes < bound);
  if (bound) *count = passes;
  cudaGraphSetConditional(handle, again);
}

#include "lower/transfer.inc"
#ifdef __cplusplus
#include "lower/ahead.inc"
#endif

/* ---- for the probe ----------------------------------------------------------------------------------------------- */

GKI_ENTRY gki_set_list(uint32_t *runs, uint32_t period, const gki_cuda_setting *list, uint32_t count) {
  if (threadIdx.x != 0) return;
  const uint32_t before = GKI_LOOK(uint32_t, runs), run = period ? before % period : before;
  *(volatile uint32_t *)runs = before + 1;
  GKI_SMALL
  for (uint32_t k = 0; k < count; ++k)
    if (list[k].run == run || list[k].run == GKI_CUDA_NONE) cudaGraphSetConditional(list[k].handle, list[k].value);
}

GKI_ENTRY gki_set_beside(uint32_t *at, uint64_t handle, uint32_t value, uint32_t times) {
  if (threadIdx.x != 0) return;
  atomicAdd(&at[0], 1);
  GKI_SMALL
  for (int k = 0; k < 50 && GKI_LOOK(uint32_t, &at[0]) - GKI_LOOK(uint32_t, &at[1]) < 2; ++k) {} /* until two run */
  GKI_SMALL
  for (uint32_t k = times; k-- > 0;) cudaGraphSetConditional(handle, value ^ (k & 1));
  __threadfence();
  if (GKI_LOOK(uint32_t, &at[0]) - GKI_LOOK(uint32_t, &at[1]) > 1) atomicAdd(&at[2], 1);
  atomicAdd(&at[1], 1);
}
