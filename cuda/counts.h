/* Bad counts: the task with a bad count posts it, and the host reports it when it waits for the launch. */
#ifndef GKI_CUDA_COUNTS_H
#define GKI_CUDA_COUNTS_H
#include "cuda/parameters.h"

/* In page-locked memory. */
typedef struct gki_cuda_posts {
  gki_cuda_failure ring[GKI_CUDA_RING];
  uint64_t number; /* on its way to the control block */
} gki_cuda_posts;

/* Of a graph. */
typedef struct gki_cuda_counts {
  const gki_cuda_parameters *parameters;
  gki_cuda_posts *posts;
  uint64_t fixed; /* launch number that all launches use where no epilogue counts them; 0: each has its own */
  bool changed;     /* `fixed` has grown since it was last sent to the control block */
  struct { const gk_value *values; const size_t *room; } launches[GKI_CUDA_RING]; /* by place in the ring */
} gki_cuda_counts;

/* uncounted: no epilogue counts launches. */
void gki_cuda_counts_make(gki_cuda_counts *counts, const gki_cuda_parameters *parameters, void *posts, bool uncounted);

/* Before a launch is handed to the driver, or armed: what its message would be made of. */
void gki_cuda_counts_expect(gki_cuda_counts *counts, const gk_launch_args *launch, uint64_t number);

/* Before what is put on the stream next: after a failure the control block gets another number. In the device's
 * context. */
gk_result gki_cuda_counts_renumber(gki_cuda_counts *counts, CUstream stream);

/* Of a launch that failed otherwise: what it may have posted, or will, is none of a later one's. */
void gki_cuda_counts_skip(gki_cuda_counts *counts);

/* Once the launch is over: GK_ERROR_INVALID if a count was bad. */
gk_result gki_cuda_counts_check(gki_cuda_counts *counts, uint64_t number);
#endif
