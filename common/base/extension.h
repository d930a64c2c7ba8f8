/* The extensions that a program hands to gk_device_open (gk_device_desc.next). */
#ifndef GKI_BASE_EXTENSION_H
#define GKI_BASE_EXTENSION_H
#include "gk_backend.h"

/* An extension that a backend knows. */
typedef struct gki_extension_kind {
  uint32_t id, bytes;
  const char *backend, *name, *initializer; /* in messages: "hip", "gk_hip_sharing", "GK_HIP_SHARE" */
} gki_extension_kind;

/* Finds the one extension that a backend knows; NULL: it isn't given. GK_ERROR_INVALID: there is another one, it has
 * another size, or it is given twice. */
gk_result gki_extension_find(const gk_extension *first, const gki_extension_kind *kind, const gk_extension **found);
#endif
