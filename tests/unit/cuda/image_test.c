/* gk's own kernels, given to drivers that take them or don't. The images are those that the library carries. */
#include "unit/support/test.h"
#include "cuda/image.h"
#include "cuda/image_bytes.h"
#include "base/error.h"

static struct {
  CUresult for_code, for_ptx; /* what the driver says of each */
  const char *lacks;          /* the kernel that a module doesn't have */
  const char *log;
  bool speechless;            /* it has no texts */
  int loads, live, kernels;
} world;

static CUresult load(CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values) {
  const bool is_code = image == gki_gates_fatbin;
  assert_true(is_code || image == gki_text_gates_ptx);
  assert_true(!is_code || (uintptr_t)image % 64 == 0);
  ++world.loads;
  for (unsigned k = 0; world.log && k < count; ++k)
    if (options[k] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[k], world.log);
  const CUresult result = is_code ? world.for_code : world.for_ptx;
  if (result == CUDA_SUCCESS) ++world.live;
  *module = (CUmodule)(uintptr_t)(is_code ? 1 : 2); /* drivers may write it and fail all the same */
  return result;
}

static CUresult unload(CUmodule module) {
  assert_non_null(module);
  --world.live;
  return CUDA_SUCCESS;
}

static CUresult get(CUfunction *function, CUmodule module, const char *name) {
  assert_non_null(module);
  if (world.lacks && strcmp(name, world.lacks) == 0) return CUDA_ERROR_NOT_FOUND;
  *function = (CUfunction)(uintptr_t)++world.kernels;
  return CUDA_SUCCESS;
}

static CUresult name_of(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : "CUDA_ERROR_OTHER";
  return world.speechless ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static CUresult text_of(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "no image for this device" : "something else";
  return world.speechless ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static const gki_cuda_driver driver = {.cuModuleLoadDataEx = load, .cuModuleUnload = unload,
                                       .cuModuleGetFunction = get, .cuGetErrorName = name_of,
                                       .cuGetErrorString = text_of};

static gk_result load_builtin(gki_cuda_builtin *own) {
  world.loads = world.live = world.kernels = 0;
  gki_begin();
  return gki_cuda_builtin_load(&driver, own);
}

static int setup(void **state) {
  (void)state;
  memset(&world, 0, sizeof world);
  return 0;
}

TEST_WITH(test_code, setup, NULL) {
  gki_cuda_builtin own;
  assert_int_equal(load_builtin(&own), GK_OK);
  assert_false(own.translated);
  assert_string_equal(own.refused, "");
  assert_int_equal(world.loads, 1);
  assert_int_equal(world.kernels, 9);
  const CUfunction all[] = {own.control, own.control_plain, own.prologue, own.epilogue, own.arm,
                            own.enter,   own.repeat,        own.copy,     own.fill};
  for (uintptr_t k = 0; k < GK_COUNT(all); ++k) assert_ptr_equal(all[k], (void *)(k + 1));
  gki_cuda_builtin_unload(&driver, &own);
  assert_int_equal(world.live, 0);
  assert_null(own.fill);
  gki_cuda_builtin_unload(&driver, &own);
  assert_int_equal(world.live, 0);
}

TEST_WITH(test_ptx, setup, NULL) {
  gki_cuda_builtin own;
  world.for_code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  assert_int_equal(load_builtin(&own), GK_OK);
  assert_true(own.translated);
  assert_string_equal(own.refused, "the machine code: no image for this device (CUDA_ERROR_NO_BINARY_FOR_GPU, 209)");
  assert_int_equal(world.live, 1);
  gki_cuda_builtin_unload(&driver, &own);
  assert_int_equal(world.live, 0);
}

TEST_WITH(test_neither, setup, NULL) {
  gki_cuda_builtin own;
  world.for_code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  world.for_ptx = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  world.log = "ptxas: version 8.4 isn't known\nand more";
  assert_int_equal(load_builtin(&own), GK_ERROR_UNSUPPORTED);
  assert_non_null(strstr(gk_error(), own.refused));
  assert_string_equal(own.refused, "the machine code: no image for this device (CUDA_ERROR_NO_BINARY_FOR_GPU, 209): "
                                   "ptxas: version 8.4 isn't known; "
                                   "the PTX: something else (CUDA_ERROR_OTHER, 222): ptxas: version 8.4 isn't known");
  assert_null(own.module);
  gki_cuda_builtin_unload(&driver, &own);
  assert_int_equal(world.live, 0);
}

/* One that was loaded but isn't whole is given back. */
TEST_WITH(test_lacking, setup, NULL) {
  gki_cuda_builtin own;
  world.lacks = "gki_fill";
  assert_int_equal(load_builtin(&own), GK_ERROR_UNSUPPORTED);
  assert_int_equal(world.loads, 2);
  assert_int_equal(world.live, 0);
  assert_null(own.control);
  assert_string_equal(own.refused, "the machine code: something else (CUDA_ERROR_OTHER, 500): gki_fill; "
                                   "the PTX: something else (CUDA_ERROR_OTHER, 500): gki_fill");
}

TEST_WITH(test_no_memory, setup, NULL) {
  gki_cuda_builtin own;
  world.for_code = CUDA_ERROR_OUT_OF_MEMORY;
  assert_int_equal(load_builtin(&own), GK_ERROR_MEMORY);
  assert_int_equal(world.loads, 1);
  world.for_code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  world.for_ptx = CUDA_ERROR_OUT_OF_MEMORY;
  assert_int_equal(load_builtin(&own), GK_ERROR_MEMORY);
  assert_int_equal(world.loads, 2);
}

TEST_WITH(test_speechless, setup, NULL) {
  gki_cuda_builtin own;
  world.speechless = true;
  world.for_code = world.for_ptx = CUDA_ERROR_UNKNOWN;
  assert_int_equal(load_builtin(&own), GK_ERROR_UNSUPPORTED);
  assert_string_equal(own.refused, "the machine code: error 999; the PTX: error 999");
}

/* What tests/cuda/image.py knows of them in detail. */
TEST(test_bytes) {
  static const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba};
  assert_true(gki_gates_fatbin_bytes > 1000);
  assert_memory_equal(gki_gates_fatbin, magic, sizeof magic);
  assert_non_null(strstr(gki_text_gates_ptx, ".visible .entry gki_control("));
}

int main(void) { return run_all_tests(); }
