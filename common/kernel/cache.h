/* What was compiled, kept on disk for the next process: one file per image, in a folder of the user's own.
 *
 * The folder is $GK_CACHE if that is set ("off", "0" or nothing: there is no cache), else $XDG_CACHE_HOME/gk, else
 * $HOME/.cache/gk. It is made if it isn't there, and left alone if somebody else owns it or could write to it. All
 * entries together are kept below $GK_CACHE_LIMIT MiB (256); those that weren't used for the longest time go first.
 *
 * Nothing here fails: without a cache everything is compiled again, and so it is where gk was built without xxHash
 * (cache_none.c). An entry that is damaged, cut off or somebody else's is removed and counts as none. Any number of
 * threads and processes may use a folder at once: entries are written beside it and renamed, so that each is there as a
 * whole or not at all. */
#ifndef GKI_KERNEL_CACHE_H
#define GKI_KERNEL_CACHE_H
#include "gk_backend.h"

/* One of the things that an image depends on. */
typedef struct gki_cache_part { const void *at; size_t bytes; } gki_cache_part;

/* A 128-bit hash (XXH3) of all of them and of where each ends. */
typedef struct gki_cache_key { unsigned char hash[16]; } gki_cache_key;
gki_cache_key gki_cache_key_of(const gki_cache_part *parts, size_t count);

/* The bytes kept for that key, a zero byte behind them, to be freed by gk_host_free. False: there are none. */
bool gki_cache_find(const gki_cache_key *key, void **bytes, size_t *size);

/* Keeps them, if that is possible. */
void gki_cache_keep(const gki_cache_key *key, const void *bytes, size_t size);

/* Where it is, for people; "" and a sentence in `why` if there is none. Makes nothing: `why` also says so if it isn't
 * there yet. */
void gki_cache_describe(char *folder, size_t folder_bytes, char *why, size_t why_bytes);
#endif
