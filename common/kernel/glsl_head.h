/* The text before a kernel's body in GLSL. */
#ifndef GKI_KERNEL_GLSL_HEAD_H
#define GKI_KERNEL_GLSL_HEAD_H
#include "base/text.h"
#include "kernel/token.h"

/* The text that replaces GK_KERNEL(...) in GLSL: a type per buffer, the arguments, main(), the item function's head. */
void gki_glsl_head(gki_text *out, const gk_kernel *kernel);

bool gki_glsl_is_double(const gk_param *param);

/* "_" for a word that GLSL reserves, otherwise "". */
const char *gki_glsl_suffix(gki_token word);
#endif
