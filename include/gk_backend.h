/** @file gk_backend.h
 * For those who write a backend; users need gk.h only. docs/backend-author.md says in which order to fill it in.
 *
 * A backend is one constant gk_backend. It gets plans that are known to be right and never checks them again. There
 * are three ways to run one, and a backend chooses in `lower`, for each plan:
 * - native: `lower` builds the whole plan, `launch` starts it, and loops and checkpoints are decided on the device with
 *   nobody in between (CUDA);
 * - batched: `lower` prepares the plan's runs, its straight pieces. Common walks the plan on the device's worker
 *   thread, calls `submit` for a run and `read_flag` where a decision is due (HIP, Vulkan, old CUDA drivers). `loop`
 *   may take many passes in one go;
 * - in process: `run` carries out a whole launch on the device's worker thread and returns when it is done (OpenMP).
 *
 * Entries stand in order of use; an optional one may be NULL, its default is said beside it and lives in common. State
 * is yours: allocated and zeroed by common, freed after close or drop, which must cope with what open or lower left
 * half done. No two entries of one graph run at once, but cancel; those of one device may. Fail by
 * `return gk_fail(code, "...")`; never print, never abort. */
#ifndef GK_BACKEND_H
#define GK_BACKEND_H

#include "gk.h"
#include "gk_code.h"
#include "gk_info.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define GK_BACKEND_ABI 1 /**< While it stays, entries and fields are only appended. */

/* ---- the plan: a tree, made once in common; constant, and alive as long as the graph ----------------------------- */

/** A node of a plan: a task or a block. Numbers of slots are indices into gk_plan.slots; 0: none. */
typedef struct gk_node {
  gk_op op;                /**< Never NONE, LIST or END; nodes[0] is the root, a SECTION. */
  uint32_t end;            /**< What is inside lies from its own index + 1 to end - 1. */
  uint32_t parent;         /**< Index of the block around; the root's own for the root. */
  uint32_t otherwise;      /**< IF: index of its ELSE, which is its last child, or 0. ELSE: of its IF. */
  uint32_t source;         /**< The task's index in the user's list; of the INCLUDE, for one of an included list. */
  uint32_t loop;           /**< DO_WHILE, WHILE: its number among the plan's loops. */
  uint32_t checkpoint;     /**< CHECKPOINT: its number among the plan's checkpoints. */
  uint32_t run;            /**< The run it is in: tasks, and blocks that lie wholly in one; else UINT32_MAX. */
  uint32_t args;           /**< Where its slots begin in gk_plan.args. */
  uint32_t arg_count;      /**< How many. */
  uint32_t items[3];       /**< Slots of its extents; 0: one. A PTR is read on the device, KERNEL's x at `offset`. */
  uint32_t flag;           /**< Slot of its flag; 0: none. */
  uint32_t offset;         /**< As in gk_task. */
  uint32_t from_offset;    /**< As in gk_task. */
  uint32_t pattern;        /**< As in gk_task. */
  uint32_t max_iterations; /**< As in gk_task. */
  int32_t label;           /**< As composed; 0: none. */
  bool can_yield;          /**< Holds, or is, a checkpoint with a flag. */
  bool has_target;         /**< Holds, or is, a checkpoint. */
  bool always;             /**< GK_ALWAYS. */
  bool handwritten;        /**< KERNEL: it has code by hand for the backend that the plan is for (gk_backend.code). */
  const char *name;        /**< Never NULL: a block's: of its label or flag; in an included list "contacts.scale". */
  const gk_kernel *kernel; /**< KERNEL. */
  gk_call call;            /**< CALL. */
} gk_node;

/** A straight piece of a plan: nodes begin to end - 1, tasks and whole PARALLEL blocks of straight sections. An
 * always-task is a run of its own. */
typedef struct gk_plan_run {
  uint32_t begin; /**< First node. */
  uint32_t end;   /**< One past the last. */
} gk_plan_run;

