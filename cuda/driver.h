/* libcuda.so.1, found at run time, so that gk needs no driver to be built or to start. */
#ifndef GKI_CUDA_DRIVER_H
#define GKI_CUDA_DRIVER_H
#include "gk_backend.h"
#include "cuda/abi.h"

/* What gk does without where an entry is missing that a driver of that version should have. */
typedef enum gki_cuda_need {
  GKI_CUDA_FOR_CONDITIONAL, /* nodes: then all entries for them are NULL */
  GKI_CUDA_FOR_CALLS,       /* of libraries, which are recorded */
  GKI_CUDA_FOR_DRAWINGS,
  GKI_CUDA_FOR_COMFORT, /* texts of errors, checks, speed */
  GKI_CUDA_NEED_COUNT = GKI_CUDA_FOR_COMFORT /* those that the capability report knows */
} gki_cuda_need;

typedef struct gki_cuda_driver {
  int version; /* 12040 is 12.4 */
  const char *lacks[GKI_CUDA_NEED_COUNT]; /* the first such entry; NULL: none */
#define GKI_CUDA_MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(GKI_CUDA_MEMBER)
#undef GKI_CUDA_MEMBER
} gki_cuda_driver;

/* Loads and starts the driver once per process, and asks again if it failed. GK_ERROR_NO_DEVICE and one sentence: there
 * is none, it is too old, it has no device, it lacks what nothing goes without, or this is a fork of a process that
 * started it.
 * Thread-safe; what is loaded stays loaded. */
gk_result gki_cuda_driver_get(const gki_cuda_driver **driver);

/* The same for a device whose context is gone: what would use or give back something in that answers
 * CUDA_ERROR_CONTEXT_IS_DESTROYED, without a call of the driver's. */
const gki_cuda_driver *gki_cuda_driver_of_gone(void);

/* Whether an answer says that the context isn't there any more. */
bool gki_cuda_is_gone(CUresult result);

/* "driver's text (DRIVERS_NAME, number)", or what can be said where the driver has none. For what is no failure of gk;
 * else gki_cuda_result. */
void gki_cuda_describe_result(const gki_cuda_driver *driver, CUresult result, char *text, size_t bytes);

/* For a call that failed: "<what>: <driver's text> (<driver's name>, <number>)", and what to do, if that is known.
 * GK_ERROR_MEMORY for out of memory,
 * else GK_ERROR_DEVICE. GK_OK for CUDA_SUCCESS, and nothing is said. */
__attribute__((format(printf, 3, 4)))
gk_result gki_cuda_result(const gki_cuda_driver *driver, CUresult result, const char *what, ...);
#endif
