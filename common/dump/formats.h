/* Functions and types for the three formats of a plan. */
#ifndef GKI_DUMP_FORMATS_H
#define GKI_DUMP_FORMATS_H
#include "base/text.h"
#include "plan/plan.h"

/* Ways to lower a plan for a device that decides by itself: the usual way; gk's way for launches from the top and from
 * anywhere, with everything that a device can do for it, and (plain) with little; the first of these without SWITCH
 * nodes. */
typedef enum gki_lowering {
  GKI_USUAL, GKI_FRESH, GKI_RESUME, GKI_PLAIN_FRESH, GKI_PLAIN_RESUME, GKI_IFS_FRESH, GKI_IFS_RESUME, GKI_LOWERINGS,
} gki_lowering;

typedef struct gki_gate_count { uint32_t control, conditional; } gki_gate_count; /* kernels; nodes */

/* The nodes that a launch without a stop executes, all cases of a branch counted: [0] outside of loops, [1 + k] in
 * `passes` passes of the plan's loop k, outside of its inner loops. */
typedef struct gki_gate_counts {
  gki_arena arena; /* holds everything below */
  uint32_t row_count;
  uint32_t *passes; /* as often as the loop's body stands in the graph, else 1 */
  uint32_t *tasks;
  gki_gate_count *rows[GKI_LOWERINGS];
} gki_gate_counts;

/* Fails with GK_ERROR_MEMORY only; the arena is to be freed in any case. */
gk_result gki_dump_count(const gk_plan *plan, gki_gate_counts *counts);
gki_gate_count gki_dump_total(const gki_gate_counts *counts, gki_lowering how);

void gki_dump_text(gki_text *text, const gk_plan *plan, const gki_gate_counts *gates);
void gki_dump_dot(gki_text *text, const gk_plan *plan);
void gki_dump_json(gki_text *text, const gk_plan *plan, const gki_gate_counts *gates);

/* "f32"; never NULL. */
const char *gki_dump_type(gk_type type);

/* A slot's name, with a byte offset if there is one: "STATE+8". */
void gki_dump_slot(gki_text *text, const gk_plan *plan, uint32_t slot, uint32_t offset, gki_quoting how);

/* " over N x M (y, x, a)", or nothing if a node has neither. */
void gki_dump_work(gki_text *text, const gk_plan *plan, const gk_node *node, gki_quoting how);
#endif
