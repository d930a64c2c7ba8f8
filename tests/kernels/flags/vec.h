#ifndef VEC_H
#define VEC_H
#include "gk_kernel.h"
GK_SHARED(vec)
GK_STRUCT(v2) { float x, y; };
GK_FN float v2_dot(v2 a, v2 b) { return a.x * b.x + a.y * b.y; }
GK_SOURCE_END
#endif
