/* Copies, fills, modules and kernels. */
#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t sim_unloads;

/* ---- copies ---- */

static const sim_block *pinned_block(const sim_context *context, const void *at, size_t bytes) {
  const sim_block *block = sim_block_of(context, (uintptr_t)at, bytes);
  return block && block->kind != SIMGPU_MEMORY ? block : NULL;
}

static CUresult check_device_range(const sim_context *context, const void *at, size_t bytes, const char *entry) {
  if (sim_block_of(context, (uintptr_t)at, bytes)) return CUDA_SUCCESS;
  return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%s: %zu bytes at %p aren't within one block of this context's memory",
                    entry, bytes, at);
}

uint64_t sim_source_hash(const unsigned char *bytes, size_t count) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t k = 0; k < count; ++k) hash = (hash ^ bytes[k]) * UINT64_C(0x100000001b3);
  return hash | 1;
}

/* source: page-locked memory of the host's, or NULL. */
static void post_copy(sim_stream *stream, sim_copy copy, unsigned char *staged, const unsigned char *source) {
  sim_post(stream, (sim_item){.kind = SIM_ITEM_COPY, .copy = copy, .staged = staged,
                              .source = source ? sim_source_hash(source, copy.bytes) : 0});
}

/* host: the side that may be pageable, NULL: none. */
static CUresult hand_over_copy(CUstream where, sim_copy copy, const void *host, const char *entry) {
  SIM_FIND_STREAM(stream, where, entry);
  sim_context *context = stream->base.context;
  if (copy.bytes == 0) return CUDA_SUCCESS;
  if (host != copy.to) SIM_TRY(check_device_range(context, copy.to, copy.bytes, entry));
  if (copy.from && host != copy.from) SIM_TRY(check_device_range(context, copy.from, copy.bytes, entry));
  bool pageable = host && !pinned_block(context, host, copy.bytes);
  if (stream->capture)
    return pageable ? sim_capture_refuses(stream, entry) : sim_capture_add(stream, NULL, &copy, NULL);
  if (pageable) SIM_TRY(sim_capture_unsafe(entry));
  ++sim_count.copies;
  if (!pageable) {
    post_copy(stream, copy, NULL, host == copy.from ? copy.from : NULL);
    return CUDA_SUCCESS;
  }
  ++sim_count.pageable;
  unsigned char *staged = sim_obtain(copy.bytes);
  if (host == copy.from) { /* it is read before the call returns */
    memcpy(staged, host, copy.bytes);
    copy.from = staged;
    post_copy(stream, copy, staged, NULL);
    return CUDA_SUCCESS;
  }
  ++sim_count.waits;
  unsigned char *to = copy.to;
  copy.to = staged;
  post_copy(stream, copy, NULL, NULL);
  sim_wait_stream(stream);
  memcpy(to, staged, copy.bytes);
  free(staged);
  return sim_state(context);
}

SIM_DEFINE(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
           hand_over_copy(stream, (sim_copy){(void *)(uintptr_t)to, from, bytes, 0}, from, "cuMemcpyHtoDAsync"))
SIM_DEFINE(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
           hand_over_copy(stream, (sim_copy){to, (void *)(uintptr_t)from, bytes, 0}, to, "cuMemcpyDtoHAsync"))
SIM_DEFINE(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
           hand_over_copy(stream, (sim_copy){(void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, 0}, NULL,
                          "cuMemcpyDtoDAsync"))
SIM_DEFINE(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream),
           hand_over_copy(stream, (sim_copy){(void *)(uintptr_t)to, NULL, bytes, value}, NULL, "cuMemsetD8Async"))

static void carry_out_copy(void *data) {
  const sim_copy *copy = data;
  if (copy->from) memmove(copy->to, copy->from, copy->bytes);
  else memset(copy->to, copy->value, copy->bytes);
}

