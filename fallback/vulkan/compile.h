/* GLSL to SPIR-V, by glslangValidator or glslc as a child process, at run time or when a program is built. */
#ifndef GKI_VULKAN_COMPILE_H
#define GKI_VULKAN_COMPILE_H
#include "kernel/embedder.h"

/* A module's first word, the place of its generator's number, the number of words in its header, an instruction. */
enum { GKI_SPIRV_MAGIC = 0x07230203, GKI_SPIRV_GENERATOR = 2, GKI_SPIRV_HEADER = 5, GKI_SPIRV_CAPABILITY = 17 };

/* Whether a module needs a capability. These are its first instructions. */
static inline bool gki_spirv_needs(const uint32_t *words, size_t bytes, uint32_t capability) {
  const uint32_t instruction = 2u << 16 | GKI_SPIRV_CAPABILITY;
  for (size_t k = GKI_SPIRV_HEADER; k + 1 < bytes / sizeof *words && words[k] == instruction; k += 2)
    if (words[k + 1] == capability) return true;
  return false;
}

/* Whether gk_kernel.h may use atomic additions of doubles. */
#define GKI_VULKAN_WITH_DOUBLES "-DGKI_ATOMIC_DOUBLES"
#define GKI_VULKAN_WITHOUT_DOUBLES "-DGKI_NO_ATOMIC_DOUBLES"

/* @param name    What the text is, for messages: "kernel scale".
 * @param define  One of those two.
 * @param words   SPIR-V, to be freed by gk_host_free.
 * @return GK_ERROR_COMPILE, with the compiler's log; GK_ERROR_UNSUPPORTED: there is no compiler that
 * can be started. */
gk_result gki_vulkan_compile(const char *name, const char *text, const char *define, uint32_t **words, size_t *bytes);

extern const gki_embedder gki_vulkan_embedder;

/* The program's SPIR-V for a kernel's text on a device with atomic additions of doubles or without; NULL: there is
 * none, and *stale is an image of another text of its file, or NULL. */
const gk_image *gki_vulkan_embedded(const gki_unit *text, bool adds_doubles, const gk_image **stale);
#endif
