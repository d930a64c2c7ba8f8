#include "base/extension.h"

gk_result gki_extension_find(const gk_extension *first, const gki_extension_kind *kind, const gk_extension **found) {
  *found = NULL;
  for (const gk_extension *at = first; at; at = at->next) {
    if (at->id != kind->id)
      return gk_fail(GK_ERROR_INVALID, "backend %s: it knows no extension 0x%x; there is %s", kind->backend,
                     (unsigned)at->id, kind->name);
    if (at->bytes != kind->bytes)
      return gk_fail(GK_ERROR_INVALID, "backend %s: %s has %u bytes, not %u; initialize it by %s, and compile with the "
                     "header of the library that is used", kind->backend, kind->name, (unsigned)kind->bytes,
                     (unsigned)at->bytes, kind->initializer);
    if (*found)
      return gk_fail(GK_ERROR_INVALID, "backend %s: %s is given twice, or the chain of extensions goes in a circle; "
                     "give it once", kind->backend, kind->name);
    *found = at;
  }
  return GK_OK;
}
