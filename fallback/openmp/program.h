/* The lowered form of a plan: flat arrays of ops. An op is one cache line, and a launch reads nothing else for a small
 * task. */
#ifndef GKI_OPENMP_PROGRAM_H
#define GKI_OPENMP_PROGRAM_H
#include "base/memory.h"
#include "openmp/device.h"

typedef enum gki_op_kind {
  GKI_SIMPLE, /* a kernel without sums whose item count is known */
  GKI_KERNEL, /* any other */
  GKI_COPY,
  GKI_FILL,
  GKI_CALL,
  GKI_FORK,   /* a PARALLEL of straight sections; its ops follow, then the JOIN. In series both do nothing. */
  GKI_JOIN,
} gki_op_kind;

enum { GKI_READS = 1,     /* gki_op.bits: an extent is read from memory when the task runs */
       GKI_TOO_MANY = 2,  /* more than INT32_MAX items */
       GKI_ONE_EXTENT = 4 /* one extent, a slot with a number */ };

typedef struct gki_op {
  gk_range range;      /* all items; not with GKI_READS */
  gk_host_kernel host;
  uint32_t args;       /* index of its first argument in gki_program.args */
  uint32_t more;       /* with sums: index in sums, plus one; FORK, JOIN: index in forks */
  float alone_ns;      /* expected time on one thread; 0: can't be shared */
  float cost_ns;       /* per item or byte */
  uint16_t countdown;  /* executions until the next timed one */
  uint8_t kind;        /* gki_op_kind */
  uint8_t bits : 4, timed : 4; /* timed: number of timed executions, at most 15 */
  uint32_t node;
} gki_op;

/* The sum parameters of an op. */
typedef struct gki_sums {
  uint8_t count;
  uint8_t param[GK_MAX_ARGS];  /* indices of the parameters */
  uint8_t number[GK_MAX_ARGS]; /* gk_type */
  bool exact;                  /* all are integers, so partial sums in any order give the same result */
} gki_sums;

typedef struct gki_section {
  uint32_t begin, end; /* its ops, in a straight fork */
  uint32_t node;
  gk_walk *walk;       /* in any other fork */
} gki_section;

/* Times of a PARALLEL whose sections run in series (one after the other) or split (side by side). */
typedef struct gki_trial {
  bool split;               /* whether split was faster so far */
  uint8_t series_samples, split_samples;
  uint8_t probing;          /* executions left of the present probe, which tries the slower way again */
  uint8_t untimed;          /* executions since the last timed one in series */
  uint16_t wait, pause;     /* executions until the next probe; the value that wait began with */
  float series_ns, split_ns;
  float last_ns, lately_ns; /* of the faster way: the last time; the lesser of the last two */
} gki_trial;

/* A PARALLEL. */
typedef struct gki_fork {
  uint32_t node, first, count; /* sections */
  bool straight;
  bool in_order;               /* two sections add floats to one slot: their order decides the bits */
  gki_trial trial;
  uint64_t began;              /* when (gki_now_ns) it began in series, if it is timed; else 0 */
  bool started;                /* whether the team had started then */
  uint32_t at;                 /* walked in series: the current section */
  gk_walk *around;             /* walked in series: the walk that waits for the fork */
  struct gki_fork *outer;      /* walked in series: the fork around it; NULL: none */
} gki_fork;

typedef struct gki_span { uint32_t begin, end; } gki_span;

/* A graph. */
typedef struct gki_program {
  gki_arena arena;
  gki_openmp_device *device;
  const gk_plan *plan;
  gki_op *ops;
  uint32_t op_count;
  gki_span *runs;        /* by run: its ops */
  gki_fork *forks;       /* sorted by node */
  uint32_t fork_count;
  gki_section *sections;
  gki_sums *sums;
  gk_value *args;        /* values of the slots in gk_plan.args */
  gki_span *arg_uses;    /* by slot: a span of `uses`, the indices in `args` with its value */
  gki_span *item_uses;   /* by slot: a span of `uses`, the ops with the slot as an extent */
  uint32_t *uses;
  gk_value *values;      /* by slot: its value in the last launch */
  void **structs;        /* by slot: the graph's copy of a BYTES slot */
  char *partial;         /* partial sums, by team slot and number */
  uint32_t partial_bytes; /* size of a task's sums, padded to cache lines */
  bool wakes_at_once;    /* in the last launch an awake team would have saved more time than waking it takes */
  atomic_int failed;     /* gk_result of the current launch */
  char message[1024];    /* of that failure */
} gki_program;

gk_result gki_openmp_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
void gki_openmp_drop(void *graph);

/* Applies the slots that have changed since the last launch. */
void gki_openmp_patch(gki_program *program, const gk_launch_args *launch);

/* An op's extents, from the values of slots or from the memory that they point to. */
void gki_openmp_extents(const gki_program *program, const gki_op *op, const gk_value *values, int64_t extent[3]);

char *gki_openmp_dump(void *graph, const char *format);

gk_result gki_openmp_run(void *graph, const gk_launch_args *launch, gk_launch_result *result);
#endif
