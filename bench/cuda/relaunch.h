/* A graph whose last kernel launches it again from the device until a counter is 0. Its code needs the device runtime
 * (libcudadevrt.a of a toolkit), which the driver links to it. */
#ifndef BENCH_CUDA_RELAUNCH_H
#define BENCH_CUDA_RELAUNCH_H
#include "bench/cuda/hand.h"

/* @return NULL if such graphs can be made and one was right, else the reason */
const char *bench_relaunch_begin(gk_device *device);
/* `kernels` - 1 times "more" on x, then the kernel that takes one off `left` and launches the graph again. */
CUgraphExec bench_relaunch_exec(int kernels, int *x, int *left);
void bench_relaunch_end(void);
#endif
