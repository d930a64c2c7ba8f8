/* The images of gates.cu, which the build puts into the library (common/embed_image.py, common/embed_text.py). */
#ifndef GKI_CUDA_IMAGE_BYTES_H
#define GKI_CUDA_IMAGE_BYTES_H
#include <stddef.h>

extern const unsigned char gki_gates_fatbin[];
extern const size_t gki_gates_fatbin_bytes;
extern const char gki_text_gates_ptx[];
#endif
