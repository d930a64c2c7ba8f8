/* Kernels for the tests of the simulated driver itself: C functions of the test instead of compiled images. */
#ifndef SIM_STUB_H
#define SIM_STUB_H
#include <stddef.h>

enum { SIM_STUB_PARAMETERS = 8 };

typedef struct sim_stub_kernel {
  const char *name; /* NULL ends the table */
  void (*run)(const unsigned char *parameters, unsigned long long threads); /* once for the whole grid */
  size_t bytes[SIM_STUB_PARAMETERS]; /* each parameter is aligned to its size, if that is 2, 4 or 8, else to 8 */
} sim_stub_kernel;

typedef struct sim_stub_image {
  char magic[8]; /* "simstub" */
  const sim_stub_kernel *kernels;
} sim_stub_image;

/* Exported: which thread of the grid the kernel is now. */
extern unsigned long long sim_stub_thread;
/* Exported: what a compiler puts in front of each load and store of a kernel. */
void sim_stub_touch(unsigned long long at, unsigned long long bytes);
#endif
