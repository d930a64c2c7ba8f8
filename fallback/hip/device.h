/* A device: the runtime's, its stream, its memory, and gk's own kernels on it. */
#ifndef GKI_HIP_DEVICE_H
#define GKI_HIP_DEVICE_H
#include "gk_hip.h"
#include "hip/driver.h"
#include "lower/loss.h"
#include "lower/pinned.h"

enum { GKI_HIP_CAPABILITIES = 19, GKI_HIP_THREADS = 256 /* in a block of a composed kernel */ };

typedef struct gki_hip_kernel {
  hipFunction_t function;
  unsigned most_blocks;          /* that run at the same time */
  struct gki_module *module; /* NULL: gk's own, or the program's function */
  unsigned block[3], per_block[3], most[3], shared_bytes; /* of handwritten code; most: blocks */
} gki_hip_kernel;

typedef struct gki_hip_device {
  const gki_hip_driver *driver;
  int ordinal, multiprocessors, wave;
  int reaches_pageable; /* not 0: host memory that isn't page-locked, too */
  char name[128], architecture[GKI_HIP_NAME_BYTES], driver_text[160];
  hipStream_t stream;
  bool shares_stream; /* it is the program's */
  pthread_mutex_t lock;
  bool has_lock;
  gki_pinned_blocks pinned; /* page-locked memory that the program has */
  gki_loss loss;
  struct gki_module *modules; /* of programs' kernels; common loads one kernel at a time */
  hipModule_t builtin;
  gki_hip_kernel copy, fill, ahead, echo;
  bool packs;            /* arguments go in one buffer (`extra`), else by pointers (`kernelParams`) */
  uint32_t graphs_from;  /* runs of so many kernels or more are launched as graphs; 0: none are */
  char graphs_why[160];  /* why, or why not */
  gk_capability capabilities[GKI_HIP_CAPABILITIES];
} gki_hip_device;

/* sharing: NULL, or the program's stream. gki_hip_close frees what a failed open has left, gk's own kernels, too. */
gk_result gki_hip_open(gki_hip_device *device, int ordinal, const gk_hip_sharing *sharing);
void gki_hip_close(void *device);

/* What the calling thread had before: its device, its last error, and its capture mode. */
typedef struct gki_hip_before {
  int device;
  hipError_t error;
  hipStreamCaptureMode mode;
  bool is_entered, is_relaxed; /* is_relaxed: the mode was changed */
} gki_hip_before;

/* The calling thread works on this device until gki_hip_leave, which gives it back its own, and which follows a
 * failure, too. Failures of gk's calls don't stay as the thread's last error, and calls that wait don't spoil a capture
 * of a stream of the program's. */
gk_result gki_hip_enter(gki_hip_device *device, gki_hip_before *before);
/* The same for freeing, on a device that may be lost. False: it can't be entered. */
bool gki_hip_enter_to_free(gki_hip_device *device, gki_hip_before *before);
/* Returns `result`. If that is GK_ERROR_DEVICE and the device's stream fails, too, the device counts as lost. */
gk_result gki_hip_leave(gki_hip_device *device, gki_hip_before before, gk_result result);

/* GK_ERROR_DEVICE if it is lost. Calls no driver. */
gk_result gki_hip_refuse_lost(void *device);

/* GK_ERROR_INVALID if the stream is being captured. */
gk_result gki_hip_refuse_capture(gki_hip_device *device, hipStream_t stream);

/* ---- kernels.c --------------------------------------------------------------------------------------------------- */

/* The backend's entries; `code` is a gki_hip_kernel. A source's text is compiled once per device, for all of its
 * kernels. A text or image of handwritten code is also loaded once per device, for all kernels that share it. */
gk_result gki_hip_load(void *device, const gk_kernel *kernel, void **code);
void gki_hip_unload(void *device, void *code);
const gk_code *gki_hip_code(const gk_kernel *kernel, const char **beyond);

/* Loads gk's own kernels, which gki_hip_close unloads, and finds the form of arguments that works. */
gk_result gki_hip_load_builtin(gki_hip_device *device);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

/* gk_backend's entries. */
gk_result gki_hip_alloc(void *device, size_t bytes, gk_memory kind, void **memory);
void gki_hip_free(void *device, void *memory);
gk_result gki_hip_copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes);
void *gki_hip_host_address(void *device, void *memory);
gk_result gki_hip_reaches(void *device, const void *memory);

/* Memory of graphs; the calling thread has entered the device. The device sees page-locked memory at the host's
 * address. gki_hip_free_raw may be given NULL. */
gk_result gki_hip_alloc_raw(void *device, size_t bytes, gk_memory kind, void **memory);
void gki_hip_free_raw(void *device, gk_memory kind, void *memory);
#endif