/** A list that was found right, as a tree in list order, included lists written out. Empty sections are left out, and
 * so is a PARALLEL with fewer than two others: then what is in it stands in its place. */
typedef struct gk_plan {
  const char *name;            /**< The list's. */
  uint32_t node_count;         /**< Length of nodes. */
  uint32_t run_count;          /**< Length of runs. */
  uint32_t slot_count;         /**< Length of slots. */
  uint32_t loop_count;         /**< Length of loops. */
  uint32_t checkpoint_count;   /**< Length of checkpoints. */
  uint32_t always_count;       /**< Length of always. */
  uint32_t bits;               /**< GK_HOST_GATED, GK_ISOLATE (then each run is one task), GK_CANCELLABLE. */
  bool can_yield;              /**< The root's. */
  const gk_node *nodes;        /**< In the list's order; [0] is the root. */
  const gk_plan_run *runs;          /**< In the list's order. */
  const uint32_t *args;        /**< Slots of all tasks, one after the other. */
  const gk_slot_desc *slots;   /**< [0] is unused; first the list's own, by number, then those of included lists. */
  const uint32_t *loops;       /**< Their nodes. */
  const uint32_t *checkpoints; /**< Their nodes. */
  const uint32_t *by_label;    /**< The same, by their labels, the smallest first. */
  const uint32_t *always;      /**< Nodes of the always-tasks. */
} gk_plan;

/* ---- one launch -------------------------------------------------------------------------------------------------- */

/** What a launch is told. */
typedef struct gk_launch_args {
  uint64_t launch;         /**< Its number. */
  uint32_t target;         /**< Node of the checkpoint to resume at; 0: from the top. */
  uint32_t changed_count;  /**< Length of changed. */
  const gk_value *values;  /**< Of every slot, by index; BYTES: where a host copy is. Yours until the launch ends. */
  const uint32_t *changed; /**< Slots bound since the launch before; for the first launch, all. */
  bool on_stream;          /**< gk_launch_on; else the device's own. */
  void *stream;            /**< With on_stream. */
  uint64_t *entries;       /**< Per loop: passes of the entry that waits; kept by common from launch to launch. */
  const int32_t *cancel;   /**< Not 0 once the launch shall stop; for the walker, or to be read atomically. */
  gk_applied *applied;     /**< Of the record; `launch` may say another way than GK_BY_TABLE here. */
  const size_t *room;      /**< Of every slot that a COPY or FILL with a count has, by index: bytes that are known to
                            * lie behind its address; SIZE_MAX: that isn't known. NULL: the plan has no such slot. Yours
                            * until the launch ends. A slot's changes only where the slot is among those changed. */
} gk_launch_args;

/** Judges the count of a KERNEL, COPY or FILL that was reached (docs/contract.md, rule 12). Never allocates.
 * @param plan    The launch's.
 * @param node    Index of the task.
 * @param launch  `room` is used.
 * @param extent  What its extents are just now; 1 where node.items has no slot.
 * @param items   What there is to do: items of a kernel, elements of a COPY or FILL; perhaps 0.
 * @return GK_OK; GK_ERROR_INVALID after gk_fail: there are too many, the task must do nothing, and the launch fails. */
gk_result gk_judge_count(const gk_plan *plan, uint32_t node, const gk_launch_args *launch, const int64_t extent[3],
                         uint64_t *items);

/** What became of a launch; filled by `wait`, `run` or the walker. The arrays are there already, zeroed. */
typedef struct gk_launch_result {
  gk_state state;     /**< How it ended. */
  uint32_t yielded;   /**< Node of the checkpoint; 0: none. */
  uint32_t limit;     /**< Node of the first loop that hit its bound; 0: none. */
  gk_applied applied; /**< How rebound slots reached the device. */
  uint64_t *passes;   /**< Per loop. */
  uint8_t *hit_bound; /**< Per loop: 0 or 1. */
  uint8_t *ran;       /**< Per checkpoint: 0 or 1. */
} gk_launch_result;

