/* The only list of backends, in the order in which gk tries them: modules, the last one first, then the backends that
 * the build put into the library (`backends` in build.ninja). */
#ifndef GKI_BASE_REGISTRY_H
#define GKI_BASE_REGISTRY_H
#include "gk_backend.h"
#include <stddef.h>

extern const gk_backend *const gki_built_in[]; /* without the modules; NULL ends it */

const gk_backend *gki_backend_named(const char *name); /* NULL: there is none */

/* The backends for which gk_kernel has a place for handwritten code, in this build or not. An entry without a name ends
 * the table. */
typedef struct gki_code_place { const char *backend; size_t at; } gki_code_place;
extern const gki_code_place gki_code_places[];
#define GKI_CODE_PLACE(backend) {#backend, offsetof(gk_kernel, backend)}

/* The backends that this build leaves out; NULL ends the table. */
extern const char *const gki_left_out[];

/* For a missing backend: whether another build has it, or a later version will. */
bool gki_backend_is_planned(const char *name);

/* A kernel's handwritten code for a backend; NULL: none. Without a backend: for any backend of the library. */
const gk_code *gki_backend_code(const gk_backend *backend, const gk_kernel *kernel);

/* "cuda, openmp", for messages. */
void gki_backend_names(char *text, size_t bytes);

/* The result of an entry if the entry may return it. Any other result becomes GK_ERROR_DEVICE, with a message that
 * names both. */
gk_result gki_answer(const gk_backend *backend, const char *entry, gk_result result);

/* Loads the modules in $GK_MODULES, once per process. The log and gki_modules_problem report modules that can't be
 * loaded. */
void gki_modules_load(void);
const char *gki_modules_problem(void); /* "" if none; a sentence per module */
#endif
