/* A line by itself. */
#ifndef GKI_CHECK_TASK_H
#define GKI_CHECK_TASK_H
#include "check/report.h"

/* What a line of any kind takes: kernel, arguments, items, flag, and nothing else. */
void gki_check_task(gki_checker *judge, const gk_task *task);
#endif
