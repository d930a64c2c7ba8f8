/* A story: lists that include each other, and deeds of a host. */
#ifndef RANDOM_STORY_H
#define RANDOM_STORY_H
#include "gk.h"
#include "unit/support/chance.h"
#include <stdio.h>

enum {
  MAX_LISTS = 5, MAX_TASKS = 240, MAX_LINES = 400, MAX_SLOTS = 96, MAX_DEEDS = 40, MAX_COMPOSED = 512, NAME_BYTES = 40,
  DATA = 32, FLAGS = 16, /* ints of a group's memory */
  FIRST_SWITCH = 6, FIRST_COUNT = 8, REFUSED = 12, GRANTED, WANTED, /* among its flags; before: those of loops, IFs */
  TASK_LIMIT = 4000, HEAVY_LIMIT = 150, /* of a launch: stories that run longer are left out */
};

/* A slot's kind is the first letter of its name, behind the list's "L1_":
 *   X data   F flags   S chance   H the host's   A atomic int   T U V W sums of int, uint, float, double
 *   N a count up to 8   M one up to 4   I a number   K a number that stays   G J R Q uint, int64_t, float, double
 *   E one int, O a number: a count of a copy or fill, of any size   L a number, up to 8 or more than 2^31 - 1
 *   P a struct   B a struct in memory   C leave   Y kept items   Z room, of them or others   D a door (stay.h)
 *   h memory that the host reaches, for `tell`   p a pass number */
typedef struct listing {
  gk_list list;
  gk_task tasks[MAX_TASKS];
  gk_slot_desc slots[MAX_SLOTS];
  char task_names[MAX_TASKS][4 * NAME_BYTES], slot_names[MAX_SLOTS][NAME_BYTES], name[16];
  uint32_t arguments;     /* slots at its beginning for which an INCLUDE may give others */
  uint32_t lines, labels; /* as composed; labels lie between 1 and that */
  uint32_t yields;        /* YIELDs of this list itself */
  uint32_t has;           /* HAS_... bits, of included lists, too */
} listing;
enum { HAS_CHECKPOINT = 1, HAS_ALWAYS = 2, HAS_HALT = 4 };

typedef enum deed_kind {
  DEED_LAUNCH, DEED_POKE, DEED_BIND, DEED_RESIZE, DEED_NUMBER, DEED_STRUCT, DEED_KINDS
} deed_kind;

enum { RESUME = -1 }; /* that of the last yield, or none */

typedef struct deed {
  deed_kind kind;
  int32_t label;   /* LAUNCH: 0, RESUME, or a random number for a checkpoint */
  uint32_t cancel; /* LAUNCH: when `halt` comes for the n-th time; 0: never */
  uint32_t queued; /* LAUNCH: so many fresh ones behind it before it may go on */
  bool waits;      /* LAUNCH: for its end, where the list allows not to */
  bool polls;
  uint32_t slot;   /* the others: which of those that it could concern; a random number */
  uint32_t at;     /* POKE: the first int */
  uint32_t count;  /* POKE: how many; RESIZE */
  int32_t value;
} deed;

/* Of all that are written. */
typedef enum story_calls {
  CALLS_RUN,         /* by the host, wherever they stand */
  CALLS_NONE,        /* and nothing is cancelled */
  CALLS_RECORDED,    /* `halt` is a kernel */
  CALLS_UNSTOPPABLE, /* recorded, and no kernel can wait for the host: nothing is cancelled */
} story_calls;
extern story_calls story_calls_are;
static inline bool story_cancels(void) { return story_calls_are == CALLS_RUN || story_calls_are == CALLS_RECORDED; }

typedef struct story {
  uint64_t seed;
  uint32_t bits; /* for gk_graph_create */
  bool safe;     /* blocks of checkpoints are safe to run again, and the guarantee is checked */
  bool heavy;    /* some kernels take long */
  bool bounds;   /* every loop has one, and checkpoints stand in loops */
  bool pauses;   /* by many YIELDs */
  bool hosts;    /* CALL_HOSTs: where a device decides, the host has to, then */
  bool plain;    /* memory begins with zeroes */
  bool counts;   /* of any size: some launches fail by them */
  uint64_t without; /* constructs, by their letter - 'A': so those that are left meet more often (swarm testing) */
  uint32_t list_count, deed_count;
  listing lists[MAX_LISTS]; /* each includes only those before it; the last is the whole */
  deed deeds[MAX_DEEDS];
} story;

