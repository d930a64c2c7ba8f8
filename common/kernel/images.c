#include "kernel/images.h"
#include "base/error.h"
#include "kernel/object.h"
#include <stdatomic.h>
#include <string.h>

enum { MOST = 64, SPIRV_MAGIC = 0x07230203 };
static _Atomic(const gk_images *) brought[MOST];

const gk_images *gki_images_at(size_t index) { return index < MOST ? atomic_load(&brought[index]) : NULL; }

/* Code of another kind than AMD's is left to the runtime, which knows it by its beginning. */
static bool is_sound(const gk_image *image) {
  enum { HEAD = 64 /* bytes of the smallest header that a runtime reads */ };
  const char *const begins[] = {"\177ELF", "CCOB", "__CLANG_OFFLOAD_BUNDLE__"};
  bool is_amds = false;
  for (size_t k = 0; k < GK_COUNT(begins); ++k)
    is_amds = is_amds || (image->size >= strlen(begins[k]) && memcmp(image->bytes, begins[k], strlen(begins[k])) == 0);
  return is_amds ? !gki_bundle_problem(image->bytes, image->size) : image->size >= HEAD;
}

static bool is_right(const gk_images *images) {
  if (!images->at && images->count) return false;
  for (uint32_t k = 0; k < images->count; ++k) {
    const gk_image *image = &images->at[k];
    if (!image->file || !image->bytes || !image->size) return false;
    uint32_t first = 0;
    if (image->size >= sizeof first) memcpy(&first, image->bytes, sizeof first);
    if (image->kind == GK_IMAGE_AMD && !is_sound(image)) return false;
    if (image->kind == GK_IMAGE_SPIRV && (image->size % sizeof first || first != SPIRV_MAGIC)) return false;
  }
  return true;
}

gk_result gk_use_images(const gk_images *images) {
  gki_begin();
  if (!images) return gk_fail(GK_ERROR_INVALID, "gk_use_images: the images are NULL; give what gk-embed wrote");
  if (images->abi != GK_ABI)
    return gk_fail(GK_ERROR_INVALID, "gk_use_images: the images are for .abi %u, this library reads %u; run this gk's "
                   "gk-embed again, and compile what it writes with this gk.h", (unsigned)images->abi,
                   (unsigned)GK_ABI);
  if (!is_right(images))
    return gk_fail(GK_ERROR_INVALID, "gk_use_images: an image has no file, no bytes or no size, or is cut off; give "
                   "what gk-embed wrote as it is");
  for (size_t k = 0; k < MOST; ++k) {
    const gk_images *there = NULL;
    if (atomic_compare_exchange_strong(&brought[k], &there, images) || there == images) return GK_OK;
  }
  return gk_fail(GK_ERROR_MEMORY, "gk_use_images: %d were given already; let one gk-embed write the images of several "
                 "sources", MOST);
}
