/* Warnings: lists that work, but probably not as intended. */
#ifndef GKI_CHECK_WARN_H
#define GKI_CHECK_WARN_H
#include "check/report.h"

/* For a list without problems. Allocates only if the warnings are wanted. @return GK_OK or GK_ERROR_MEMORY. */
gk_result gki_check_warn(gki_checker *c);
#endif
