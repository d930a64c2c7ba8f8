/** @file gk_backend.h
 * For authors of backends; programs need only gk.h. docs/backend-author.md says in which order to implement it.
 *
 * A backend is one constant gk_backend. It gets plans that have passed all checks and doesn't check them again. For
 * each plan, `lower` chooses one of four modes:
 * - native: `lower` builds the whole plan and `launch` starts it. The device decides loops and checkpoints (CUDA).
 * - ahead: `lower` prepares the plan's runs and a control kernel. Common enqueues runs by `ahead` in the order in which
 *   they will probably come; the device skips those that don't (HIP, Vulkan, old CUDA drivers).
 * - batched: `lower` prepares the plan's runs. Common walks the plan on the device's worker thread: it calls `submit`
 *   for a run and `read_flag` for a decision. The simplest way to a complete backend.
 * - in process: `run` executes a whole launch on the device's worker thread (OpenMP).
 *
 * Entries are in order of use. An optional entry may be NULL; its comment says what common does then. Common allocates
 * the zeroed state of devices and graphs and frees it after close or drop, which must accept what a failed open or
 * lower has left. Of one graph, only cancel runs at the same time as another entry; of one device, any two entries may.
 * An entry fails by `return gk_fail(code, "...")`; it never prints or aborts. */
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

#define GK_BACKEND_ABI 1 /**< With the same number, entries and fields are only appended. */

#define GK_NONE UINT32_MAX /**< No such index. */

/* ---- the plan: a constant tree, which common makes once; it lives as long as the graph --------------------------- */

/** A node of a plan: a task or a block. Slots are indices into gk_plan.slots; 0: none. */
typedef struct gk_node {
  gk_op op;                /**< Never NONE, LIST or END; nodes[0] is the root, a SECTION. */
  uint32_t end;            /**< The nodes inside are those from its own index + 1 to end - 1. */
  uint32_t parent;         /**< Index of the block around; for the root, its own index. */
  uint32_t otherwise;      /**< IF: index of its ELSE, which is its last child, or 0. ELSE: index of its IF. */
  uint32_t source;         /**< Index in the user's list: of the task, or of the LIST task that includes it. */
  uint32_t loop;           /**< DO_WHILE, WHILE, REPEAT: its number among the plan's loops. */
  uint32_t checkpoint;     /**< CHECKPOINT, YIELD: its number among the plan's checkpoints. */
  uint32_t run;            /**< The run that contains the whole task or block; GK_NONE: none. */
  uint32_t args;           /**< Index of its first argument's slot in gk_plan.args. */
  uint32_t arg_count;      /**< Number of arguments. */
  uint32_t items[3];       /**< Slots of its extents; 0: the extent is 1. The device reads the extent of a PTR slot from
                            * memory; a KERNEL's x extent is at `offset` there. */
  uint32_t flag;           /**< Slot of its flag, or of a REPEAT's count; 0: none. */
  uint32_t offset;         /**< As in gk_task. */
  uint32_t from_offset;    /**< As in gk_task. */
  uint32_t pattern;        /**< As in gk_task. */
  uint32_t max_iterations; /**< As in gk_task. */
  uint32_t every;          /**< As in gk_task. */
  uint32_t count;          /**< REPEAT: its count, if that is a constant; else 0, and `flag` is its slot. */
  int32_t label;           /**< The label in the whole plan of a checkpoint, YIELD or loop; 0: none. */
  bool can_yield;          /**< Is or contains a YIELD or a checkpoint with a flag. */
  bool has_target;         /**< Is or contains a checkpoint or YIELD. */
  bool always;             /**< An always-task: its gk_task has GK_ALWAYS. */
  bool handwritten;        /**< KERNEL: it has handwritten code for the plan's backend (gk_backend.code). */
  const char *name;        /**< Never NULL. A block's: of its label or flag. In an included list: "contacts.scale". */
  const gk_kernel *kernel; /**< KERNEL: its kernel. */
  gk_call call;            /**< CALL, CALL_HOST: its function. */
  bool is_numbered;        /**< Loop: some node uses its pass number, a slot with GK_IS_PASS. */
} gk_node;

