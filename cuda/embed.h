/* Kernels compiled by NVRTC when a program is built: machine code and PTX. */
#ifndef GKI_CUDA_EMBED_H
#define GKI_CUDA_EMBED_H
#include "kernel/embedder.h"

extern const gki_embedder gki_cuda_embedder;
#endif
