#include "vulkan/kernels.h"
#include "base/error.h"
#include "base/fork.h"
#include "kernel/cache.h"
#include "lower/task.h"
#include "plan/walk.inc"
#include "vulkan/compile.h"
#include "vulkan/handwritten.h"
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 300 };
/* SPIR-V, or text where the build had no compiler (build.ninja). */
#define BUILTIN(name) extern const unsigned char gki_vulkan_##name[]; extern const size_t gki_vulkan_##name##_bytes;
BUILTIN(copy) BUILTIN(fill) BUILTIN(walk) BUILTIN(step) BUILTIN(grids)
#undef BUILTIN
_Static_assert(sizeof(gki_vulkan_control) <= GKI_VULKAN_PUSHED && sizeof(gki_task) == 24 &&
               sizeof(gki_task) + sizeof(gki_vulkan_pushed_step) <= GKI_VULKAN_PUSHED, "as control.comp has them");
_Static_assert(GKW_COUNT < GKI_VULKAN_WALK, "each kind of point has its place in front of the walk");

/* ---- what a shader needs ----------------------------------------------------------------------------------------- */

/* A program may have enabled more than the known features on a device of its own. */
static gk_result check_capability(const gki_vulkan_device *d, const char *name, uint32_t capability) {
  gki_vulkan_feature all[GKI_VULKAN_FEATURES];
  gki_vulkan_list_features(d, all);
  const uint32_t bit = capability - GKI_SPIRV_GroupNonUniform; /* of `subgroups`, in the same order */
  const bool is_of_group = bit <= GKI_SPIRV_GroupNonUniformQuad - GKI_SPIRV_GroupNonUniform;
  for (size_t k = 0; k < GK_COUNT(all); ++k) {
    if (!capability || all[k].capability != capability) continue;
    if (all[k].is_there) return GK_OK;
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s: it needs %s, and %s has none", name, all[k].name,
                   d->name);
  }
  if (is_of_group ? d->subgroups >> bit & 1 : capability <= GKI_SPIRV_Shader || d->sharing.device) return GK_OK;
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend vulkan: %s: it needs capability %u of SPIR-V, which %s doesn't have "
                 "or gk doesn't enable; leave out what needs it, or enable it on a VkDevice of yours "
                 "(gk_vulkan_sharing)", name, (unsigned)capability, d->name);
}

/* ---- pipelines --------------------------------------------------------------------------------------------------- */

/* The constants that a pipeline sets in its shader, by their numbers there. */
typedef struct constants { uint32_t group, is_unchecked, kinds; } constants;

/* values: NULL for handwritten code, whose constants are its own */
static gk_result make(gki_vulkan_device *d, const char *name, VkShaderModule module, const char *entry,
                      const constants *values, VkPipeline *pipeline) {
  const VkSpecializationMapEntry places[] = {{0, offsetof(constants, group), sizeof(uint32_t)},
                                             {1, offsetof(constants, is_unchecked), sizeof(uint32_t)},
                                             {2, offsetof(constants, kinds), sizeof(uint32_t)}};
  const VkSpecializationInfo special = {GK_COUNT(places), places, sizeof *values, values};
  const VkComputePipelineCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = d->layout,
    .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
              .module = module, .pName = entry, .pSpecializationInfo = values ? &special : NULL}};
  return gki_vulkan_check(d, d->driver.CreateComputePipelines(d->device, d->pipelines, 1, &info, NULL, pipeline),
                          name);
}

static gk_result make_module(gki_vulkan_device *d, const char *name, const void *words, size_t bytes,
                             VkShaderModule *module) {
  gk_result result = GK_OK;
  for (size_t at = 0; result == GK_OK && (at = gki_spirv_next(words, bytes, at));)
    result = check_capability(d, name, ((const uint32_t *)words)[at]);
  if (result != GK_OK) return result;
  const VkShaderModuleCreateInfo shader = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes,
                                           .pCode = words};
  return gki_vulkan_check(d, d->driver.CreateShaderModule(d->device, &shader, NULL, module), "vkCreateShaderModule");
}

static gk_result compile(gki_vulkan_device *d, const char *name, const char *text, VkShaderModule *module) {
  uint32_t *words = NULL;
  size_t bytes = 0;
  const bool adds = d->features.floats.shaderBufferFloat64AtomicAdd;
  const char *define = adds ? GKI_VULKAN_WITH_DOUBLES : GKI_VULKAN_WITHOUT_DOUBLES;
  gk_result result = gki_vulkan_compile(name, text, define, &words, &bytes);
  if (result == GK_OK) result = make_module(d, name, words, bytes, module);
  gk_host_free(words);
  return result;
}

static void drop_kernel(const gki_vulkan_device *d, gki_vulkan_kernel *kernel) {
  if (kernel->pipeline) d->driver.DestroyPipeline(d->device, kernel->pipeline, NULL);
  if (kernel->unchecked) d->driver.DestroyPipeline(d->device, kernel->unchecked, NULL);
  *kernel = (gki_vulkan_kernel){0};
}

