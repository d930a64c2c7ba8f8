/* Additions to callers' graphs: what single loops and branches and whole lists have in common. */
#ifndef GKI_CUDA_DIRECT_H
#define GKI_CUDA_DIRECT_H
#include "cuda/device.h"

/* The device of a public call. NULL, with GK_ERROR_INVALID: it belongs to another backend. */
gki_cuda_device *gki_cuda_device_of(gk_device *device, const char *call);

/* GK_ERROR_UNSUPPORTED, with the reason: the host gates everything on that device. */
gk_result gki_cuda_refuse_conditional(const gki_cuda_device *device, const char *call);

/* Checks the graph and the nodes behind which something is added. */
gk_result gki_cuda_refuse_into(const char *call, CUgraph into, const CUgraphNode *after, size_t count);
#endif