/** A run, a straight piece of a plan: nodes begin to end - 1. It consists of tasks and whole PARALLEL blocks of
 * straight sections. An always-task is a separate run, and so is a CALL_HOST, also in a section. */
typedef struct gk_plan_run {
  uint32_t begin; /**< First node. */
  uint32_t end;   /**< One past the last node. */
} gk_plan_run;

/** A checked list as a tree in list order, with included lists expanded. It has no empty sections. If a PARALLEL has
 * fewer than two sections that aren't empty, their contents take its place. */
typedef struct gk_plan {
  const char *name;            /**< Name of the list. */
  uint32_t node_count;         /**< Length of nodes. */
  uint32_t run_count;          /**< Length of runs. */
  uint32_t slot_count;         /**< Length of slots. */
  uint32_t loop_count;         /**< Length of loops. */
  uint32_t checkpoint_count;   /**< Length of checkpoints. */
  uint32_t always_count;       /**< Length of always. */
  uint32_t bits;               /**< GK_HOST_GATED, GK_ISOLATE (each run is one task), GK_CANCELLABLE; GK_NONBLOCKING is
                                * common's. */
  bool can_yield;              /**< The list has a YIELD or a checkpoint with a flag. */
  const gk_node *nodes;        /**< In list order; [0] is the root. */
  const gk_plan_run *runs;     /**< In list order. */
  const uint32_t *args;        /**< Slots of the arguments of all tasks, one task after the other. */
  const gk_slot_desc *slots;   /**< [0] is unused. The list's own slots by number, then those of included lists, then
                                * the constants of GK_ITEMS: numbers, never bound, whose .slot is negative. A GK_ROOM
                                * is a number that common binds. Of a GK_PASS, value.i32 is its loop's node. */
  const uint32_t *loops;       /**< Nodes of the loops. */
  const uint32_t *checkpoints; /**< Nodes of the checkpoints and YIELDs. */
  const uint32_t *by_label;    /**< Nodes of the checkpoints and YIELDs, in ascending order of labels. */
  const uint32_t *always;      /**< Nodes of the always-tasks. */
  const struct gk_points *points; /**< NULL until gk_plan_points (gk_ahead.h) has made them. */
} gk_plan;

/* ---- one launch -------------------------------------------------------------------------------------------------- */

/** The arguments of a launch. */
typedef struct gk_launch_args {
  uint64_t launch;         /**< Number of the launch. */
  uint32_t target;         /**< Node of the checkpoint or YIELD to resume at; 0: from the top. */
  uint32_t changed_count;  /**< Length of changed. */
  const gk_value *values;  /**< By slot; BYTES: address of a copy on the host. Valid until the launch ends. */
  const uint32_t *changed; /**< Slots bound since the last launch; in the first launch, all. */
  bool on_stream;          /**< Launched by gk_launch_on, on `stream`; else on the device's stream. */
  void *stream;            /**< The caller's stream, or what gk_graph_launch was given. */
  uint64_t *entries;       /**< Per loop: passes since it was entered. Common keeps them from launch to launch. */
  const int32_t *cancel;   /**< Not 0: the launch must stop. The walker reads it; or read it atomically. */
  gk_applied *applied;     /**< The result's `applied`: GK_BY_TABLE or GK_UNCHANGED, which `launch` may change. */
  const size_t *capacity;  /**< By index, for slots of a COPY or FILL with a count: size in bytes of the memory from the
                            * slot's address on; SIZE_MAX: not known. NULL: there is no such slot. Only the sizes of
                            * changed slots change. Valid until the launch ends. */
  const uint32_t *state;   /**< Ahead: the state to begin with, valid until the launch ends; else NULL. */
  uint64_t *counts;        /**< Per REPEAT, by loop: the count that its entry has read, at least 1; 0: no entry waits.
                            * Common keeps them, as it keeps `entries`. */
} gk_launch_args;

/** Checks the count of a KERNEL, COPY or FILL before it runs (docs/contract.md, rule 12). Never allocates. Thread-safe.
 * @param plan    Plan of the launch.
 * @param node    Index of the task.
 * @param launch  Only `capacity` is used.
 * @param extent  Present values of the extents; 1 where gk_node.items has no slot.
 * @param items   Receives the number of items of a kernel, or of elements of a COPY or FILL; may be 0.
 * @return GK_OK; GK_ERROR_INVALID, with a message: too many. Then the task must do nothing, and the launch fails. */
