/* A user's C file: every macro of gk.h and gk_kernel.h once, with all warnings on; and the kernels for C++. */
#include <gk_kernel.h>

GK_SHARED(arithmetic)
GK_CONST int steps[2] = {1, 2};
GK_FN int plus(int a, int b) { return a + b; }
GK_SOURCE_END

GK_SOURCE(every_macro, &arithmetic)
GK_STRUCT(options) { float factor; int rounds; };
GK_KERNEL(add_one, (inout(int, x))) { x[i] = plus(x[i], steps[0]); }
GK_KERNEL(count_up, (sum(int32_t, total))) { total[0] += 1; }
GK_KERNEL_2D(plane, (inout(int, x), value(int, width))) { x[i + j * width] += i - i; }
GK_KERNEL_3D(volume, (atomic(int, x))) { gk_atomic_add(&x[i + j + k], 0); }
GK_KERNEL(halt, (out(int, flag))) { flag[i] = 0; }
GK_KERNEL(scaled, (inout(int, x), value(options, o))) { x[i] = x[i] * o.rounds; }
GK_SOURCE_END

#define OPTIONS_ARE_THERE
#include "../lists.h"

const gk_kernel *const every_kernel[] = {&add_one, &count_up, &plane, &volume, &halt, &scaled};

gk_result library_call(const gk_value *args, void *native) {
  int *data = args[0].ptr;
  if (native || args[1].i32 != 64) return GK_ERROR_INVALID;
  data[1] += 10;
  return GK_OK;
}

int run_from_c(void) {
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  const gk_status *status = NULL;
  options given = {2.0f, 3};
  int data[64] = {0}, total = -1;
  if (gk_check(&everything, NULL, gk_print, NULL) || gk_device_open(NULL, &device) ||
      gk_graph_create(device, &everything, 0, &graph) || gk_bind_int(graph, COUNT, 64) ||
      gk_bind_bytes(graph, OPTIONS, &given, sizeof given) || gk_launch(graph, 0) || gk_wait(graph, &status) ||
      status->state != GK_FINISHED || gk_download(device, data, gk_bound(graph, DATA), sizeof data))
    gk_print(NULL, &(gk_problem){"every-macro", gk_error(), SIZE_MAX, false});
  else {
    total = 0;
    for (size_t k = 0; k < GK_COUNT(data); ++k) total += data[k];
  }
  gk_graph_destroy(graph);
  gk_device_close(device);
  return total;
}
