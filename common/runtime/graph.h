/* A graph as the runtime sees it, with its slots and its queue of launches. */
#ifndef GKI_RUNTIME_GRAPH_H
#define GKI_RUNTIME_GRAPH_H
#include "base/error.h"
#include "plan/plan.h"
#include "runtime/device.h"

enum { GKI_QUEUE = 16 }; /* launches of a graph that may be under way; 1 where it can yield */

/* A launch under way: all it needs, so that the slots may be bound anew meanwhile. */
typedef struct gki_launch {
  gki_job job;
  struct gk_graph *graph;
  gk_launch_args hand_over; /* points into what follows */
  gk_value *values;
  unsigned char *bytes;   /* BYTES slots */
  uint32_t *changed;
  size_t *room;           /* NULL: no slot is measured */
  int32_t cancel;         /* set atomically, from any thread */
  gk_launch_result record, blank; /* blank: its arrays, out of the backend's reach */
  gk_result result;
  char message[1024];     /* of a failure on the worker's thread */
} gki_launch;

/* A slot of a graph. */
typedef struct gki_bound {
  gk_value value;      /* BYTES: where it is in graph->bytes */
  size_t bytes_at;     /* BYTES: where its copy is, in graph->bytes and in each launch's */
  void *owned;         /* the graph's own memory; NULL: none */
  size_t owned_count;  /* elements of it */
  size_t room;         /* PTR: bytes known to lie behind its address; SIZE_MAX: unknown. BYTES: its size */
  uint64_t block;      /* PTR: number of the device's block that it lies in; 0: none */
  size_t reach;        /* bytes from its address on that flags, counts, copies and fills surely touch */
  uint32_t reached_by; /* the node that touches the last of them */
  bool written;        /* by some task */
  uint32_t alignment;  /* PTR: what the tasks that use it ask of an address */
  bool bound, used, changed, measured;
  gk_result failed;    /* what its last bind or resize answered, unless a launch has said so */
} gki_bound;

struct gk_graph {
  gk_device *device;   /* NULL: it was closed */
  unsigned forks;      /* the device's */
  struct gk_graph *next_of_device, **link_of_device; /* what points to this one; NULL: it isn't among them */
  atomic_flag in_call;  /* a thread is in a call of this graph */
  atomic_bool stoppable;  /* it was made, and its device isn't being closed */
  atomic_uint stoppers;   /* threads in gk_cancel */
  gki_planned planned;
  void *state;         /* the backend's */
  bool lowered;
  gk_mode mode;
  bool external;        /* it was lowered into a graph of the caller's, who launches that: armed, not launched, here */
  const char *arm_call; /* then: the call that arms it, for messages */

  gki_bound *slots;    /* by index in the plan; of 0, what calls for a slot that isn't there answered */
  unsigned char *bytes; size_t bytes_size;
  uint32_t *changed; uint32_t changed_count;
  bool dirty;          /* something was bound since the bindings were last judged */
  uint64_t freed;      /* the device's bound_freed when they were last found right */
  uint32_t *by_address; uint32_t pointer_count; /* PTR slots in use; sorted when they are judged */
  uint32_t *measured; uint32_t measured_count; /* slots whose room a launch has to know */
  uint32_t failed_count; /* slots whose bind or resize failed */
  uint32_t failed_slot;  /* whose message is kept */
  char *failed_message;

  uint32_t depth;      /* of the queue */
  gki_launch *queue;
  uint64_t *entries;   /* passes of loops' entries that wait */
  atomic_bool resend_slots;   /* a launch failed, and none since has handed over all slots */
  atomic_uint_fast64_t launched; /* number of the last launch; 0: none */
  uint64_t retired;    /* number of the last launch that the host knows to be over */
  uint64_t reported;       /* number of the last launch whose end gk_wait or gk_poll has said */
  gk_result first_error;   /* first failure among the launches since the last that was told */
  char *first_error_message;
  gki_arena arena;     /* holds slots, queue, status */

  gk_status status;
  gk_loop_status *loops;
  gk_checkpoint_status *checkpoints;
};

static inline gki_launch *gki_launch_at(gk_graph *graph, uint64_t number) {
  return &graph->queue[(number - 1) % graph->depth];
}

/* Enters a call of the graph: GK_OK, or why it must not go on (no graph, closed device, another thread). */
gk_result gki_graph_enter(gk_graph *graph, const char *call);
void gki_graph_leave(gk_graph *graph);
#endif