gk_result gk_check_count(const gk_plan *plan, uint32_t node, const gk_launch_args *launch, const int64_t extent[3],
                         uint64_t *items);

/** The result of a launch, filled by `wait`, `run` or the walker. Common provides the arrays, zeroed. */
typedef struct gk_launch_result {
  gk_state state;     /**< How it ended. */
  uint32_t yielded;   /**< Node of the checkpoint or YIELD that yielded; 0: none. */
  uint32_t limit;     /**< Node of the first loop that hit its bound; 0: none. */
  gk_applied applied; /**< How rebound slots reached the device. */
  uint64_t *passes;   /**< Per loop: passes in this launch. */
  uint8_t *hit_bound; /**< Per loop: 1 if it hit its bound. */
  uint8_t *ran;       /**< Per checkpoint: 1 if it ran. */
} gk_launch_result;

/* ---- the walker: the contract as a state machine, for backends without conditional nodes ------------------------- */

/** Kinds of the walker's steps. */
typedef enum gk_step_kind {
  GK_STEP_RUN,  /**< Execute runs[at]. */
  GK_STEP_FLAG, /**< Answer the flag of node `at`, or the count of a REPEAT, an int32 in the memory of its slot. Read it
                 * after all steps before. */
  GK_STEP_LOOP, /**< Run up to `passes` passes of the loop at node `at` from its head. A WHILE whose `entries` are 0
                 * reads its flag first. Read the flag and check for a cancel behind each pass with which the `entries`
                 * would be a multiple of gk_node.every (0: each pass), and behind the last of `passes`. A REPEAT reads
                 * nothing, makes `passes` passes unless the launch stops, and answers 0. Add its counts to the result,
                 * and to the `entries` and `counts` of inner loops if the launch stops in one. Answer 1 if the loop has
                 * ended, else 0, before another section gets such a step. After an answer of 0 without a pass, the
                 * walker gives that pass step by step. Never given for a loop with gk_node.is_numbered; of one in it,
                 * `entries` must be right during each pass. */
  GK_STEP_FORK, /**< The PARALLEL at node `at` contains loops or branches. Call gk_walk_fork for each section, walk them
                 * in any order or at the same time, then call gk_walk_join for each. The answer is ignored. */
  GK_STEP_END,  /**< The launch is over and the result complete. */
  GK_STEP_CHECKPOINT, /**< A RUN and a FLAG: execute runs[at], then answer the flag of the checkpoint `node`. */
  GK_STEP_HOST, /**< A RUN that is a CALL_HOST: after all steps before, call its function. LOOP and CHECKPOINT may
                 * contain such a run, too. */
  GK_STEP_PASS, /**< In front of each pass of the loop at node `at`, if gk_node.is_numbered: `passes` is its number. */
} gk_step_kind;

/** A step of a walk. */
typedef struct gk_step {
  gk_step_kind kind; /**< What to do. */
  uint32_t at;       /**< Index of a run or node. */
  uint32_t passes;   /**< LOOP: the most passes to run. PASS: the number. */
  uint32_t node;     /**< CHECKPOINT: the node whose flag to answer. */
} gk_step;

/** A walk over a plan or over one of its sections. The backend provides the memory; only the walker uses the fields. */
typedef struct gk_walk {
  const gk_plan *plan;   /**< The plan. */
  gk_launch_result *result; /**< The result to fill. */
  uint64_t *entries;     /**< As in gk_launch_args. */
  const int32_t *cancel; /**< As in gk_launch_args. */
  uint32_t takes;        /**< As in gk_walk_start. */
  uint32_t root;         /**< The walked block: the plan's root or a section. */
  uint32_t at;           /**< The current node. */
  uint32_t phase;        /**< What it waits for there. */
  uint32_t target;       /**< Checkpoint that it hasn't reached yet; 0: none. */
  uint32_t always;       /**< Index in plan->always of the next one to run. */
  uint32_t limit;        /**< First loop that hit its bound in this walk; 0: none. */
  bool stopped;          /**< It yielded or was cancelled. */
  uint32_t block;        /**< The current block. */
  uint32_t sections;     /**< Bit n: a section of the PARALLEL inside n others was cancelled. */
  uint64_t before;       /**< LOOP: passes of the loop before that step. */
  uint64_t *counts;      /**< As in gk_launch_args. */
  const gk_value *values; /**< As in gk_launch_args. */
  uint32_t reserved[4];  /**< Zero. */
} gk_walk;

