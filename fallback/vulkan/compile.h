/* GLSL to SPIR-V, by glslangValidator or glslc as a child process, at run time or when a program is built. */
#ifndef GKI_VULKAN_COMPILE_H
#define GKI_VULKAN_COMPILE_H
#include "kernel/embedder.h"

/* A module's first word, the place of its generator's number, the number of words in its header, an instruction. */
enum { GKI_SPIRV_MAGIC = 0x07230203, GKI_SPIRV_GENERATOR = 2, GKI_SPIRV_HEADER = 5, GKI_SPIRV_OpCapability = 17 };

/* Capabilities, by Khronos's names. */
enum { GKI_SPIRV_Shader = 1, GKI_SPIRV_Float16 = 9, GKI_SPIRV_Float64 = 10, GKI_SPIRV_Int64 = 11,
       GKI_SPIRV_Int64Atomics = 12, GKI_SPIRV_Int16 = 22, GKI_SPIRV_Int8 = 39, GKI_SPIRV_GroupNonUniform = 61,
       GKI_SPIRV_GroupNonUniformArithmetic = 63, GKI_SPIRV_GroupNonUniformQuad = 68,
       GKI_SPIRV_StorageBuffer16BitAccess = 4433, GKI_SPIRV_StoragePushConstant16 = 4435,
       GKI_SPIRV_StorageBuffer8BitAccess = 4448, GKI_SPIRV_UniformAndStorageBuffer8BitAccess = 4449,
       GKI_SPIRV_StoragePushConstant8 = 4450, GKI_SPIRV_VulkanMemoryModel = 5345,
       GKI_SPIRV_VulkanMemoryModelDeviceScope = 5346, GKI_SPIRV_PhysicalStorageBufferAddresses = 5347,
       GKI_SPIRV_AtomicFloat32AddEXT = 6033, GKI_SPIRV_AtomicFloat64AddEXT = 6034 };

/* The place of the capability behind that at `at` in a module, or of the first one behind 0; 0: there is none. */
static inline size_t gki_spirv_next(const uint32_t *words, size_t bytes, size_t at) {
  const size_t next = at ? at + 2 : GKI_SPIRV_HEADER + 1;
  return next < bytes / sizeof *words && words[next - 1] == (2u << 16 | GKI_SPIRV_OpCapability) ? next : 0;
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

enum { GKI_VULKAN_WHY_BYTES = 900 };

/* The program's SPIR-V for a kernel's text on the GPU of that name, with atomic additions of doubles or without; NULL:
 * there is none, and `why` and a warning say which images there are instead. */
const gk_image *gki_vulkan_embedded(const gki_unit *text, const char *name, const char *gpu, bool adds_doubles,
                                    char why[GKI_VULKAN_WHY_BYTES]);
#endif
