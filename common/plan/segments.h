/* A plan cut into segments, with points where decisions are due; gates.c gives them their gates. */
#ifndef GKI_PLAN_SEGMENTS_H
#define GKI_PLAN_SEGMENTS_H
#include "gk_gates.h"
#include "base/memory.h"

/* How control arrives at a spot of the list: the exits that lead there and don't have a next point yet. They are exits
 * of points and control kernels, chained by gki_gating.links from head to tail. */
typedef struct gki_flow {
  uint32_t head, tail;
  bool task; /* a task may come last before this spot: the exits don't matter */
  bool left; /* a kernel that walks one of these exits lies in a DO_WHILE that has just ended */
} gki_flow;

/* A future node of the graph. */
typedef struct gki_part {
  gk_gate_kind kind;
  uint32_t next;   /* in its segment */
  uint32_t node;   /* of the plan */
  uint32_t handle;
  uint32_t block;  /* IF, WHILE: its body; SWITCH, PARALLEL: the first body */
  uint32_t kernel; /* CONTROL: its number */
} gki_part;

/* A part of a block that is skipped or run as a whole. */
typedef struct gki_segment {
  uint32_t next;        /* in its block */
  uint32_t first, last; /* parts */
  gki_flow entry;       /* before it */
  uint32_t marks;       /* checkpoints and unrolled loops that no point notes yet, chained by gki_gating.mark_links */
  uint32_t gate, guard; /* the handle or guard that closes it; both with GK_WITH_PLAIN */
  uint32_t point;       /* with GK_WITH_PLAIN: the ENTER point in front of a gate */
  uint32_t close;       /* its first close item */
  bool always;          /* an always-task: never skipped */
  bool closable;        /* some stop or target closes it */
  bool has_task, has_kernel;
} gki_segment;

/* A sequence of items. The numbers of a block's segments rise, with those of inner blocks in between. */
typedef struct gki_block {
  uint32_t around, sibling; /* sibling: the next block of the same item */
  uint32_t first, last;     /* segments */
  uint32_t before, after;   /* segments of the block around: the one with its item; the first one behind that item */
  uint32_t stopped_from;    /* the first segment that some stop closes */
  uint32_t passed_to;       /* one past the last segment that some target closes */
  uint32_t loop, handle, value;
  uint32_t head;            /* as in gk_gate_block */
  bool in_loop, has_target, full; /* full: it has nodes */
} gki_block;

/* Of a loop. */
typedef struct gki_copies {
  uint32_t count;  /* how often its body stands in its node, or, without one, in the block around */
  uint32_t passes; /* as in gk_gate_point, of its LOOP_END or PASSES */
  uint32_t rest;   /* how often the body stands behind the node, for the last passes before the bound */
  bool unrolled;   /* it has no node and no LOOP_END */
} gki_copies;

typedef struct gki_gating {
  const gk_plan *plan;
  uint32_t bits;
  gki_arena scratch;
  gki_part *parts; uint32_t part_count;
  gki_segment *segments; uint32_t segment_count;
  gki_block *blocks; uint32_t block_count;
  gk_gate_point *points; uint32_t point_count; /* until gates.c writes them, `close` is the number of a segment */
  gk_gate_exit *exits; uint32_t exit_count;    /* of points; each kernel has one more, from exit_limit on */
  uint32_t exit_limit, kernel_count;           /* kernel 0 is the prologue */
  uint32_t *links;
  gk_gate_handle *handles; uint32_t handle_count;
  gk_gate_target *targets;                     /* `close` as in points */
  uint32_t *mark_links;                        /* by node of the plan */
  uint8_t *holds_loop;                         /* by node of the plan: whether it is or contains a loop */
  uint8_t *begins;                             /* by loop: a value of `beginning` in segments.c; 0: not known yet */
  uint32_t *loop_around, *end_points;          /* by loop */
  gki_copies *copies;                          /* by loop; gates.c writes them */
  uint32_t guard_count;
  uint32_t checkpoint, loop;                   /* around the current item */
} gki_gating;

/* Makes parts, segments, blocks and points, for which gates.c has allocated memory. */
void gki_segments_make(gki_gating *g);

static inline bool gki_is_plain(const gki_gating *g) { return (g->bits & GK_WITH_PLAIN) != 0; }

uint32_t gki_gating_handle(gki_gating *g, uint32_t initial, uint32_t off);
uint32_t gki_gating_point(gki_gating *g, gk_point_kind kind, uint32_t node, uint32_t exit_count);
#endif