/** Begins a walk.
 * @param walk      Needs no initialization.
 * @param plan      The plan to walk.
 * @param launch    Target, entries, counts, values and cancel are used, and must live as long as the walk.
 * @param takes     1 << kind for each of GK_STEP_LOOP, GK_STEP_FORK, GK_STEP_CHECKPOINT that the backend takes. The
 *                  walker splits the others into simpler steps. 1 << GK_STEP_FLAG: such a step also comes behind each
 *                  pass of a REPEAT, for any answer, so that a cancel or failure in the pass is seen.
 *                  1 << GK_STEP_PASS: the backend's slots of pass numbers don't point to `entries`. A launch that
 *                  resumes begins with the numbers in `entries`.
 * @param result    Zeroed. Only the walk may write it until the walk ends. */
void gk_walk_start(gk_walk *walk, const gk_plan *plan, const gk_launch_args *launch, uint32_t takes,
                   gk_launch_result *result);

/** The next step. Never allocates or blocks. Its time is bounded by the depth of the list.
 * @param walk    A walk that has begun and not ended.
 * @param answer  Answer to the last step; 0 at first. */
gk_step gk_walk_next(gk_walk *walk, int64_t answer);

/** Begins the walk of a section after a GK_STEP_FORK. Different threads may walk different sections.
 * @param walk          The walk that waits at the fork.
 * @param section       Index of the SECTION node, a child of the PARALLEL.
 * @param section_walk  Needs no initialization. It ends with GK_STEP_END. */
void gk_walk_fork(const gk_walk *walk, uint32_t section, gk_walk *section_walk);

/** Joins a section's walk that has ended. Call it in the order of the sections, on the thread of `walk`. */
void gk_walk_join(gk_walk *walk, const gk_walk *section_walk);

/* ---- the backend ------------------------------------------------------------------------------------------------- */

/** How a plan runs. Each mode needs the entries named. */
typedef enum gk_mode {
  GK_MODE_NATIVE,     /**< launch, wait, cancel. */
  GK_MODE_BATCHED,    /**< launch, submit, read_flag. */
  GK_MODE_IN_PROCESS, /**< run. */
  GK_MODE_AHEAD,      /**< launch, ahead, state. They work on the points of gk_plan_points (gk_ahead.h). */
} gk_mode;

/** Directions of a copy. */
typedef enum gk_direction {
  GK_TO_DEVICE, /**< From the host. */
  GK_TO_HOST,   /**< From the device. */
  GK_ON_DEVICE, /**< From device to device; the ranges may overlap. */
  GK_ZERO,      /**< No source: writes zeros. */
} gk_direction;

/** Bits of gk_backend. */
enum {
  GK_BACKEND_STREAMS = 1, /**< gk_launch_on is supported. */
  GK_BACKEND_FORKED = 2,  /**< drop, unload, free and close may be called in a forked child, which has none of its
                           * parent's threads. Without this bit, common frees nothing in such a child. */
};

/** A backend. Common checks what its entries return: that results are a gk_result, descriptions have strings and
 * possible numbers, memory is aligned, and results keep their arrays and name nodes of the right kind. A violation is
 * GK_ERROR_DEVICE, or GK_ERROR_INVALID for a launch, with the backend's name. */
