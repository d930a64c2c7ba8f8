/* The one list of backends, in the order in which they are tried: modules, the last one first, then those that the
 * build put into the library (`backends` in build.ninja). */
#ifndef GKI_BASE_REGISTRY_H
#define GKI_BASE_REGISTRY_H
#include "gk_backend.h"

const gk_backend *gki_backend_named(const char *name); /* NULL: there is none */

/* A backend of a later version: a message says that it is not in this build. */
bool gki_backend_is_planned(const char *name);

/* "cuda, openmp", for messages. */
void gki_backend_names(char *text, size_t bytes);

/* What an entry answered, where it can: anything else is GK_ERROR_DEVICE, and a message that names both. */
gk_result gki_answer(const gk_backend *backend, const char *entry, gk_result result);

/* Loads what $GK_MODULES lists, once for the process. What can't be loaded is said in the log, and here. */
void gki_modules_load(void);
const char *gki_modules_trouble(void); /* "" if none; a sentence per module */
#endif
