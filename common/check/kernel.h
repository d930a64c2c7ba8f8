/* Kernels by themselves. */
#ifndef GKI_CHECK_KERNEL_H
#define GKI_CHECK_KERNEL_H
#include "check/report.h"

/* A kernel by itself, and whether it has code for the backend at hand. */
void gki_check_kernel(gki_checker *judge, const gk_kernel *kernel);

/* What the backend at hand runs of a kernel in place of portable text; NULL: nothing, or no backend is at hand. */
const gk_code *gki_check_handwritten(const gki_checker *judge, const gk_kernel *kernel);
#endif
