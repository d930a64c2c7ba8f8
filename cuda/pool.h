/* Memory of graphs: their tables, states, slots and statuses, and the memory that their slots own. CUDA frees memory
 * only when the whole device is idle, so the memory of a destroyed graph is kept for the next one. */
#ifndef GKI_CUDA_POOL_H
#define GKI_CUDA_POOL_H
#include "cuda/device.h"

void gki_cuda_pool_make(gki_cuda_pool *pool);
/* What is spare goes back to the driver, and that waits for the device; false: there was nothing. In the device's
 * context, also when all ends with its lock. */
bool gki_cuda_pool_trim(gki_cuda_device *device);
void gki_cuda_pool_drop(gki_cuda_device *device);

/* In the device's context: memory of the device; page-locked memory, zeroed, with its address on the device unless `at`
 * is NULL. `what` is for the message. */
gk_result gki_cuda_alloc_device(gki_cuda_device *device, size_t bytes, const char *what, CUdeviceptr *memory);
gk_result gki_cuda_alloc_pinned(gki_cuda_device *device, size_t bytes, const char *what, void **memory,
                                CUdeviceptr *at);
/* Nothing uses it any more, neither on the host nor on the device. 0 and NULL are fine. */
void gki_cuda_free_device(gki_cuda_device *device, CUdeviceptr memory);
void gki_cuda_free_pinned(gki_cuda_device *device, void *memory);

/* Memory that a graph owns: copied from `from` as far as `kept`, which nothing writes any more, and zeroed from there
 * on, on the stream for uploads, which is waited for. */
gk_result gki_cuda_alloc_own(gki_cuda_device *device, CUdeviceptr from, size_t kept, size_t bytes, CUdeviceptr *memory);
/* Back to the pool; or to the driver, which waits until the device is idle. False: the pool didn't give it. */
bool gki_cuda_free_own(gki_cuda_device *device, CUdeviceptr memory, bool waits);
#endif
