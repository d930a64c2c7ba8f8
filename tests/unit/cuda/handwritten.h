/* For tests of kernels with handwritten code on CUDA. VERSION: the driver's. GATED: by the host. NO: the probe's
 * questions that the driver answers with no. */
#ifndef CUDA_HANDWRITTEN_H
#define CUDA_HANDWRITTEN_H
#include "graphs.h"
#include "unit/support/runtime_kernels.h"

#ifndef VERSION
#define VERSION "13.0"
#endif
#ifndef NO
#define NO ""
#endif
#ifdef GATED
enum { BITS = GK_HOST_GATED };
#else
enum { BITS = 0 };
#endif

static const char text[] =
  "struct line { int factor, offset; };\n"
  "__device__ int calls;\n"
  "extern \"C\" __global__ void add_to(int *x, int a, int n) {\n"
  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
  "  if (i < n) x[i] += a;\n"
  "}\n"
  "extern \"C\" __global__ void all_kinds(long long *to, int i, unsigned u, long long l, float f, double d, line v,\n"
  "                                      const line *in, int *sum) {\n"
  "  if (blockIdx.x || threadIdx.x) return;\n"
  "  to[0] = i; to[1] = u; to[2] = l; to[3] = (long long)(f * 4); to[4] = (long long)(d * 8);\n"
  "  to[5] = v.factor; to[6] = v.offset; to[7] = in->factor; to[8] = in->offset;\n"
  "  atomicAdd(sum, i);\n"
  "}\n"
  "extern \"C\" __global__ void shape(int *to) {\n"
  "  if (threadIdx.x || threadIdx.y || threadIdx.z || blockIdx.x || blockIdx.y || blockIdx.z) return;\n"
  "  to[0] = gridDim.x; to[1] = gridDim.y; to[2] = gridDim.z;\n"
  "  to[3] = blockDim.x; to[4] = blockDim.y; to[5] = blockDim.z;\n"
  "}\n"
  "extern \"C\" __global__ void __launch_bounds__(64) narrow(int *to) { to[0] = 1; }\n"
  "extern \"C\" __global__ void back(int *x) {\n"
  "  extern __shared__ int all[];\n"
  "  int i = threadIdx.x, n = blockDim.x;\n"
  "  for (int k = 0; k < 16; ++k) all[k * n + i] = x[i];\n"
  "  __syncthreads();\n"
  "  x[i] = all[15 * n + n - 1 - i];\n"
  "}\n"
  "extern \"C\" __global__ void count_up() { if (threadIdx.x == 0) ++calls; }\n"
  "extern \"C\" __global__ void look(int *to) { if (threadIdx.x == 0) to[0] = calls; }\n"
  "extern \"C\" __global__ void down(int *to) { if (threadIdx.x == 0) --to[0]; }\n"
  "extern \"C\" __global__ void defined(int *to) { to[0] = SAID; }\n";

static const gk_param add_params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                      {"a", "int", 4, 4, GK_I32, GK_ACCESS_VALUE},
                                      {"n", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
static const gk_param kinds_params[] = {
  {"to", NULL, 8, 8, GK_PTR, GK_ACCESS_OUT},      {"i", "int", 4, 4, GK_I32, GK_ACCESS_VALUE},
  {"u", "uint", 4, 4, GK_U32, GK_ACCESS_VALUE},   {"l", "int64_t", 8, 8, GK_I64, GK_ACCESS_VALUE},
  {"f", "float", 4, 4, GK_F32, GK_ACCESS_VALUE},  {"d", "double", 8, 8, GK_F64, GK_ACCESS_VALUE},
  {"v", "line", 8, 4, GK_BYTES, GK_ACCESS_VALUE}, {"in", "line", 8, 4, GK_PTR, GK_ACCESS_IN},
  {"sum", "int", 4, 4, GK_PTR, GK_ACCESS_SUM}};
static const gk_param int_params[] = {{"to", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT}};

/* A kernel by its entry of the text; CODE: by the entry of its own name. */
#define CODE_AT(id, at, list, says, dimensions_, ...) \
  static const gk_code id##_code = {.text = text, .options = says, .entry = at, __VA_ARGS__}; \
  static const gk_kernel id = {.name = #id, .params = list, .param_count = GK_COUNT(list), .cuda = &id##_code, \
                               .dimensions = dimensions_}
#define SAID "-DSAID=7"
#define CODE(id, list, ...) CODE_AT(id, NULL, list, SAID, 0, __VA_ARGS__)
CODE(add_to, add_params, .block = {32});
CODE(look, int_params, .block = {32});
CODE(down, int_params, .block = {32});

enum { X = 1, Y, N, A, B, LINE, FLAG, LEFT, TO, U, L, F, D, MORE, SUM, OUTER, SLOTS };
static const gk_slot_desc slots[] = {
  GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_SCALAR(N, int), GK_SCALAR(A, int), GK_SCALAR(B, int),
  GK_STRUCT_VALUE(LINE, line), GK_BUFFER(FLAG, int), GK_BUFFER(LEFT, int), GK_RAW_BUFFER(TO), GK_SCALAR(U, uint),
  GK_SCALAR(L, int64_t), GK_SCALAR(F, float), GK_SCALAR(D, double), GK_STRUCT_VALUE(MORE, line), GK_BUFFER(SUM, int),
  GK_BUFFER(OUTER, int)};
enum { HERE = 7, THERE = 9 };

static inline int run_handwritten(char **words) {
  setenv("SIMGPU_VERSION", VERSION, 1);
  setenv("SIMGPU_ARCH", atoi(VERSION) == 11 ? "80" : "90", 1);
  setenv("SIMGPU_NO", NO, 1);
  setenv("SIMGPU_NVRTC", "13.0,12.4,11.4", 1);
  return run_on_simgpu(words);
}
#endif
