/* Compiled kernels on disk for the next process: one file per image, in a folder of the user. The folder is $GK_CACHE
 * if that is set ("off", "0" or empty: there is no cache), otherwise $XDG_CACHE_HOME/gk, or $HOME/.cache/gk. gk makes
 * the folder if it is missing, and doesn't use it if another user owns it or could write to it. All entries together
 * stay below $GK_CACHE_LIMIT MiB (256); entries that weren't used for the longest time are removed first. Nothing here
 * fails: without a cache everything is compiled again, also if gk was built without xxHash (cache_none.c). An entry
 * that is damaged, cut off or of another origin is removed and counts as missing. Any number of threads and processes
 * may use a folder at the same time: each entry is written beside it and renamed, so it is there as a whole or not at
 * all. */
#ifndef GKI_KERNEL_CACHE_H
#define GKI_KERNEL_CACHE_H
#include "gk_backend.h"

/* One of the inputs that an image depends on. */
typedef struct gki_cache_part { const void *at; size_t bytes; } gki_cache_part;

/* A 128-bit hash (XXH3) of all inputs and of the end of each. */
typedef struct gki_cache_key { unsigned char hash[16]; } gki_cache_key;
gki_cache_key gki_cache_key_of(const gki_cache_part *parts, size_t count);

/* The bytes kept for the key, followed by a zero byte, to be freed by gk_host_free. False: there are none. */
bool gki_cache_find(const gki_cache_key *key, void **bytes, size_t *size);

/* Keeps the bytes, if possible. */
void gki_cache_keep(const gki_cache_key *key, const void *bytes, size_t size);

/* The folder, for gk-info; "", with the reason in `why`, if there is none. Doesn't make a missing folder; `why` then
 * mentions that. */
void gki_cache_describe(char *folder, size_t folder_bytes, char *why, size_t why_bytes);
#endif
