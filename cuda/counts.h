/* Bad counts: the task with a bad count posts it, and the host reports it when it waits for the launch. */
#ifndef GKI_CUDA_COUNTS_H
#define GKI_CUDA_COUNTS_H
#include "cuda/parameters.h"

/* In page-locked memory. */
typedef struct gki_cuda_posts {
  gki_bad_count ring[GKI_LAUNCH_RING];
  uint64_t begin[2]; /* source of the copy to the control block: `number`, and 0 for `failed` */
} gki_cuda_posts;

typedef struct gki_cuda_counts {
  const gki_cuda_parameters *parameters;
  gki_cuda_posts *posts;
  uint64_t fixed; /* 0: an epilogue counts launches. Else the number of all launches; it grows after a failure */
  bool changed;   /* `fixed` has grown since it was last copied to the control block */
  bool restarts;  /* each launch begins when all work of earlier ones is over, so `fixed` may be 1 again */
  struct { const gk_value *values; const size_t *capacity; } launches[GKI_LAUNCH_RING]; /* by place in the ring */
} gki_cuda_counts;

/* @param uncounted  No epilogue counts launches. */
void gki_cuda_counts_make(gki_cuda_counts *counts, const gki_cuda_parameters *parameters, void *posts, bool uncounted);

/* Notes a launch's values and sizes for a message. Called before the launch is submitted or armed. */
void gki_cuda_counts_expect(gki_cuda_counts *counts, const gk_launch_args *launch, uint64_t number);

/* After a failure: copies the new number to the control block. Called before a launch, in the device's context. */
gk_result gki_cuda_counts_renumber(gki_cuda_counts *counts, CUstream stream);

/* A launch failed for another reason: advances the number, so that no later launch takes over its post. */
void gki_cuda_counts_skip(gki_cuda_counts *counts);

/* When the launch is over: GK_ERROR_INVALID if a count was bad. */
gk_result gki_cuda_counts_check(gki_cuda_counts *counts, uint64_t number);
#endif
