/* Slots and lists that many tests of the CUDA backend use. */
#ifndef CUDA_LISTS_H
#define CUDA_LISTS_H
#include "graphs.h"
#include "unit/support/runtime_kernels.h"

enum { X = 1, Y, N, A, LEFT, FLAG, BYTE, LINE, COUNT, SLOTS };
enum { HERE = 5, THERE };
static const gk_slot_desc slots[] = {
    GK_BUFFER(X, int), GK_BUFFER(Y, int), GK_DEFAULT(N, int, 1), GK_DEFAULT(A, int, 1), GK_BUFFER(LEFT, int),
    GK_BUFFER(FLAG, int), GK_DEFAULT(BYTE, int, 3), GK_STRUCT_VALUE(LINE, line), GK_BUFFER(COUNT, int)};

LIST(straight, GK_RUN(add, N, X, A));
LIST(looping, GK_DO_WHILE(LEFT), GK_RUN(add, N, X, A), GK_RUN(decrease, GK_ONE, LEFT), GK_END);

/* A graph whose X, Y, LEFT and FLAG are 0. */
static inline gk_graph *new_zero_graph(gk_device *device, const gk_list *list, uint32_t bits) {
  return NEW_GRAPH(device, list, bits, {X, int_on(device, 0)}, {Y, int_on(device, 0)}, {LEFT, int_on(device, 0)},
                   {FLAG, int_on(device, 0)});
}

/* ---- library calls and kernels by hand --------------------------------------------------------------------------- */

static int called;            /* the number of times that these were made */
static gk_result call_answer; /* answered instead of doing anything; GK_OK: they do it */

/* For GK_CALL(fill_bytes, X, BYTE): does what a library does that fills memory. */
static inline gk_result fill_bytes(const gk_value *args, void *stream) {
  ++called;
  if (call_answer != GK_OK) return call_answer;
  const CUresult result = cu.cuMemsetD8Async(at(args[0].ptr), (unsigned char)args[1].i32, sizeof(int), stream);
  return result == CUDA_SUCCESS ? GK_OK : GK_ERROR_DEVICE;
}

static inline gk_result fill_twice(const gk_value *args, void *stream) {
  for (int k = 0; k < 2; ++k) fill_on(stream, args[0].ptr, args[1].i32 + k);
  return GK_OK;
}

static inline gk_result do_nothing(const gk_value *args, void *stream) {
  (void)args;
  ++called;
  return stream ? GK_OK : GK_ERROR_INVALID;
}

/* A kernel with code by hand, one block of 32 threads: mine(int *x, int a) does `statement` once.
 * BY_HAND_KERNEL(mine, "x[0] += a"). */
static const gk_param by_hand_params[] = {{"x", "int", 4, 4, GK_PTR, GK_ACCESS_INOUT},
                                          {"a", "int", 4, 4, GK_I32, GK_ACCESS_VALUE}};
#define BY_HAND_KERNEL(id, statement) \
  static const gk_code id##_code = { \
      .text = "extern \"C\" __global__ void " #id "(int *x, int a) { if (threadIdx.x == 0) " statement "; }\n", \
      .block = {32}}; \
  static const gk_kernel id = {.name = #id, .params = by_hand_params, .param_count = 2, .cuda = &id##_code}
#endif
