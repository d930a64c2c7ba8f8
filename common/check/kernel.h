/* Kernels by themselves. */
#ifndef GKI_CHECK_KERNEL_H
#define GKI_CHECK_KERNEL_H
#include "check/report.h"

/* A kernel by itself, and whether it has code for the backend at hand. */
void gki_check_kernel(gki_checker *judge, const gk_kernel *kernel);
#endif
