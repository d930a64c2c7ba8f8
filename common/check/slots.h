/* The table of slots of a list. */
#ifndef GKI_CHECK_SLOTS_H
#define GKI_CHECK_SLOTS_H
#include "check/report.h"

/* Checks the table of an inclusion's list. */
gk_result gki_check_slots(gki_checker *c, uint32_t inclusion);

/* Checks how the line being checked uses pass numbers. */
void gki_check_passes(gki_checker *c, const gk_task *task);
#endif
