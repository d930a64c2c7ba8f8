#include "cuda/embedded.h"
#include "kernel/images.h"
#include "kernel/store.h"
#include <stdio.h>
#include <string.h>

/* Machine code runs on its architecture and on later ones of its generation. PTX is translated for any later one. */
static int rank(const gk_image *image, int architecture) {
  enum { BEFORE_PTX = 10000 };
  const int target = (int)image->target;
  if (image->kind != GK_IMAGE_CODE && image->kind != GK_IMAGE_PTX) return -1;
  if (target <= 0 || target > architecture) return 0;
  if (image->kind == GK_IMAGE_PTX) return target;
  return image->kind == GK_IMAGE_CODE && target / 10 == architecture / 10 ? BEFORE_PTX + target : 0;
}

static void describe(const gk_image *image, char *text, size_t bytes) {
  snprintf(text, bytes, "%s_%u, made by NVRTC %u.%u when the program was built",
           image->kind == GK_IMAGE_PTX ? "PTX for compute" : "cubin for sm", (unsigned)image->target,
           (unsigned)image->made_by / 1000, (unsigned)image->made_by % 1000 / 10);
}

gk_result gki_cuda_load_embedded(const gki_cuda_device *device, const gki_unit *text, CUmodule *module,
                                 char why[GKI_CUDA_WHY_BYTES]) {
  uint64_t hash[2];
  char name[GKI_UNIT_NAME_BYTES], what[128], log[1024], answer[512];
  gki_unfit others = {0};
  const gk_image *image;
  *module = NULL;
  why[0] = 0;
  if (!gki_images_at(0) || !gki_unit_hash(text, hash)) return GK_OK;
  gki_unit_name(text, name);
  for (int below = INT32_MAX; (image = gki_store_choose(hash, text->file, rank, device->arch, below, &others));
       below = rank(image, device->arch)) {
    const CUresult result = gki_cuda_load_module(device->driver, image->bytes, module, log, sizeof log);
    describe(image, what, sizeof what);
    if (result == CUDA_SUCCESS) {
      gk_log(GK_LOG_INFO, "%s: %s", name, what);
      return GK_OK;
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
      return gki_cuda_result(device->driver, result, "cuModuleLoadDataEx of %s, %s", name, what);
    gki_cuda_describe_result(device->driver, result, answer, sizeof answer);
    snprintf(why, GKI_CUDA_WHY_BYTES, "%s: the driver refuses the %s: %s%s%s", name, what, answer, log[0] ? ": " : "",
             log);
    gk_log(GK_LOG_WARN, "%s", why);
  }
  if (why[0]) return GK_OK;
  char gpu[32], advice[96];
  snprintf(gpu, sizeof gpu, "sm_%d", device->arch);
  snprintf(advice, sizeof advice, "give gk-embed --arch %d, or --ptx of an earlier one", device->arch);
  gki_store_explain(&others, name, gpu, advice, why, GKI_CUDA_WHY_BYTES);
  return GK_OK;
}
