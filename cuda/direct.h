/* gk's additions to graphs of callers: the common part of single loops and branches and of whole lists. */
#ifndef GKI_CUDA_DIRECT_H
#define GKI_CUDA_DIRECT_H
#include "cuda/device.h"

/* A public call's device. NULL, as is said with GK_ERROR_INVALID: it is none of this backend. */
gki_cuda_device *gki_cuda_device_of(gk_device *device, const char *call);

/* GK_ERROR_UNSUPPORTED with the reason: the host gates everything on that device. */
gk_result gki_cuda_refuse_conditional(const gki_cuda_device *device, const char *call);

/* Where something is to be added. */
gk_result gki_cuda_refuse_into(const char *call, CUgraph into, const CUgraphNode *after, size_t count);
#endif
