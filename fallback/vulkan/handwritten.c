#include "vulkan/handwritten.h"
#include "base/error.h"
#include "vulkan/compile.h"
#include <string.h>

enum { ENTRY_POINT = 15, EXECUTION_MODE = 16, FUNCTION_END = 56, VARIABLE = 59, DECORATE = 71, GL_COMPUTE = 5,
       LOCAL_SIZE = 17, BINDING = 33, SET = 34, UNIFORM_CONSTANT = 0, UNIFORM = 2, STORAGE_BUFFER = 12 };

const char *gki_vulkan_entry(const gk_code *code) { return code->entry ? code->entry : "main"; }

const gk_code *gki_vulkan_code(const gk_kernel *kernel, const char **beyond) {
  const gk_code *code = kernel->vulkan;
  if (!beyond) return code;
  *beyond = NULL;
  if (!code) return NULL;
  if (code->function) *beyond = "has a .function, which Vulkan doesn't have; give .text or .image";
  else if (code->options) *beyond = "has .options, which aren't taken here; write #define into .text";
  else if (code->shared_bytes) *beyond = "has .shared_bytes; declare `shared` memory in the shader";
  else if (gki_param_places(kernel, NULL) > GKI_VULKAN_PUSHED)
    *beyond = "has more than 128 bytes of parameters, which are push constants (a struct may go by `in`)";
  return code;
}

/* ---- SPIR-V ------------------------------------------------------------------------------------------------------ */

typedef struct shape {
  bool has_entry, has_descriptors;
  uint32_t function, group[3], set, binding; /* group: {0}: not said; set, binding: of the last descriptor */
} shape;

/* One instruction. */
static void read_instruction(shape *s, const uint32_t *words, uint32_t count, const char *entry) {
  const uint32_t code = words[0] & 0xffff;
  if (code == ENTRY_POINT && count > 3 && words[1] == GL_COMPUTE &&
      strncmp((const char *)&words[3], entry, (count - 3) * sizeof *words) == 0 &&
      memchr(&words[3], 0, (count - 3) * sizeof *words)) {
    s->has_entry = true;
    s->function = words[2];
  }
  if (code == EXECUTION_MODE && count == 6 && s->has_entry && words[1] == s->function && words[2] == LOCAL_SIZE)
    memcpy(s->group, &words[3], sizeof s->group);
  if (code == DECORATE && count == 4 && words[2] == SET) s->set = words[3];
  if (code == DECORATE && count == 4 && words[2] == BINDING) s->binding = words[3];
  if (code == VARIABLE && count > 3 &&
      (words[3] == UNIFORM_CONSTANT || words[3] == UNIFORM || words[3] == STORAGE_BUFFER)) s->has_descriptors = true;
}

/* False: its instructions don't end with it, or the last one ends no function. */
static bool read_shape(shape *s, const uint32_t *words, size_t bytes, const char *entry) {
  const size_t count = bytes / sizeof *words;
  uint32_t last = 0;
  *s = (shape){0};
  if (bytes % sizeof *words || count < GKI_SPIRV_HEADER || words[0] != GKI_SPIRV_MAGIC) return false;
  for (size_t at = GKI_SPIRV_HEADER, length; at < count; at += length) {
    length = words[at] >> 16;
    last = words[at] & 0xffff;
    if (length == 0 || length > count - at) return false;
    read_instruction(s, words + at, (uint32_t)length, entry);
  }
  return last == FUNCTION_END;
}

static gk_result check_group(const gki_vulkan_device *d, const gk_kernel *kernel, const uint32_t group[3]) {
  const uint32_t *block = kernel->vulkan->block;
  const VkPhysicalDeviceLimits *most = &d->properties.limits;
  uint64_t items = 1;
  bool is_large = false;
  for (int axis = 0; axis < 3; ++axis) {
    if (block[axis] && block[axis] != group[axis])
      return gk_fail(GK_ERROR_INVALID, "kernel %s: its .block says %u along %c, and its shader's local size is %u; "
                     "leave .block 0, or give it that", kernel->name, (unsigned)block[axis], "xyz"[axis],
                     (unsigned)group[axis]);
    items *= group[axis];
    is_large = is_large || group[axis] > most->maxComputeWorkGroupSize[axis];
  }
  if (!is_large && items <= most->maxComputeWorkGroupInvocations) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "kernel %s: its shader's local size is %u x %u x %u, and %s takes at most %u in "
                 "all, %u x %u x %u; make it smaller", kernel->name, (unsigned)group[0], (unsigned)group[1],
                 (unsigned)group[2], d->name, (unsigned)most->maxComputeWorkGroupInvocations,
                 (unsigned)most->maxComputeWorkGroupSize[0], (unsigned)most->maxComputeWorkGroupSize[1],
                 (unsigned)most->maxComputeWorkGroupSize[2]);
}

static gk_result check_shape(const gki_vulkan_device *d, const gk_kernel *kernel, const uint32_t *words, size_t bytes,
                             gki_vulkan_kernel *made) {
  const gk_code *code = kernel->vulkan;
  const char *entry = gki_vulkan_entry(code);
  shape s;
  if (!read_shape(&s, words, bytes, entry))
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its image, of %zu bytes, is no SPIR-V of this machine's byte order, "
                   "or is cut off; give all of it, and its size in .image_bytes", kernel->name, bytes);
  if (!s.has_entry)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its code has no compute shader %s; name it in .entry", kernel->name,
                   entry);
  if (s.has_descriptors)
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its code declares a buffer, image or sampler (set %u, binding %u), "
                   "and gk binds none; declare parameters in layout(push_constant, scalar), memory as buffer_reference",
                   kernel->name, (unsigned)s.set, (unsigned)s.binding);
  if (!s.group[0] || !s.group[1] || !s.group[2])
    return gk_fail(GK_ERROR_COMPILE, "kernel %s: its code gives no local size as numbers; write "
                   "layout(local_size_x = 64) in;", kernel->name);
  for (int axis = 0; axis < 3; ++axis)
    made->per_block[axis] = code->per_block[axis] ? code->per_block[axis] : s.group[axis];
  return check_group(d, kernel, s.group);
}

gk_result gki_vulkan_handwritten(const gki_vulkan_device *d, const gk_kernel *kernel, const char *name,
                                 uint32_t **words, size_t *bytes, gki_vulkan_kernel *made) {
  const gk_code *code = kernel->vulkan;
  gk_result result = GK_OK;
  *words = NULL;
  if (code->text) result = gki_vulkan_compile(name, code->text, GKI_VULKAN_WITHOUT_DOUBLES, words, bytes);
  else {
    *bytes = code->image_bytes;
    *words = gk_host_alloc(*bytes);
    if (!*words) return gki_fail_memory("a kernel's image", *bytes);
    memcpy(*words, code->image, *bytes);
  }
  return result == GK_OK ? check_shape(d, kernel, *words, *bytes, made) : result;
}

/* ---- push constants ---------------------------------------------------------------------------------------------- */

uint32_t gki_vulkan_push(const gki_params *params, uint32_t number, unsigned char to[GKI_VULKAN_PUSHED]) {
  const gki_param_task *task = &params->tasks[number];
  memset(to, 0, GKI_VULKAN_PUSHED);
  memcpy(to, params->wanted.bytes + task->at, task->bytes);
  return (uint32_t)((task->bytes + 3) / 4 * 4);
}
