/* What embed_image.py made of gates.cu's images. */
#ifndef GKI_CUDA_IMAGE_BYTES_H
#define GKI_CUDA_IMAGE_BYTES_H
#include <stddef.h>

extern const unsigned char gki_gates_fatbin[], gki_gates_ptx[]; /* a zero byte stands behind */
extern const size_t gki_gates_fatbin_bytes, gki_gates_ptx_bytes;
#endif
