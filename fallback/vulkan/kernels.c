#include "vulkan/kernels.h"
#include "kernel/compose.h"
#include "base/text.h"
#include "gk_ahead.h"
#include "lower/task.h"
#include "vulkan/compile.h"
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 300, SPIRV_HEADER = 5, SPIRV_CAPABILITY = 17 };
extern const char gki_text_vulkan_transfer[], gki_text_vulkan_control[];
_Static_assert(sizeof(gki_vulkan_control) >= sizeof(gki_task), "both are push constants");
_Static_assert(sizeof(VkPipeline) == sizeof(void *), "a pipeline is a kernel's code");

/* ---- what a shader needs ----------------------------------------------------------------------------------------- */

/* By the numbers of SPIR-V's capabilities. Those of the features that opening asks for aren't here. */
static const char *missing_feature(const gki_vulkan_device *d, uint32_t capability) {
  const gki_vulkan_features *f = &d->features;
  const struct { uint32_t capability; VkBool32 is_there; const char *name; } known[] = {
    {9, f->newer.shaderFloat16, "numbers of 16 bits (shaderFloat16)"},
    {10, f->all.features.shaderFloat64, "doubles (shaderFloat64)"},
    {12, f->newer.shaderBufferInt64Atomics, "atomics of 64 bits (shaderBufferInt64Atomics)"},
    {22, f->all.features.shaderInt16, "numbers of 16 bits (shaderInt16)"},
    {63, d->adds_in_subgroups, "sums of a subgroup (VK_SUBGROUP_FEATURE_ARITHMETIC_BIT)"},
    {6033, f->floats.shaderBufferFloat32AtomicAdd, "atomic additions of floats (shaderBufferFloat32AtomicAdd)"},
    {6034, f->floats.shaderBufferFloat64AtomicAdd, "atomic additions of doubles (shaderBufferFloat64AtomicAdd)"},
  };
  for (size_t k = 0; k < GK_COUNT(known); ++k)
    if (known[k].capability == capability && !known[k].is_there) return known[k].name;
  return NULL;
}

/* Capabilities are the first instructions of a module. */
static gk_result check(const gki_vulkan_device *d, const char *name, const uint32_t *words, size_t bytes) {
  for (size_t k = SPIRV_HEADER; k + 1 < bytes / sizeof *words && words[k] == (2u << 16 | SPIRV_CAPABILITY); k += 2) {
    const char *missing = missing_feature(d, words[k + 1]);
    if (missing)
      return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s: it needs %s, and %s has none", name, missing, d->name);
  }
  return GK_OK;
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

static gk_result make(gki_vulkan_device *d, const char *name, const char *text, VkPipeline *pipeline) {
  uint32_t *words = NULL;
  size_t bytes = 0;
  const bool adds = d->features.floats.shaderBufferFloat64AtomicAdd;
  const char *define = adds ? "-DGKI_ATOMIC_DOUBLES" : "-DGKI_NO_ATOMIC_DOUBLES";
  gk_result result = gki_vulkan_compile(name, text, define, &words, &bytes);
  if (result == GK_OK) result = check(d, name, words, bytes);
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes,
                                           .pCode = words};
  if (result == GK_OK)
    result = gki_vulkan_check(d, d->driver.CreateShaderModule(d->device, &shader, NULL, &module),
                              "vkCreateShaderModule");
  gk_host_free(words);
  if (result != GK_OK) return result;
  const VkComputePipelineCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = d->layout,
    .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
              .module = module, .pName = "main"}};
  result = gki_vulkan_check(d, d->driver.CreateComputePipelines(d->device, VK_NULL_HANDLE, 1, &info, NULL, pipeline),
                            name);
  d->driver.DestroyShaderModule(d->device, module, NULL);
  return result;
}

/* parts: texts behind gk_kernel.h's, up to a NULL. */
static gk_result make_builtin(gki_vulkan_device *d, const char *name, const char *const *parts, VkPipeline *pipeline) {
  gki_text text = {0};
  gki_text_add(&text, "#version 460\n#define GK_GLSL 1\n");
  gki_add_slice(&text, gki_text_gk_kernel, gki_text_gk_kernel + strlen(gki_text_gk_kernel));
  for (; *parts; ++parts) gki_add_slice(&text, *parts, *parts + strlen(*parts));
  char *whole = gki_text_finish(&text);
  if (!whole) return GK_ERROR_MEMORY;
  const gk_result result = make(d, name, whole, pipeline);
  gk_free_text(whole);
  return result;
}

gk_result gki_vulkan_load_builtin(gki_vulkan_device *d) {
  const VkPushConstantRange task = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = sizeof(gki_vulkan_control)};
  const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .pushConstantRangeCount = 1, .pPushConstantRanges = &task};
  gk_result result = gki_vulkan_check(d, d->driver.CreatePipelineLayout(d->device, &info, NULL, &d->layout),
                                      "vkCreatePipelineLayout");
  const struct { const char *name, *parts[4]; /* up to a NULL */ } builtin[] = {
    [GKI_VULKAN_COPY] = {"gk's shader for COPY", {gki_text_vulkan_transfer}},
    [GKI_VULKAN_FILL] = {"gk's shader for FILL", {"#define GKI_FILL 1\n", gki_text_vulkan_transfer}},
    [GKI_VULKAN_CONTROL] = {"gk's control shader", {gk_walk_text(), gki_text_vulkan_control, gk_walk_text()}},
    [GKI_VULKAN_GRIDS] = {"gk's shader for grids", {gk_walk_text(), "#define GKI_SETS_GRIDS 1\n",
                                                    gki_text_vulkan_control}},
  };
  for (int k = 0; k < GKI_VULKAN_BUILTINS && result == GK_OK; ++k)
    if (k != GKI_VULKAN_GRIDS || d->gate == GKI_VULKAN_GRID)
      result = make_builtin(d, builtin[k].name, builtin[k].parts, &d->builtin[k]);
  return result;
}

void gki_vulkan_drop_builtin(gki_vulkan_device *d) {
  for (int k = 0; k < GKI_VULKAN_BUILTINS; ++k)
    if (d->builtin[k]) d->driver.DestroyPipeline(d->device, d->builtin[k], NULL);
  if (d->layout) d->driver.DestroyPipelineLayout(d->device, d->layout, NULL);
}

gk_result gki_vulkan_load(void *at, const gk_kernel *kernel, void **code) {
  gki_vulkan_device *d = at;
  char *text = gk_compose(kernel, "glsl"), name[NAME_BYTES];
  if (!text) return GK_ERROR_COMPILE;
  snprintf(name, sizeof name, "kernel %.250s", kernel->name);
  VkPipeline pipeline = VK_NULL_HANDLE;
  const gk_result result = make(d, name, text, &pipeline);
  gk_free_text(text);
  if (result == GK_OK) memcpy(code, &pipeline, sizeof pipeline);
  return result;
}

void gki_vulkan_unload(void *at, void *code) {
  gki_vulkan_device *d = at;
  VkPipeline pipeline;
  memcpy(&pipeline, &code, sizeof pipeline);
  d->driver.DestroyPipeline(d->device, pipeline, NULL);
}
