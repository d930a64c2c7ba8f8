/* A plan in writing. */
#ifndef GKI_DUMP_DUMP_H
#define GKI_DUMP_DUMP_H
#include "plan/plan.h"

/* As "text", "dot" or "json"; NULL: gk_fail has been called. Freed by gk_host_free. */
char *gki_plan_dump(const gk_plan *plan, const char *format);
#endif
