/* The program's own images: gk_use_images. */
#ifndef GKI_KERNEL_IMAGES_H
#define GKI_KERNEL_IMAGES_H
#include "gk_code.h"

/* In the order of their registration; NULL: no more. Any thread may call it. */
const gk_images *gki_images_at(size_t index);
#endif
