/* The OpenMP backend: a whole launch in this process, by one team of threads. */
#ifndef GKI_OPENMP_BACKEND_H
#define GKI_OPENMP_BACKEND_H
#include "gk_backend.h"

extern const gk_backend gki_openmp;
#endif
