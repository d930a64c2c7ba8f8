/* Kernels that gk-embed compiles when cuda_embedded_test is built. */
#ifndef EMBEDDED_KERNELS_H
#define EMBEDDED_KERNELS_H
#include "embedded_shared.h"

/* This isn't GK_SOURCE(it). */
GK_SOURCE(embedded, &embedded_shared)
GK_KERNEL(add_up, (inout(int, x), value(int, v))) {
  pair p = {x[i], v};
  x[i] = added(p);
}
GK_KERNEL(double_it, (inout(int, x))) { x[i] *= 2; }
GK_SOURCE_END
#endif
