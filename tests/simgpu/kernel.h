/* Between the simulated driver (libcuda.so.1) and what carries out kernels. Module images and kernels are behind
 * sim_module_* and sim_kernel_*; the driver knows nothing of them. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H
#include "cuda/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sim_module sim_module;
typedef struct sim_kernel sim_kernel;

/* Accepts or refuses the image as a driver of that version (12040 is 12.4) would on a device of that architecture (80
 * is sm_80). The log gets what the driver's JIT log would say; NULL with 0 bytes: none wanted. Thread-safe. */
CUresult sim_module_load(const void *image, int driver_version, int arch, sim_module **module, char *log,
                         size_t log_bytes);
void sim_module_unload(sim_module *module);

/* NULL: no such entry. Lives as long as the module. */
const sim_kernel *sim_module_kernel(sim_module *module, const char *name);

/* So that the driver copies the bytes of each parameter and no more. */
size_t sim_kernel_parameter_count(const sim_kernel *kernel);
void sim_kernel_parameter(const sim_kernel *kernel, size_t k, size_t *offset, size_t *bytes);

/* Carries out the whole grid, on the calling thread alone; parameters are packed at those offsets. One call at a time
 * per device. Device memory is open to that thread's process only while it runs. A kernel that touches what it mustn't
 * is left by a jump out of this function, so nothing here may need cleaning up or hold a lock. */
void sim_kernel_run(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3], const void *parameters);

/* The driver's: what cudaGraphSetConditional does in a kernel. */
extern void sim_set_conditional(unsigned long long handle, unsigned value);

/* After such a jump, on that thread: tells sanitizers on which stack it is. What follows does so, too, if need be. */
void sim_kernel_left(void);

/* Number within the grid of the thread that runs now, (block * threads of a block + thread), both counted with x
 * fastest: no handle may be set by two threads. Asked only from within sim_set_conditional. */
extern unsigned long long sim_kernel_thread(void);

#ifdef __cplusplus
}
#endif
#endif
