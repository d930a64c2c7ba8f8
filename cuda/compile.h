/* NVRTC, found at run time, compiles composed kernels. Several versions may be installed. The device's architecture and
 * the driver's version decide which one a device uses. */
#ifndef GKI_CUDA_COMPILE_H
#define GKI_CUDA_COMPILE_H
#include "gk_backend.h"
#include "cuda/abi.h"
#include "kernel/unit.h"

enum { GKI_NVRTC_ARCHITECTURES = 64, GKI_CUDA_ALL_DRIVERS = 99000 /* a version newer than any */ };

/* A loaded NVRTC. It stays loaded. */
typedef struct gki_nvrtc {
  int version;                                /* 12040 is 12.4 */
  int architectures[GKI_NVRTC_ARCHITECTURES]; /* 75 is sm_75; ascending */
  int architecture_count;
  struct { unsigned long long bytes; long long seconds; long nanoseconds; } file; /* size and time of change */
#define GKI_NVRTC_MEMBER(type, name, parameters) type(*name) parameters;
  GKI_NVRTC_ENTRIES(GKI_NVRTC_MEMBER)
#undef GKI_NVRTC_MEMBER
} gki_nvrtc;

/* The compiler for a device. Its result depends only on these members, the text and what the text includes. */
typedef struct gki_cuda_compiler {
  const gki_nvrtc *nvrtc;
  int architecture;    /* to compile for: the device's, or the nearest below it */
  bool is_ptx;         /* compiles to PTX, which the driver translates; else to a cubin */
  bool may_be_refused; /* its major version is newer than the driver's */
} gki_cuda_compiler;

/* The best installed compiler for a device of compute capability architecture / 10, architecture % 10. The first choice
 * makes a cubin for exactly this device and isn't newer than the driver. GK_ERROR_UNSUPPORTED: there is no NVRTC, or
 * none for this device. Thread-safe. */
gk_result gki_cuda_compiler_get(int architecture, int driver_version, gki_cuda_compiler *compiler);
/* The same without a failure: false, with the reason in `why`. */
bool gki_cuda_compiler_find(int architecture, int driver_version, gki_cuda_compiler *compiler, char *why, size_t bytes);

/* The NVRTCs that gk looks for, in that order, loaded if possible; false: `index` is beyond the last. *name is the file
 * name. *nvrtc is NULL if there is none, or if it can't be used; `why` then has the reason. Thread-safe. */
bool gki_nvrtc_at(size_t index, const char **name, const gki_nvrtc **nvrtc, char *why, size_t bytes);

/* "NVRTC 12.4, cubin for sm_89" */
void gki_cuda_compiler_describe(const gki_cuda_compiler *compiler, char *text, size_t bytes);

/* How well one NVRTC suits a device; 0: it can't compile for it. */
int gki_nvrtc_rank(const gki_nvrtc *nvrtc, int architecture, int driver_version, gki_cuda_compiler *compiler);

/* Compiles a text, and logs warnings. GK_ERROR_COMPILE with the compiler's log; GK_ERROR_MEMORY; GK_ERROR_UNSUPPORTED:
 * NVRTC itself fails. gki_compiled_free frees the image, also an empty one. Thread-safe. */
gk_result gki_cuda_compile(const gki_cuda_compiler *compiler, const gki_unit *text, gki_compiled *image);

/* COPY and FILL alone (lower/transfer.inc), for drivers that take none of gk's images. */
extern const char gki_text_transfer[];
#define GKI_CUDA_TRANSFERS "gk's COPY and FILL" /* its name in messages */
#endif
