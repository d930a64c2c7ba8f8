/* A list as composed, with the values of its slots. */
#ifndef REFERENCE_COMPOSED_H
#define REFERENCE_COMPOSED_H
#include "reference.h"

#define NONE SIZE_MAX

typedef struct place {
  reference_slot shown;
  char *name;
  void *memory; /* own memory; of a struct, the copy */
  size_t count; /* its elements */
  size_t buffer, unit; /* of a room: the buffer's place, and the size of an element there */
  size_t loop; /* of a pass number: the line of its loop; else NONE */
} place;

struct reference {
  place *places;
  struct line *lines;
  size_t place_count, place_room, own_count, line_count, line_room; /* own_count: slots of the list's own table */
  reference_loop *loops;
  reference_checkpoint *checkpoints;
  reference_status status;
  void (*before)(void *user, reference *r, size_t line);
  void *user;
  bool no_memory;
  /* the launch at hand */
  bool stopped, cancelled, failed;
  reference_bad bad;
  size_t target; /* the line of a checkpoint or YIELD, or NONE */
  size_t sections; /* that are open */
};
#endif
