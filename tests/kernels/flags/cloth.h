#ifndef CLOTH_H
#define CLOTH_H
#include "vec.h"
#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE cloth
GK_SOURCE(cloth, &vec)
GK_KERNEL(lengths, (out(float, y), in(v2, x))) {
  y[i] = v2_dot(x[i], x[i]);
}
GK_SOURCE_END
#endif