static bool guarded(sim_device *device, void (*work)(void *), void *data, const char *what, const char *name,
                    sim_why *why) {
  uintptr_t at;
  char where[256];
  if (sim_guarded(device, work, data, &at)) return true;
  pthread_mutex_lock(&sim_lock);
  sim_memory_describe(device, at, where, sizeof where);
  pthread_mutex_unlock(&sim_lock);
  snprintf(why->text, sizeof why->text, "%s%s touches %s", what, name, where);
  sim_broken("memory", "%s", why->text);
  return false;
}

bool sim_run_copy(sim_device *device, const sim_copy *copy, sim_why *why) {
  sim_copy mine = *copy;
  return guarded(device, carry_out_copy, &mine, copy->from ? "a copy" : "a fill", "", why);
}

/* ---- modules ---- */

static void write_log(unsigned count, const CUjit_option *options, void **values, const char *log) {
  char *into = NULL;
  size_t bytes = 0;
  for (unsigned k = 0; k < count; ++k) {
    if (options[k] == CU_JIT_ERROR_LOG_BUFFER) into = values[k];
    if (options[k] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = (size_t)(uintptr_t)values[k];
  }
  if (into && bytes) snprintf(into, bytes, "%s", log);
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                                void **values) {
  SIM_ENTER(cuModuleLoadDataEx);
  sim_context *context;
  char log[1024] = "";
  SIM_TRY(sim_current(&context));
  SIM_TRY(sim_capture_unsafe("cuModuleLoadDataEx"));
  if (!module || !image || (count && (!options || !values)))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuModuleLoadDataEx: a bad argument");
  sim_module *loaded = NULL;
  CUresult result = sim_module_load(image, sim_version, sim_arch, &loaded, log, sizeof log);
  write_log(count, options, values, log);
  if (result != CUDA_SUCCESS) return sim_refuse(result, "cuModuleLoadDataEx: %s", log);
  sim_module_object *made = sim_object_make(sizeof *made, SIM_MODULE, context, false);
  made->module = loaded;
  *module = SIM_HANDLE(CUmodule, made);
  return CUDA_SUCCESS;
}

CUresult sim_unload(CUmodule handle) {
  sim_module_object *module = SIM_OF(sim_module_object, handle, SIM_MODULE);
  if (!module) return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "cuModuleUnload: no module");
  SIM_TRY(sim_capture_unsafe("cuModuleUnload"));
  CUresult state = sim_check_context(&module->base, "module");
  sim_wait_idle(module->base.context);
  for (sim_function *next, *each = module->functions; each; each = next) {
    next = each->next;
    sim_object_end(&each->base);
    free(each->name);
    free(each);
  }
  ++sim_unloads;
  sim_module_unload(module->module);
  sim_object_end(&module->base);
  free(module);
  return state;
}

SIM_DEFINE_BACK(cuModuleUnload, (CUmodule module), sim_unload(module))

static sim_function *function_make(sim_module_object *module, const sim_kernel *kernel, const char *name) {
  sim_function *function = sim_object_make(sizeof *function, SIM_FUNCTION, module->base.context, true);
  function->module = module;
  function->kernel = kernel;
  function->name = strdup(name);
  function->dynamic_most = SIM_SHARED;
  for (size_t k = 0; k < sim_kernel_parameter_count(kernel); ++k) {
    size_t offset, bytes;
    sim_kernel_parameter(kernel, k, &offset, &bytes);
    if (offset + bytes > function->bytes) function->bytes = offset + bytes;
  }
  function->next = module->functions;
  module->functions = function;
  return function;
}

CUresult sim_cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
  SIM_ENTER(cuModuleGetFunction);
  sim_module_object *module = SIM_OF(sim_module_object, handle, SIM_MODULE);
  if (!function || !name || !module) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuModuleGetFunction: a bad argument");
  SIM_TRY(sim_check_context(&module->base, "module"));
  sim_function *found = module->functions;
  while (found && strcmp(found->name, name) != 0) found = found->next;
  const sim_kernel *kernel = found ? found->kernel : sim_module_kernel(module->module, name);
  if (!kernel) return sim_refuse(CUDA_ERROR_NOT_FOUND, "the module has no entry %s", name);
  *function = SIM_HANDLE(CUfunction, found ? found : function_make(module, kernel, name));
  return CUDA_SUCCESS;
}

