/* A graph as the runtime sees it, with its slots and its queue of launches. */
#ifndef GKI_RUNTIME_GRAPH_H
#define GKI_RUNTIME_GRAPH_H
#include "base/error.h"
#include "plan/plan.h"
#include "runtime/device.h"

enum { GKI_QUEUE = 16 }; /* launches of a graph that may be under way; 1 if it can yield */

/* A launch that waits for a place in the queue has none where gk_cancel could stop it. */
typedef enum gki_waiting { GKI_NONE_WAITS, GKI_ONE_WAITS, GKI_ONE_IS_CANCELLED } gki_waiting;

/* A launch under way, with everything that it needs, so the slots may be bound again in the meantime. */
typedef struct gki_launch {
  gki_job job;
  struct gk_graph *graph;
  gk_launch_args args;    /* points into the fields below */
  gk_value *values;
  unsigned char *bytes;   /* BYTES slots */
  uint32_t *changed;
  size_t *capacity;       /* by slot; NULL: none is needed */
  int32_t cancel;         /* set atomically, by any thread */
  gk_launch_result launch_result, blank; /* blank: the arrays of the result, where the backend can't change them */
  gk_result result;
  char message[1024];     /* of its failure, for the call that reports it */
} gki_launch;

/* A slot of a graph. */
typedef struct gki_bound {
  gk_value value;      /* BYTES: its address in graph->bytes */
  size_t bytes_at;     /* BYTES: the offset of its copy, in graph->bytes and in each launch's bytes */
  void *owned;         /* the graph's own memory; NULL: none */
  size_t owned_count;  /* elements of it */
  size_t capacity;     /* PTR: bytes known to be behind its address; SIZE_MAX: unknown. BYTES: its size */
  uint64_t block;      /* PTR: number of the device's block that holds its address; 0: none */
  size_t reach;        /* bytes from its address on that flags, counts, copies and fills always touch */
  uint32_t reached_by; /* the node that touches the last of them */
  bool written;        /* some task writes it */
  uint32_t alignment;  /* PTR: the alignment that its tasks need */
  bool bound, used, changed, measured;
  uint32_t room;       /* PTR: the first slot that is its room. Of a room: the next one. 0: none */
  gk_result failed;    /* the failure of its last bind or resize, until a launch reports it */
} gki_bound;

typedef struct gki_status {
  gk_status status;
  gk_loop_status *loops;             /* where `status` points to */
  gk_checkpoint_status *checkpoints;
} gki_status;

struct gk_graph {
  gk_device *device;   /* NULL: it was closed */
  unsigned forks;      /* the device's */
  struct gk_graph *next_of_device, **link_of_device; /* the pointer to this graph; NULL: it isn't in the list */
  atomic_flag in_call;  /* a thread is in a call of this graph */
  atomic_bool in_on_yield; /* gk_run has called on_yield, and resumes the graph when that returns */
  atomic_bool stoppable;  /* the graph is complete, and its device isn't being closed */
  atomic_bool run_cancelled; /* gk_cancel was called since gk_run began */
  atomic_uint cancelling; /* threads in gk_cancel */
  gki_planned planned;
  void *state;         /* the backend's */
  bool lowered;
  gk_mode mode;
  struct gki_ahead *ahead; /* of GK_MODE_AHEAD */
  bool external;        /* it was lowered into a graph of the caller, which the caller launches: here it is armed, not
                         * launched */
  const char *arm_call; /* for such a graph: the call that arms it, for messages */

  gki_bound *slots;    /* by index in the plan; [0]: the result of calls for a slot that doesn't exist */
  unsigned char *bytes; size_t bytes_size;
  uint32_t *changed; uint32_t changed_count;
  bool dirty;          /* something was bound since the last check of the bindings */
  uint64_t freed;      /* device->bound_freed when the bindings were last found valid */
  uint32_t *by_address; uint32_t pointer_count; /* PTR slots in use; sorted at a check */
  uint32_t *measured; uint32_t measured_count; /* slots whose capacity a launch must know */
  uint32_t failed_count; /* slots whose bind or resize failed */
  uint32_t failed_slot;  /* whose message is kept */
  char *failed_message;

  uint32_t depth;      /* of the queue */
  gki_launch *queue;
  uint64_t *entries;   /* by loop: passes of its current entry, which a yield doesn't end */
  uint64_t *counts;    /* by loop: the count that its entry read; 0: none waits */
  int32_t *passes;     /* batched: by loop, its pass number, in the device's memory; NULL: no slot has one */
  atomic_bool resend_slots;   /* a launch failed, and none has sent all slots since */
  atomic_uint_fast64_t launched; /* number of the last launch; 0: none */
  atomic_int waiting;  /* a gki_waiting: whether a launch waits for a place in the queue */
  uint64_t retired;    /* number of the last launch that the host knows to have ended */
  uint64_t reported;       /* number of the last launch whose end gk_wait or gk_poll has reported */
  gk_result first_error;   /* first failure among the launches since the last report */
  char *first_error_message;
  gki_arena arena;     /* holds slots, queue, status */

  gki_status last, totals; /* of the last launch; of all launches of the last gk_run */
};

static inline gki_launch *gki_launch_at(gk_graph *graph, uint64_t number) {
  return &graph->queue[(number - 1) % graph->depth];
}

/* Enters a call of the graph: GK_OK, or why it must not go on (no graph, closed device, another thread). */
gk_result gki_graph_enter(gk_graph *graph, const char *call);
void gki_graph_leave(gk_graph *graph);
#endif
