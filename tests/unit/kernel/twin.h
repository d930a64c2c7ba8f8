/* Shared by twin_one.c and twin_other.c. */
#include "gk_kernel.h"

const gk_kernel *twin_one(void);
const gk_kernel *twin_other(void);
const gk_kernel *twin_one_of_header(void);
const gk_kernel *twin_other_of_header(void);

#define GK_THIS_SOURCE twin_header
GK_SHARED(twin_shared)
GK_FN int twin_is(int number) { return number; }
GK_SOURCE_END

GK_SOURCE(twin_header, &twin_shared)
GK_KERNEL(twin_of_header, (out(int, y))) { y[i] = twin_is(3); }
GK_SOURCE_END
