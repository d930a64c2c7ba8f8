/* The quirks that matter to a list, by what its control kernels set and from which place. */
#ifndef GKI_CUDA_QUIRKS_H
#define GKI_CUDA_QUIRKS_H
#include "gk_gates.h"
#include "cuda/probe.h"

/* Those of the given quirks that would change these gates. A list needs no plain gates if
 * gki_cuda_quirks_that_matter(gates, caps.quirks & GKI_CUDA_QUIRKS_PLAIN) is 0; for plain gates it is. Quirks that
 * aren't given take no time. */
uint32_t gki_cuda_quirks_that_matter(const gk_gates *gates, uint32_t quirks);
#endif
