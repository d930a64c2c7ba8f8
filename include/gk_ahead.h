/** @file gk_ahead.h
 * For authors of backends whose devices have no conditional nodes, such as those of HIP and Vulkan. Common turns a plan
 * into a table of points. A small control kernel behind each run walks from point to point to the next run, so the host
 * enqueues many runs ahead and reads the state back once. Programs and backends of other kinds don't need this header.
 *
 * The table and the state are arrays of words of 32 bits. common/plan/walk.inc in gk's sources defines these words and
 * the walk, and compiles as C, CUDA, HIP and GLSL. gk_walk_text returns the same text without comments.
 * A YIELD is a point with a flag that is never 0. Its slot is gk_plan.slot_count, one behind the last: there the table
 * of slots needs the address of a word that isn't 0. The slot behind that one needs the address of numbers of 64 bits,
 * by slot: there the point in front of a REPEAT reads its count if a number's slot holds it.
 * A backend calls gk_plan_points, gk_points_step, gk_points_pass and gk_walk_text; common calls the other functions.
 * \sa gk_walk_start: the same contract, with a round trip for each decision. \since 0.2.0 */
#ifndef GK_AHEAD_H
#define GK_AHEAD_H

#include "gk_backend.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** The points of a plan. Indices of points are those of their first word in the table. */
typedef struct gk_points {
  const gk_plan *plan;      /**< Their plan, which must outlive them. */
  const uint32_t *table;    /**< The table, constant. */
  uint32_t word_count;      /**< Length of table. */
  uint32_t state_count;     /**< Number of words of the state. */
  uint32_t lane_count;      /**< Number of lanes: one for the list, and one per section outside runs. */
  const uint32_t *runs;     /**< By run of the plan: its point. */
  const uint32_t *targets;  /**< By checkpoint: the first point in its block; YIELD: the point behind it. In
                             * front of that, a point for each REPEAT around it. */
  const uint32_t *loops;    /**< By loop: its PASS_END. */
  uint32_t first;           /**< The point at which a launch from the top begins. */
  uint32_t end;             /**< The point at the list's end. */
  uint32_t loops_at;        /**< Index of the first loop's words in the state. */
  uint32_t checkpoints_at;  /**< Index of the first checkpoint's word in the state: 1 if it ran. */
} gk_points;

/** Bit of a tape's entry (gk_backend.ahead): this run and the one before it may be on the device together. */
#define GK_AHEAD_BESIDE 0x80000000u

/** Makes the points of a plan, in time and memory linear in its size. Needs no device. Thread-safe.
 * @param plan    Constant; must outlive the points.
 * @param points  The caller frees them by gk_points_free.
 * @return GK_OK; GK_ERROR_MEMORY. */
gk_result gk_points_make(const gk_plan *plan, const gk_points **points);

/** Frees points of gk_points_make. NULL is allowed. */
void gk_points_free(const gk_points *points);

/** For gk_backend.lower: the points of the plan that it lowers, made at the first call. They live as long as the plan,
 * and gk_plan.points is set. One thread at a time.
 * @param points  May be NULL.
 * @return GK_OK; GK_ERROR_MEMORY. */
gk_result gk_plan_points(const gk_plan *plan, const gk_points **points);

/** Makes the words from which the walk's gkw_step decides behind a run, without the table. Thread-safe.
 * @param run    Of the plan.
 * @param words  Receives 17 words (GKW_STEP_WORDS in walk.inc).
 * @return Whether a single decision leads to the next run or the list's end. If not, a control kernel has to walk, and
 *         `words` has nothing of use. */
bool gk_points_step(const gk_points *points, uint32_t run, uint32_t *words);

/** The text of the walk, common/plan/walk.inc, without comments. Define its macros in front of it. Constant. */
const char *gk_walk_text(void);

/** Writes the state with which a launch begins.
 * @param state  Of points->state_count words. */
void gk_points_start(const gk_points *points, const gk_launch_args *launch, uint32_t *state);

/** For gk_backend.pass: the index in the state of the word that is the pass number of the loop at `node`. */
uint32_t gk_points_pass(const gk_points *points, uint32_t node);

/** Whether a launch in this state is over. */
bool gk_points_over(const gk_points *points, const uint32_t *state);

/** Adds a state to a launch's result, and writes launch->entries.
 * @param before  Per loop: passes in the state that was added last, at first 0. This call brings them up to date. */
void gk_points_add(const gk_points *points, const uint32_t *state, uint32_t *before, const gk_launch_args *launch,
                   gk_launch_result *result);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
