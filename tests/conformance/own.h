/* Backends that are linked with the runner, besides those in gk: those of gk's own tests, or none. */
#ifndef OWN_H
#define OWN_H
#include "gk.h"

enum { WAYS = 3 };

typedef struct own_backend {
  const char *name;
  void (*enter)(void);          /* registers it; again: nothing */
  void (*seed)(uint64_t seed);  /* for what it leaves to chance; may be NULL */
  const char *(*broken)(void);  /* the first rule that common broke; "" */
  unsigned (*leaks)(void);      /* what wasn't given back */
  const char *ways[WAYS];       /* in which its calls can be made to fail, in words */
  void (*fail_at)(unsigned long call, gk_result code, int way); /* the call-th from now; 0: none */
  unsigned long (*calls)(void); /* that could have failed, since then */
} own_backend;

extern const own_backend own_backends[]; /* the last has no name */
const own_backend *own_backend_of(const char *name); /* NULL: it is none of these */
#endif
