/* libamdhip64 and hipRTC, found at run time, so that gk needs no ROCm to be built or to start. */
#ifndef GKI_HIP_DRIVER_H
#define GKI_HIP_DRIVER_H
#include "gk_backend.h"
#include "hip/abi.h"

typedef struct gki_hip_driver {
  int version;            /* 502 is HIP 5.2 */
  char name[32];          /* "HIP 5.2" */
  char path[256];         /* of the library */
  char no_compiler[448];  /* why there is no hipRTC; "": there is one */
#define GKI_HIP_MEMBER(need, type, name, parameters) type(*name) parameters;
  GKI_HIP_ENTRIES(GKI_HIP_MEMBER)
#undef GKI_HIP_MEMBER
#define GKI_HIP_MEMBER(type, name, parameters) type(*name) parameters;
  GKI_HIPRTC_ENTRIES(GKI_HIP_MEMBER)
#undef GKI_HIP_MEMBER
} gki_hip_driver;

/* Loads the runtime once per process, and looks for a device; after a failure it tries again. GK_ERROR_NO_DEVICE: there
 * is no runtime, it lacks an entry that gk must have, it has no device, or this is a fork of a process that started it.
 * Thread-safe. The runtime stays loaded. */
gk_result gki_hip_driver_get(const gki_hip_driver **driver);

/* Loads the libraries only, for tests of the compiler on machines without a device. Thread-safe. */
gk_result gki_hip_driver_load(const gki_hip_driver **driver);

/* "runtime's text (NAME, number)" */
void gki_hip_describe(const gki_hip_driver *driver, hipError_t code, char *text, size_t bytes);

/* For the result of a call. GK_OK for hipSuccess. Otherwise GK_ERROR_MEMORY for out of memory, else GK_ERROR_DEVICE,
 * with "backend hip: <what>: <runtime's text> (<runtime's name>, <number>)". */
__attribute__((format(printf, 3, 4)))
gk_result gki_hip_result(const gki_hip_driver *driver, hipError_t code, const char *what, ...);
#endif