typedef struct gk_backend {
  uint32_t abi;          /**< GK_BACKEND_ABI. */
  uint32_t bytes;        /**< sizeof(gk_backend). */
  const char *name;      /**< Name for gk_device_desc. */
  uint32_t bits;         /**< GK_BACKEND_STREAMS, GK_BACKEND_FORKED or 0. */
  uint32_t device_bytes; /**< Size of a device's state. */
  uint32_t graph_bytes;  /**< Size of a graph's state. */

  /** Loads the driver, finds the device and tests what it supports. GK_ERROR_NO_DEVICE, with a message: there is no
   * such device, and common tries the next backend. GK_ERROR_DEVICE: the device exists and failed. gk_device_list opens
   * ordinals from 0 until GK_ERROR_NO_DEVICE. desc->backend is never NULL. */
  gk_result (*open)(void *device, const gk_device_desc *desc);
  /** Frees what open allocated. */
  void (*close)(void *device);
  /** The backend keeps the strings and the array until close. `backend` is set already. */
  void (*describe)(void *device, gk_device_info *info);

  /** Allocates bytes > 0, aligned to 256; they needn't be zeroed. */
  gk_result (*alloc)(void *device, size_t bytes, gk_memory kind, void **memory);
  /** Frees memory of alloc. No launch uses it any more. */
  void (*free)(void *device, void *memory);
  /** Copies after all earlier launches and submits. Blocks until the copy is done. */
  gk_result (*copy)(void *device, gk_direction direction, void *to, const void *from, size_t bytes);
  /** The address at which the host can access the memory, or NULL. Common zeroes new memory there, else by copy.
   * Optional: NULL. */
  void *(*host_address)(void *device, void *memory);

  /** Whether a kernel has code for this backend. Needs no device. Optional: it has if it has portable text, or if
   * `code` returns some. */
  bool (*takes)(const gk_kernel *kernel);
  /** Prepares a kernel. Common keeps the code, so it is called once per kernel and device. Optional: no code. */
  gk_result (*load)(void *device, const gk_kernel *kernel, void **code);
  /** Frees code of load. Required with load. */
  void (*unload)(void *device, void *code);

  /** Makes the backend's own form of the plan. code: per node; NULL for nodes other than KERNEL. Sets *mode. The plan
   * lives until drop. */
  gk_result (*lower)(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode);
  /** Frees what lower made. No launch of the graph runs any more. */
  void (*drop)(void *graph);

  /** Native: starts the plan. Batched: applies the values; submits follow. Ahead: applies the values and the state;
   * tapes follow. Must not block or allocate, except to make the device's graph for the first target, or again for
   * calls whose slots have changed. */
  gk_result (*launch)(void *graph, const gk_launch_args *launch);
  /** Native only. Fills the result of the oldest launch. GK_NOT_READY: it isn't over, and `block` is false.
   * GK_ERROR_BUSY, with a message: the device can't be asked now; the caller's call fails, and the next call asks
   * again. Any other failure is that of the launch. */
  gk_result (*wait)(void *graph, bool block, gk_launch_result *result);
  /** Native and ahead. Stops the launches under way, not later ones. Called on any thread, also without a launch, after
   * gk_launch_args.cancel was set. Optional: with native, gk_cancel is refused; with ahead, the device must look at
   * gk_launch_args.cancel itself. */
  gk_result (*cancel)(void *graph);

  /** In process only. Executes a whole launch, on the device's worker thread. Must not allocate. */
  gk_result (*run)(void *graph, const gk_launch_args *launch, gk_launch_result *result);

  /** Batched only. Submits a run, which follows all earlier submits. May return before the run has ended. Never a run
   * that is a CALL_HOST. */
  gk_result (*submit)(void *graph, uint32_t run);
  /** Batched only. Waits for the tasks that the node's flag depends on, then reads it. A CALL_HOST has no flag: waits
   * for all work in front of it, since common calls its function next. A REPEAT whose count isn't in memory
   * (gk_node.flag is 0 or no GK_PTR): waits. node 0: waits for all submits; the launch is over. */
  gk_result (*read_flag)(void *graph, uint32_t node, int32_t *flag);
  /** Ahead only. Enqueues a tape behind all earlier ones, and a copy of the state behind it. An entry is the number of
   * a run, perhaps with GK_AHEAD_BESIDE (gk_ahead.h). The control kernel follows each run. A run's tasks do nothing
   * unless its word GKW_TASKS in the state is GKW_OPEN. Before, common has called the function of a run that is a
   * CALL_HOST. The entry GK_NONE is a control kernel without a run. At most two tapes are under way. GK_NOT_READY: the
   * backend takes only one; common calls `state` before it tries again. */
  gk_result (*ahead)(void *graph, const uint32_t *runs, uint32_t count);
  /** Ahead only. Waits for the oldest tape under way, then gives the state behind it, valid until the next call of an
   * entry for the graph. NULL: the launch is over or has failed; waits for all of its work. */
  gk_result (*state)(void *graph, const uint32_t **state);

  /** Describes the backend's form of the plan as "text", "dot" or "json". The caller frees it by free(). NULL: no such
   * format. Optional: only the plan is dumped. */
  char *(*dump)(void *graph, const char *format);
  /** Tables of functions that only this backend has, by name. Optional: NULL. */
  const void *(*query)(const char *name);
  /** Whether programs put their own work on the device's stream. Then gk_launch, like gk_launch_on, calls `launch` or
   * the walker itself, not through the device's queue. Optional: no. */
  bool (*shares)(void *device);
  /** Whether the device can access memory that isn't of `alloc`. Called on any thread, when a slot is bound to it.
   * GK_OK, or gk_fail with advice on what to bind instead. Optional: GK_OK. */
  gk_result (*reaches)(void *device, const void *memory);
  /** GK_ERROR_DEVICE, with the first failure as its message, if the device is lost. gk_launch returns it. Called at
   * each launch, on the caller's thread, so it must not call the driver. Optional: GK_OK. */
  gk_result (*alive)(void *device);

  /** Allocates bytes > 0 that the graph owns, aligned like those of `alloc`. from: NULL, or the memory to replace: then
   * this waits for the graph's launches, but for no other graph's, and copies the first `kept` bytes. The other bytes
   * are zeroed. Called on any thread, while no launch of the graph starts. Optional, together with disown: alloc, copy
   * and free. */
  gk_result (*own)(void *graph, const void *from, size_t kept, size_t bytes, void **memory);
  /** Frees memory of own or alloc that no launch uses any more, without waiting for other launches if possible. Memory
   * of own may also be freed by `free`. */
  void (*disown)(void *device, void *memory);

  /** A kernel's handwritten code for this backend, or NULL. Needs no device. beyond: NULL, or receives how the code
   * exceeds the backend's limits ("has more than 64 threads along z in a block"), or NULL. Optional: no kernel has
   * any. */
  const gk_code *(*code)(const gk_kernel *kernel, const char **beyond);
  /** Called before `open` if the program names no backend. GK_OK: this device may be opened. GK_ERROR_NO_DEVICE, with a
   * message: a later backend is the better choice, and common tries it. Optional: GK_OK. */
  gk_result (*by_default)(const gk_device_desc *desc);

  /** Native and ahead. The address on the device of the int with the pass number of the loop at `node`: the passes that
   * its entry has completed. Valid until drop. Called after `lower`. Optional: such graphs with a GK_PASS are refused.
   * With the other modes common keeps these ints. */
  void *(*pass)(void *graph, uint32_t node);
} gk_backend;

