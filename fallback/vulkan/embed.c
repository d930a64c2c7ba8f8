#include "vulkan/compile.h"
#include "kernel/images.h"
#include "kernel/store.h"

enum { ANY, WITHOUT, WITH /* atomic additions of doubles: gk_image.target */ };

/* Only additions to doubles differ between devices (GKI_ADD_DOUBLE in gk_kernel.h), and need atomics of 64 bits. */
static gk_result compile(const void *options, const gki_unit *text, gki_embed_take *take, void *user) {
  (void)options;
  char name[GKI_UNIT_NAME_BYTES];
  uint32_t *words;
  gk_image image = {.kind = GK_IMAGE_SPIRV};
  gki_unit_name(text, name);
  gk_result result = gki_vulkan_compile(name, text->text, GKI_VULKAN_WITHOUT_DOUBLES, &words, &image.size);
  if (result != GK_OK) return result;
  size_t at = 0;
  while ((at = gki_spirv_next(words, image.size, at)) && words[at] != GKI_SPIRV_Int64Atomics) continue;
  const bool differs = at != 0;
  image.target = differs ? WITHOUT : ANY;
  image.made_by = words[GKI_SPIRV_GENERATOR];
  result = take(user, &image, words);
  if (result != GK_OK || !differs) return result;
  result = gki_vulkan_compile(name, text->text, GKI_VULKAN_WITH_DOUBLES, &words, &image.size);
  image.target = WITH;
  return result == GK_OK ? take(user, &image, words) : result;
}

const gki_embedder gki_vulkan_embedder = {.language = "glsl", .is_per_kernel = true, .help = "",
                                          .compile = compile};

/* ---- when the program runs --------------------------------------------------------------------------------------- */

static int rank(const gk_image *image, int target) {
  if (image->kind != GK_IMAGE_SPIRV) return -1;
  return image->target == ANY || (int)image->target == target;
}

const gk_image *gki_vulkan_embedded(const gki_unit *text, const char *name, const char *gpu, bool adds_doubles,
                                    char why[GKI_VULKAN_WHY_BYTES]) {
  uint64_t hash[2];
  gki_unfit others = {0};
  why[0] = 0;
  if (!gki_images_at(0) || !gki_unit_hash(text, hash)) return NULL;
  const gk_image *image = gki_store_choose(hash, text->file, rank, adds_doubles ? WITH : WITHOUT, INT32_MAX, &others);
  if (!image) gki_store_explain(&others, name, gpu, "run gk-embed again", why, GKI_VULKAN_WHY_BYTES);
  return image;
}
