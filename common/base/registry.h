/* The one list of backends, in the order in which they are tried: modules, the last one first, then those that the
 * build put into the library (`backends` in build.ninja). */
#ifndef GKI_BASE_REGISTRY_H
#define GKI_BASE_REGISTRY_H
#include "gk_backend.h"
#include <stddef.h>

const gk_backend *gki_backend_named(const char *name); /* NULL: there is none */

/* The backends that gk_kernel has a place for code by hand for, in this build or not; one without a name ends them. */
typedef struct gki_code_place { const char *backend; size_t at; } gki_code_place;
extern const gki_code_place gki_code_places[];
#define GKI_CODE_PLACE(backend) {#backend, offsetof(gk_kernel, backend)}

/* Of a backend that isn't there: whether another build has it, or a later version will. */
bool gki_backend_is_planned(const char *name);

/* The code that a kernel has by hand for a backend; NULL: none. No backend: for any that there is. */
const gk_code *gki_backend_code(const gk_backend *backend, const gk_kernel *kernel);

/* "cuda, openmp", for messages. */
void gki_backend_names(char *text, size_t bytes);

/* What an entry answered, where it can: anything else is GK_ERROR_DEVICE, and a message that names both. */
gk_result gki_answer(const gk_backend *backend, const char *entry, gk_result result);

/* Loads what $GK_MODULES lists, once for the process. What can't be loaded is said in the log, and here. */
void gki_modules_load(void);
const char *gki_modules_trouble(void); /* "" if none; a sentence per module */
#endif
