/* Inside the simulated driver. One lock guards everything but what a device carries out; see README.md. */
#ifndef SIM_H
#define SIM_H
#include "kernel.h"
#include "lock.h"
#include "simgpu.h"
#include <stdbool.h>

/* Error codes that gk doesn't tell apart. */
#define SIM_ERROR_REGISTERED ((CUresult)712)
#define SIM_ERROR_CAPTURE_MERGE ((CUresult)902)
#define SIM_ERROR_CAPTURE_UNMATCHED ((CUresult)903)
#define SIM_ERROR_CAPTURE_ISOLATION ((CUresult)905)
#define SIM_ERROR_CAPTURE_WRONG_THREAD ((CUresult)908)

/* Larger parameters crash drivers when a node gets them. */
enum { SIM_NODE_BYTES = 4096, SIM_LAUNCH_BYTES = 32764, SIM_BLOCK = 1024, SIM_SHARED = 49152 };

/* ---- rules (rules.c) --------------------------------------------------------------------------------------------- */

/* Notes that a rule was broken, by its name in README.md; false if it may be (SIMGPU_ALLOW). */
__attribute__((format(printf, 2, 3)))
bool sim_broken(const char *rule, const char *text, ...);
/* Notes why, after the name of the entry that was called, and answers the code: what a driver refuses. */
__attribute__((format(printf, 2, 3)))
CUresult sim_refuse(CUresult code, const char *text, ...);
#define sim_invalid(...) sim_refuse(CUDA_ERROR_INVALID_VALUE, __VA_ARGS__)
#define sim_unsupported(...) sim_refuse(CUDA_ERROR_NOT_SUPPORTED, __VA_ARGS__)
/* Both: breaks the rule and refuses. */
#define sim_breaks(code, rule, ...) (sim_broken(rule, __VA_ARGS__), sim_refuse(code, __VA_ARGS__))
/* Returns what the call answers, unless that is success. */
#define SIM_TRY(call) \
  do { \
    const CUresult sim_answer = (call); \
    if (sim_answer != CUDA_SUCCESS) return sim_answer; \
  } while (0)
bool sim_says_no(const char *probe);
bool sim_allows(const char *rule);
bool sim_lacks(const char *entry);
void sim_rules_read(void); /* the environment */
/* Members of simgpu_control. */
void sim_answer_no(const char *probes), sim_allow(const char *rules), sim_lack(const char *entries), sim_forgive(void);
unsigned sim_broken_count(void);
const char *sim_first_broken(void), *sim_last_refused(void);

/* ---- control (control.c) ----------------------------------------------------------------------------------------- */

/* Second signatures: what an entry is from that version on. */
#define SIM_SECOND_ENTRIES(X) \
  X(cuGraphAddKernelNode_v2, 12000, 12000, \
    (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
     const CUDA_KERNEL_NODE_PARAMS_v2 *parameters))
#define SIM_ALL_ENTRIES(X) GKI_CUDA_ENTRIES(X) SIMGPU_ENTRIES(X) SIM_SECOND_ENTRIES(X)
#define SIM_ENTRY(name, version, since, parameters) SIM_##name,
typedef enum sim_entry { SIM_ALL_ENTRIES(SIM_ENTRY) SIM_ENTRIES } sim_entry;
#undef SIM_ENTRY
#define SIM_PROTOTYPE(name, version, since, parameters) CUresult sim_##name parameters;
SIM_ALL_ENTRIES(SIM_PROTOTYPE)
#undef SIM_PROTOTYPE

extern pthread_mutex_t sim_lock;
extern int sim_version, sim_device_count, sim_arch;
int sim_shared_most(void); /* shared memory of a block, if it is asked for */
extern uint64_t sim_seed, sim_passes, sim_memory_bytes;
extern bool sim_held, sim_lazy, sim_settles, sim_launch_blocking; /* the last: CUDA_LAUNCH_BLOCKING */
extern uint64_t sim_busy; /* questions left until kernels of this process run */
extern simgpu_counts sim_count; /* device's counts are added up by it under the lock */