/** Registers a backend, which is tried before gk's own. It must live as long as the process uses gk. Thread-safe.
 * @return GK_OK; GK_ERROR_INVALID: another ABI, a name in use, a missing entry, or too many backends.
 * \sa gk_backend_load */
gk_result gk_backend_register(const gk_backend *backend);

/** Loads a shared library with `const gk_backend *gk_backend_export(void)` and registers that backend. The library
 * stays loaded. When the first device is opened or listed, gk loads the libraries that $GK_MODULES lists, separated by
 * ':'. A set-user-id program ignores all of gk's environment variables. Thread-safe. */
gk_result gk_backend_load(const char *path);

/** The backends in the order in which they are tried; NULL: no more. Thread-safe. */
const gk_backend *gk_backend_at(size_t index);

/** Sets this thread's message, unless the current call has set one (the first error wins). @return code */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
gk_result gk_fail(gk_result code, const char *format, ...);

/** Lets this thread's next gk_fail set the message. For a backend's own threads, in front of each piece of work: on
 * gk's threads and callers' threads each call begins so. */
void gk_fail_again(void);

/** Writes a line to the log (gk_set_log). */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void gk_log(gk_log_level level, const char *format, ...);

/** Zeroed memory from the allocator hook; NULL: out of memory. The caller frees it by gk_host_free. */
void *gk_host_alloc(size_t bytes);

