/* Stage 2: judging a list. Every problem is reported; nothing here needs a device. */
#ifndef GKI_CHECK_H
#define GKI_CHECK_H
#include "list/blocks.h"

/* Judges blocks that were read. backend: kernels need code for it; NULL: any will do. report may be NULL.
 * Reports in the order of the tasks. GK_ERROR_INVALID: the first problem is the message. */
gk_result gki_check(const gki_blocks *blocks, const gk_backend *backend, gk_report report, void *user);

/* Two slots of a plan are bound to memory that overlaps: whether the plan forbids it, and then why, naming the tasks.
 * Forbidden is a task that writes through one of them and reads or writes through the other, and two sections of one
 * PARALLEL of which one does; all by atomics (in sections: or all by sums) is fine. Scans the plan; allocates
 * nothing. */
bool gki_check_overlap(const gk_plan *plan, uint32_t slot_a, uint32_t slot_b, char *message, size_t bytes);
#endif