/* What came up; kept where parent and child see it. */
typedef struct tally {
  uint64_t seed, lists, too_long, launches, finished, yielded, resumed, elsewhere, cancelled, queued_cancelled, queued,
      bounded, polled, zero_passes;
  uint64_t ops[GK_OP_END + 1], deeds[DEED_KINDS], deepest, two_deep_includes, ten_deep, heavy, always,
      sections_in_sections, counts_in_memory, counts_of_any_size, constants, constants_given, every, rooms, passes,
      bad_counts, swarms, two_dimensions, three_dimensions, sums, offsets, shared_flags, guarantees, interruptions;
  story_calls calls; /* how the backend has them */
  bool printed; /* to the end */
  char why[1024];
} tally;

typedef struct recorder recorder; /* writes down what a run does, as C */

/* A count of any size, as such a number can be. */
static inline int64_t any_count(uint64_t random, gk_type type) {
  static const int64_t far[] = {INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1, UINT32_MAX, (INT64_C(1) << 32) + 1,
                                INT64_MAX, INT64_MIN, 1000};
  const uint32_t h = (uint32_t)(mix(random) >> 16), rest = h / 8;
  int64_t count = h % 8 < 5 ? (int64_t)(rest % 9) : h % 8 == 5 ? (int64_t)(rest % 40) : far[rest % 8];
  if (h % 8 == 7) count = -(int64_t)rest;
  const int64_t low = type == GK_I64 ? INT64_MIN : type == GK_U32 ? 0 : INT32_MIN;
  const int64_t high = type == GK_I64 ? INT64_MAX : type == GK_U32 ? UINT32_MAX : INT32_MAX;
  return count < low ? low : count > high ? high : count;
}
/* One of a kernel, which writes as many elements: those that there is room for, or more than there may be. */
static inline int64_t kernel_count(uint64_t random, gk_type type) {
  const int64_t count = any_count(random, type);
  return count > 8 && count <= INT32_MAX ? count % 8 : count;
}

static inline gk_value number_of(gk_type type, int64_t value) {
  if (type == GK_I64) return (gk_value){.i64 = value};
  if (type == GK_F64) return (gk_value){.f64 = (double)value};
  gk_value number = {.i64 = 0};
  if (type == GK_F32) number.f32 = (float)value;
  else number.u32 = (uint32_t)value;
  return number;
}

typedef enum verdict { ALIKE, DIFFERENT, TOO_LONG } verdict;

/* A task that has an END. */
static inline bool opens(gk_op op) { return op >= GK_OP_DO_WHILE && op <= GK_OP_SECTION && op != GK_OP_ELSE; }
static inline listing *whole_of(story *s) { return &s->lists[s->list_count - 1]; }
static inline char kind_of(const char *name) {
  for (const char *at = name; *at; ++at)
    if (*at == '.') name = at + 1;
  return name[0] == 'L' ? name[3] : name[0];
}

void story_write(story *s, uint64_t seed);               /* write.c */
void story_write_deeds(story *s, uint64_t seed);         /* deeds.c */
verdict story_run(story *s, gk_device *device, tally *t, recorder *record); /* run.c */
void story_shrink(story *s, bool (*fails)(void *user, story *s), void *user); /* shrink.c */

/* print.c */
recorder *recorder_open(FILE *to, const story *s, const char *backend);
void recorder_close(recorder *r);
void recorder_finish(FILE *to); /* the program's end, where a recorder didn't come to it */
void record_begin(recorder *r, const char *list, uint32_t bits); /* r: may be NULL, as in the others */
void record(recorder *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void record_ints(recorder *r, const void *at, size_t bytes); /* further arguments of the call; it ends here */
#endif
