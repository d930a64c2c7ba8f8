/* GLSL to SPIR-V at run time, by glslangValidator or glslc as a child process. What it made is kept on disk. */
#ifndef GKI_VULKAN_COMPILE_H
#define GKI_VULKAN_COMPILE_H
#include "gk_backend.h"

/* A module's first word, the place of its generator's number, the number of words in its header, an instruction. */
enum { GKI_SPIRV_MAGIC = 0x07230203, GKI_SPIRV_GENERATOR = 2, GKI_SPIRV_HEADER = 5, GKI_SPIRV_CAPABILITY = 17 };

/* A module's first instructions are its capabilities. False: there are no more than k. */
static inline bool gki_spirv_capability(const uint32_t *words, size_t bytes, size_t k, uint32_t *capability) {
  const size_t at = GKI_SPIRV_HEADER + 2 * k;
  if (at + 1 >= bytes / sizeof *words || words[at] != (2u << 16 | GKI_SPIRV_CAPABILITY)) return false;
  *capability = words[at + 1];
  return true;
}

/* Whether gk_kernel.h may use atomic additions of doubles. */
#define GKI_VULKAN_WITH_DOUBLES "-DGKI_ATOMIC_DOUBLES"
#define GKI_VULKAN_WITHOUT_DOUBLES "-DGKI_NO_ATOMIC_DOUBLES"

/* @param name    What the text is, for messages: "kernel scale".
 * @param define  One of those two.
 * @param words   SPIR-V, to be freed by gk_host_free.
 * @return GK_ERROR_COMPILE, with the compiler's log; GK_ERROR_UNSUPPORTED: there is no compiler. */
gk_result gki_vulkan_compile(const char *name, const char *text, const char *define, uint32_t **words, size_t *bytes);
#endif
