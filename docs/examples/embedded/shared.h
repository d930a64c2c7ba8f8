/* Functions that several sources use. */
#ifndef SHARED_H
#define SHARED_H
#include <gk_kernel.h>

GK_SHARED(shared)
GK_FN float limited(float v) { return v < 1.0f ? v : 1.0f; }
GK_SOURCE_END
#endif