/* Declares it. */
#define FIND_FUNCTION(found, handle) \
  sim_function *found; \
  SIM_TRY(sim_find_here((uint64_t)(uintptr_t)(handle), SIM_FUNCTION, CUDA_ERROR_INVALID_HANDLE, &found))

CUresult sim_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  SIM_ENTER(cuFuncGetAttribute);
  FIND_FUNCTION(function, handle);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = (int)sim_kernel_threads(function->kernel);
  else if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS) *value = 32;
  else if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) *value = 0;
  else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) *value = (int)function->dynamic_most;
  else return sim_refuse(CUDA_ERROR_INVALID_VALUE, "function attribute %d isn't simulated", (int)attribute);
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  SIM_ENTER(cuFuncSetAttribute);
  FIND_FUNCTION(function, handle);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > sim_shared_most())
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuFuncSetAttribute: attribute %d can't be %d", (int)attribute, value);
  function->dynamic_most = (unsigned)value;
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetParamInfo(CUfunction handle, size_t parameter, size_t *offset, size_t *bytes) {
  SIM_ENTER(cuFuncGetParamInfo);
  FIND_FUNCTION(function, handle);
  size_t size;
  if (!offset || parameter >= sim_kernel_parameter_count(function->kernel))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuFuncGetParamInfo: there is no parameter %zu", parameter);
  sim_kernel_parameter(function->kernel, parameter, offset, bytes ? bytes : &size);
  return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                         __attribute__((unused)) size_t shared_bytes) {
  SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (!blocks || !SIM_OF(sim_function, handle, SIM_FUNCTION) || threads <= 0 || threads > SIM_BLOCK)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "cuOccupancyMaxActiveBlocksPerMultiprocessor: a bad argument");
  *blocks = 2 * SIM_BLOCK / threads;
  return CUDA_SUCCESS;
}

/* ---- kernels ---- */

static CUresult check_shape(const sim_function *function, const CUDA_KERNEL_NODE_PARAMS_v3 *asked) {
  const unsigned grid[3] = {asked->gridDimX, asked->gridDimY, asked->gridDimZ};
  const unsigned block[3] = {asked->blockDimX, asked->blockDimY, asked->blockDimZ};
  static const unsigned grid_most[3] = {0x7fffffff, 65535, 65535}, block_most[3] = {1024, 1024, 64};
  for (int k = 0; k < 3; ++k)
    if (grid[k] == 0 || grid[k] > grid_most[k] || block[k] == 0 || block[k] > block_most[k])
      return sim_refuse(CUDA_ERROR_INVALID_VALUE, "a kernel's grid or block is 0 or too large: %u, %u", grid[k],
                        block[k]);
  if (block[0] * block[1] * block[2] > sim_kernel_threads(function->kernel))
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%u threads in a block", block[0] * block[1] * block[2]);
  if (asked->sharedMemBytes > function->dynamic_most)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "too much shared memory, or more than was asked for");
  return CUDA_SUCCESS;
}

static CUresult find_function(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, sim_function **out) {
  SIM_FIND_CONTEXT(context);
  if (asked->kern || asked->extra) return sim_refuse(CUDA_ERROR_INVALID_VALUE, "kern and extra aren't simulated");
  sim_function *function = SIM_OF(sim_function, asked->func, SIM_FUNCTION);
  if (!function) return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "no such kernel");
  *out = function;
  if (!asked->ctx) return sim_check_context(&function->base, "kernel");
  context = SIM_OF(sim_context, asked->ctx, SIM_CONTEXT);
  if (context && function->base.context == context) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "foreign", "a kernel is of another context than was said");
}

