/* What gk adds to graphs of others: single loops and branches, and what goes with lists, too. */
#ifndef GKI_CUDA_SINGLE_H
#define GKI_CUDA_SINGLE_H
#include "cuda/device.h"

/* A public call's device. NULL, as is said with GK_ERROR_INVALID: it is none of this backend. */
gki_cuda_device *gki_cuda_device_of(gk_device *device, const char *call);

/* GK_ERROR_UNSUPPORTED with the reason: the host gates everything on that device. */
gk_result gki_cuda_refuse_conditional(const gki_cuda_device *device, const char *call);

/* Where something is to be added. */
gk_result gki_cuda_refuse_into(const char *call, CUgraph into, const CUgraphNode *after, size_t count);

/* What a driver's entry answered to a graph and nodes that a caller gave: GK_ERROR_INVALID if it minds those. */
gk_result gki_cuda_judge_into(const gki_cuda_device *device, CUresult result, const char *call, const char *entry);

/* Memory for counts of passes that was taken; in the device's context. */
void gki_cuda_pass_counts_drop(gki_cuda_device *device);
#endif
