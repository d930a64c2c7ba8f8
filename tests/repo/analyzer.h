/* Put before every source by analyzer.py: what gives memory, and what takes it back. */
#include "base/memory.h"
void *gk_host_alloc(size_t bytes) __attribute__((malloc, malloc(gk_host_free, 1)));
void *gki_array(size_t count, size_t element_bytes, const char *what) __attribute__((malloc, malloc(gk_host_free, 1)));