/* ---- the walker: the contract as a state machine, for all who have no conditional nodes ------------------------- */

/** What the walker wants done. */
typedef enum gk_step_kind {
  GK_STEP_RUN,  /**< Execute runs[at]. */
  GK_STEP_FLAG, /**< Answer the flag of node `at`, read after all that came before. */
  GK_STEP_LOOP, /**< Run up to `passes` passes of the loop at node `at`, which is at its head (WHILE: its flag is still
                 * to be read if its `entries` are 0), adding to the record what comes of it, and to `entries` of the
                 * loops in it if it stops inside. Answer 1 if it has ended, 0 if it goes on, before another section has
                 * such a step; 0 without a pass: the walker takes that pass step by step. */
  GK_STEP_FORK, /**< The PARALLEL at node `at` holds loops or branches: gk_walk_fork each section, walk them in any
                 * order or all at once, gk_walk_join each. Any answer will do. */
  GK_STEP_END,  /**< The launch is over and the record complete. */
  GK_STEP_CHECKPOINT, /**< Execute runs[at], then answer the flag of `node`, the checkpoint around it: a RUN and a FLAG
                       * in one. */
} gk_step_kind;

/** One thing to do. */
typedef struct gk_step {
  gk_step_kind kind; /**< What. */
  uint32_t at;       /**< A run's or node's index. */
  uint32_t passes;   /**< LOOP: at most. */
  uint32_t node;     /**< CHECKPOINT: the node whose flag it is. */
} gk_step;

/** One walk over a plan, or over a section of it. Yours to hold, the walker's to touch. */
typedef struct gk_walk {
  const gk_plan *plan;   /**< What is walked. */
  gk_launch_result *record;     /**< What is filled. */
  uint64_t *entries;     /**< As in gk_launch_args. */
  const int32_t *cancel; /**< As in gk_launch_args. */
  uint32_t takes;        /**< As given to gk_walk_start. */
  uint32_t root;         /**< The block that is walked: the plan's, or a section. */
  uint32_t at;           /**< Where it is. */
  uint32_t phase;        /**< What it waits for there. */
  uint32_t target;       /**< Still to be reached; 0: none. */
  uint32_t always;       /**< The next of plan->always that hasn't run. */
  uint32_t limit;        /**< First loop that hit its bound in this walk; 0: none. */
  bool stopped;          /**< It yielded or was cancelled. */
  uint32_t block;        /**< The block that it is in. */
  uint32_t sections;     /**< Bit n: of the PARALLEL in n others, a section of this walk's own was cancelled. */
  uint64_t before;       /**< LOOP: its passes before that step. */
  uint32_t reserved[4];  /**< Zero. */
} gk_walk;

/** Begins a walk.
 * @param walk      Anything before.
 * @param plan      To be walked.
 * @param launch    Target, entries and cancel are used, and must live as long as the walk.
 * @param takes     1 << kind for each of GK_STEP_LOOP, GK_STEP_FORK, GK_STEP_CHECKPOINT that you can do; of the others
 *                  the parts come one by one.
 * @param record    Zeroed; belongs to the walk until it has ended. */
void gk_walk_start(gk_walk *walk, const gk_plan *plan, const gk_launch_args *launch, uint32_t takes,
                   gk_launch_result *record);

/** The next step. Never allocates, never blocks; the time of one is bounded by the depth of the list.
 * @param walk    Has been started and has not ended.
 * @param answer  To the step before; 0 at first. */
gk_step gk_walk_next(gk_walk *walk, int64_t answer);

/** Begins the walk of a section after a GK_STEP_FORK. Sections may be walked by different threads.
 * @param walk          Waits at the fork.
 * @param section       Index of the SECTION node, a child of the PARALLEL.
 * @param section_walk  Anything before; ends with GK_STEP_END. */
void gk_walk_fork(const gk_walk *walk, uint32_t section, gk_walk *section_walk);

