/* libcuda.so.1, found at run time, so that gk needs no driver to be built or to start. */
#ifndef GKI_CUDA_DRIVER_H
#define GKI_CUDA_DRIVER_H
#include "gk_backend.h"
#include "cuda/abi.h"

/* What gk does without if a driver lacks an entry that its version should have. */
typedef enum gki_cuda_need {
  GKI_CUDA_FOR_CONDITIONAL, /* conditional nodes; all entries for them are then NULL */
  GKI_CUDA_FOR_CALLS,       /* library calls */
  GKI_CUDA_FOR_DRAWINGS,
  GKI_CUDA_FOR_COMFORT, /* error messages, checks, speed */
  GKI_CUDA_NEED_COUNT = GKI_CUDA_FOR_COMFORT /* the capability report has those before */
} gki_cuda_need;

typedef struct gki_cuda_driver {
  int version; /* 12040 is 12.4 */
  const char *lacks[GKI_CUDA_NEED_COUNT]; /* the first missing entry; NULL: none */
#define GKI_CUDA_MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(GKI_CUDA_MEMBER)
#undef GKI_CUDA_MEMBER
} gki_cuda_driver;

/* Loads and starts the driver once per process; after a failure it tries again. GK_ERROR_NO_DEVICE: there is no driver,
 * it is too old, it has no device, it lacks an entry that gk must have, or this is a fork of a process that started it.
 * Thread-safe. The driver stays loaded. */
gk_result gki_cuda_driver_get(const gki_cuda_driver **driver);

/* The driver for a device whose context is gone: entries that would use or free something in the context return
 * CUDA_ERROR_CONTEXT_IS_DESTROYED without calling the real driver. */
const gki_cuda_driver *gki_cuda_driver_of_gone(void);

/* Whether a result means that the context doesn't exist any more. */
bool gki_cuda_is_gone(CUresult result);

/* "driver's text (DRIVERS_NAME, number)", or "error <number>". For results that are no failure of gk; for failures use
 * gki_cuda_result. */
void gki_cuda_describe_result(const gki_cuda_driver *driver, CUresult result, char *text, size_t bytes);

/* For the result of a call. GK_OK for CUDA_SUCCESS. Otherwise GK_ERROR_MEMORY for out of memory, else GK_ERROR_DEVICE,
 * with "<what>: <driver's text> (<driver's name>, <number>)" and advice if there is any. */
__attribute__((format(printf, 3, 4)))
gk_result gki_cuda_result(const gki_cuda_driver *driver, CUresult result, const char *what, ...);
#endif
