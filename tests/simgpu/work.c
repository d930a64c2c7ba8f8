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

static CUresult check_device_range(const sim_context *context, const unsigned char *at, size_t bytes) {
  if (sim_block_of(context, (uintptr_t)at, bytes)) return CUDA_SUCCESS;
  return sim_invalid("%zu bytes at %p aren't within one block of this context's memory", bytes, (const void *)at);
}

uint64_t sim_source_hash(const unsigned char *bytes, size_t count) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t k = 0; k < count; ++k) hash = (hash ^ bytes[k]) * UINT64_C(0x100000001b3);
  return hash | 1;
}

/* host: the side that may be pageable, NULL: none. */
static CUresult enqueue_copy(CUstream where, sim_copy copy, const void *host) {
  SIM_FIND_STREAM(stream, where);
  sim_context *context = stream->base.context;
  if (copy.bytes == 0) return CUDA_SUCCESS;
  if (host != copy.to) SIM_TRY(check_device_range(context, copy.to, copy.bytes));
  if (copy.from && host != copy.from) SIM_TRY(check_device_range(context, copy.from, copy.bytes));
  bool pageable = host && !pinned_block(context, host, copy.bytes);
  if (pageable) SIM_TRY(sim_capture_refuses(stream));
  if (stream->capture)
    return sim_capture_add(
      stream, (sim_work){.type = copy.from ? CU_GRAPH_NODE_TYPE_MEMCPY : CU_GRAPH_NODE_TYPE_MEMSET, .copy = copy});
  if (pageable) SIM_TRY(sim_capture_unsafe());
  ++sim_count.copies;
  sim_item item = {.kind = SIM_ITEM_COPY, .copy = copy};
  if (!pageable) {
    if (host && host == copy.from) item.source = sim_source_hash(copy.from, copy.bytes);
    sim_post(stream, item);
    return CUDA_SUCCESS;
  }
  ++sim_count.pageable;
  unsigned char *staged = sim_obtain(copy.bytes);
  if (host == copy.from) { /* it is read before the call returns */
    item.copy.from = item.staged = memcpy(staged, host, copy.bytes);
    sim_post(stream, item);
    return CUDA_SUCCESS;
  }
  ++sim_count.waits;
  item.copy.to = staged;
  sim_post(stream, item);
  sim_wait_stream(stream);
  memcpy(copy.to, staged, copy.bytes);
  free(staged);
  return sim_state(context);
}

CUresult sim_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  SIM_ENTER(cuMemcpyHtoDAsync);
  return enqueue_copy(stream, (sim_copy){(void *)(uintptr_t)to, from, bytes, 0}, from);
}

CUresult sim_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  SIM_ENTER(cuMemcpyDtoHAsync);
  return enqueue_copy(stream, (sim_copy){to, (void *)(uintptr_t)from, bytes, 0}, to);
}

CUresult sim_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  SIM_ENTER(cuMemcpyDtoDAsync);
  return enqueue_copy(stream, (sim_copy){(void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes, 0}, NULL);
}

CUresult sim_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  SIM_ENTER(cuMemsetD8Async);
  return enqueue_copy(stream, (sim_copy){(void *)(uintptr_t)to, NULL, bytes, value}, NULL);
}

static void carry_out_copy(void *data) {
  const sim_copy *copy = data;
  if (copy->from) memmove(copy->to, copy->from, copy->bytes);
  else memset(copy->to, copy->value, copy->bytes);
}

static bool guarded(sim_device *device, void (*work)(void *), void *data, const char *what, const char *name) {
  uintptr_t at;
  char where[256];
  if (sim_guarded(device, work, data, &at)) return true;
  pthread_mutex_lock(&sim_lock);
  sim_memory_describe(device, at, where, sizeof where);
  pthread_mutex_unlock(&sim_lock);
  snprintf(device->why, sizeof device->why, "%s%s touches %s", what, name, where);
  sim_broken("memory", "%s", device->why);
  return false;
}

bool sim_run_copy(sim_device *device, const sim_copy *copy) {
  sim_copy mine = *copy;
  return guarded(device, carry_out_copy, &mine, copy->from ? "a copy" : "a fill", "");
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
  char log[1024] = "";
  SIM_FIND_CONTEXT(context);
  SIM_TRY(sim_capture_unsafe());
  if (!module || !image || (count && (!options || !values))) return sim_invalid("a bad argument");
  sim_module *loaded = NULL;
  CUresult result = sim_module_load(image, sim_version, sim_arch, &loaded, log, sizeof log);
  write_log(count, options, values, log);
  if (result != CUDA_SUCCESS) return sim_refuse(result, "%s", log);
  sim_module_object *made = sim_object_make(sizeof *made, SIM_MODULE, context, false);
  made->module = loaded;
  *module = SIM_HANDLE(CUmodule, made);
  return CUDA_SUCCESS;
}

CUresult sim_unload(CUmodule handle) {
  sim_module_object *module = SIM_OF(sim_module_object, handle, SIM_MODULE);
  if (!module) return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "no module");
  SIM_TRY(sim_capture_unsafe());
  CUresult state = sim_check_context(&module->base);
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
  if (!function || !name) return sim_invalid("a bad argument");
  SIM_FIND_HERE(sim_module_object, module, handle, SIM_MODULE, CUDA_ERROR_INVALID_VALUE);
  sim_function *found = module->functions;
  while (found && strcmp(found->name, name) != 0) found = found->next;
  const sim_kernel *kernel = found ? found->kernel : sim_module_kernel(module->module, name);
  if (!kernel) return sim_refuse(CUDA_ERROR_NOT_FOUND, "the module has no entry %s", name);
  *function = SIM_HANDLE(CUfunction, found ? found : function_make(module, kernel, name));
  return CUDA_SUCCESS;
}

