/* An open GPU: its context, the one stream on which all its work is in order, and its memory. Context and stream may be
 * the caller's. */
#ifndef GKI_CUDA_DEVICE_H
#define GKI_CUDA_DEVICE_H
#include "gk_cuda.h"
#include "cuda/caps.h"
#include "cuda/driver.h"
#include "cuda/image.h"
#include <pthread.h>
#include <stdatomic.h>

/* A kernel that is ready. */
typedef struct gki_cuda_kernel {
  CUfunction function;
  unsigned threads; /* of a block; a multiple of the warp */
  unsigned blocks;  /* that the device holds at once */
  struct gki_cuda_module *module; /* NULL: gk's own, or a function of the caller's */
  const gk_kernel *handwritten; /* with the launch shape below; NULL: a composed kernel, which takes a gki_cuda_task */
  unsigned block[3], per_block[3], shared_bytes;
} gki_cuda_kernel;

enum { GKI_CUDA_CAPABILITIES = 16 };

typedef struct gki_cuda_pinned { struct gki_cuda_pinned *next; char *at; size_t bytes; } gki_cuda_pinned;

/* See pool.h. */
typedef struct gki_cuda_pooled {
  struct gki_cuda_pooled *next;
  void *host;      /* page-locked; NULL: memory of the device */
  CUdeviceptr at;  /* as the device sees it */
  size_t bytes;
  bool registered; /* the process's own pages, which outlive a context that is reset; else the driver's */
} gki_cuda_pooled;

typedef struct gki_cuda_pool {
  pthread_mutex_t lock; /* of what follows */
  bool has_lock;           /* the lock was made */
  gki_cuda_pooled **used; /* lists, by a hash of the address that it was given out as */
  size_t lists, used_count; /* of used; a power of two, or 0 */
  gki_cuda_pooled *spare;
  size_t spare_bytes, spare_count;
} gki_cuda_pool;

typedef struct gki_cuda_pass_counts gki_cuda_pass_counts; /* memory.c */

typedef struct gki_cuda_device {
  const gki_cuda_driver *_Atomic driver; /* another one once the context is gone */
  CUdevice device;
  CUcontext context;
  CUstream stream, uploads; /* uploads: for tables of new graphs, so that they don't wait behind launches */
  bool retained;       /* the primary context, to be released */
  bool shares_stream;  /* it is the caller's, who may put work of his own on it, and capture it */
  atomic_bool gave_stream; /* it is gk's, and gk_cuda_context told somebody, who might capture it */
  int ordinal;
  int arch;            /* 89 is sm_89 */
  int multiprocessors;
  int reaches_pageable; /* memory of the host that isn't page-locked (HMM, ATS); else 0 */
  atomic_bool lost;    /* it answers nothing any more, and why_lost, which is there by then, says since when */
  char why_lost[1400];
  bool has_lock;          /* the lock was made */
  pthread_mutex_t lock; /* of what follows */
  gki_cuda_pinned *pinned; /* page-locked memory that was given out */
  gki_cuda_pass_counts *counts; /* of passes, for loops in graphs of others */
  struct gki_cuda_order *unjoined; /* through their next_unjoined: their last launches are on streams of others, and the
                                  * device's own hasn't been told to follow them */
  struct gki_cuda_order *last; /* its launch is the stream's last work, and no event follows it; NULL: none */
  gki_cuda_pool pool;  /* under a lock of its own */
  struct gki_cuda_module *modules; /* kernels.c: under common's lock for code */
  gki_cuda_builtin builtin; /* gk's own kernels, if there is a module */
  gki_cuda_kernel copy_kernel, fill_kernel;
  CUmodule transfers;      /* those two by themselves, compiled here, if the driver takes none of gk's images */
  char no_transfers[1400]; /* why there are none */
  char no_calls[200];    /* for the capability report, as the next ones */
  char no_kernels[1400];
  char why_loops[3500], why_chained[3500]; /* for the capability report: of DO_WHILE, of PARALLEL */
  gki_cuda_caps caps; /* what its driver does with conditional nodes */
  char name[256], driver_text[64];
  gk_capability capabilities[GKI_CUDA_CAPABILITIES];
} gki_cuda_device;