CUresult sim_call_make(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, size_t most, sim_call **out) {
  sim_function *function = NULL;
  SIM_TRY(find_function(asked, &function));
  SIM_TRY(check_shape(function, asked));
  const sim_kernel *kernel = function->kernel;
  size_t count = sim_kernel_parameter_count(kernel);
  if (count && !asked->kernelParams)
    return sim_refuse(CUDA_ERROR_INVALID_VALUE, "%s: %zu parameters are missing", function->name, count);
  if (function->bytes > most)
    return sim_breaks(CUDA_ERROR_INVALID_VALUE, "parameters", "%s: %zu bytes of parameters, more than %zu",
                      function->name, function->bytes, most);
  sim_call *call = sim_obtain(sizeof *call + function->bytes);
  *call = (sim_call){.function = function->base.handle, .context = function->base.context, .kernel = kernel,
                     .name = function->name, .grid = {asked->gridDimX, asked->gridDimY, asked->gridDimZ},
                     .block = {asked->blockDimX, asked->blockDimY, asked->blockDimZ}, .bytes = function->bytes};
  for (size_t k = 0; k < count; ++k) {
    size_t offset, bytes;
    sim_kernel_parameter(kernel, k, &offset, &bytes);
    memcpy(call->parameters + offset, asked->kernelParams[k], bytes);
  }
  *out = call;
  return CUDA_SUCCESS;
}

sim_call *sim_call_copy(const sim_call *call) { return sim_duplicate(call, call ? sizeof *call + call->bytes : 0); }

static CUresult launch(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, bool cooperative, CUstream where, const char *entry) {
  sim_stream *stream;
  sim_call *call;
  SIM_TRY(sim_stream_find(where, entry, &stream));
  SIM_TRY(sim_call_make(asked, sim_version >= 12010 && !stream->capture ? SIM_LAUNCH_BYTES : SIM_NODE_BYTES, &call));
  call->cooperative = cooperative;
  if (stream->capture) return sim_capture_add(stream, call, NULL, NULL);
  ++sim_count.kernels;
  sim_post(stream, (sim_item){.kind = SIM_ITEM_KERNEL, .call = call});
  if (sim_launch_blocking) sim_wait_stream(stream);
  return CUDA_SUCCESS;
}

CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z,
                            unsigned int shared_bytes, CUstream where, void **parameters, void **extra) {
  SIM_ENTER(cuLaunchKernel);
  const CUDA_KERNEL_NODE_PARAMS_v3 asked = {function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                            parameters, extra, NULL, NULL};
  return launch(&asked, false, where, "cuLaunchKernel");
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes, CUstream where,
                                       void **parameters) {
  SIM_ENTER(cuLaunchCooperativeKernel);
  const CUDA_KERNEL_NODE_PARAMS_v3 asked = {function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                                            parameters, NULL, NULL, NULL};
  return launch(&asked, true, where, "cuLaunchCooperativeKernel");
}

static void carry_out_call(void *data) {
  const sim_call *call = data;
  sim_kernel_run(call->kernel, call->grid, call->block, call->parameters);
}

bool sim_run_call(sim_device *device, const sim_call *call, sim_why *why) {
  union { const sim_call *constant; void *data; } mine = {call};
  return guarded(device, carry_out_call, mine.data, "kernel ", call->name, why);
}

sim_grid *sim_begin_call(const sim_call *call) {
  return sim_kernel_begin(call->kernel, call->grid, call->block, call->parameters);
}

typedef struct going { sim_grid *grid; uint64_t *random; bool over; } going;

static void go_on(void *data) {
  going *g = data;
  g->over = sim_kernel_go_on(g->grid, g->random);
}

bool sim_go_on_call(sim_device *device, const sim_call *call, sim_grid *grid, uint64_t *random, bool *over,
                    sim_why *why) {
  going g = {grid, random, false};
  bool right = guarded(device, go_on, &g, "kernel ", call->name, why);
  *over = g.over;
  return right;
}
