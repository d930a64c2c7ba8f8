#include "vulkan/kernels.h"
#include "base/error.h"
#include "lower/task.h"
#include "vulkan/compile.h"
#include "vulkan/embed.h"
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 300, WHY_BYTES = 900, SPIRV_HEADER = 5, SPIRV_CAPABILITY = 17 };
/* SPIR-V, or text where the build had no compiler (build.ninja). */
extern const unsigned char gki_vulkan_copy[], gki_vulkan_fill[], gki_vulkan_walk[], gki_vulkan_grids[];
extern const size_t gki_vulkan_copy_bytes, gki_vulkan_fill_bytes, gki_vulkan_walk_bytes, gki_vulkan_grids_bytes;
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

static gk_result make(gki_vulkan_device *d, const char *name, const void *words, size_t bytes, VkPipeline *pipeline) {
  gk_result result = check(d, name, words, bytes);
  if (result != GK_OK) return result;
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes,
                                           .pCode = words};
  result = gki_vulkan_check(d, d->driver.CreateShaderModule(d->device, &shader, NULL, &module),
                            "vkCreateShaderModule");
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

static gk_result compile(gki_vulkan_device *d, const char *name, const char *text, VkPipeline *pipeline) {
  uint32_t *words = NULL;
  size_t bytes = 0;
  const bool adds = d->features.floats.shaderBufferFloat64AtomicAdd;
  const char *define = adds ? GKI_VULKAN_WITH_DOUBLES : GKI_VULKAN_WITHOUT_DOUBLES;
  gk_result result = gki_vulkan_compile(name, text, define, &words, &bytes);
  if (result == GK_OK) result = make(d, name, words, bytes, pipeline);
  gk_host_free(words);
  return result;
}

gk_result gki_vulkan_load_builtin(gki_vulkan_device *d) {
  const VkPushConstantRange task = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = sizeof(gki_vulkan_control)};
  const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .pushConstantRangeCount = 1, .pPushConstantRanges = &task};
  gk_result result = gki_vulkan_check(d, d->driver.CreatePipelineLayout(d->device, &info, NULL, &d->layout),
                                      "vkCreatePipelineLayout");
  const struct { const char *name; const unsigned char *code; size_t bytes; } builtin[] = {
    [GKI_VULKAN_COPY] = {"gk's shader for COPY", gki_vulkan_copy, gki_vulkan_copy_bytes},
    [GKI_VULKAN_FILL] = {"gk's shader for FILL", gki_vulkan_fill, gki_vulkan_fill_bytes},
    [GKI_VULKAN_CONTROL] = {"gk's control shader", gki_vulkan_walk, gki_vulkan_walk_bytes},
    [GKI_VULKAN_GRIDS] = {"gk's shader for grids", gki_vulkan_grids, gki_vulkan_grids_bytes},
  };
  for (int k = 0; k < GKI_VULKAN_BUILTINS && result == GK_OK; ++k) {
    VkPipeline *pipeline = &d->builtin[k];
    if (k == GKI_VULKAN_GRIDS && d->gate != GKI_VULKAN_GRID) continue;
    result = builtin[k].code[0] == '#' ? compile(d, builtin[k].name, (const char *)builtin[k].code, pipeline)
                                       : make(d, builtin[k].name, builtin[k].code, builtin[k].bytes, pipeline);
  }
  return result;
}

void gki_vulkan_drop_builtin(gki_vulkan_device *d) {
  for (int k = 0; k < GKI_VULKAN_BUILTINS; ++k)
    if (d->builtin[k]) d->driver.DestroyPipeline(d->device, d->builtin[k], NULL);
  if (d->layout) d->driver.DestroyPipelineLayout(d->device, d->layout, NULL);
}

/* By the program's image, else by compiling it now. */
static gk_result make_from_text(gki_vulkan_device *d, const char *name, const gki_unit *text, VkPipeline *pipeline) {
  const gk_image *stale, *image = gki_vulkan_embedded(text, d->features.floats.shaderBufferFloat64AtomicAdd, &stale);
  char why[WHY_BYTES];
  if (image) {
    gk_log(GK_LOG_INFO, "%s: SPIR-V made when the program was built", name);
    return make(d, name, image->bytes, image->size, pipeline);
  }
  if (!stale) return compile(d, name, text->text, pipeline);
  snprintf(why, sizeof why, "%s: what was compiled when the program was built is of another text of %s, as the source "
           "or gk has changed since; run gk-embed again", name, stale->file);
  gk_log(GK_LOG_WARN, "%s", why);
  const gk_result result = compile(d, name, text->text, pipeline);
  if (result != GK_ERROR_UNSUPPORTED) return result;
  return gki_fail_with_prefix(result, "%s; nor can it be compiled now", why);
}

gk_result gki_vulkan_load(void *at, const gk_kernel *kernel, void **code) {
  gki_vulkan_device *d = at;
  char *text = gk_compose(kernel, "glsl"), name[NAME_BYTES];
  if (!text) return GK_ERROR_COMPILE;
  snprintf(name, sizeof name, "kernel %.250s", kernel->name);
  VkPipeline pipeline = VK_NULL_HANDLE;
  const gki_unit unit = {.text = text, .file = kernel->source->file, .kernel = kernel->name};
  const gk_result result = make_from_text(d, name, &unit, &pipeline);
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
