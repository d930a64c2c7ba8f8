/* hipRTC, which compiles texts of HIP C++. */
#ifndef GKI_HIP_COMPILE_H
#define GKI_HIP_COMPILE_H
#include "hip/driver.h"
#include "kernel/embedder.h"
#include "kernel/unit.h"

/* Compiles a text for an architecture such as "gfx90a:xnack-", and logs warnings. GK_ERROR_COMPILE with the compiler's
 * log; GK_ERROR_MEMORY; GK_ERROR_UNSUPPORTED: there is no hipRTC, or none that knows this architecture.
 * gki_compiled_free frees the image, also an empty one. Thread-safe. */
gk_result gki_hip_compile(const gki_hip_driver *driver, const char *architecture, const gki_unit *text,
                          gki_compiled *image);

/* Whether a runtime's hipRTC knows an architecture. One that it doesn't know may end the process. */
bool gki_hip_knows(int version, const char *architecture);

/* gk_image.target: what follows "gfx", a hexadecimal number; 0: no name of a GPU. Features behind a colon don't count:
 * code that names none runs with any. */
uint32_t gki_hip_target(const char *architecture);

/* gk_backend.query's answer to GKI_EMBEDDER: kernels that gk-embed compiles when a program is built. */
extern const gki_embedder gki_hip_embedder;
#endif
