/* What modules are loaded from: images of the simulated NVRTC, which hold a shared object, and real ones of NVIDIA's
 * compilers (fatbin, cubin, PTX), of which the headers are read. */
#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H
#include "cuda/abi.h"
#include <stdbool.h>

/* sm_90a: {90, 'a'}. */
typedef struct sim_arch { int number; char feature; } sim_arch; /* 0: none */

/* "90a" and what follows it; number 0: there is none. */
sim_arch sim_arch_of(const char *text, const char **end);

/* The PTX version of a toolkit, 12040, or the newest that a driver of that version takes: 84. */
int sim_ptx_version(int cuda_version);

/* By malloc; NULL: no memory. A cubin, or PTX, which is text and ends with a zero (counted in *bytes). */
void *sim_image_cubin(int toolkit, sim_arch arch, const void *code, size_t code_bytes, size_t *bytes);
void *sim_image_ptx(int toolkit, sim_arch arch, const void *code, size_t code_bytes, size_t *bytes);

typedef struct sim_image {
  void *code; /* a shared object, by malloc; NULL: a real image, */
  size_t code_bytes;
  char *entries; /* and its kernels, "\nname\nother\n", by malloc; NULL: they can't be read there */
} sim_image;

/* Accepts or refuses as a driver of that version would; *why is a sentence then. */
CUresult sim_image_read(const void *image, int driver_version, int arch, sim_image *read, char *why, size_t why_bytes);

uint64_t sim_hash(const void *at, size_t bytes, uint64_t seed);
#endif
