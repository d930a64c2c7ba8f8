/* Kernel text as GLSL. */
#ifndef GKI_KERNEL_GLSL_H
#define GKI_KERNEL_GLSL_H
#include "base/text.h"
#include "kernel/struct.h"

/* Appends the text from `s` to `end` as GLSL, for this kernel. False: GLSL can't express it, and gk_fail has been
 * called. `found`: set if the kernel was there. */
bool gki_glsl(gki_text *out, const gk_kernel *kernel, const gk_source *source, const char *s, const char *end,
              gki_structs *structs, bool *found);
#endif
