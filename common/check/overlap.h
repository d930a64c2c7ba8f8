/* Two slots bound to the same memory. */
#ifndef GKI_CHECK_OVERLAP_H
#define GKI_CHECK_OVERLAP_H
#include "gk_backend.h"

/* For two slots of a plan bound to overlapping memory: whether the plan forbids it, and the reason, naming the tasks.
 * Forbidden are a task that writes through one slot and reads or writes through the other, and two sections of one
 * PARALLEL that use the two slots if one of them writes. Allowed is memory that is changed by atomics only (in
 * sections: or by sums only). Scans the plan; allocates nothing. */
bool gki_check_overlap(const gk_plan *plan, uint32_t slot_a, uint32_t slot_b, char *message, size_t bytes);
#endif