/** Takes back a section's walk that has ended; in the sections' order, on the thread of `walk`. */
void gk_walk_join(gk_walk *walk, const gk_walk *section_walk);

/* ---- the backend ------------------------------------------------------------------------------------------------- */

/** How a plan is run. */
typedef enum gk_mode {
  GK_MODE_NATIVE,     /**< launch, wait, cancel. */
  GK_MODE_BATCHED,    /**< launch, submit, read_flag, loop. */
  GK_MODE_IN_PROCESS, /**< run. */
} gk_mode;

/** Directions of a copy. */
typedef enum gk_direction {
  GK_TO_DEVICE, /**< From the host. */
  GK_TO_HOST,   /**< From the device. */
  GK_ON_DEVICE, /**< From device to device; the two may overlap. */
  GK_ZERO,      /**< From nothing: zeros. */
} gk_direction;

/** gk_backend.bits. */
enum {
  GK_BACKEND_STREAMS = 1, /**< gk_launch_on is possible. */
  GK_BACKEND_FORKED = 2,  /**< drop, unload, free and close may be called in a child process, which has none of its
                           * parent's threads; else what they would free there is left. */
};

/** A backend. What its entries say is checked: a number that is no gk_result, a description without strings or with
 * numbers that can't be, memory that isn't aligned, a record with other arrays, or that names no node of its kind, are
 * GK_ERROR_DEVICE, or GK_ERROR_INVALID for a launch, with the backend's name. */
