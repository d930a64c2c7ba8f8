/* Structs in kernel text: their layout in C and GLSL. */
#ifndef GKI_KERNEL_STRUCT_H
#define GKI_KERNEL_STRUCT_H
#include "base/memory.h"
#include "kernel/token.h"

/* A struct of the source and its end, in C and in GLSL. GLSL puts the next member into the padding at the end of a
 * nested struct, or of the last struct of an array. */
typedef struct gki_struct {
  gki_token name;
  uint64_t bytes, alignment; /* in C */
  uint64_t used;             /* up to the end of its last member */
  bool known;                /* the size of every member is known */
  const char *split;         /* the first member that C and GLSL put at different places, or NULL */
} gki_struct;

typedef struct gki_structs {
  gki_struct *at;
  size_t count, capacity;
} gki_structs;

/* Reads `(name) { members }` behind GK_STRUCT. False: out of memory. */
bool gki_read_struct(gki_structs *structs, const char *s, const char *end);

/* The layout of a type, also of a number's. */
gki_struct gki_layout_of(const gki_structs *structs, gki_token name);

/* NULL: there is no struct with that name. */
const gki_struct *gki_find_struct(const gki_structs *structs, gki_token name);
#endif
