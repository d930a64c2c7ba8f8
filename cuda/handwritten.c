#include "cuda/handwritten.h"
#include "lower/params.h"

enum { DEFAULT_SHARED = 48 << 10 /* bytes of shared memory without opt-in */ };

const gk_code *gki_cuda_code(const gk_kernel *kernel, const char **beyond) {
  return gki_param_code(kernel, kernel->cuda, beyond);
}

/* Only drivers from 12.4 on report a function's parameters. */
static gk_result check_parameters(const gki_cuda_device *device, const gk_kernel *kernel, CUfunction function) {
  const gki_cuda_driver *driver = device->driver;
  for (uint32_t k = 0; driver->cuFuncGetParamInfo; ++k) {
    size_t offset, bytes;
    CUresult result = driver->cuFuncGetParamInfo(function, k, &offset, &bytes);
    const bool is_there = result != CUDA_ERROR_INVALID_VALUE;
    if (is_there && result != CUDA_SUCCESS)
      return gki_cuda_result(driver, result, "cuFuncGetParamInfo of kernel %s", kernel->name);
    if (!is_there && k == kernel->param_count) return GK_OK;
    if (is_there && k == kernel->param_count)
      return gk_fail(GK_ERROR_INVALID, "kernel %s: it says that it has %u parameters, and its code takes more; list "
                     "all of them", kernel->name, (unsigned)k);
    const gk_param *param = &kernel->params[k];
    if (!is_there)
      return gk_fail(GK_ERROR_INVALID, "kernel %s: its code takes %u parameters, so there is none for %s; leave it "
                     "out", kernel->name, (unsigned)k, param->name);
    if (bytes != gki_param_bytes(param))
      return gk_fail(GK_ERROR_INVALID,
                     "kernel %s: its parameter %s has %zu bytes, and its code takes %zu there; give "
                     "it the type that the code has",
                     kernel->name, param->name, gki_param_bytes(param), bytes);
  }
  return GK_OK;
}

/* Whether the driver doesn't know the caller's CUfunction, or not in this context. */
static bool is_unknown(const gk_kernel *kernel, CUresult result) {
  return kernel->cuda->function && (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE ||
                                    result == CUDA_ERROR_INVALID_CONTEXT || result == CUDA_ERROR_NOT_FOUND);
}

static gk_result get_attribute(const gki_cuda_device *device, const gk_kernel *kernel, CUfunction_attribute attribute,
                               CUfunction function, int *value) {
  const CUresult result = device->driver->cuFuncGetAttribute(value, attribute, function);
  if (!is_unknown(kernel, result))
    return gki_cuda_result(device->driver, result, "cuFuncGetAttribute of kernel %s", kernel->name);
  char text[300];
  gki_cuda_describe_result(device->driver, result, text, sizeof text);
  return gk_fail(GK_ERROR_INVALID, "kernel %s: its .function is none of the device's context: %s; get it from a module "
                 "that is loaded in that of gk_cuda_context, and keep the module", kernel->name, text);
}

static gk_result check_block(const gki_cuda_device *device, const gk_kernel *kernel, const gki_cuda_kernel *made) {
  int most = 0;
  const unsigned threads = made->block[0] * made->block[1] * made->block[2];
  gk_result result = get_attribute(device, kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, made->function, &most);
  if (result != GK_OK || (int)threads <= most) return result;
  return gk_fail(GK_ERROR_INVALID, "kernel %s: its blocks have %u threads, and its code can have %d (its registers and "
                 "launch bounds say so); make .block smaller", kernel->name, threads, most);
}

/* Only raises the limit, since other users of the function may need theirs. */
static gk_result ask_for_shared(const gki_cuda_device *device, const gk_kernel *kernel, const gki_cuda_kernel *made) {
  const gki_cuda_driver *driver = device->driver;
  int fixed = 0, dynamic = 0, most = 0;
  if (!made->shared_bytes) return GK_OK;
  gk_result result = get_attribute(device, kernel, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, made->function, &fixed);
  if (result == GK_OK)
    result = get_attribute(device, kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, made->function, &dynamic);
  if (result != GK_OK) return result;
  const uint64_t wanted = (uint64_t)made->shared_bytes + (unsigned)fixed;
  if (wanted <= DEFAULT_SHARED && made->shared_bytes <= (unsigned)dynamic) return GK_OK;
  result = gki_cuda_result(driver,
                          driver->cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                                       device->device),
                          "cuDeviceGetAttribute(shared memory of a block)");
  if (result != GK_OK) return result;
  if (wanted > (unsigned)most)
    return gk_fail(GK_ERROR_INVALID, "kernel %s: its blocks take %llu bytes of shared memory, %u of them dynamic, and "
                   "this GPU gives a block %d; make .shared_bytes smaller", kernel->name, (unsigned long long)wanted,
                   made->shared_bytes, most);
  if (made->shared_bytes <= (unsigned)dynamic) return GK_OK;
  return gki_cuda_result(driver,
                        driver->cuFuncSetAttribute(made->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   (int)made->shared_bytes),
                        "cuFuncSetAttribute of %u bytes of shared memory of kernel %s", made->shared_bytes,
                        kernel->name);
}

gk_result gki_cuda_handwritten_prepare(const gki_cuda_device *device, const gk_kernel *kernel, gki_cuda_kernel *made) {
  const gk_code *code = kernel->cuda;
  made->handwritten = kernel;
  made->shared_bytes = code->shared_bytes;
  gki_param_block(code, made->block, made->per_block);
  gk_result result = check_block(device, kernel, made);
  if (result == GK_OK) result = check_parameters(device, kernel, made->function);
  return result == GK_OK ? ask_for_shared(device, kernel, made) : result;
}
