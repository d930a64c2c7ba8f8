/* Stage 3: a list that passed the check becomes a tree in one arena. */
#ifndef GKI_PLAN_PLAN_H
#define GKI_PLAN_PLAN_H
#include "list/blocks.h"

typedef struct gki_planned {
  gki_arena arena; /* holds everything that the plan points to, except kernels */
  gk_plan plan;
} gki_planned;

/* backend: the plan is for this one; NULL: for any. bits: of gk_graph_create. Fails with GK_ERROR_MEMORY only. Copies
 * names, so the list may be freed. */
gk_result gki_plan_make(gki_planned *planned, const gki_blocks *blocks, const gk_backend *backend, uint32_t bits);
void gki_plan_free(gki_planned *planned);

/* The node of the checkpoint with that label; 0: none. */
uint32_t gki_plan_label(const gk_plan *plan, int32_t label);

/* Refuses a plan with a CALL_HOST, for a device that decides without the host; its backend is named. */
gk_result gki_plan_refuse_host(const gk_plan *plan, const char *backend);

/* A node's name in a message: "task 7 (scale)", "task 3 (DO_WHILE MORE)". @return text */
enum { GKI_TITLE_BYTES = 160, GKI_RUN_TITLE_BYTES = 600, GKI_WAIT_TITLE_BYTES = 1000 };
const char *gki_node_title(const gk_node *node, char *text, size_t bytes);
/* A run's tasks in a message: "task 3 (a)", "tasks 3 (a) to 5 (b)". @return text */
const char *gki_run_title(const gk_plan *plan, uint32_t run, char text[GKI_RUN_TITLE_BYTES]);
/* Says what a failed wait was for. run: enqueued last, and with GK_ISOLATE alone; GK_NONE: none was. @return text */
const char *gki_wait_title(const gk_plan *plan, uint32_t run, char text[GKI_WAIT_TITLE_BYTES]);
#endif
