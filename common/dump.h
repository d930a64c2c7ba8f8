/* What the three ways to write a plan share; the way in is gki_plan_dump (plan.h). */
#ifndef GKI_DUMP_H
#define GKI_DUMP_H
#include "plan.h"
#include "text.h"

/* What the plan's gates take on a device that decides by itself, counted in the graph; the usual lowering's beside. */
typedef struct gki_gate_count { uint32_t control, conditional, usual_control, usual_conditional; } gki_gate_count;
typedef struct gki_gate_counts { gki_gate_count fresh, resume; } gki_gate_counts; /* from the top; from anywhere */

void gki_dump_text(gki_text *text, const gk_plan *plan, const gki_gate_counts *gates);
void gki_dump_dot(gki_text *text, const gk_plan *plan);
void gki_dump_json(gki_text *text, const gk_plan *plan, const gki_gate_counts *gates);

/* "f32"; never NULL. */
const char *gki_dump_type(gk_type type);

/* A slot by its name, and a byte offset where there is one: "STATE+8". */
void gki_dump_slot(gki_text *text, const gk_plan *plan, uint32_t slot, uint32_t offset, gki_quoting how);

/* " over N x M (y, x, a)", or nothing where a node has neither. */
void gki_dump_work(gki_text *text, const gk_plan *plan, const gk_node *node, gki_quoting how);
#endif
