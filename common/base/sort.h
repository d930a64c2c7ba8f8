/* Sorts numbers in place and without memory: qsort may allocate behind the allocator hook. */
#ifndef GKI_BASE_SORT_H
#define GKI_BASE_SORT_H
#include <stdbool.h>
#include <stdint.h>

/* Whether a belongs before b. */
typedef bool (*gki_before)(const void *user, uint32_t a, uint32_t b);

void gki_sort(uint32_t *order, uint32_t count, gki_before before, const void *user);
#endif
