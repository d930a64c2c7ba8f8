/* Kernels that gk-embed compiles for Vulkan when embedded_test is built. It has to find the layouts that C's compiler
 * gives their structs. */
#ifndef VULKAN_EMBEDDED_KERNELS_H
#define VULKAN_EMBEDDED_KERNELS_H
#include "unit/cuda/embedded_shared.h"

/* gk-embed compiles a GK_KERNEL (this is none) by its parameters. */
GK_SOURCE(vulkan_embedded, &embedded_shared)
#define FEW 3
GK_STRUCT(weights) { float offset[FEW]; double scale; };
GK_KERNEL(changed, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(add_up, (inout(int, x), /* a number */ value(int, v))) {
  pair p = {x[i], v};
  x[i] = added(p);
}
GK_KERNEL_2D(fill_table, (out(double, table), value(weights, w), in(pair, sample), value(int, columns))) {
  table[j * columns + i] = w.scale * (double)(w.offset[j] + (float)sample[0].second);
}
GK_KERNEL(total, (sum(double, all), in(double, table))) { all[0] += table[i]; }
#ifndef GK_GLSL
GK_KERNEL(elsewhere, (inout(int, x))) { int *p = x; p[i] = 1; }
#endif
GK_SOURCE_END
#endif
