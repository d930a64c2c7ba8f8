/* Images that the program brought along: gk_use_images. */
#ifndef GKI_KERNEL_IMAGES_H
#define GKI_KERNEL_IMAGES_H
#include "gk_code.h"

/* In the order in which they came; NULL: no more. Any thread. */
const gk_images *gki_images_at(size_t index);
#endif
