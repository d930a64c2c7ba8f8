/* Small kernels for the tests of the runtime. */
#ifndef RUNTIME_KERNELS_H
#define RUNTIME_KERNELS_H
#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE runtime_kernels
#include "gk_kernel.h"
GK_SOURCE(runtime_kernels)

GK_STRUCT(line) { int factor, offset; };

GK_KERNEL(add, (inout(int, x), value(int, a))) { x[i] += a; }
GK_KERNEL(decrease, (inout(int, n))) { n[i] -= 1; }
GK_KERNEL(total, (in(int, x), sum(int, t))) { t[0] += x[i]; }
GK_KERNEL(apply, (inout(int, x), value(line, l))) { x[i] = x[i] * l.factor + l.offset; }
GK_KERNEL(apply_in, (inout(int, x), in(line, l))) { x[i] = x[i] * l[0].factor + l[0].offset; }
GK_KERNEL(scale, (inout(float, y), value(float, a), value(double, b))) { y[i] *= a * (float)b; }
GK_KERNEL(put, (out(int64_t, to), value(int64_t, big), value(uint, wide))) { to[0] = big; to[1] = (int64_t)wide; }
GK_KERNEL_2D(number, (out(int, x), value(int, width))) { x[i + j * width] = i + 100 * j; }
GK_SOURCE_END
#endif
