/* CUDA graphs made by hand with the driver API, for arms that gk is held against: in gk's own context and on its
 * stream, so that arms differ in nothing else. What fails ends the program with a message. */
#ifndef BENCH_CUDA_HAND_H
#define BENCH_CUDA_HAND_H
#include "bench/harness/must.h"
#include "cuda/driver.h"
#include "gk_cuda.h"

/* Opens CUDA's first device, says what it is and how its clocks stand, and measures its floor. NULL: there is none, or
 * its driver is too old, and `why` says so. */
gk_device *bench_hand_open(const char **why);
void bench_hand_close(gk_device *device);

/* The floor, in ns: what a table's .floor is so many of. */
#define HAND_EDGE "an edge between two empty kernels"
#define HAND_LAUNCH "the host, to launch a graph of one empty kernel"
#define HAND_ROUND_TRIP "launch a kernel, see what it wrote in pinned memory"
#define HAND_MEBIBYTE "a mebibyte read or written, of 256 MiB each"

extern const gki_cuda_driver *bench_hand_driver;
extern CUstream bench_hand_stream;
extern int bench_hand_multiprocessors;
extern const char bench_hand_text[]; /* the kernels of hand.c, for gk_code.text */

/* An entry that gk has no use for, of that version's signature. */
void bench_hand_find(const char *name, int version, void *into);
/* The same of one that not each driver has. */
bool bench_hand_has(const char *name, int version, void *into);
/* What the driver answered, and what was asked. */
void bench_hand_check(CUresult result, const char *call);
#define HAND(call) bench_hand_check(call, #call)

/* Memory of the device, all 0; gk_free gives it back. */
int *bench_hand_ints(gk_device *device, size_t count);
/* One number there, when what was launched before is over. */
int bench_hand_value(const int *at);
void bench_hand_put(int *at, int value);
/* Page-locked, with its address on the device; stays. */
volatile int *bench_hand_pinned(gk_device *device, int **at);

CUgraph bench_hand_graph(void);
CUfunction bench_hand_function(const char *name);
/* Behind a node, or none (NULL). */
CUgraphNode bench_hand_add(CUgraph into, CUgraphNode after, CUfunction function, unsigned blocks, unsigned threads,
                           void **parameters);
/* The same with a kernel of hand.c, by name. */
CUgraphNode bench_hand_kernel(CUgraph into, CUgraphNode after, const char *name, unsigned blocks, unsigned threads,
                              void **parameters);
CUgraphConditionalHandle bench_hand_handle(CUgraph whole, unsigned initial);
CUgraphNode bench_hand_conditional(CUgraph into, CUgraphNode after, CUgraphConditionalNodeType type,
                                   CUgraphConditionalHandle handle, CUgraph *body);
/* Ready to be launched at once. */
CUgraphExec bench_hand_instantiate(CUgraph graph);
/* The same, and the graph is gone. */
CUgraphExec bench_hand_exec(CUgraph graph);
void bench_hand_exec_end(CUgraphExec exec);
void bench_hand_launch(CUgraphExec exec);
void bench_hand_wait(void);
/* A kernel by itself. Not by name: looking that up is no part of a launch, and would be timed with it. */
void bench_hand_run(CUfunction function, unsigned blocks, unsigned threads, void **parameters);
/* One block per multiprocessor, all at once; with --quick one in all. */
void bench_hand_run_cooperative(CUfunction function, unsigned threads, void **parameters);
#endif
