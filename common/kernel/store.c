#include "kernel/store.h"
#include "base/memory.h"
#include "kernel/images.h"
#include <stdio.h>
#include <string.h>

/* ---- kept images ------------------------------------------------------------------------------------------------- */

bool gki_store_key(const gki_unit *text, const char *made_for, gki_cache_key *key) {
  if (gki_unit_includes(text)) {
    gk_log(GK_LOG_INFO, "what %s is compiled to isn't kept: it includes files, which may change", text->file);
    return false;
  }
  char *plain = gki_unit_plain(text);
  if (!plain) return false;
  const char *options = text->options ? text->options : "";
  const gki_cache_part parts[] = {{made_for, strlen(made_for)},
                                  {options, strlen(options)},
                                  {plain, strlen(plain)}};
  *key = gki_cache_key_of(parts, GK_COUNT(parts));
  gk_host_free(plain);
  return true;
}

/* The image comes first, since the driver needs it aligned. The compiler's warnings follow, to be logged again the next
 * time, and then the image's size. A zero byte ends each of the first two. */
void gki_store_keep(const gki_cache_key *key, const gki_compiled *image) {
  const char *log = image->log ? image->log : "";
  const size_t warnings = strlen(log) + 1, whole = image->size + 1 + warnings + sizeof(uint64_t);
  const uint64_t size = image->size;
  char *bytes = gk_host_alloc(whole);
  if (!bytes) return;
  memcpy(bytes, image->bytes, image->size);
  memcpy(bytes + image->size + 1, log, warnings);
  memcpy(bytes + whole - sizeof size, &size, sizeof size);
  gki_cache_keep(key, bytes, whole);
  gk_host_free(bytes);
}

bool gki_store_find(const gki_cache_key *key, const char *name, const char *made_by, gki_compiled *image) {
  void *found;
  size_t whole;
  uint64_t size;
  if (!gki_cache_find(key, &found, &whole)) return false;
  char *bytes = found;
  if (whole >= 2 + sizeof size) memcpy(&size, bytes + whole - sizeof size, sizeof size);
  if (whole < 2 + sizeof size || size > whole - 2 - sizeof size || bytes[size] != 0 ||
      bytes[whole - sizeof size - 1] != 0) {
    gk_host_free(found);
    return false;
  }
  image->bytes = found;
  image->size = (size_t)size;
  const char *log = bytes + size + 1;
  if (log[0]) gk_log(GK_LOG_WARN, "%s (%s):\n%s", name, made_by, log);
  gk_log(GK_LOG_INFO, "%s (%s) was kept from before", name, made_by);
  return true;
}

/* ---- the program's images ---------------------------------------------------------------------------------------- */

static const char *name_of_file(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

const gk_image *gki_store_choose(const uint64_t hash[2], const char *file, gki_image_rank *rank, int architecture,
                                 int below, gki_unfit *others) {
  const gk_image *best = NULL;
  const gk_images *images;
  for (size_t k = 0; (images = gki_images_at(k)); ++k)
    for (uint32_t m = 0; m < images->count; ++m) {
      const gk_image *image = &images->at[m];
      const int its = rank(image, architecture);
      if (its < 0) continue;
      if (memcmp(image->text, hash, sizeof image->text) != 0) {
        if (strcmp(name_of_file(image->file), name_of_file(file)) == 0) others->other_text = image;
      } else if (its == 0) others->other_gpu = image;
      else if (its < below && (!best || its > rank(best, architecture))) best = image;
    }
  return best;
}

void gki_store_explain(const gki_unfit *others, const char *name, const char *gpu, const char *advice, char *why,
                       size_t bytes) {
  why[0] = 0;
  if (others->other_gpu)
    snprintf(why, bytes, "%s: what was compiled when the program was built is for other GPUs than %s; %s", name, gpu,
             advice);
  else if (others->other_text)
    snprintf(why, bytes, "%s: what was compiled when the program was built is of another text of %s, as the source or "
             "gk has changed since; run gk-embed again", name, others->other_text->file);
  if (why[0]) gk_log(GK_LOG_WARN, "%s", why);
}
