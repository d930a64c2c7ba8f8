/* From a CUDA source to C++ for the host: shim.h before it, a list of its kernels behind it. */
#ifndef SIM_TRANSLATE_H
#define SIM_TRANSLATE_H
#include <stdio.h>

/* shim.h with code.h before it, then the source, whose first line is said to be line 1 of `name`. `macros`: lines of
 * #define that come first. */
void sim_write_source(FILE *out, const char *macros, const char *source, const char *name);

/* Takes preprocessed text and writes it with kernels and shared memory said in C++, and behind it a sim_code of that
 * name. Answers how many kernels there are. */
size_t sim_translate(FILE *out, const char *preprocessed, const char *symbol);
#endif
