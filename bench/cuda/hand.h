/* CUDA graphs made by hand with the driver API: variants that gk is compared with. They use gk's context and stream, so
 * that the variants differ in nothing else. An error ends the program with a message. */
#ifndef BENCH_CUDA_HAND_H
#define BENCH_CUDA_HAND_H
#include "bench/harness/must.h"
#include "cuda/driver.h"
#include "gk_cuda.h"

/* Opens CUDA's first device, reports its name and clocks, and measures its floor.
 * @return NULL: there is no device, or its driver is too old; `why` has the reason */
gk_device *bench_hand_open(const char **why);
void bench_hand_close(gk_device *device);

/* The floor in ns: a table's .floor is a multiple of one of these. */
#define HAND_EDGE "an edge between two empty kernels"
#define HAND_LAUNCH "the host, to launch a graph of one empty kernel"
#define HAND_ROUND_TRIP "launch a kernel, see what it wrote in pinned memory"
#define HAND_MEBIBYTE "a mebibyte read or written, of 256 MiB each"

extern const gki_cuda_driver *bench_hand_driver;
extern CUstream bench_hand_stream;
extern int bench_hand_multiprocessors;
extern const char bench_hand_text[]; /* the kernels of hand.c, for gk_code.text */

/* Finds an entry of the driver that gk doesn't use, with the signature of that version. */
void bench_hand_find(const char *name, int version, void *into);
/* The same for an entry that some drivers lack. @return Whether the driver has it */
bool bench_hand_has(const char *name, int version, void *into);
/* Ends the program unless the driver's call succeeded. */
void bench_hand_check(CUresult result, const char *call);
#define HAND(call) bench_hand_check(call, #call)

/* Zeroed device memory; gk_free frees it. */
int *bench_hand_ints(gk_device *device, size_t count);
/* Reads and writes one number there, after all earlier launches. */
int bench_hand_value(const int *at);
void bench_hand_put(int *at, int value);
/* Page-locked memory and its address on the device; gk_free frees it. */
volatile int *bench_hand_pinned(gk_device *device, int **at);

CUgraph bench_hand_graph(void);
CUfunction bench_hand_function(const char *name);
/* Adds a kernel after a node (NULL: none). */
CUgraphNode bench_hand_add(CUgraph into, CUgraphNode after, CUfunction function, unsigned blocks, unsigned threads,
                           void **parameters);
/* The same with a kernel of hand.c, by name. */
CUgraphNode bench_hand_kernel(CUgraph into, CUgraphNode after, const char *name, unsigned blocks, unsigned threads,
                              void **parameters);
CUgraphConditionalHandle bench_hand_handle(CUgraph whole, unsigned initial);
CUgraphNode bench_hand_conditional(CUgraph into, CUgraphNode after, CUgraphConditionalNodeType type,
                                   CUgraphConditionalHandle handle, CUgraph *body);
/* Instantiates and uploads the graph. */
CUgraphExec bench_hand_instantiate(CUgraph graph);
/* The same, and destroys the graph. */
CUgraphExec bench_hand_exec(CUgraph graph);
void bench_hand_exec_end(CUgraphExec exec);
void bench_hand_launch(CUgraphExec exec);
void bench_hand_wait(void);
/* Launches one kernel. It takes no name: a look-up isn't part of a launch but would be timed with it. */
void bench_hand_run(CUfunction function, unsigned blocks, unsigned threads, void **parameters);
/* Launches one block per multiprocessor, all at once; with --quick only one block. */
void bench_hand_run_cooperative(CUfunction function, unsigned threads, void **parameters);
#endif
