/* The safe ways that a list needs, by what its control kernels set and from which place. */
#ifndef GKI_CUDA_QUIRKS_H
#define GKI_CUDA_QUIRKS_H
#include "gk_gates.h"
#include "cuda/probe.h"

/* Which of the ways in `of` would change something for these gates; those that wouldn't needn't be taken. So the gates
 * can stay as they are if gki_cuda_quirks_that_matter(gates, caps.quirks & GKI_CUDA_QUIRKS_PLAIN) is 0, as it is for
 * plain ones; no time is spent on bits that aren't in `of`. */
uint32_t gki_cuda_quirks_that_matter(const gk_gates *gates, uint32_t of);
#endif
