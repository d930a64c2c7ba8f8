/* The simulated NVRTC's controls for tests, beside its environment: `simnvrtc_control`, by dlsym. Any thread, any time.
 * libnvrtc.so.13, .12, .11.2 and libnvrtc.so are libraries of their own: each has its own controls and counts. */
#ifndef SIMNVRTC_H
#define SIMNVRTC_H
#include "cuda/abi.h"

typedef struct simnvrtc_counts {
  uint64_t calls;    /* since the last mark; nvrtcGetErrorString isn't counted */
  uint64_t compiled; /* sources that went to the compiler, */
  uint64_t kept;     /* or were found on disk */
} simnvrtc_counts;

typedef struct simnvrtc_control {
  size_t bytes; /* of this struct: new members come at its end */
  /* As SIMGPU_NVRTC: "13.0,12.8,11.4" if nothing is said; also 12.4, and "none". A library whose major number isn't in
   * it fails every call, as libnvrtc.so does always. */
  void (*set_versions)(const char *list);
  void (*mark)(void); /* counts from 0, and ends what fail_at() asked for */
  simnvrtc_counts (*counts)(void);
  /* The k-th call from now on, from 1, fails; 0: none. As SIMGPU_NVRTC_FAIL. nvrtcDestroyProgram works all the same. */
  void (*fail_at)(uint64_t k, nvrtcResult code);
  const char *(*failed)(void); /* which entry it hit; NULL: none yet */
  size_t (*alive)(void);       /* programs not destroyed */
} simnvrtc_control;
#endif