/* Between the two the device's context is the thread's, and the thread is relaxed; then both are again what they were.
 * GK_ERROR_DEVICE, with what it began with, if the device is lost; GK_ERROR_INVALID while a stream that it shares, or
 * gave, is being captured. */
gk_result gki_cuda_enter(const gki_cuda_device *device);
void gki_cuda_leave(const gki_cuda_device *device);

/* While other threads, or other code of this one, capture streams, the driver forbids a thread what might wait, and
 * such a call spoils the capture: memory, modules, graphs that are instantiated, waits. Between these two the thread is
 * relaxed (cuThreadExchangeStreamCaptureMode): nothing is forbidden, and nothing spoiled. A pair may stand within
 * another one. */
void gki_cuda_relax(const gki_cuda_device *device);
void gki_cuda_unrelax(void);
/* For what a launch does each time, which nothing forbids. */
gk_result gki_cuda_enter_unrelaxed(const gki_cuda_device *device);
void gki_cuda_leave_unrelaxed(const gki_cuda_device *device);

/* A stream and the driver's id of it: handles are given again after a destroy, ids aren't. */
typedef struct gki_cuda_stream_id {
  CUstream stream;
  unsigned long long id; /* 0: it stays as long as the device */
} gki_cuda_stream_id;
#define GKI_CUDA_STREAM_UNKNOWN UINT64_MAX /* a thread's default stream, or before CUDA 12.0: never the same */
bool gki_cuda_is_same(const gki_cuda_stream_id *one, const gki_cuda_stream_id *other);

/* For a launch, whose stream `now` gets. On a stream of the caller's nothing is pushed, hence *pushed false, where the
 * context is the thread's anyhow; GK_ERROR_INVALID, and nothing entered, if it is being captured, or, unless it is the
 * `last` one, of another context. gki_cuda_leave_unrelaxed if *pushed. */
gk_result gki_cuda_enter_to_launch(const gki_cuda_device *device, const gk_launch_args *launch,
                                   const gki_cuda_stream_id *last, gki_cuda_stream_id *now, bool *pushed);
/* GK_ERROR_DEVICE, with what it began with, if it was found lost; the driver isn't asked. Any thread. */
gk_result gki_cuda_refuse_lost(const gki_cuda_device *device);
/* Until all that is under way in the context is over, gk's launches and others. GK_ERROR_INVALID, as a failure of
 * `call`, while a stream of it is being captured, since CUDA lets nothing wait for a context then. In the context. */
gk_result gki_cuda_await_all(const gki_cuda_device *device, const gk_plan *plan, const char *call);
/* Whether the device still answers, so that what failed was what it was asked for. In its context. */
bool gki_cuda_is_alive(const gki_cuda_device *device);
/* What an entry answered; if that was a failure and the device doesn't answer any more, it is lost from now on. */
gk_result gki_cuda_detect_loss(gki_cuda_device *device, gk_result result);
/* For a call that failed: "<call> of graph <name>: <driver's text> ...", as gki_cuda_result. */
gk_result gki_cuda_graph_result(const gki_cuda_device *device, const gk_plan *plan, CUresult result, const char *call);
/* For giving things back, which is tried whatever this answers, and said nowhere; leave it if true. It finds out if the
 * context is gone, so the device's driver is to be read behind it. */
bool gki_cuda_enter_to_free(gki_cuda_device *device);

/* What a driver's entry answered to a graph and nodes that a caller gave: GK_ERROR_INVALID if it minds those. */
gk_result gki_cuda_into_result(const gki_cuda_device *device, CUresult result, const char *call, const char *entry);

/* GK_ERROR_INVALID while the stream is being captured. */
gk_result gki_cuda_refuse_capture(const gki_cuda_device *device, CUstream stream);
#endif