static gk_result make_kernel(gki_vulkan_device *d, const char *name, VkShaderModule module, uint32_t group,
                             gki_vulkan_kernel *kernel) {
  const constants usual = {group, 0, 0}, unchecked = {group, 1, 0};
  gk_result result = make(d, name, module, "main", &usual, &kernel->pipeline);
  if (result == GK_OK) result = make(d, name, module, "main", &unchecked, &kernel->unchecked);
  if (result != GK_OK) drop_kernel(d, kernel);
  return result;
}

/* ---- gk's own ---------------------------------------------------------------------------------------------------- */

static gk_result make_builtin(gki_vulkan_device *d, const char *name, const unsigned char *code, size_t bytes,
                              VkShaderModule *module) {
  return code[0] == '#' ? compile(d, name, (const char *)code, module) : make_module(d, name, code, bytes, module);
}

/* Not the device's lock, which launches need: a driver may take long to make pipelines. */
GKI_PROCESS_LOCK(making)

#define BUILTIN(name) "gk's shader " #name, gki_vulkan_##name, gki_vulkan_##name##_bytes
gk_result gki_vulkan_builtin(gki_vulkan_device *d, int which, const gki_vulkan_kernel **kernel) {
  const struct { const char *name; const unsigned char *code; size_t bytes; } all[] = {
    [GKI_VULKAN_COPY] = {BUILTIN(copy)}, [GKI_VULKAN_FILL] = {BUILTIN(fill)}, [GKI_VULKAN_GRIDS] = {BUILTIN(grids)}};
  gki_vulkan_kernel *kept = &d->builtin[which];
  VkShaderModule module = VK_NULL_HANDLE;
  gk_result result = GK_OK;
  *kernel = kept;
  pthread_mutex_lock(&making);
  const bool is_made = kept->pipeline != VK_NULL_HANDLE;
  if (!is_made) result = make_builtin(d, all[which].name, all[which].code, all[which].bytes, &module);
  if (!is_made && result == GK_OK) result = make_kernel(d, all[which].name, module, GKI_VULKAN_GROUP, kept);
  pthread_mutex_unlock(&making);
  if (module) d->driver.DestroyShaderModule(d->device, module, NULL);
  return result;
}

/* What the driver makes of shaders, for the next process. The driver refuses data of another driver; the cache refuses
 * folders of other users. */
static gki_cache_key pipelines_key(const gki_vulkan_device *d) {
  const VkPhysicalDeviceProperties *p = &d->properties;
  const uint32_t numbers[] = {p->vendorID, p->deviceID, p->driverVersion, p->apiVersion};
  const char what[] = "pipelines of Vulkan";
  return gki_cache_key_of((gki_cache_part[]){{what, sizeof what}, {numbers, sizeof numbers},
                                             {p->pipelineCacheUUID, sizeof p->pipelineCacheUUID}}, 3);
}

static void find_pipelines(gki_vulkan_device *d) {
  char folder[2], why[2];
  gki_cache_describe(folder, sizeof folder, why, sizeof why);
  if (!folder[0]) return; /* there is no cache */
  const gki_cache_key key = pipelines_key(d);
  void *bytes = NULL;
  size_t size = 0;
  const bool is_found = gki_cache_find(&key, &bytes, &size);
  const VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                          .initialDataSize = is_found ? size : 0, .pInitialData = bytes};
  if (d->driver.CreatePipelineCache(d->device, &info, NULL, &d->pipelines) != VK_SUCCESS) d->pipelines = VK_NULL_HANDLE;
  d->pipelines_bytes = is_found ? size : 0;
  gk_host_free(bytes);
}

/* Writes the cache if it has grown since it was read. */
static void keep_pipelines(gki_vulkan_device *d) {
  size_t size = 0;
  if (!d->pipelines) return;
  void *bytes = NULL;
  if (d->driver.GetPipelineCacheData(d->device, d->pipelines, &size, NULL) == VK_SUCCESS && size > d->pipelines_bytes)
    bytes = gk_host_alloc(size);
  if (bytes && d->driver.GetPipelineCacheData(d->device, d->pipelines, &size, bytes) == VK_SUCCESS) {
    const gki_cache_key key = pipelines_key(d);
    gki_cache_keep(&key, bytes, size);
  }
  gk_host_free(bytes);
  d->driver.DestroyPipelineCache(d->device, d->pipelines, NULL);
}

gk_result gki_vulkan_load_builtin(gki_vulkan_device *d) {
  const VkPushConstantRange task = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = GKI_VULKAN_PUSHED};
  const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .pushConstantRangeCount = 1, .pPushConstantRanges = &task};
  gk_result result = gki_vulkan_check(d, d->driver.CreatePipelineLayout(d->device, &info, NULL, &d->layout),
                                      "vkCreatePipelineLayout");
  if (result == GK_OK) find_pipelines(d);
  if (result == GK_OK) result = make_builtin(d, BUILTIN(walk), &d->walk);
  return result == GK_OK ? make_builtin(d, BUILTIN(step), &d->step) : result;
}
#undef BUILTIN

