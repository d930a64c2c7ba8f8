/* The check of a line. */
#ifndef GKI_CHECK_TASK_H
#define GKI_CHECK_TASK_H
#include "check/report.h"

/* Checks the fields of a line of any kind: kernel, arguments, items, flag, and that no other field is set. */
void gki_check_task(gki_checker *c, const gk_task *task);
#endif
