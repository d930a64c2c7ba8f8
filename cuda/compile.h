/* NVRTC, found at run time: the compiler of composed kernels. Several versions may be installed; which one serves a
 * device depends on the device's architecture and on the driver's version. */
#ifndef GKI_CUDA_COMPILE_H
#define GKI_CUDA_COMPILE_H
#include "gk_backend.h"
#include "cuda/abi.h"
#include "kernel/unit.h"

enum { GKI_NVRTC_ARCHITECTURES = 64, GKI_CUDA_ALL_DRIVERS = 99000 /* a version newer than any */ };

/* One that is loaded; it stays loaded. */
typedef struct gki_nvrtc {
  int version;                                /* 12040 is 12.4 */
  int architectures[GKI_NVRTC_ARCHITECTURES]; /* 75 is sm_75; ascending */
  int architecture_count;
  struct { unsigned long long bytes; long long seconds; long nanoseconds; } file; /* its size, and since when it is */
#define GKI_NVRTC_MEMBER(type, name, parameters) type(*name) parameters;
  GKI_NVRTC_ENTRIES(GKI_NVRTC_MEMBER)
#undef GKI_NVRTC_MEMBER
} gki_nvrtc;

/* What to compile with for a device. What it makes depends on its members and the text alone, and on what that
 * includes. */
typedef struct gki_cuda_compiler {
  const gki_nvrtc *nvrtc;
  int architecture;    /* of what it makes: the device's, or the nearest below it */
  bool is_ptx;         /* it makes PTX, which the driver translates, else a cubin */
  bool may_be_refused; /* its cubins are of a newer major version than the driver's */
} gki_cuda_compiler;

/* The best compiler that is installed for a device of compute capability architecture / 10, architecture % 10: for
 * first choice one that makes a cubin for just this device and is no newer than the driver. GK_ERROR_UNSUPPORTED and
 * one sentence: there is no NVRTC, or none for this device. Thread-safe. */
gk_result gki_cuda_compiler_get(int architecture, int driver_version, gki_cuda_compiler *compiler);
/* The same, where that it isn't there is no failure: false, and the sentence goes to `why`. */
bool gki_cuda_compiler_find(int architecture, int driver_version, gki_cuda_compiler *compiler, char *why, size_t bytes);

/* Each NVRTC that is looked for, in that order, loaded if it can be; false: there is no further one. *name is what it
 * is looked for by. NULL in *nvrtc: there is none, and if it was found and is of no use, `why` says so. Thread-safe. */
bool gki_nvrtc_at(size_t index, const char **name, const gki_nvrtc **nvrtc, char *why, size_t bytes);

/* "NVRTC 12.4, cubin for sm_89" */
void gki_cuda_compiler_describe(const gki_cuda_compiler *compiler, char *text, size_t bytes);

/* What one NVRTC could do for a device, as a rank; 0: nothing. */
int gki_nvrtc_rank(const gki_nvrtc *nvrtc, int architecture, int driver_version, gki_cuda_compiler *compiler);

/* Compiles a text, and says its warnings. GK_ERROR_COMPILE with the compiler's log;
 * GK_ERROR_MEMORY; GK_ERROR_UNSUPPORTED if NVRTC itself fails. The image is freed by gki_compiled_free, also if there
 * is none. Thread-safe. */
gk_result gki_cuda_compile(const gki_cuda_compiler *compiler, const gki_unit *text, gki_compiled *image);

/* COPY and FILL alone, of gates.cu, for drivers that take none of gk's images. To be freed by gk_host_free; NULL: out
 * of memory, and gk_fail has been called. */
char *gki_cuda_transfers_text(void);
#define GKI_CUDA_TRANSFERS "gk's COPY and FILL" /* what stands for it in messages */
#endif