void gki_vulkan_drop_builtin(gki_vulkan_device *d) {
  keep_pipelines(d);
  for (int which = 0; which < GKI_VULKAN_BUILTINS; ++which) drop_kernel(d, &d->builtin[which]);
  for (int kind = 0; kind < GKI_VULKAN_CONTROLS; ++kind)
    for (int form = 0; form < GKI_VULKAN_FORMS; ++form)
      if (d->controls[kind][form]) d->driver.DestroyPipeline(d->device, d->controls[kind][form], NULL);
  if (d->walk) d->driver.DestroyShaderModule(d->device, d->walk, NULL);
  if (d->step) d->driver.DestroyShaderModule(d->device, d->step, NULL);
  if (d->layout) d->driver.DestroyPipelineLayout(d->device, d->layout, NULL);
}

gk_result gki_vulkan_control_for(gki_vulkan_device *d, uint32_t kind, uint32_t form, VkPipeline *pipeline) {
  const uint32_t forks = 1u << GKW_FORK | 1u << GKW_SECTION_END | 1u << GKW_JOIN;
  uint32_t kinds = kind == GKI_VULKAN_WALK ? (1u << GKI_VULKAN_WALK) - 1 - forks : 1u << kind;
  if (form & GKI_VULKAN_SECTIONS) kinds |= forks;
  if (kind == GKW_COUNT) kinds |= 1u << GKW_PASS_END; /* a step at a REPEAT's end */
  const constants values = {1, 0, kinds | form << GKI_VULKAN_WALK};
  VkPipeline *kept = &d->controls[kind][form];
  pthread_mutex_lock(&making);
  const gk_result result = *kept ? GK_OK
                                 : make(d, "gk's control shader", kind == GKI_VULKAN_WALK ? d->walk : d->step, "main",
                                        &values, kept);
  *pipeline = *kept;
  pthread_mutex_unlock(&making);
  return result;
}

/* ---- kernels of programs ----------------------------------------------------------------------------------------- */

/* By the program's image, else by compiling it now. */
static gk_result make_from_text(gki_vulkan_device *d, const char *name, const gki_unit *text, VkShaderModule *module) {
  char why[GKI_VULKAN_WHY_BYTES];
  const gk_image *image =
      gki_vulkan_embedded(text, name, d->name, d->features.floats.shaderBufferFloat64AtomicAdd, why);
  if (image) {
    gk_log(GK_LOG_INFO, "%s: SPIR-V made when the program was built", name);
    return make_module(d, name, image->bytes, image->size, module);
  }
  const gk_result result = compile(d, name, text->text, module);
  if (result != GK_ERROR_UNSUPPORTED || !why[0]) return result;
  return gki_fail_with_prefix(result, "%s; nor can it be compiled now", why);
}

static gk_result make_composed(gki_vulkan_device *d, const gk_kernel *kernel, const char *name,
                               VkShaderModule *module) {
  char *text = gk_compose(kernel, "glsl");
  if (!text) return gki_failure();
  const gki_unit unit = {.text = text, .file = kernel->source->file, .kernel = kernel->name};
  const gk_result result = make_from_text(d, name, &unit, module);
  gk_free_text(text);
  return result;
}

static gk_result make_handwritten(gki_vulkan_device *d, const gk_kernel *kernel, const char *name,
                                  VkShaderModule *module, gki_vulkan_kernel *made) {
  uint32_t *words;
  size_t bytes;
  gk_result result = gki_vulkan_handwritten(d, kernel, name, &words, &bytes, made);
  if (result == GK_OK) result = make_module(d, name, words, bytes, module);
  gk_host_free(words);
  return result;
}

gk_result gki_vulkan_load(void *at, const gk_kernel *kernel, void **code) {
  gki_vulkan_device *d = at;
  char name[NAME_BYTES];
  VkShaderModule module = VK_NULL_HANDLE;
  gki_vulkan_kernel *made = gk_host_alloc(sizeof *made);
  if (!made) return gki_fail_memory("a kernel", sizeof *made);
  snprintf(name, sizeof name, "kernel %.250s", kernel->name);
  gk_result result = kernel->vulkan ? make_handwritten(d, kernel, name, &module, made)
                                    : make_composed(d, kernel, name, &module);
  if (result == GK_OK)
    result = kernel->vulkan ? make(d, name, module, gki_vulkan_entry(kernel->vulkan), NULL, &made->pipeline)
                            : make_kernel(d, name, module, d->group, made);
  if (module) d->driver.DestroyShaderModule(d->device, module, NULL);
  if (result == GK_OK) *code = made;
  else gk_host_free(made);
  return result;
}

void gki_vulkan_unload(void *at, void *code) {
  drop_kernel(at, code);
  gk_host_free(code);
}
