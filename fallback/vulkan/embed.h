/* Kernels compiled to SPIR-V when a program is built. */
#ifndef GKI_VULKAN_EMBED_H
#define GKI_VULKAN_EMBED_H
#include "kernel/embedder.h"

extern const gki_embedder gki_vulkan_embedder;

/* The program's SPIR-V for a kernel's text on a device with atomic additions of doubles or without; NULL: there is
 * none, and *stale is an image of another text of its file, or NULL. */
const gk_image *gki_vulkan_embedded(const gki_unit *text, bool adds_doubles, const gk_image **stale);
#endif
