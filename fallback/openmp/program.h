/* The lowered form of a plan: flat arrays of ops, one cache line each, so that a launch reads nothing else for a small
 * task. */
#ifndef GKI_OPENMP_PROGRAM_H
#define GKI_OPENMP_PROGRAM_H
#include "base/memory.h"
#include "openmp/team.h"

/* The expected time of waking a team, until it is measured. */
#define GKI_WAKE_NS 20000.0f
/* The expected time of sharing a task with an awake team. A longer measurement is doubted. */
#define GKI_DISPATCH_NS 1000.0f

/* An open device. Costs are measured on the worker's thread only. */
typedef struct gki_openmp_device {
  gki_team team;
  float dispatch_ns;       /* what it takes to share a task with a team that is awake */
  float dispatch_floor_ns; /* the least of what was measured the last times; while doubted, GKI_DISPATCH_NS */
  float calibrated_ns[8]; /* these */
  uint32_t calibrations;  /* how often it was measured */
  uint64_t doubted_at;    /* when (gki_now_ns) dispatch_floor_ns is doubted, if it is above GKI_DISPATCH_NS */
  float pause_ns;         /* until then, from when it was measured; 0: it wasn't above */
  bool fixed;             /* costs are given, by a test */
  float clock_ns;         /* what reading the clock adds to what it measures */
  float wake_ns;          /* what it takes to share a task with a team that sleeps or hasn't started */
  char name[160], driver[160];
} gki_openmp_device;

typedef enum gki_op_kind {
  GKI_SIMPLE, /* a kernel without sums, its items known */
  GKI_KERNEL, /* any other kernel */
  GKI_COPY,
  GKI_FILL,
  GKI_CALL,
  GKI_FORK,   /* a PARALLEL of straight sections; its ops follow, then the JOIN: in series, both are passed over */
  GKI_JOIN,
} gki_op_kind;

enum { GKI_READS = 1, /* gki_op.bits: an extent is read when the task runs */
       GKI_TOO_MANY = 2,
       GKI_ONE_EXTENT = 4 /* and that a number's slot */ };

typedef struct gki_op {
  gk_range range;      /* all its items, unless they are read */
  gk_host_kernel host;
  uint32_t args;       /* where they begin in gki_program.args */
  uint32_t more;       /* with sums: index in sums, plus one; FORK, JOIN: index in forks */
  float alone_ns;      /* what it takes on one thread; 0: can't be shared */
  float cost_ns;       /* per item, or byte */
  uint16_t countdown;  /* executions until the next that is timed */
  uint8_t kind;        /* gki_op_kind */
  uint8_t bits : 4, timed : 4; /* timed: how often it was, up to 15 */
  uint32_t node;
} gki_op;

/* The sum parameters of an op. */
typedef struct gki_sums {
  uint8_t count;
  uint8_t param[GK_MAX_ARGS]; /* which */
  uint8_t number[GK_MAX_ARGS]; /* gk_type */
  bool exact;                  /* all are integers: however they are cut, they come to the same */
} gki_sums;

typedef struct gki_section {
  uint32_t begin, end; /* its ops, where the fork is straight */
  uint32_t node;
  gk_walk *walk;       /* where it isn't */
} gki_section;

/* What the sections of a PARALLEL take in series (one after the other) and split (side by side). */
typedef struct gki_trial {
  bool split;               /* the faster way, as far as is known */
  uint8_t series_samples, split_samples;
  uint8_t probing;          /* executions left in which the way that lost is tried again */
  uint8_t untimed;          /* executions since one in series was timed */
  uint16_t wait, pause;     /* executions until the next such tries; and how many that is this time */
  float series_ns, split_ns;
  float last_ns, lately_ns; /* of the way that is taken: the last execution, the lesser of the last two */
} gki_trial;

/* A PARALLEL. */
typedef struct gki_fork {
  uint32_t node, first, count; /* sections */
  bool straight;
  bool in_order;               /* two sections add floats to one slot: their order decides the bits */
  gki_trial trial;
  uint64_t began;              /* in series and being timed; 0: not */
  bool started;                /* the team was there then */
  uint32_t at;                 /* walked in series: the section it is in */
  gk_walk *around;             /* likewise: the walk that waits for it */
  struct gki_fork *outer;      /* likewise */
} gki_fork;

typedef struct gki_span { uint32_t begin, end; } gki_span;

/* A graph. */
typedef struct gki_program {
  gki_arena arena;
  gki_openmp_device *device;
  const gk_plan *plan;
  gki_op *ops;
  uint32_t op_count;
  gki_span *runs;        /* ops, by run */
  gki_fork *forks;       /* by node */
  uint32_t fork_count;
  gki_section *sections;
  gki_sums *sums;
  gk_value *args;        /* as gk_plan.args, but values */
  gki_span *arg_places;  /* by slot: where in `places` the args that have its value are */
  gki_span *item_places; /* by slot: likewise the ops that have it as an extent */
  uint32_t *places;
  gk_value *values;      /* by slot: as bound in the launch before */
  void **structs;        /* by slot: the graph's copy of a BYTES slot */
  char *partial;         /* by worker slot and number: partial sums */
  uint32_t partial_bytes; /* of one partial sum of each slot */
  bool eager;            /* the team was worth its waking in the launch before */
  atomic_int failed;     /* gk_result of the launch at hand */
  char message[1024];
} gki_program;

gk_result gki_openmp_lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
void gki_openmp_drop(void *graph);

/* Takes over what was bound since the launch before. */
void gki_openmp_patch(gki_program *program, const gk_launch_args *launch);

/* An op's extents from slots' values, those in memory too. */
void gki_openmp_extents(const gki_program *program, const gki_op *op, const gk_value *values, int64_t extent[3]);

char *gki_openmp_dump(void *graph, const char *format);

/* run.c */
gk_result gki_openmp_run(void *graph, const gk_launch_args *launch, gk_launch_result *record);
#endif
