/* Backends that are linked with the runner, besides those in gk: those of gk's own tests, or none. */
#ifndef OWN_H
#define OWN_H
#include "gk.h"

typedef struct own_backend {
  const char *name;
  void (*enter)(void);                              /* registers it; again: nothing */
  void (*fail_at)(unsigned long call, gk_result code); /* the call-th entry from now that can fail does; 0: none */
  unsigned long (*calls)(void);                     /* such entries since then */
  const char *(*broken)(void);                      /* the first rule that common broke; "" */
  unsigned (*leaks)(void);                          /* what wasn't given back */
} own_backend;

extern const own_backend own_backends[]; /* the last has no name */
const own_backend *own_backend_of(const char *name); /* NULL: it is none of these */
#endif
