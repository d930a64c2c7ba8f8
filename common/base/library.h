/* Shared libraries that are found when a program runs. They stay loaded. */
#ifndef GKI_BASE_LIBRARY_H
#define GKI_BASE_LIBRARY_H
#include <stddef.h>

/* By the loader's paths, or in the folder `below` of a toolkit. NULL: neither has it. */
void *gki_library_open(const char *name, const char *toolkit, const char *below);

/* The path of a loaded library; NULL: unknown. It is the loader's. */
const char *gki_library_path(void *library);

/* An entry, and the offset of the pointer to it in a struct. `need` groups entries as the caller likes. */
typedef struct gki_library_entry { const char *name; size_t at; int need; } gki_library_entry;

/* Finds the entries of a group. Returns the name of the first that is missing; NULL: none is. */
const char *gki_library_find(void *library, const gki_library_entry *entries, size_t count, int need, void *to);
#endif
