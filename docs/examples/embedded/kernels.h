/* Kernels in a separate file. The program contains their text, and gk-embed compiles them when it is built. */
#ifndef KERNELS_H
#define KERNELS_H
#include "shared.h"

GK_SOURCE(kernels, &shared)
GK_KERNEL(rise, (inout(float, height), value(float, by))) {
  height[i] = limited(height[i] + by);
}
GK_SOURCE_END
#endif
