/* Images of a text that needn't be compiled now: kept on disk with the compiler's log (cache.h), or brought along by
 * the program (images.h). */
#ifndef GKI_KERNEL_STORE_H
#define GKI_KERNEL_STORE_H
#include "kernel/cache.h"
#include "kernel/unit.h"

/* made_for: the compiler, what it makes and for which driver. False: nothing is to be kept, which the log says, or out
 * of memory. */
bool gki_store_key(const gki_unit *text, const char *made_for, gki_cache_key *key);

void gki_store_keep(const gki_cache_key *key, const gki_compiled *image);

/* Says the warnings of then again, in the name of the text and its compiler. False: nothing was kept. */
bool gki_store_find(const gki_cache_key *key, const char *name, const char *made_by, gki_compiled *image);

/* How well an image suits devices of an architecture; 0: not at all. */
typedef int gki_image_rank(const gk_image *image, int architecture);

/* Those that can't be used: of the same text for other devices, of what the file was once. */
typedef struct gki_unfit { const gk_image *other_gpu, *other_text; } gki_unfit;

/* The best one that was brought along for a text, by gki_unit_hash, of those below a rank; NULL: none. */
const gk_image *gki_store_choose(const uint64_t hash[2], const char *file, gki_image_rank *rank, int architecture,
                                 int below, gki_unfit *others);
#endif