/* Every entry begins with SIM_ENTER: takes the lock until the function is left, counts, fails if it is asked to. */
#define SIM_ENTER(name) \
  SIM_ARRIVE(name); \
  SIM_TRY(sim_enter(SIM_##name))
#define SIM_ARRIVE(name) \
  __attribute__((cleanup(sim_unlock), unused)) pthread_mutex_t *const sim_locked = sim_arrive(#name)
pthread_mutex_t *sim_arrive(const char *entry);
CUresult sim_enter(sim_entry entry);
/* An entry that does nothing else than to answer a result. */
#define SIM_DEFINE(name, parameters, ...) \
  CUresult sim_##name parameters { \
    SIM_ENTER(name); \
    return __VA_ARGS__; \
  }
/* An entry that gives something back by the call: it works even where it fails, which is sim_asked then. */
#define SIM_DEFINE_BACK(name, parameters, ...) \
  CUresult sim_##name parameters { \
    SIM_ARRIVE(name); \
    const CUresult sim_asked = sim_enter_back(SIM_##name), sim_answer = (__VA_ARGS__); \
    return sim_asked != CUDA_SUCCESS ? sim_asked : sim_answer; \
  }
CUresult sim_enter_back(sim_entry entry);
/* An entry that answers a value in *to after statements that find nothing against it. */
#define SIM_ANSWERS(name, parameters, to, statements, value) \
  CUresult sim_##name parameters { \
    SIM_ENTER(name); \
    if (!(to)) return CUDA_ERROR_INVALID_VALUE; \
    statements; \
    *(to) = value; \
    return CUDA_SUCCESS; \
  }
extern _Thread_local const char *sim_entered; /* the entry that this thread has called last */

void *sim_obtain(size_t bytes); /* zeroed; ends the process where there is none */
void *sim_grow(void *array, size_t count, size_t element); /* for one more; NULL for count 0 */
void *sim_duplicate(const void *from, size_t bytes); /* by sim_obtain; NULL for NULL */
uint64_t sim_random(uint64_t *state);

/* ---- objects (objects.c) ----------------------------------------------------------------------------------------- */

typedef enum sim_kind { SIM_CONTEXT = 1, SIM_MODULE, SIM_FUNCTION, SIM_STREAM, SIM_EVENT, SIM_GRAPH, SIM_NODE, SIM_EXEC,
                        SIM_CONDITION, SIM_KIND_COUNT } sim_kind;

/* What a caller holds is a number that no memory has. It is never given out again, but for that of a stream, which the
 * next stream gets. */
typedef struct sim_object {
  sim_kind kind;
  uint64_t handle;
  struct sim_context *context; /* NULL: of none (graphs) */
  bool inner;                  /* lives as part of another: no leak */
} sim_object;

/* Zeroed memory, which begins with a sim_object. */
void *sim_object_make(size_t bytes, sim_kind kind, struct sim_context *context, bool inner);
void sim_object_end(sim_object *object); /* the memory is the caller's */
void sim_object_forget(sim_object *object); /* it isn't waited for to be given back any more */
/* NULL, and a broken rule, if it is no such thing or is destroyed. */
void *sim_find(uint64_t handle, sim_kind kind);
/* Refuses, with the code if there is no such thing, unless it is of the current context. */
CUresult sim_find_here(uint64_t handle, sim_kind kind, CUresult code, void **object);
#define SIM_FIND_HERE(type, name, handle, kind, code) \
  void *name##_found; \
  SIM_TRY(sim_find_here((uint64_t)(uintptr_t)(handle), kind, code, &name##_found)); \
  type *const name = name##_found
bool sim_is_alive(uint64_t handle, sim_kind kind);
bool sim_is(uint64_t handle, const void *object); /* alive, and that one */
extern const char *const sim_kind_names[SIMGPU_KINDS];
size_t sim_alive(simgpu_kind kind);
size_t sim_alive_in(const struct sim_context *context, simgpu_kind kind);
#define SIM_OF(type, handle, kind) ((type *)sim_find((uint64_t)(uintptr_t)(handle), kind))
#define SIM_HANDLE(type, object) ((type)(uintptr_t)(object)->base.handle)

/* ---- devices, contexts (device.c) -------------------------------------------------------------------------------- */

typedef struct sim_block { /* of memory */
  struct sim_block *next;
  simgpu_kind kind;
  struct sim_context *context;
  unsigned char *at;
  size_t bytes;
  unsigned char *pages; /* device memory: what is opened and closed */
  size_t page_bytes;
  bool registered; /* the caller's own */
  unsigned char *shadow, *before; /* P13: what the device has of it, and had when it began */
} sim_block;

typedef struct sim_freed { uintptr_t at; size_t bytes; } sim_freed;
typedef struct sim_torn { const unsigned char *at; size_t bytes; } sim_torn;
enum { SIM_TORN_MOST = 32 };

typedef struct sim_device {
  int ordinal;
  struct sim_context *primary, *contexts; /* the primary one among all */
  bool closing; /* it is ended just now */
  _Atomic bool hung; /* something on it didn't end for a while */
  unsigned char *range; /* reserved addresses: [range, range + used) were given out, and never are again */
  size_t used, taken; /* taken: bytes of live blocks */
  sim_freed *freed;
  size_t freed_count;
  const struct sim_context *open; /* whose memory may be touched, as the device is at work; NULL: none's */
  pthread_t thread;
  pthread_cond_t work, done;
  bool ending;
  struct sim_stream *streams, *running; /* running: whose item is carried out */
  uint64_t random;         /* which stream goes on */
  uint64_t streams_random; /* where the next stream's own begins */
  uint64_t launch_random, passes_most; /* for the item that is carried out, */
  simgpu_counts counts;                /* and what came of it */
  char why[512];
  sim_torn torn[SIM_TORN_MOST]; /* its thread's own */
  unsigned torn_count;
} sim_device;

typedef struct sim_context {
  sim_object base;
  struct sim_context *next; /* of its device */
  sim_device *device;
  unsigned retains; /* of the primary one */
  bool is_reset;    /* until it is retained again; nothing is in it, and it answers nothing */
  CUresult sticky, late;
  char *why; /* of sticky */
  struct sim_stream *default_stream;
  sim_block *blocks;
} sim_context;

extern sim_device sim_devices[];
#define SIM_EACH_DEVICE(each) \
  for (sim_device *each = sim_devices; each < sim_devices + sim_device_count; ++each)
/* The current context into *context; refuses if there is none or it has failed. */
CUresult sim_current(sim_context **context);
#define SIM_FIND_CONTEXT(name) \
  sim_context *name; \
  SIM_TRY(sim_current(&name))
sim_context *sim_current_or_null(void);
/* That the thing belongs to the current context. */
CUresult sim_check_context(const sim_object *object);
void sim_fail_context(sim_context *context, CUresult code, const char *why);
bool sim_is_initialised(void);
/* Ends all objects in it that callers hold. */
void sim_objects_reset(const sim_context *context);
CUresult sim_unload(CUmodule module);
CUresult sim_event_end(CUevent event);
CUresult sim_exec_end(CUgraphExec exec);
bool sim_is_forked(void); /* by a process that had initialised it */

/* ---- memory (memory.c) ------------------------------------------------------------------------------------------- */

void sim_memory_open(sim_device *device);
void sim_memory_show(sim_device *device); /* what was written, behind an item */
void sim_memory_close(sim_device *device);
void sim_memory_refresh(sim_device *device); /* P13: what the host wrote meanwhile */
/* NULL: [at, at + bytes) isn't within one block of the context. */
const sim_block *sim_block_of(const sim_context *context, uintptr_t at, size_t bytes);
void sim_memory_describe(const sim_device *device, uintptr_t at, char *text, size_t bytes);
void sim_memory_end(sim_context *context); /* all that is left */
/* Calls work(data) on the device's thread; an access to memory that isn't open ends it: then answers false and *at. */
bool sim_guarded(sim_device *device, void (*work)(void *data), void *data, uintptr_t *at);

/* ---- streams, events, copies, kernels (stream.c, work.c) --------------------------------------------------------- */

typedef struct sim_module_object {
  sim_object base;
  sim_module *module;
  struct sim_function *functions;
} sim_module_object;

typedef struct sim_function {
  sim_object base;
  struct sim_function *next;
  sim_module_object *module;
  const sim_kernel *kernel;
  char *name;
  size_t bytes; /* of its parameters packed */
  unsigned dynamic_most; /* dynamic shared memory of a block */
} sim_function;

typedef struct sim_call { /* of a kernel; one allocation */
  uint64_t function;
  sim_context *context;
  const sim_kernel *kernel;
  const char *name; /* lives as long as the module */
  unsigned grid[3], block[3];
  bool cooperative;
  size_t bytes;
  unsigned char parameters[];
} sim_call;

/* Checks and copies; *call is by malloc. most: bytes of parameters. */
CUresult sim_call_make(const CUDA_KERNEL_NODE_PARAMS_v3 *asked, size_t most, sim_call **call);

typedef struct sim_copy { /* or a fill */
  unsigned char *to;
  const unsigned char *from; /* NULL: a fill */
  size_t bytes;
  unsigned char value;
} sim_copy;

typedef struct sim_item { /* of work for a stream */
  struct sim_item *next;
  enum sim_item_kind { SIM_ITEM_KERNEL, SIM_ITEM_COPY, SIM_ITEM_EVENT, SIM_ITEM_WAIT, SIM_ITEM_GRAPH } kind;
  uint64_t number; /* in the order of handing over, for the default stream */
  sim_call *call;
  sim_copy copy;
  unsigned char *staged; /* source of a pageable copy */
  uint64_t source; /* of a copy from page-locked memory: the hash of what stood there by then; else 0 */
  struct sim_event *event; /* recorded, or waited for, by that record */
  uint64_t event_record;
  struct sim_program *program;
  struct sim_exec *exec;
} sim_item;

typedef struct sim_stream {
  sim_object base;
  struct sim_stream *next;
  bool is_default, blocking; /* blocking: waits for the default stream, and that for it */
  uint64_t id; /* never given out again */
  uint64_t random; /* of its items: what other streams do, and when, doesn't matter to them */
  sim_item *first, *last;
  struct sim_capture *capture;
  CUgraphNode *last_nodes; /* in a capture: what the next node comes behind */
  CUgraphEdgeData *last_edges; /* all zero */
  size_t last_count;
  bool gone; /* destroyed with work left: ends when that is done */
} sim_stream;

typedef struct sim_event {
  sim_object base;
  uint64_t recorded, reached; /* numbers of records */
  uint64_t capture; /* the capture that it was last recorded in, 0: none, */
  CUgraphNode *nodes; /* and behind what there */
  size_t node_count;
  unsigned items; /* in streams that have to do with it */
  bool gone;      /* ends with the last of them */
} sim_event;

/* Of the current context; NULL: the default stream, which can't be used while it would wait for a captured one. */
CUresult sim_stream_find(CUstream handle, sim_stream **stream);
#define SIM_FIND_STREAM(name, handle) \
  sim_stream *name; \
  SIM_TRY(sim_stream_find(handle, &name))
/* For questions about captures: of any context, and nothing is spoiled by them. */
CUresult sim_stream_asked(CUstream handle, sim_stream **stream);
sim_stream *sim_stream_make(sim_context *context, bool is_default, bool blocking);
void sim_stream_drop(sim_stream *stream);
void sim_post(sim_stream *stream, sim_item item); /* copies the item */
void sim_wait_idle(sim_context *context); /* all streams */
void sim_wait_stream(sim_stream *stream);
void sim_seed_device(sim_device *device, uint64_t seed);
void sim_wake_devices(void); /* what keeps them from going on has changed */
size_t sim_queued(void);
void sim_worker_start(sim_device *device);
void sim_worker_stop(sim_device *device);
/* Waits made the context's late failure known. */
CUresult sim_state(sim_context *context);

/* ---- graphs (graph.c, condition.c) ------------------------------------------------------------------------------- */

typedef struct sim_condition { /* a handle */
  sim_object base;
  struct sim_graph *of; /* the graph that it was made for; a body may be one */
  unsigned initial;
  bool assigned; /* has a default */
  struct sim_node *node;
} sim_condition;

typedef struct sim_work { /* what a node does, by its type */
  CUgraphNodeType type;
  sim_call *call;
  sim_copy copy;
  CUDA_HOST_NODE_PARAMS host;
} sim_work;
sim_work sim_work_copied(sim_work work); /* with a call of its own */

typedef struct sim_node {
  sim_object base;
  struct sim_graph *graph;
  sim_work work;
  struct sim_node **after;
  size_t after_count;
  size_t index; /* in its graph */
  void **parameters; /* of the call, once they were asked for */
  struct sim_graph *child;
  sim_condition *condition;
  CUgraphConditionalNodeType condition_type;
  unsigned size;
  struct sim_graph **bodies;
  CUgraph *body_handles;
} sim_node;

typedef struct sim_graph {
  sim_object base;
  struct sim_node *owner; /* of a body or a child node's copy */
  struct sim_graph *root; /* itself, or that of the owner */
  bool is_body;
  sim_node **nodes;
  size_t count;
  sim_condition **conditions; /* of a root */
  size_t condition_count;
  uint64_t exec;  /* the one that lives, of a graph with conditional nodes */
  bool poisoned;  /* by a capture that went wrong */
  bool capturing;
  unsigned captures; /* of a root: into it and what is in it */
} sim_graph;

CUresult sim_graph_find(CUgraph handle, sim_graph **graph);
#define SIM_FIND_GRAPH(name, handle) \
  sim_graph *name; \
  SIM_TRY(sim_graph_find(handle, &name))
CUresult sim_check_reserved(const CUgraphNodeParams *asked);
sim_graph *sim_graph_make(sim_node *owner);
void sim_graph_drop(sim_graph *graph); /* with all in it */
/* A node behind those; checks what may stand there. The call belongs to the node, or is freed. */
CUresult sim_node_add(sim_graph *graph, sim_work work, const CUgraphNode *after, size_t count, sim_node **node);
sim_node *sim_node_in(const sim_graph *graph, CUgraphNode handle); /* NULL: it isn't a node of that graph */
bool sim_node_is_behind(const sim_node *node, const sim_node *other); /* or the same */
bool sim_edge_full(const CUgraphEdgeData *edge); /* all zero */
bool sim_graph_conditional(const sim_graph *graph); /* holds conditional nodes, at any depth */
CUresult sim_condition_ask(const sim_graph *graph, const CUgraphNodeParams *all, sim_work *work);
void sim_condition_make(sim_node *node, CUgraphNodeParams *all);
CUresult sim_fill_of(const CUDA_MEMSET_NODE_PARAMS_v2 *asked, const sim_context *context, sim_copy *fill);
const char *sim_node_name(CUgraphNodeType type);

/* ---- graphs ready to run (program.c, exec.c, run.c) -------------------------------------------------------------- */

typedef struct sim_flow sim_flow;

typedef struct sim_step {
  sim_work work;
  uint64_t node;
  unsigned *next; /* steps behind it */
  unsigned next_count, after_count;
  CUgraphConditionalNodeType condition_type;
  unsigned condition; /* number */
  unsigned size;
  sim_flow **bodies; /* of a child node: one */
} sim_step;

struct sim_flow {
  sim_step *steps;
  unsigned count;
  unsigned number; /* among the program's */
  sim_flow *around; /* NULL: the root */
  unsigned around_step, depth;
  bool is_body; /* false: a child graph's, or the root */
  bool chained; /* every two steps are ordered */
  uint64_t *reach; /* bit b of row a: b comes behind a; NULL if chained or too large */
};

typedef struct sim_place { const sim_flow *flow; unsigned step; } sim_place;

typedef struct sim_handle {
  uint64_t handle;
  unsigned initial;
  bool assigned;
  sim_place at;
} sim_handle;

typedef struct sim_program { /* what an exec is at a launch; changed by copying */
  unsigned references;
  sim_flow *root;
  unsigned flow_count;
  sim_handle *handles; /* ascending */
  unsigned handle_count;
  bool chained; /* all flows are */
} sim_program;

typedef struct sim_exec {
  sim_object base;
  sim_program *program;
  bool conditional;
  unsigned queued; /* launches not over */
  bool gone;
  uint64_t checked; /* sim_unloads when its kernels were last found alive */
  unsigned *kept;   /* handle values at the end of the last launch, for P1a */
} sim_exec;

extern uint64_t sim_unloads; /* modules so far */
sim_program *sim_program_make(const sim_graph *graph);
sim_program *sim_program_copy(const sim_program *program);
void sim_program_release(sim_program *program);
sim_step *sim_program_step(sim_program *program, CUgraphNode node, const sim_flow **flow); /* NULL: none */
bool sim_program_usable(const sim_program *program); /* no kernel's module is gone */
bool sim_places_ordered(sim_place a, sim_place b);
unsigned sim_find_handle(const sim_program *program, uint64_t handle); /* handle_count: none */
void sim_exec_over(sim_exec *exec); /* one of its launches is */

/* On the device's thread, without the lock; true: done, else device->why says what went wrong. */
bool sim_run_program(sim_device *device, sim_program *program, sim_exec *exec);
bool sim_run_copy(sim_device *device, const sim_copy *copy);
/* As sim_kernel_go_on of kernel.h. */
bool sim_go_on_call(sim_device *device, const sim_call *call, sim_grid *grid, uint64_t *random, bool *over);
sim_grid *sim_begin_call(const sim_call *call);
/* Where a copy went whose source was changed before it ran, so that it may have brought either; by the device's thread.
 * A kernel that reads there breaks a rule, until another copy has replaced it. */
void sim_torn_note(sim_device *device, const unsigned char *to, size_t bytes);
void sim_torn_forget(sim_device *device, const unsigned char *to, size_t bytes);
uint64_t sim_source_hash(const unsigned char *bytes, size_t count); /* never 0 */

/* ---- captures (capture.c) ---------------------------------------------------------------------------------------- */

typedef struct sim_capture {
  struct sim_capture *next;
  sim_stream *origin; /* others are drawn in by events */
  sim_graph *graph;
  bool into; /* the caller's graph */
  CUstreamCaptureMode mode;
  pthread_t thread;
  uint64_t id;
  bool invalid;
} sim_capture;

/* For a call that no capture takes up: refuses if the stream is captured, and the capture is invalid. */
CUresult sim_capture_refuses(const sim_stream *stream);
/* For a call that might wait: refuses if a capture under way forbids it to this thread, and that capture is invalid. */
CUresult sim_capture_unsafe(void);
/* For a call that waits for a whole context: no capture in it survives that. */
CUresult sim_capture_context(const sim_context *context);
/* A capture that the default stream would wait for; NULL: none, or it is another stream. The second one refuses. */
sim_capture *sim_capture_implicit(const sim_stream *stream);
CUresult sim_capture_unusable(const sim_stream *stream);
CUstreamCaptureStatus sim_capture_status(const sim_stream *stream);
/* An event recorded on a stream that is being captured; a wait where the stream or the event is. */
void sim_capture_record(sim_stream *stream, sim_event *event);
CUresult sim_capture_wait(sim_stream *stream, const sim_event *event);
/* A node behind what the stream has captured. The call belongs to the node, or is freed. */
CUresult sim_capture_add(sim_stream *stream, sim_work work);
void sim_capture_drop(sim_stream *stream);
#endif
