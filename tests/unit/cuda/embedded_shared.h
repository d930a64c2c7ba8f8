/* Functions that embedded_kernels.h uses. */
#ifndef EMBEDDED_SHARED_H
#define EMBEDDED_SHARED_H
#include "gk_kernel.h"
GK_SHARED(embedded_shared)
GK_STRUCT(pair) { int first, second; };
GK_FN int added(pair p) { return p.first + p.second; }
GK_SOURCE_END
#endif
