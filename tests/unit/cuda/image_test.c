/* gk's own kernels, given to drivers that take them or don't. The images are those that the library carries. */
#include "unit/support/test.h"
#include "cuda/image.h"
#include "cuda/image_bytes.h"
#include "base/error.h"

typedef struct behaviour {
  CUresult for_code, for_ptx; /* what the driver answers for each */
  const char *lacks;          /* the kernel that a module doesn't have */
  const char *log;
  bool speechless;            /* it has no texts */
} behaviour;

static behaviour behaves;
static int loads, live, kernels;

static CUresult load(CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values) {
  const bool is_code = image == gki_gates_fatbin;
  assert_true(is_code || image == gki_text_gates_ptx);
  assert_true(!is_code || (uintptr_t)image % 64 == 0);
  ++loads;
  for (unsigned k = 0; behaves.log && k < count; ++k)
    if (options[k] == CU_JIT_ERROR_LOG_BUFFER) strcpy(values[k], behaves.log);
  const CUresult result = is_code ? behaves.for_code : behaves.for_ptx;
  if (result == CUDA_SUCCESS) ++live;
  *module = (CUmodule)(uintptr_t)(is_code ? 1 : 2); /* drivers may write it and fail all the same */
  return result;
}

static CUresult unload(CUmodule module) {
  assert_non_null(module);
  --live;
  return CUDA_SUCCESS;
}

static CUresult get(CUfunction *function, CUmodule module, const char *name) {
  assert_non_null(module);
  if (behaves.lacks && strcmp(name, behaves.lacks) == 0) return CUDA_ERROR_NOT_FOUND;
  *function = (CUfunction)(uintptr_t)++kernels;
  return CUDA_SUCCESS;
}

static CUresult name_of(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : "CUDA_ERROR_OTHER";
  return behaves.speechless ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
static CUresult text_of(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "no image for this device" : "something else";
  return behaves.speechless ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static const gki_cuda_driver driver = {.cuModuleLoadDataEx = load, .cuModuleUnload = unload,
                                       .cuModuleGetFunction = get, .cuGetErrorName = name_of,
                                       .cuGetErrorString = text_of};

static gk_result load_builtin(gki_cuda_builtin *own) {
  loads = live = kernels = 0;
  gki_begin();
  return gki_cuda_builtin_load(&driver, own);
}

TEST(test_code) {
  gki_cuda_builtin own;
  behaves = (behaviour){.log = NULL};
  assert_int_equal(load_builtin(&own), GK_OK);
  assert_false(own.translated);
  assert_string_equal(own.refused, "");
  assert_int_equal(loads, 1);
  assert_int_equal(kernels, 10);
  const CUfunction all[] = {own.control, own.control_plain, own.prologue, own.epilogue, own.arm,
                            own.enter,   own.repeat,        own.copy,     own.fill,     own.ahead};
  for (uintptr_t k = 0; k < GK_COUNT(all); ++k) assert_ptr_equal(all[k], (void *)(k + 1));
  for (int again = 0; again < 2; ++again) {
    gki_cuda_builtin_unload(&driver, &own);
    assert_int_equal(live, 0);
    assert_null(own.fill);
  }
}

/* An image that was loaded but lacks a kernel is given back. */
TEST(test_other_drivers) {
#define NO_BINARY CUDA_ERROR_NO_BINARY_FOR_GPU
  static const char no_image[] = "the machine code: no image for this device (CUDA_ERROR_NO_BINARY_FOR_GPU, 209)";
  static const struct {
    const char *name;
    behaviour behaves;
    gk_result result;
    int loads;
    const char *refused; /* NULL: it isn't compared */
  } cases[] = {
    {"PTX", {.for_code = NO_BINARY}, GK_OK, 2, no_image},
    {"neither", {.for_code = NO_BINARY, .for_ptx = CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                 .log = "ptxas: version 8.4 isn't known\nand more"}, GK_ERROR_UNSUPPORTED, 2,
     "the machine code: no image for this device (CUDA_ERROR_NO_BINARY_FOR_GPU, 209): ptxas: version 8.4 isn't known; "
     "the PTX: something else (CUDA_ERROR_OTHER, 222): ptxas: version 8.4 isn't known"},
    {"lacking", {.lacks = "gki_fill"}, GK_ERROR_UNSUPPORTED, 2,
     "the machine code: something else (CUDA_ERROR_OTHER, 500): gki_fill; "
     "the PTX: something else (CUDA_ERROR_OTHER, 500): gki_fill"},
    {"no memory for code", {.for_code = CUDA_ERROR_OUT_OF_MEMORY}, GK_ERROR_MEMORY, 1, NULL},
    {"no memory for PTX", {.for_code = NO_BINARY, .for_ptx = CUDA_ERROR_OUT_OF_MEMORY}, GK_ERROR_MEMORY, 2,
     NULL},
    {"speechless", {.for_code = CUDA_ERROR_UNKNOWN, .for_ptx = CUDA_ERROR_UNKNOWN, .speechless = true},
     GK_ERROR_UNSUPPORTED, 2,
     "the machine code: error 999; the PTX: error 999"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    gki_cuda_builtin own;
    const bool works = cases[k].result == GK_OK;
    behaves = cases[k].behaves;
    const gk_result result = load_builtin(&own);
    if (result != cases[k].result || loads != cases[k].loads || live != works)
      fail_msg("%s: %s, %d loads, %d alive", cases[k].name, gk_result_name(result), loads, live);
    if (cases[k].refused && strcmp(own.refused, cases[k].refused) != 0) fail_msg("%s: %s", cases[k].name, own.refused);
    if (result == GK_ERROR_UNSUPPORTED) assert_says(own.refused);
    if (works) assert_true(own.translated);
    else assert_true(!own.module && !own.control);
    gki_cuda_builtin_unload(&driver, &own);
    assert_int_equal(live, 0);
  }
}

/* What tests/cuda/image.py checks in detail. */
TEST(test_bytes) {
  static const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba};
  assert_true(gki_gates_fatbin_bytes > 1000);
  assert_memory_equal(gki_gates_fatbin, magic, sizeof magic);
  assert_non_null(strstr(gki_text_gates_ptx, ".visible .entry gki_control("));
}

int main(void) { return run_all_tests(); }
