/* The in-process backend: one OpenMP team per launch. */
#ifndef GKI_OPENMP_H
#define GKI_OPENMP_H
#include "gk_backend.h"

extern const gk_backend gki_openmp;
#endif
