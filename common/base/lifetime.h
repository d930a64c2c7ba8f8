/* Destroyed graphs and closed devices, for builds with GK_DEBUG: a call with one of them is refused by name instead of
 * touching freed memory. Other builds don't check. */
#ifndef GKI_BASE_LIFETIME_H
#define GKI_BASE_LIFETIME_H
#include "base/memory.h"

#ifdef GK_DEBUG
/* GK_OK, or GK_ERROR_INVALID and a message if the handle's lifetime has ended. */
gk_result gki_lifetime_check(const void *handle, const char *call);
/* end: how the lifetime ended, "destroyed". */
void gki_lifetime_end(const void *handle, const char *kind, const char *name, const char *end);
/* Like gki_array for one element, at an address that no recently ended handle had. */
void *gki_lifetime_begin(size_t bytes, const char *what);
#else
static inline gk_result gki_lifetime_check(const void *handle, const char *call) {
  (void)handle, (void)call;
  return GK_OK;
}
static inline void gki_lifetime_end(const void *handle, const char *kind, const char *name, const char *end) {
  (void)handle, (void)kind, (void)name, (void)end;
}
static inline void *gki_lifetime_begin(size_t bytes, const char *what) { return gki_array(1, bytes, what); }
#endif
#endif
