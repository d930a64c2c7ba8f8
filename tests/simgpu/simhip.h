/* What the simulated HIP runtime (hip.c) and its hipRTC (hiprtc.c) share. SIM_HIP is the version that is built. */
#ifndef SIMHIP_H
#define SIMHIP_H
#include "fallback/hip/abi.h"

/* A code object of hipRTC's: this, then PTX. */
enum { SIM_HIP_ARCH_BYTES = 56 };
typedef struct sim_hip_code {
  char magic[8]; /* SIM_HIP_MAGIC */
  char arch[SIM_HIP_ARCH_BYTES]; /* "gfx90a" */
} sim_hip_code;
#define SIM_HIP_MAGIC "simhip1"

#define SIM_HIP_EXPORT __attribute__((visibility("default")))
#endif