/** Frees memory of gk_host_alloc. NULL is allowed. */
void gk_host_free(void *memory);

/** Composes a kernel's portable text for "cuda", "hip" or "glsl". The caller frees it by gk_free_text. NULL: the kernel
 * has no text, or the language lacks something in it; gk_error() says what. */
char *gk_compose(const gk_kernel *kernel, const char *target);

/* ---- direct access: for backends with public calls, such as those of gk_cuda.h ----------------------------------- */

/** The state of a device of the backend with that name. Messages name the public `call`.
 * @return GK_OK; GK_ERROR_INVALID: NULL, closed, or another backend's; GK_ERROR_DEVICE: opened before a fork. */
gk_result gk_device_state(gk_device *device, const char *backend, const char *call, void **state);

/** Calls `visit` with the backend's state of a graph, in the order of the device's work, since no two entries of a
 * graph run at once. The graph must belong to the backend with that name and, unless label is 0, have a checkpoint or
 * YIELD with it.
 * @return The result of `visit`, whose message the calling thread gets. */
gk_result gk_graph_state(gk_graph *graph, const char *backend, const char *call, int32_t label,
                         gk_result (*visit)(void *state, void *data), void *data);

/** Like gk_launch, for a graph of the backend with that name, whose `launch` gets `stream`. After a failure, no entry
 * has got it. */
gk_result gk_graph_launch(gk_graph *graph, const char *backend, const char *call, int32_t label, void *stream);

/** How a list becomes part of a graph that the caller launches. */
typedef struct gk_lower_into {
  gk_result (*lower)(void *device, void *state, const gk_plan *plan, void *const *code, gk_mode *mode,
                     void *data);  /**< As gk_backend.lower. */
  void *data;                      /**< Argument of `lower`. */
  const char *arm;                 /**< Name of the public call that arms the graph, for messages. Not copied. */
} gk_lower_into;

/** Like gk_graph_create, but lowered by `into`: the graph is armed, not launched. The caller has checked `bits` and the
 * pointers. */
gk_result gk_graph_create_into(gk_device *device, const gk_list *list, uint32_t bits, const gk_lower_into *into,
                               gk_graph **graph);

/** Like gk_launch, for a graph of gk_graph_create_into. `arm` gets the arguments of a launch, on the calling thread. */
gk_result gk_graph_arm(gk_graph *graph, const char *backend, const char *call, int32_t label,
                       gk_result (*arm)(void *state, const gk_launch_args *launch, void *data), void *data);

/** Takes back armings that the caller didn't launch. `disarm` lowers *launched to the number of the last launch that
 * took place, at least `over`. The next arming sends the slots that were bound for the others again. */
gk_result gk_graph_disarm(gk_graph *graph, const char *backend, const char *call,
                          gk_result (*disarm)(void *state, uint64_t over, uint64_t *launched));

/* ---- facts of a backend (gk_info.h) ------------------------------------------------------------------------------ */

#define GK_FACTS "gk_facts" /**< Name for gk_backend.query, which returns a constant gk_fact_source. */

/** The facts of a backend. An entry may be NULL: it has no such facts. */
typedef struct gk_fact_source {
  uint32_t bytes;                                                     /**< sizeof(gk_fact_source). */
  void (*of_backend)(gk_fact_visit visit, void *user);                /**< About its libraries; needs no device. */
  void (*of_device)(void *device, gk_fact_visit visit, void *user);   /**< About an open device, by its state. */
  void (*of_environment)(gk_fact_visit visit, void *user);            /**< Environment variables that it reads. */
} gk_fact_source;

/** Visits the facts of a backend of gk_backend_at. It loads its libraries; a library that can't be used is a fact, too.
 * Thread-safe. */
gk_result gk_backend_facts(const gk_backend *backend, gk_fact_visit visit, void *user);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
