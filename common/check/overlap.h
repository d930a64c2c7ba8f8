/* Two slots that are bound to the same memory. */
#ifndef GKI_CHECK_OVERLAP_H
#define GKI_CHECK_OVERLAP_H
#include "gk_backend.h"

/* Two slots of a plan are bound to memory that overlaps: whether the plan forbids it, and then why, naming the tasks.
 * Forbidden is a task that writes through one of them and reads or writes through the other, and two sections of one
 * PARALLEL of which one does; all by atomics (in sections: or all by sums) is fine. Scans the plan; allocates
 * nothing. */
bool gki_check_overlap(const gk_plan *plan, uint32_t slot_a, uint32_t slot_b, char *message, size_t bytes);
#endif
