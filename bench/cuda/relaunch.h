/* A graph whose last kernel launches it again, from the device, as long as a counter isn't 0. Its code needs the device
 * runtime, libcudadevrt.a of a toolkit, which the driver links with it. */
#ifndef BENCH_CUDA_RELAUNCH_H
#define BENCH_CUDA_RELAUNCH_H
#include "bench/cuda/hand.h"

/* NULL: such graphs can be made, and one was right; else why not. */
const char *bench_relaunch_begin(gk_device *device);
/* "more" on x, so many kernels but one, and then the one that takes one off `left` and launches the whole again. */
CUgraphExec bench_relaunch_exec(int kernels, int *x, int *left);
void bench_relaunch_end(void);
#endif
