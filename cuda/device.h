/* An open GPU: its context, its stream, which puts all work in order, and its memory. Context and stream may be the
 * caller's. */
#ifndef GKI_CUDA_DEVICE_H
#define GKI_CUDA_DEVICE_H
#include "gk_cuda.h"
#include "cuda/caps.h"
#include "cuda/driver.h"
#include "cuda/image.h"
#include "lower/loss.h"
#include "lower/pinned.h"
#include <stdatomic.h>

/* A kernel that is ready for launches. */
typedef struct gki_cuda_kernel {
  CUfunction function;
  unsigned threads; /* per block; a multiple of the warp size */
  unsigned blocks;  /* that run on the device at the same time */
  struct gki_module *module; /* NULL: gk's own, or a function of the caller's */
  const gk_kernel *handwritten; /* with the launch shape below; NULL: a composed kernel, which takes a gki_task */
  unsigned block[3], per_block[3], shared_bytes;
} gki_cuda_kernel;

enum { GKI_CUDA_CAPABILITIES = 19 };

/* See pool.h. */
typedef struct gki_cuda_pooled {
  struct gki_cuda_pooled *next;
  void *host;      /* page-locked; NULL: device memory */
  CUdeviceptr at;  /* the device's address */
  size_t bytes;
  bool registered; /* pages of the process, which outlive a reset context; else the driver's */
} gki_cuda_pooled;

typedef struct gki_cuda_pool {
  pthread_mutex_t lock;   /* for all below */
  bool has_lock;          /* the lock was made */
  gki_cuda_pooled **used; /* blocks in use: lists by a hash of their address */
  size_t lists, used_count; /* number of lists, a power of two or 0; number of blocks */
  gki_cuda_pooled *spare;
  size_t spare_bytes, spare_count;
} gki_cuda_pool;

typedef struct gki_cuda_pass_counts gki_cuda_pass_counts; /* memory.c */

typedef struct gki_cuda_device {
  const gki_cuda_driver *_Atomic driver; /* gki_cuda_driver_of_gone() once the context is gone */
  CUdevice device;
  CUcontext context;
  CUstream stream, uploads; /* uploads: tables of new graphs don't wait for launches */
  bool retained;       /* the primary context, which is released at the end */
  bool shares_stream;  /* the stream is the caller's: other work may be put on it, and it may be captured */
  atomic_bool exposed_stream; /* gk_cuda_context has returned gk's own stream: it may be captured */
  int ordinal;
  int arch;            /* 89 is sm_89 */
  int multiprocessors;
  int reaches_pageable; /* not 0: host memory that isn't page-locked, too (HMM, ATS) */
  gki_loss loss;
  bool has_lock;       /* the lock was made */
  pthread_mutex_t lock; /* for the next four, and for `loss` */
  gki_pinned_blocks pinned; /* page-locked memory that callers have */
  gki_cuda_pass_counts *counts; /* for loops in callers' graphs */
  struct gki_cuda_order *unjoined; /* last launches on callers' streams that the device's stream doesn't wait for yet;
                                    * linked by next_unjoined */
  struct gki_cuda_order *last; /* its launch is the stream's last work, without an event; NULL: none */
  gki_cuda_pool pool;  /* has its own lock */
  struct gki_module *modules; /* of kernels; under common's lock for code */
  gki_cuda_builtin builtin; /* gk's own kernels, if there is a module */
  gki_cuda_kernel copy_kernel, fill_kernel;
  CUfunction ahead;        /* gki_ahead; NULL: lists that the device doesn't decide are walked by the host */
  CUmodule transfers;      /* these three, compiled at run time, if the driver takes none of gk's images */
  char no_transfers[1400]; /* why there is no COPY and FILL */
  char no_calls[200];    /* for the capability report, like the next three */
  char no_kernels[1400];
  char why_loops[3500], why_chained[3500]; /* of DO_WHILE, of PARALLEL */
  gki_cuda_caps caps;
  char name[256], driver_text[64];
  gk_capability capabilities[GKI_CUDA_CAPABILITIES];
} gki_cuda_device;

/* While this or another thread captures a stream, calls that might wait fail and spoil the capture: those for memory,
 * modules, instantiation and waits. Between these two the thread is relaxed (cuThreadExchangeStreamCaptureMode), and
 * such calls neither fail nor spoil anything. Pairs may be nested. */
void gki_cuda_relax(const gki_cuda_device *device);
void gki_cuda_unrelax(void);

/* Between these two the device's context is current and the thread is relaxed. Leave restores both. GK_ERROR_DEVICE,
 * with the first failure: the device is lost. GK_ERROR_INVALID: a stream that the device shares, or that
 * gk_cuda_context returned, is being captured. */
gk_result gki_cuda_enter(const gki_cuda_device *device);
void gki_cuda_leave(const gki_cuda_device *device);
/* For the calls of each launch, which no capture forbids. */
gk_result gki_cuda_enter_unrelaxed(const gki_cuda_device *device);
void gki_cuda_leave_unrelaxed(const gki_cuda_device *device);

/* A stream and the driver's id for it: the driver reuses handles of destroyed streams, but not ids. */
typedef struct gki_cuda_stream_id {
  CUstream stream;
  unsigned long long id; /* 0: the stream lives as long as the device */
} gki_cuda_stream_id;
#define GKI_CUDA_STREAM_UNKNOWN UINT64_MAX /* a thread's default stream, or before CUDA 12.0: never the same */
bool gki_cuda_is_same(const gki_cuda_stream_id *one, const gki_cuda_stream_id *other);

/* Enters for a launch; *now gets its stream. *pushed is false if the context was current already; otherwise
 * gki_cuda_leave_unrelaxed must follow. GK_ERROR_INVALID: the stream is being captured, or belongs to another context
 * (not checked for the stream `last`). */
gk_result gki_cuda_enter_to_launch(const gki_cuda_device *device, const gk_launch_args *launch,
                                   const gki_cuda_stream_id *last, gki_cuda_stream_id *now, bool *pushed);
/* GK_ERROR_DEVICE, with the first failure, if the device is known to be lost. Doesn't call the driver. Any thread. */
gk_result gki_cuda_refuse_lost(const gki_cuda_device *device);
/* Waits for all work in the context, also the caller's. GK_ERROR_INVALID, as a failure of `call`, while a stream of the
 * context is being captured: CUDA allows no wait for the context then. In the device's context. */
gk_result gki_cuda_await_all(const gki_cuda_device *device, const gk_plan *plan, const char *call);
/* Whether the device still works, so that a failure was due to the call. In the device's context. */
bool gki_cuda_is_alive(const gki_cuda_device *device);
/* Returns `result`. If it is a failure and the device doesn't work any more, marks the device as lost. */
gk_result gki_cuda_detect_loss(gki_cuda_device *device, gk_result result);
/* gki_cuda_result for "<call> of graph <name>". */
gk_result gki_cuda_graph_result(const gki_cuda_device *device, const gk_plan *plan, CUresult result, const char *call);
/* Enters to free something; gki_cuda_leave must follow if it returns true. Callers free in both cases, and report no
 * failure. It detects that the context is gone, so read device->driver after it. */
bool gki_cuda_enter_to_free(gki_cuda_device *device);

/* The result of a driver's entry for a caller's graph and nodes: GK_ERROR_INVALID if it refuses those. */
gk_result gki_cuda_into_result(const gki_cuda_device *device, CUresult result, const char *call, const char *entry);

/* GK_ERROR_INVALID while the stream is being captured. */
gk_result gki_cuda_refuse_capture(const gki_cuda_device *device, CUstream stream);
#endif