#define FIND_FUNCTION(name, handle, code) SIM_FIND_HERE(sim_function, name, handle, SIM_FUNCTION, code)

CUresult sim_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  SIM_ENTER(cuFuncGetAttribute);
  if (!value) return sim_invalid("a bad argument");
  FIND_FUNCTION(function, handle, CUDA_ERROR_INVALID_VALUE);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) *value = (int)sim_kernel_threads(function->kernel);
  else if (attribute == CU_FUNC_ATTRIBUTE_NUM_REGS) *value = 32;
  else if (attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) *value = 0;
  else if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) *value = (int)function->dynamic_most;
  else return sim_invalid("function attribute %d isn't simulated", (int)attribute);
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  SIM_ENTER(cuFuncSetAttribute);
  FIND_FUNCTION(function, handle, CUDA_ERROR_INVALID_HANDLE);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > sim_shared_most())
    return sim_invalid("attribute %d can't be %d", (int)attribute, value);
  function->dynamic_most = (unsigned)value;
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetParamInfo(CUfunction handle, size_t parameter, size_t *offset, size_t *bytes) {
  SIM_ENTER(cuFuncGetParamInfo);
  size_t size;
  if (!offset) return sim_invalid("a bad argument");
  FIND_FUNCTION(function, handle, CUDA_ERROR_INVALID_VALUE);
  if (parameter >= sim_kernel_parameter_count(function->kernel)) return sim_invalid("no parameter %zu", parameter);
  sim_kernel_parameter(function->kernel, parameter, offset, bytes ? bytes : &size);
  return CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
                                                         size_t shared_bytes) {
  SIM_ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  (void)shared_bytes;
  if (!SIM_OF(sim_function, handle, SIM_FUNCTION) || !blocks || threads <= 0 || threads > SIM_BLOCK)
    return sim_invalid("a bad argument");
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
      return sim_invalid("a kernel's grid or block is 0 or too large: %u, %u", grid[k], block[k]);
  if (block[0] * block[1] * block[2] > sim_kernel_threads(function->kernel))
    return sim_invalid("%u threads in a block", block[0] * block[1] * block[2]);
  if (asked->sharedMemBytes > function->dynamic_most)
    return sim_invalid("too much shared memory, or more than was asked for");
  return CUDA_SUCCESS;
}

static CUresult find_function(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, sim_function **function) {
  SIM_FIND_CONTEXT(context);
  if (asked->kern || asked->extra) return sim_invalid("kern and extra aren't simulated");
  *function = SIM_OF(sim_function, asked->func, SIM_FUNCTION);
  if (!*function) return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "no such kernel");
  if (!asked->ctx) return sim_check_context(&(*function)->base);
  context = SIM_OF(sim_context, asked->ctx, SIM_CONTEXT);
  if (context && (*function)->base.context == context) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "foreign", "a kernel is of another context than was said");
}

CUresult sim_call_make(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, size_t most, sim_call **out) {
  sim_function *function;
  SIM_TRY(find_function(asked, &function));
  SIM_TRY(check_shape(function, asked));
  const sim_kernel *kernel = function->kernel;
  size_t count = sim_kernel_parameter_count(kernel);
  if (count && !asked->kernelParams) return sim_invalid("%s: %zu parameters are missing", function->name, count);
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

static CUresult launch(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, bool cooperative, CUstream where) {
  sim_call *call;
  SIM_FIND_STREAM(stream, where);
  SIM_TRY(sim_call_make(asked, sim_version >= 12010 && !stream->capture ? SIM_LAUNCH_BYTES : SIM_NODE_BYTES, &call));
  call->cooperative = cooperative;
  if (stream->capture) return sim_capture_add(stream, (sim_work){.type = CU_GRAPH_NODE_TYPE_KERNEL, .call = call});
  ++sim_count.kernels;
  sim_post(stream, (sim_item){.kind = SIM_ITEM_KERNEL, .call = call});
  if (sim_launch_blocking) sim_wait_stream(stream);
  return CUDA_SUCCESS;
}

CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                            unsigned int block_x, unsigned int block_y, unsigned int block_z,
                            unsigned int shared_bytes, CUstream stream, void **parameters, void **extra) {
  SIM_ENTER(cuLaunchKernel);
  return launch(&(CUDA_KERNEL_NODE_PARAMS_v3){function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                              shared_bytes, parameters, extra, NULL, NULL}, false, stream);
}

CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                       void **parameters) {
  SIM_ENTER(cuLaunchCooperativeKernel);
  return launch(&(CUDA_KERNEL_NODE_PARAMS_v3){function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                              shared_bytes, parameters, NULL, NULL, NULL}, true, stream);
}

sim_grid *sim_begin_call(const sim_call *call) {
  return sim_kernel_begin(call->kernel, call->grid, call->block, call->parameters);
}

typedef struct going { sim_grid *grid; uint64_t *random; bool over; } going;

static void go_on(void *data) {
  going *g = data;
  g->over = !g->grid || sim_kernel_go_on(g->grid, g->random);
}

bool sim_go_on_call(sim_device *device, const sim_call *call, sim_grid *grid, uint64_t *random, bool *over) {
  going g = {grid, random, false};
  bool right = guarded(device, go_on, &g, "kernel ", call->name);
  *over = g.over;
  return right;
}
