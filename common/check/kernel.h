/* Kernels alone. */
#ifndef GKI_CHECK_KERNEL_H
#define GKI_CHECK_KERNEL_H
#include "check/report.h"

/* Checks a kernel alone, and whether it has code for the backend at hand. */
void gki_check_kernel(gki_checker *c, const gk_kernel *kernel);
#endif
