/* The check of a kernel. */
#ifndef GKI_CHECK_KERNEL_H
#define GKI_CHECK_KERNEL_H
#include "check/report.h"

/* Checks a kernel, and whether it has code for the checker's backend. */
void gki_check_kernel(gki_checker *c, const gk_kernel *kernel);
#endif
