/* Structs in kernel text: how C and GLSL lay them out in memory. */
#ifndef GKI_KERNEL_STRUCT_H
#define GKI_KERNEL_STRUCT_H
#include "base/memory.h"
#include "kernel/token.h"

/* A struct of the source and where its end lies: in C, and in GLSL, which puts the next member into padding at the end
 * of a nested struct, or of the last one of an array. */
typedef struct gki_struct {
  gki_token name;
  uint64_t bytes, alignment; /* in C */
  uint64_t used;             /* up to the end of its last member */
  bool known;                /* every member's size is */
  const char *split;         /* first member that the two put at different places, or NULL */
} gki_struct;

typedef struct gki_structs {
  gki_struct *at;
  size_t count, capacity;
} gki_structs;

/* Reads `(name) { members }` behind GK_STRUCT. False: out of memory. */
bool gki_read_struct(gki_structs *structs, const char *s, const char *end);

/* NULL: there is none of that name. */
const gki_struct *gki_find_struct(const gki_structs *structs, gki_token name);
#endif
