/* Two files that look alike and share a name that is to be unique; the header is found by two paths. */
#include "../kernel/twin.h"

#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE twin
GK_SOURCE(twin, &twin_shared)

GK_KERNEL(twin_set, (out(int, y))) { y[i] = twin_is(2); }

GK_SOURCE_END

const gk_kernel *twin_other(void) { return &twin_set; }
const gk_kernel *twin_other_of_header(void) { return &twin_of_header; }
