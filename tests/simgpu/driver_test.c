/* Entries by version, devices, contexts, modules and kernels. */
#include "sim_world.h"

static uint64_t seen[4];

static void k_see(const unsigned char *p, unsigned long long threads) { /* 1, 8 and 4 bytes */
  memcpy(&seen[0], p, 16);
  memcpy(&seen[2], p + 16, 4);
  seen[3] = threads;
}

static const sim_stub_kernel table[] = {{"see", k_see, {1, 8, 4}}, {"large", k_none, {4096, 4}},
                                        {"largest", k_none, {32764}}, {"too_large", k_none, {32768}},
                                        {"none", k_none, {0}}, {0}};
static const sim_stub_image kernels = {"simstub", table};

static int begin(UNUSED void **state) { return open_context(&kernels); }

/* ---- entries ---- */

static void *entry;
static CUdriverProcAddressQueryResult found;
static CUresult ask(const char *name, int version) {
  entry = &seen;
  return get_entry(name, &entry, version, 0, &found);
}

#define CASE(test) TEST_WITH(test, begin, close_context)

CASE(entry_newer_than_the_driver_is_unknown) {
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
    RIGHT(ask(cases[k].name, cases[k].asked));
    assert_int_equal(found, cases[k].wanted);
    assert_int_equal(entry != NULL, found == CU_GET_PROC_ADDRESS_SUCCESS);
    sim->answer_no("procaddress"); /* other drivers say this twice */
    WRONG(entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, ask(cases[k].name, cases[k].asked));
    sim->answer_no(NULL);
  }
}

CASE(version_decides_the_signature) {
  static const struct { const char *name; int asked, driver; bool other; } cases[] = {
    {"cuGraphAddNode", 12020, 13000, true}, {"cuGraphAddNode", 12030, 12020, true},
    {"cuGraphAddNode", 12030, 13000, false}, {"cuMemAlloc", 2000, 13000, true},
    {"cuStreamBeginCapture", 10000, 13000, true}, {"cuGraphAddKernelNode", 12000, 13000, false},
    {"cuGraphAddKernelNode", 12000, 11040, false}, {"cuStreamGetCaptureInfo", 12020, 13000, true}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
    CUresult (*function)(void);
    sim->set_version(cases[k].driver);
    RIGHT(ask(cases[k].name, cases[k].asked));
    assert_int_equal(found, CU_GET_PROC_ADDRESS_SUCCESS);
    ADDRESS_OF(function, entry);
    if (cases[k].other) BREAKS(CUDA_ERROR_UNKNOWN, "signature", function());
  }
}

CASE(first_entry_has_no_status) {
  gki_cuGetProcAddress first;
  void *library = dlopen(SIM_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ADDRESS_OF(first, dlsym(library, "cuGetProcAddress"));
  RIGHT(first("cuInit", &entry, 2000, 0));
  WRONG(CUDA_ERROR_NOT_FOUND, first("cuNoSuchThing", &entry, 2000, 0));
  assert_null(entry);
  dlclose(library);
}

/* ---- devices and contexts ---- */

static int attribute_of(CUdevice_attribute attribute) {
  int value = -1;
  RIGHT(cu.cuDeviceGetAttribute(&value, attribute, 0));
  return value;
}

CASE(device_is_described) {
  int count = 0, version = 0;
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
  assert_int_equal(attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
  assert_int_equal(attribute_of(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS), 1);
  sim->answer_no("concurrent");
  assert_int_equal(attribute_of(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS), 0);
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

static void expect_current(CUcontext wanted) {
  CUcontext current = NULL;
  RIGHT(cu.cuCtxGetCurrent(&current));
  assert_ptr_equal(current, wanted);
}

CASE(contexts_are_a_stack) {
  CUcontext current = NULL, again = NULL;
  CUstream other;
  CUdeviceptr memory;
  expect_current(context);
  RIGHT(cu.cuDevicePrimaryCtxRetain(&again, 0)); /* one per device */
  assert_ptr_equal(again, context);
  assert_int_equal(sim->alive(SIMGPU_RETAINS), 2);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  RIGHT(cu.cuCtxPopCurrent(&current));
  assert_ptr_equal(current, context);
  expect_current(NULL);
  REFUSED(CUDA_ERROR_INVALID_CONTEXT, "no context is current", cu.cuStreamCreate(&other, 0));
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuStreamSynchronize(stream));
  WRONG(CUDA_ERROR_INVALID_CONTEXT, cu.cuMemAlloc(&memory, 8));
  assert_int_equal(sim->broken(), 0);
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "pop", cu.cuCtxPopCurrent(NULL));
  RIGHT(cu.cuCtxPushCurrent(context));
}

CASE(context_is_no_longer_there) {
  CUcontext old = context;
  CUstream other;
  cu.cuModuleUnload(module);
  cu.cuStreamDestroy(stream);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  expect_broken("pop"); /* it is still on the stack */
  BREAKS(CUDA_ERROR_CONTEXT_IS_DESTROYED, "destroyed", cu.cuStreamCreate(&other, 0));
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "destroyed", cu.cuDevicePrimaryCtxRelease(0));
  cu.cuCtxPopCurrent(NULL);
  BREAKS(CUDA_ERROR_INVALID_CONTEXT, "destroyed", cu.cuCtxPushCurrent(old));
  open_context(&kernels);
  assert_ptr_not_equal(context, old);
}

