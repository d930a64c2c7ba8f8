/* Between the simulated driver (libcuda.so.1) and the execution of kernels. Module images and kernels are behind
 * sim_module_* and sim_kernel_*; the driver doesn't know what they contain. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H
#include "cuda/abi.h"
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a variable of a thread that each load and store of a kernel needs: it is found without a call, which sanitizers
 * would make long. The driver's variables of threads all have to find room beside the program's then: a kilobyte or
 * so. */
#define SIM_FAST_PER_THREAD __attribute__((tls_model("initial-exec")))

typedef struct sim_module sim_module;
typedef struct sim_kernel sim_kernel;
typedef struct sim_grid sim_grid; /* a kernel under way */

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

/* Of its launch bounds, or 1024. */
unsigned sim_kernel_threads(const sim_kernel *kernel);

/* Carries out the whole grid, on the calling thread alone; parameters are packed at those offsets. Device memory is
 * open to that thread's process only while it runs. A kernel that touches what it mustn't is left by a jump out of
 * this function, so nothing here may need cleaning up or hold a lock. */
void sim_kernel_run(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3], const void *parameters);

/* The same with others in between, all on one thread. NULL: a rule was broken, and there is nothing to carry out. */
sim_grid *sim_kernel_begin(const sim_kernel *kernel, const unsigned grid[3], const unsigned block[3],
                           const void *parameters);
/* True: it is over, and so is the sim_grid. False: it pauses, as it may now and then by the numbers from `random`,
 * where it does what others may see; NULL: it goes on to the end. As sim_kernel_run it may be left by a jump. */
bool sim_kernel_go_on(sim_grid *grid, uint64_t *random);

/* The driver's: what cudaGraphSetConditional does in a kernel. */
extern void sim_set_conditional(unsigned long long handle, unsigned value);

/* The driver's: whether a kernel may load or store there. */
extern bool sim_touch(unsigned long long at, unsigned long long bytes);
/* The driver's: leaves the work in which a kernel may not, by a jump from the stack on which that kernel was begun. */
extern void sim_give_up(void);

/* After such a jump, on that thread: tells sanitizers on which stack it is. All kernels under way there are given
 * up. */
void sim_kernel_left(void);

/* Number within the grid of the thread that runs now, (block * threads of a block + thread), both counted with x
 * fastest: no handle may be set by two threads. Asked only from within sim_set_conditional. */
extern unsigned long long sim_kernel_thread(void);

#ifdef __cplusplus
}
#endif
#endif