typedef struct gk_backend {
  uint32_t abi;          /**< GK_BACKEND_ABI. */
  uint32_t bytes;        /**< sizeof(gk_backend). */
  const char *name;      /**< For gk_device_desc. */
  uint32_t bits;         /**< GK_BACKEND_STREAMS, GK_BACKEND_FORKED or 0. */
  uint32_t device_bytes; /**< Of the state of a device. */
  uint32_t graph_bytes;  /**< Of the state of a graph. */

  /** Loads the driver, finds the device, tries what must be tried. GK_ERROR_NO_DEVICE and a sentence: the next one.
   * Also how gk_device_list counts: ordinals are opened from 0 until one is answered so; GK_ERROR_DEVICE is for
   * one that is there and failed. desc->backend is never NULL. */
  gk_result (*open)(void *device, const gk_device_desc *desc);
  /** Frees what open took. */
  void (*close)(void *device);
  /** Strings and the array are yours; `backend` is filled in already. */
  void (*describe)(void *device, gk_device_info *info);

  /** bytes > 0; aligned to 256; needn't be zeroed. */
  gk_result (*alloc)(void *device, size_t bytes, gk_memory kind, void **memory);
  /** Frees what alloc gave; nothing that was launched uses it any more. */
  void (*free)(void *device, void *memory);
  /** Blocks until done; follows earlier launches and submits. */
  gk_result (*copy)(void *device, gk_direction direction, void *to, const void *from, size_t bytes);
  /** Where the host can touch it, or NULL; fresh memory is zeroed there, else by copy. Optional: it can touch none. */
  void *(*host_address)(void *device, void *memory);

  /** Whether a kernel has code for this backend; needs no device. Optional: it has if it has portable text, or `code`
   * answers some. */
  bool (*takes)(const gk_kernel *kernel);
  /** Makes a kernel ready. Common keeps code by kernel: each comes once per device. Optional: no code. */
  gk_result (*load)(void *device, const gk_kernel *kernel, void **code);
  /** With load. */
  void (*unload)(void *device, void *code);

  /** code: per node, NULL but for KERNEL. Sets *mode. The plan lives until drop. */
  gk_result (*lower)(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
  /** Frees what lower made; nothing of the graph runs any more. */
  void (*drop)(void *graph);

  /** Native: starts the plan. Batched: takes the values over, and submits follow. Neither blocks nor allocates, but to
   * make the device's own graph where that isn't there: for the first target, and for calls whose slots changed. */
  gk_result (*launch)(void *graph, const gk_launch_args *launch);
  /** Native only. Launches are waited for in their order. GK_NOT_READY if it would block and mustn't; GK_ERROR_BUSY,
   * after gk_fail, if nothing can be asked now: the call fails, and the launch is asked for again by the next. Another
   * failure is the launch's. */
  gk_result (*wait)(void *graph, bool block, gk_launch_result *record);
  /** Native only, from any thread, also when nothing is under way: later launches aren't concerned. Optional: gk_cancel
   * is refused. */
  gk_result (*cancel)(void *graph);

  /** In process only: the whole launch, on the device's worker thread. Doesn't allocate. */
  gk_result (*run)(void *graph, const gk_launch_args *launch, gk_launch_result *record);

  /** Batched only: a run, to follow what was submitted before; may return at once. */
  gk_result (*submit)(void *graph, uint32_t run);
  /** Batched only: waits for what that flag depends on, then reads it; node 0: waits for everything. */
  gk_result (*read_flag)(void *graph, uint32_t node, int32_t *flag);
  /** Batched only: up to `limit` passes of a loop with all that is in it, gated on the device, in one go. Adds to the
   * record what came of it and says whether the loop has ended. Of a plan with GK_CANCELLABLE it looks at `cancel` at
   * the end of each pass, of inner loops too. Optional: pass by pass. */
  gk_result (*loop)(void *graph, uint32_t node, uint32_t limit, gk_launch_result *record, bool *ended);

  /** What lower made, in "text", "dot" or "json"; freed by free(). NULL: not in this format. Optional: the plan alone.
   */
  char *(*dump)(void *graph, const char *format);
  /** What only this backend has: tables of functions, by name. Optional: nothing. */
  const void *(*query)(const char *name);
  /** Whether users put work of their own on the stream that the device works on: then gk_launch, as gk_launch_on, calls
   * `launch`, or the walk, before it returns, not in the device's line of work. Optional: no. */
  bool (*shares)(void *device);
  /** Whether the device can touch memory that `alloc` didn't give; asked when a slot is bound to it, on any thread.
   * GK_OK, or gk_fail with what to bind instead. Optional: it can. */
  gk_result (*reaches)(void *device, const void *memory);
  /** Once a device is lost: GK_ERROR_DEVICE, and gk_fail with what that began with; gk_launch answers it. Asked at each
   * launch, on the caller's thread, so what is known is told, and no driver is asked. Optional: GK_OK. */
  gk_result (*alive)(void *device);

  /** Memory that the graph owns, of bytes > 0, aligned as that of `alloc`. from: NULL, or what it had; then this waits
   * for the launches of this graph, which may use that, and copies the first `kept` bytes. The others are zeroed. Waits
   * for no other graph's launches. On any thread, while no launch of this graph is being started. Optional, with
   * disown: alloc, copy and free. */
  gk_result (*own)(void *graph, const void *from, size_t kept, size_t bytes, void **memory);
  /** Takes back memory of own or alloc that no launch uses any more, and waits for none if it can. What own gave may
   * also go back by `free`. */
  void (*disown)(void *device, void *memory);

  /** The code that a kernel has by hand for this backend, or NULL; needs no device. Unless `beyond` is NULL, *beyond
   * becomes what of it is beyond the backend's limits, as a sentence about the code goes on ("has more than 64 threads
   * along z in a block"), or NULL. Optional: no kernel has any. */
  const gk_code *(*code)(const gk_kernel *kernel, const char **beyond);
} gk_backend;

/** Puts a backend before those in gk. It must live as long as the process uses gk. Another ABI, a second one of the
 * same name, or one that lacks an entry it needs is refused. Thread-safe. */
gk_result gk_backend_register(const gk_backend *backend);

/** The same for a shared library with `const gk_backend *gk_backend_export(void)`; it stays loaded. $GK_MODULES lists
 * such, ':' in between; they are loaded when the first device is opened or listed. A set-user-id program ignores that,
 * as it does all of gk's environment variables. */
gk_result gk_backend_load(const char *path);

/** In the order in which they are tried; NULL: no more. */
const gk_backend *gk_backend_at(size_t index);

/** Sets this thread's message, unless the call at hand has set one (the first error wins). @return code */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
gk_result gk_fail(gk_result code, const char *format, ...);

/** Says a line to whoever listens (gk_set_log). */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void gk_log(gk_log_level level, const char *format, ...);

/** Memory from the allocator hook, zeroed; NULL: none is left. */
void *gk_host_alloc(size_t bytes);

/** Gives gk_host_alloc's back; NULL is fine. */
void gk_host_free(void *memory);

/** A kernel's portable text composed for "cuda", "hip" or "glsl"; gk_free_text frees it. NULL: it has none, or a part
 * of it can't be said in that language; gk_error() says which. */
char *gk_compose(const gk_kernel *kernel, const char *target);

/* ---- direct access: for backends with calls of their own, as gk_cuda.h has --------------------------------------- */

/** A device's state, if it is one of the backend of that name. Fails in the name of the public `call`.
 * @return GK_OK; GK_ERROR_INVALID: no device, closed, or another backend's; GK_ERROR_DEVICE: opened before a fork. */
gk_result gk_device_state(gk_device *device, const char *backend, const char *call, void **state);

/** Visits the backend's state of a graph in the order of the device's work, as no two entries of a graph run at once.
 * The graph must be of the backend of that name, and have a checkpoint of that label, unless it is 0.
 * @return What `visit` answers; its message is the calling thread's. */
gk_result gk_graph_state(gk_graph *graph, const char *backend, const char *call, int32_t label,
                         gk_result (*visit)(void *state, void *data), void *data);

/** How a list becomes part of a graph of the caller's, who launches that. */
typedef struct gk_lower_into {
  gk_result (*lower)(void *device, void *state, const gk_plan *plan, void *const *code, gk_mode *mode,
                     void *data);  /**< As gk_backend.lower. */
  void *data;                      /**< For it. */
  const char *arm;                 /**< The public call that arms the graph, for messages; stays. */
} gk_lower_into;

/** As gk_graph_create, lowered by `into`: the graph is armed, not launched. `bits` and pointers were checked. */
gk_result gk_graph_create_into(gk_device *device, const gk_list *list, uint32_t bits, const gk_lower_into *into,
                               gk_graph **graph);

/** As gk_launch, of a graph made by gk_graph_create_into: `arm` gets what a launch is told, on the calling thread. */
gk_result gk_graph_arm(gk_graph *graph, const char *backend, const char *call, int32_t label,
                       gk_result (*arm)(void *state, const gk_launch_args *launch, void *data), void *data);

/** Takes armings back that the caller didn't launch: `disarm` lowers *launched to the last one, beyond `over`, that
 * there was. What was bound for those since is handed over again. */
gk_result gk_graph_disarm(gk_graph *graph, const char *backend, const char *call,
                          gk_result (*disarm)(void *state, uint64_t over, uint64_t *launched));

/* ---- facts of a backend (gk_info.h) ------------------------------------------------------------------------------ */

#define GK_FACTS "gk_facts" /**< For gk_backend.query, which answers a constant gk_fact_source. */

/** Where the facts of a backend come from. An entry may be NULL: then there are none. */
typedef struct gk_fact_source {
  uint32_t bytes;                                                     /**< sizeof(gk_fact_source). */
  void (*of_backend)(gk_fact_visit visit, void *user);                /**< Its libraries; no device is open. */
  void (*of_device)(void *device, gk_fact_visit visit, void *user);   /**< Of an open device, by its state. */
  void (*of_environment)(gk_fact_visit visit, void *user);            /**< Variables that it reads; among gk_facts. */
} gk_fact_source;

/** Facts of a backend of gk_backend_at; it loads its libraries for that, and which can't be used is a fact, too.
 * Thread-safe. */
gk_result gk_backend_facts(const gk_backend *backend, gk_fact_visit visit, void *user);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
