/* Entries by version, devices, contexts, modules and kernels. */
#include "sim_world.h"

static uint64_t seen[4];

static void k_see(const unsigned char *p, unsigned long long threads) { /* 1, 8 and 4 bytes */
  memcpy(&seen[0], p, 16);
  memcpy(&seen[2], p + 16, 4);
  seen[3] = threads;
}

static void k_none(const unsigned char *p, unsigned long long threads) {
  (void)p;
  (void)threads;
}

static const sim_stub_kernel kernels[] = {{"see", k_see, {1, 8, 4}},
                                          {"large", k_none, {4096, 4}},
                                          {"largest", k_none, {32764}},
                                          {"too_large", k_none, {32768}},
                                          {"none", k_none, {0}},
                                          {0}};

static int begin(void **state) {
  (void)state;
  return open_context(kernels);
}

/* ---- entries ---- */

static CUresult ask(const char *name, int version, void **entry, CUdriverProcAddressQueryResult *status) {
  *entry = &seen;
  return get_entry(name, entry, version, 0, status);
}

#define CASE(test) TEST_WITH(test, begin, close_context)

CASE(entry_newer_than_the_driver_is_unknown) {
  void *entry;
  CUdriverProcAddressQueryResult status;
  static const struct { const char *name; int asked, driver; CUdriverProcAddressQueryResult wanted; } cases[] = {
    {"cuGraphConditionalHandleCreate", 12030, 12020, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
    {"cuGraphConditionalHandleCreate", 12030, 12030, CU_GET_PROC_ADDRESS_SUCCESS},
    {"cuGraphConditionalHandleCreate", 12020, 12030, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
    {"cuGraphInstantiateWithParams", 12000, 11040, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
    {"cuGraphInstantiateWithFlags", 11040, 11040, CU_GET_PROC_ADDRESS_SUCCESS},
    {"cuGraphAddNode", 12030, 11040, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
    {"cuGraphAddNode", 12010, 13000, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
    {"cuNoSuchThing", 13000, 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    sim->set_version(cases[k].driver);
    RIGHT(ask(cases[k].name, cases[k].asked, &entry, &status));
    assert_int_equal(status, cases[k].wanted);
    assert_int_equal(entry != NULL, status == CU_GET_PROC_ADDRESS_SUCCESS);
    sim->answer_no("procaddress"); /* other drivers say it twice */
    assert_int_equal(ask(cases[k].name, cases[k].asked, &entry, &status),
                     entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
    sim->answer_no(NULL);
  }
}

CASE(version_decides_the_signature) {
  static const struct { const char *name; int asked, driver; bool other; } cases[] = {
    {"cuGraphAddNode", 12020, 13000, true},       {"cuGraphAddNode", 12030, 12020, true},
    {"cuGraphAddNode", 12030, 13000, false},      {"cuMemAlloc", 2000, 13000, true},
    {"cuStreamBeginCapture", 10000, 13000, true}, {"cuGraphAddKernelNode", 12000, 13000, false},
    {"cuGraphAddKernelNode", 12000, 11040, false}, {"cuStreamGetCaptureInfo", 12020, 13000, true}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    void *entry;
    CUresult (*function)(void);
    CUdriverProcAddressQueryResult status;
    sim->set_version(cases[k].driver);
    RIGHT(ask(cases[k].name, cases[k].asked, &entry, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
    if (!cases[k].other) continue;
    memcpy(&function, &entry, sizeof function);
    WRONG(CUDA_ERROR_UNKNOWN, function());
    expect_broken("signature");
  }
}

CASE(first_entry_has_no_status) {
  gki_cuGetProcAddress first;
  void *entry, *library = dlopen(SIM_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ADDRESS_OF(first, dlsym(library, "cuGetProcAddress"));
  RIGHT(first("cuInit", &entry, 2000, 0));
  WRONG(CUDA_ERROR_NOT_FOUND, first("cuNoSuchThing", &entry, 2000, 0));
  assert_null(entry);
  dlclose(library);
}

/* ---- devices and contexts ---- */

CASE(device_is_described) {
  int count = 0, value = 0, version = 0;
  char name[64];
  size_t bytes = 0;
  CUdevice device = -1;
  RIGHT(cu.cuDeviceGetCount(&count));
  assert_int_equal(count, 1);
  RIGHT(cu.cuDeviceGet(&device, 0));
  WRONG(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGet(&device, 1));
  RIGHT(cu.cuDeviceGetName(name, sizeof name, 0));
  assert_string_equal(name, "simulated GPU 0");
  RIGHT(cu.cuDeviceTotalMem(&bytes, 0));
  assert_true(bytes > 0);
  RIGHT(cu.cuDeviceGetPCIBusId(name, 13, 0));
  assert_string_equal(name, "0000:01:00.0");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuDeviceGetPCIBusId(name, 12, 0));
  WRONG(CUDA_ERROR_INVALID_DEVICE, cu.cuDeviceGetPCIBusId(name, sizeof name, 1));
  RIGHT(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  assert_int_equal(value, 9);
  RIGHT(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
  assert_int_equal(value, 1);
  sim->answer_no("concurrent");
  RIGHT(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
  assert_int_equal(value, 0);
  sim->set_version(12040);
  RIGHT(cu.cuDriverGetVersion(&version));
  assert_int_equal(version, 12040);
  RIGHT(cu.cuDeviceGraphMemTrim(0));
}

CASE(errors_have_names) {
  const char *text = NULL;
  RIGHT(cu.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  assert_string_equal(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  RIGHT(cu.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  assert_string_equal(text, "out of memory");
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuGetErrorName((CUresult)4242, &text));
}

CASE(contexts_are_a_stack) {
  CUcontext current = NULL, again = NULL;
  CUstream other;
  CUdeviceptr memory;
  RIGHT(cu.cuCtxGetCurrent(&current));
  assert_ptr_equal(current, context);
  RIGHT(cu.cuDevicePrimaryCtxRetain(&again, 0)); /* one per device */
  assert_ptr_equal(again, context);
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 2);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  RIGHT(cu.cuCtxPopCurrent(&current));
  assert_ptr_equal(current, context);
  RIGHT(cu.cuCtxGetCurrent(&current));
  assert_null(current);
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuStreamCreate(&other, 0));
  expect_refused("no context is current");
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuMemAlloc(&memory, 8));
  assert_int_equal(sim->broken(), 0);
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxPopCurrent(NULL));
  expect_broken("pop");
  RIGHT(cu.cuCtxPushCurrent(context));
}

CASE(context_is_no_longer_there) {
  CUcontext old = context;
  CUstream other;
  cu.cuModuleUnload(module);
  cu.cuStreamDestroy(stream);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  expect_broken("pop"); /* it is still on the stack */
  WRONG(CUDA_ERROR_CONTEXT_IS_DESTROYED, cu.cuStreamCreate(&other, 0));
  expect_broken("destroyed");
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuDevicePrimaryCtxRelease(0));
  expect_broken("destroyed");
  cu.cuCtxPopCurrent(NULL);
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuCtxPushCurrent(old));
  expect_broken("destroyed");
  open_context(kernels);
  assert_ptr_not_equal(context, old);
}

CASE(what_a_context_is_left_with) {
  CUdeviceptr memory;
  RIGHT(cu.cuMemAlloc(&memory, 100));
  cu.cuModuleUnload(module);
  cu.cuStreamDestroy(stream);
  cu.cuCtxPopCurrent(NULL);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  expect_broken("leak");
  open_context(kernels);
}

/* ---- modules and kernels ---- */

CASE(module_has_entries_by_name) {
  CUfunction first = kernel("see"), none = NULL;
  int value = 0;
  assert_ptr_equal(kernel("see"), first);
  WRONG(CUDA_ERROR_NOT_FOUND, cu.cuModuleGetFunction(&none, module, "unknown"));
  RIGHT(cu.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, first));
  assert_int_equal(value, 1024);
  RIGHT(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, first, 256, 0));
  assert_int_equal(value, 8);
}

CASE(parameters_are_told) {
  static const size_t offsets[] = {0, 8, 16}, sizes[] = {1, 8, 4};
  CUfunction see = kernel("see");
  size_t offset = 99, bytes = 99;
  for (size_t k = 0; k < 3; ++k) {
    RIGHT(cu.cuFuncGetParamInfo(see, k, &offset, &bytes));
    assert_int_equal(offset, offsets[k]);
    assert_int_equal(bytes, sizes[k]);
  }
  RIGHT(cu.cuFuncGetParamInfo(see, 0, &offset, NULL));
  assert_int_equal(offset, 0);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuFuncGetParamInfo(see, 3, &offset, &bytes));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuFuncGetParamInfo(see, 0, NULL, &bytes));
}

/* More than 48 KB of it has to be asked for. */
CASE(shared_memory_is_asked_for) {
  const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CUfunction see = kernel("see");
  unsigned char one = 1;
  uint64_t eight = 8;
  uint32_t four = 4;
  void *parameters[] = {&one, &eight, &four};
  int value = 0, most = 0;
  RIGHT(cu.cuFuncGetAttribute(&value, dynamic, see));
  assert_int_equal(value, 49152);
  RIGHT(cu.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
  assert_true(most > 49152);
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(see, 1, 1, 1, 1, 1, 1, 49153, stream, parameters, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(see, dynamic, most + 1));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(see, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
  RIGHT(cu.cuFuncSetAttribute(see, dynamic, 50000));
  RIGHT(cu.cuLaunchKernel(see, 1, 1, 1, 1, 1, 1, 50000, stream, parameters, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(see, 1, 1, 1, 1, 1, 1, 50001, stream, parameters, NULL));
}

CASE(refused_image_writes_a_log) {
  char log[64] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  CUmodule none = NULL;
  WRONG(CUDA_ERROR_INVALID_IMAGE, cu.cuModuleLoadDataEx(&none, "\177ELF nothing like it", 2, options, values));
  assert_string_equal(log, "no image of the stub");
}

static CUresult launch(const char *name, unsigned grid, unsigned block, void **parameters) {
  return cu.cuLaunchKernel(kernel(name), grid, 1, 1, block, 1, 1, 0, stream, parameters, NULL);
}

CASE(parameters_are_copied_exactly) {
  unsigned char one = 0x11;
  uint64_t eight = UINT64_C(0x2222222222222222);
  uint32_t four = 0x33333333;
  void *parameters[] = {&one, &eight, &four};
  sim->hold(1);
  RIGHT(launch("see", 5, 32, parameters));
  one = 0;
  eight = four = 0;
  sim->hold(0);
  RIGHT(cu.cuStreamSynchronize(stream));
  assert_int_equal(seen[0] & 0xff, 0x11);
  assert_int_equal(seen[1], UINT64_C(0x2222222222222222));
  assert_int_equal(seen[2], 0x33333333);
  assert_int_equal(seen[3], 160);
}

CASE(parameters_may_be_too_many) {
  static unsigned char bytes[32768], few[4];
  void *parameters[] = {bytes, few};
  RIGHT(launch("large", 1, 1, parameters));
  RIGHT(launch("largest", 1, 1, parameters));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch("too_large", 1, 1, parameters));
  expect_broken("parameters");
  sim->set_version(12000);
  WRONG(CUDA_ERROR_INVALID_VALUE, launch("large", 1, 1, parameters));
  expect_broken("parameters");
  WRONG(CUDA_ERROR_INVALID_VALUE, launch("see", 1, 1, NULL));
  expect_refused("missing");
}

CASE(shapes_have_limits) {
  RIGHT(launch("none", 1, 1024, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch("none", 0, 1, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch("none", 1, 0, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch("none", 1, 1025, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE,
        cu.cuLaunchKernel(kernel("none"), 1, 65536, 1, 1, 1, 1, 0, stream, NULL, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(kernel("none"), 1, 1, 1, 64, 32, 1, 0, stream, NULL, NULL));
}

CASE(function_ends_with_its_module) {
  CUfunction function = kernel("none");
  RIGHT(cu.cuModuleUnload(module));
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
  expect_broken("destroyed");
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuModuleUnload(module));
  expect_broken("destroyed");
  load_module(kernels);
}

CASE(handle_of_another_kind) {
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamDestroy((CUstream)(void *)module));
  expect_broken("handle");
  WRONG(CUDA_ERROR_INVALID_HANDLE, cu.cuStreamSynchronize((CUstream)(void *)&seen));
  expect_broken("handle");
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
