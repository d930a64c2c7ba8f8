/* A story's list as it lies on a backend and on the reference: memory, numbers, and what the host does with them. */
#ifndef RANDOM_WORLD_H
#define RANDOM_WORLD_H
#include "kernels.h"
#include "conformance/compare.h"
#include "story.h"

enum { CELL_BYTES = 4 * 64, MAX_RETIRED = MAX_DEEDS };

/* A slot of the list as composed, on both sides. */
typedef struct cell {
  const reference_slot *slot;
  gk_slot gk;
  char kind;
  void *device, *host;      /* memory that the host brought */
  random_host hosts[2];     /* H: the backend's and the reference's */
  unsigned char seen[CELL_BYTES]; /* when it was last compared */
} cell;

typedef struct retired { void *device, *host; size_t bytes; } retired;

typedef struct world {
  story *s;
  tally *t;
  recorder *record;
  gk_device *device;
  gk_graph *graph;
  reference *reference;
  const reference_status *wanted;
  size_t cell_count, retired_count;
  random_stops stops[2];
  stay_door *door; /* where CALLs are recorded and some `stay`; the device's alone */
  uint32_t tasks;  /* of the reference's launch */
  bool near;       /* the host can touch the device's memory */
  uint32_t pending;
  uint64_t launches;
  bool too_long, can_yield, failed;
  bool bound, last_bound; /* something was: since the last launch, before it */
  bool fails, has_failed; /* the launch at hand, by a count; the one before */
  struct { uint64_t passes[MAX_LINES]; bool bound[MAX_LINES], ran[MAX_LINES]; } made; /* by all launches together */
  cell cells[MAX_COMPOSED];
  retired retired[MAX_RETIRED];
} world;

/* Of memory: no door, and no pass number, which the host can't read. */
static inline bool is_comparable(const cell *c) { return c->kind != 'D' && c->kind != 'p'; }

static inline const char *name_of(const cell *c) { return c->slot->name; }

bool world_open(world *w, story *s, gk_device *device, tally *t, recorder *log);
void world_close(world *w);

/* Keeps why the story has failed; true. */
bool differs(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool must(world *w, gk_result result, const char *call);

/* One of these kinds; NULL: there is none. */
cell *some_cell(world *w, const char *kinds, uint32_t random);
int32_t fitting(char kind, size_t at, uint64_t random); /* a value that such memory may have at that place */
bool put(world *w, cell *c, size_t at, const int32_t *ints, size_t count);
bool put_all(world *w, cell *c, uint64_t random);
bool put_chance(world *w, cell *c, uint64_t random); /* memory that is zeroed */
size_t usual_count(const cell *c);
bool bring(world *w, cell *c, size_t count); /* memory of the host's */
bool resize(world *w, cell *c, size_t count);
bool give_struct(world *w, cell *c, uint64_t random);
bool give_number(world *w, cell *c, int64_t value);

bool same_bytes(world *w, const char *name, const void *at, const void *wanted, size_t bytes);
/* What the reference left alone is compared now and then, or always if `all`: reading a device's memory takes time. */
bool same_memory(world *w, bool all);
#endif
