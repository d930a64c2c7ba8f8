/* Compiled images of a text: kept on disk with the compiler's log (cache.h), or contained in the program (images.h). */
#ifndef GKI_KERNEL_STORE_H
#define GKI_KERNEL_STORE_H
#include "kernel/cache.h"
#include "kernel/unit.h"

/* `made_for`: compiler, target and driver. False: out of memory, or the image can't be kept, with the reason in the
 * log. */
bool gki_store_key(const gki_unit *text, const char *made_for, gki_cache_key *key);

void gki_store_keep(const gki_cache_key *key, const gki_compiled *image);

/* Finds a kept image, and logs its compiler's warnings again. False: there is none. */
bool gki_store_find(const gki_cache_key *key, const char *name, const char *made_by, gki_compiled *image);

/* How well an image suits devices of an architecture; 0: they can't use it; -1: it is for another backend. */
typedef int gki_image_rank(const gk_image *image, int architecture);

/* Images that don't fit: of the same text for other devices; of another text of the same file. NULL: none. */
typedef struct gki_unfit { const gk_image *other_gpu, *other_text; } gki_unfit;

/* Says in a warning and in `why` which images there are instead of a fitting one; `why` stays empty if there are none.
 * gpu, advice: "sm_89", "give gk-embed --arch 89". */
void gki_store_explain(const gki_unfit *others, const char *name, const char *gpu, const char *advice, char *why,
                       size_t bytes);

/* The program's best image for a text, by gki_unit_hash, with a rank below `below`; NULL: none. */
const gk_image *gki_store_choose(const uint64_t hash[2], const char *file, gki_image_rank *rank, int architecture,
                                 int below, gki_unfit *others);
#endif
