/* The memory that a task touches, and how. */
#ifndef GKI_LIST_TOUCHES_H
#define GKI_LIST_TOUCHES_H
#include "list/blocks.h"

typedef enum gki_touch_kind { GKI_READS, GKI_WRITES, GKI_SUMS, GKI_ATOMIC } gki_touch_kind;

/* One way in which a task touches memory. */
typedef struct gki_touch {
  uint32_t slot; /* composed */
  gki_touch_kind kind;
} gki_touch;
enum { GKI_MAX_TOUCHES = GK_MAX_ARGS + 4 };

/* "reads" */
const char *gki_touch_name(gki_touch_kind kind);

/* The touches of a line, or of a node: first those of its arguments (of a node, their number is in *args), then those
 * of its items and flag. Slots that aren't memory, or are unknown, are left out. @return their number. */
uint32_t gki_touches_of_line(const gki_blocks *blocks, uint32_t line, gki_touch *touches);
uint32_t gki_touches_of_node(const gk_plan *plan, uint32_t node, uint32_t *args, gki_touch *touches);
#endif