CASE(context_ends_with_objects_in_it) {
  CUdeviceptr memory;
  RIGHT(cu.cuMemAlloc(&memory, 100));
  cu.cuModuleUnload(module);
  cu.cuStreamDestroy(stream);
  cu.cuCtxPopCurrent(NULL);
  RIGHT(cu.cuDevicePrimaryCtxRelease(0));
  expect_broken("leak");
  open_context(&kernels);
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

static CUresult launch(CUfunction function, unsigned grid, unsigned block, unsigned shared, void **parameters) {
  return cu.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, parameters, NULL);
}

/* More than 48 KB must be asked for. */
CASE(shared_memory_is_asked_for) {
  const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CUfunction see = kernel("see");
  void *parameters[] = {&(unsigned char){1}, &(uint64_t){8}, &(uint32_t){4}};
  int value = 0, most = attribute_of(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  RIGHT(cu.cuFuncGetAttribute(&value, dynamic, see));
  assert_int_equal(value, 49152);
  assert_true(most > 49152);
  WRONG(CUDA_ERROR_INVALID_VALUE, launch(see, 1, 1, 49153, parameters));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(see, dynamic, most + 1));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuFuncSetAttribute(see, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
  RIGHT(cu.cuFuncSetAttribute(see, dynamic, 50000));
  RIGHT(launch(see, 1, 1, 50000, parameters));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch(see, 1, 1, 50001, parameters));
}

CASE(refused_image_writes_a_log) {
  char log[64] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  CUmodule none = NULL;
  WRONG(CUDA_ERROR_INVALID_IMAGE, cu.cuModuleLoadDataEx(&none, "\177ELF nothing like it", 2, options, values));
  assert_string_equal(log, "no image of the stub");
}

CASE(parameters_are_copied_exactly) {
  unsigned char one = 0x11;
  uint64_t eight = UINT64_C(0x2222222222222222);
  uint32_t four = 0x33333333;
  void *parameters[] = {&one, &eight, &four};
  sim->hold(1);
  RIGHT(launch(kernel("see"), 5, 32, 0, parameters));
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
  RIGHT(launch(kernel("large"), 1, 1, 0, parameters));
  RIGHT(launch(kernel("largest"), 1, 1, 0, parameters));
  BREAKS(CUDA_ERROR_INVALID_VALUE, "parameters", launch(kernel("too_large"), 1, 1, 0, parameters));
  sim->set_version(12000);
  BREAKS(CUDA_ERROR_INVALID_VALUE, "parameters", launch(kernel("large"), 1, 1, 0, parameters));
  REFUSED(CUDA_ERROR_INVALID_VALUE, "missing", launch(kernel("see"), 1, 1, 0, NULL));
}

CASE(shapes_have_limits) {
  RIGHT(launch(kernel("none"), 1, 1024, 0, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch(kernel("none"), 0, 1, 0, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch(kernel("none"), 1, 0, 0, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, launch(kernel("none"), 1, 1025, 0, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(kernel("none"), 1, 65536, 1, 1, 1, 1, 0, stream, NULL, NULL));
  WRONG(CUDA_ERROR_INVALID_VALUE, cu.cuLaunchKernel(kernel("none"), 1, 1, 1, 64, 32, 1, 0, stream, NULL, NULL));
}

CASE(function_ends_with_its_module) {
  CUfunction function = kernel("none");
  RIGHT(cu.cuModuleUnload(module));
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "destroyed", launch(function, 1, 1, 0, NULL));
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "destroyed", cu.cuModuleUnload(module));
  load_module(&kernels);
}

CASE(handle_of_another_kind) {
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "handle", cu.cuStreamDestroy((CUstream)(void *)module));
  BREAKS(CUDA_ERROR_INVALID_HANDLE, "handle", cu.cuStreamSynchronize((CUstream)(void *)&seen));
}

int main(void) { return run_all_tests_with(load_driver, NULL); }
