/** @file gk.h
 * Device graphs with loops, branches, parallel sections and checkpoints, from a constant C array. Every program that
 * uses gk needs this header. gk_kernel.h writes kernels, gk_info.h asks about devices, gk_cuda.h shares with CUDA,
 * gk_hip.h with HIP, gk_vulkan.h with Vulkan; gk.hpp is for C++.
 *
 *     GK_SOURCE(collatz)                                                                 // gk_kernel.h: for devices
 *     GK_KERNEL(advance, (inout(int, x), out(int, more))) { ... more[i] = x[i] > 1 ? 1 : 0; }
 *     GK_SOURCE_END
 *     enum { X = 1, MORE };                                                              // slots: what may change
 *     static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_OWN(MORE, int, 1)};
 *     static const gk_task tasks[] = {GK_DO_WHILE(MORE), GK_RUN(advance, GK_ONE, X, MORE), GK_END};
 *     static const gk_list list = GK_LIST(list, tasks, slots);
 *
 *     gk_device_open(NULL, &device);                // once; the best device
 *     gk_graph_create(device, &list, 0, &graph);    // once; checks the list, compiles its kernels
 *     gk_bind, gk_resize                            // give slots other numbers or memory, before any launch
 *     gk_launch(graph, 0);                          // returns at once; the device decides when the loop ends
 *     gk_wait(graph, &status);                      // how it ended
 *
 * README.md has a whole program. A checkpoint may pause a launch (yield): the host fixes the cause, such as a small
 * buffer, and launches again from there (resume). docs/contract.md defines what a list means on every device. gk
 * doesn't schedule over several devices, move memory by itself, or decide when to launch.
 *
 * Rules for this whole file; docs/guide.md has more about processes, threads and C++:
 * - Structs that you fill: zero is the default. `reserved` must be zero, and unknown bits are refused. New fields come
 *   from `reserved`, so a layout lasts as long as GK_ABI. Structs that gk fills are const and may grow at the end,
 *   except those in arrays. Before version 1.0 any release may change GK_ABI.
 * - Ownership: gk copies lists, slot tables, names and values before a call returns. Kernels, and memory bound to a
 *   slot, aren't copied. Memory must outlive the graph. A kernel must outlive the device, which keeps its code by its
 *   address. You close, destroy or free what open, create or alloc made (NULL is allowed there). What a call returns as
 *   const belongs to gk.
 * - Errors: a gk_result, and gk_error() in full sentences. A failed call sets outputs to 0 and, except gk_bind, changes
 *   nothing else.
 * - Threads: any number of threads may use a device, but only one at a time may use a graph; a second one gets
 *   GK_ERROR_BUSY. Only gk_cancel may be called on any thread, as long as the graph exists.
 * - Order: launches, uploads, downloads and copies on a device take effect one after the other, in the order of the
 *   calls. A launch of gk_launch_on follows earlier launches of its graph. Later calls follow it, except launches of
 *   other graphs, whose order is that of their streams. */
#ifndef GK_H
#define GK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#if defined(__cplusplus) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* g++ means designated ones too; C and clang don't */
#endif
#endif

#define GK_ABI 1 /**< Version of the public headers' layouts and meanings. Other versions are refused. */
/** The library's version, "1.2.3". */
const char *gk_version(void);

/* ---- results ---------------------------------------------------------------------------------------------------- */
/** The result of a call. */
typedef enum gk_result {
  GK_OK = 0,            /**< Success. */
  GK_NOT_READY,         /**< gk_poll only: the launch is still running. */
  GK_ERROR_INVALID,     /**< A mistake in the call or list; the message names task, slot and fix. */
  GK_ERROR_UNSUPPORTED, /**< This device or driver can't do it; the message says which could. */
  GK_ERROR_NO_DEVICE,   /**< No such driver or device: try another backend. */
  GK_ERROR_COMPILE,     /**< A kernel doesn't compile; the message has the compiler's log, with your file and line. */
  GK_ERROR_MEMORY,      /**< Out of host or device memory: free some and call again. */
  GK_ERROR_BUSY,        /**< This graph is running, or another thread is in it: wait for it. */
  GK_ERROR_DEVICE,      /**< The driver failed and data is lost: close the device. Or it is closed, or a parent's. */
} gk_result;

/** The message of this thread's last failure, "" if there was none; valid until the next failing call. */
const char *gk_error(void);
/** The name of a result, such as "GK_ERROR_BUSY". */
const char *gk_result_name(gk_result result);

/* ---- types and values -------------------------------------------------------------------------------------------- */
/** The type of a slot or a parameter. */
typedef enum gk_type {
  GK_NO_TYPE,  /**< Not set: refused. */
  GK_PTR,      /**< Device memory. */
  GK_I32,      /**< int32_t */
  GK_U32,      /**< uint32_t */
  GK_I64,      /**< int64_t */
  GK_F32,      /**< float */
  GK_F64,      /**< double */
  GK_BYTES,    /**< A struct that the graph copies. `in` parameters get the copy's address, `value` ones the struct. */
  GK_HOST_PTR, /**< A host address, passed to CALLs. */
} gk_type;
/** The value of a slot. */
typedef union gk_value {
  void *ptr;   /**< GK_PTR, GK_HOST_PTR; GK_BYTES: address of the copy. */
  int32_t i32; /**< GK_I32 */
  uint32_t u32; /**< GK_U32 */
  int64_t i64; /**< GK_I64 */
  float f32;   /**< GK_F32 */
  double f64;  /**< GK_F64 */
} gk_value;
/** A kernel, defined by GK_KERNEL (gk_kernel.h) or as a handwritten constant. \sa gk_code.h */
typedef struct gk_kernel gk_kernel;

/* ---- slots: values that may change between launches ------------------------------------------------------------- */
/** The number of a slot, from 1 on, usually from an enum. */
typedef int32_t gk_slot;
enum {
  GK_HAS_VALUE = 1, /**< gk_slot_desc.bits: the slot begins with `value`. */
  GK_IS_ROOM = 2,   /**< gk_slot_desc.bits: see GK_ROOM; value.i32 is the buffer's slot. \since 0.2.0 */
  GK_IS_PASS = 4,   /**< gk_slot_desc.bits: see GK_PASS; value.i32 is the loop's label. \since 0.2.0 */
};
/** A slot: a named argument of a graph. A slot without an initial value or memory must be bound before a launch of
 * tasks that use it. Tasks without items don't need memory. */
typedef struct gk_slot_desc {
  gk_slot slot;           /**< Its number, 1 to 65,535, unique in the table, in any order. */
  gk_type type;           /**< Type of its value. */
  const char *name;       /**< Name for messages and gk_find_slot. */
  const char *element;    /**< PTR, BYTES: type of the elements, as in kernels' parameters; NULL: unchecked. */
  uint32_t element_bytes; /**< Size of an element, for COPY, FILL and gk_resize; 0: 1. */
  uint32_t bits;          /**< GK_HAS_VALUE, GK_IS_ROOM, GK_IS_PASS or 0. */
  gk_value value;         /**< Initial value, with GK_HAS_VALUE. Otherwise see GK_IS_ROOM, GK_IS_PASS. */
  size_t count;           /**< PTR: number of zeroed elements that the graph allocates for it at first. */
  uintptr_t reserved[2];  /**< Zero. */
} gk_slot_desc;

#define GK_BUFFER(s, T) GK_OWN(s, T, 0) /**< Slot s points to elements of type T, by gk_bind or gk_resize. */
/** Slot s points to n elements of type T in memory that the graph owns. */
#define GK_OWN(s, T, n) \
  {.slot = (s), .type = GK_PTR, .name = #s, .element = #T, .element_bytes = sizeof(T), .count = (n)}
#define GK_RAW_BUFFER(s) {.slot = (s), .type = GK_PTR, .name = #s} /**< Memory with elements of any type. */
/** Slot s is a number: int, uint (or int32_t, uint32_t), int64_t, float or double. */
#define GK_SCALAR(s, T) {.slot = (s), .type = GKI_TYPE_##T, .name = #s}
/** A number with initial value v. */
#define GK_DEFAULT(s, T, v) \
  {.slot = (s), .type = GKI_TYPE_##T, .name = #s, .bits = GK_HAS_VALUE, .value = {.GKI_GET_##T = (v)}}
/** Slot s is an int: the number of elements that the memory of slot b has, a PTR of the same table. gk keeps it, and
 * gk_bind and gk_resize change it. A launch that uses it is refused if the memory's size isn't known. \since 0.2.0 */
#define GK_ROOM(s, b) {.slot = (s), .type = GK_I32, .name = #s, .bits = GK_IS_ROOM, .value = {.i32 = (b)}}
/** Slot s points to an int that gk writes: the passes that the loop with label l has completed. Only lines in that loop
 * use it: a kernel by in(int, ...), a GK_COPY, or a flag or count, but no GK_CHECKPOINT's. \since 0.2.0 */
#define GK_PASS(s, l) \
  {.slot = (s), .type = GK_PTR, .name = #s, .element = "int", .element_bytes = sizeof(int32_t), .bits = GK_IS_PASS, \
   .value = {.i32 = (l)}}
/** Slot s is a struct T, copied into the graph by gk_bind_bytes. */
#define GK_STRUCT_VALUE(s, T) {.slot = (s), .type = GK_BYTES, .name = #s, .element = #T, .element_bytes = sizeof(T)}

/* ---- task lists ------------------------------------------------------------------------------------------------- */
/** Kinds of lines. Each from DO_WHILE to SECTION has its own END, except that IF and its ELSE share one. */
typedef enum gk_op {
  GK_OP_NONE,       /**< Not set: refused. */
  GK_OP_KERNEL,     /**< Runs a kernel over some items. */
  GK_OP_COPY,       /**< Copies elements from one slot's memory to another's. */
  GK_OP_FILL,       /**< Repeats a 4-byte pattern. */
  GK_OP_CALL,       /**< Calls another library. */
  GK_OP_CALL_HOST,  /**< Calls a function that does its work at once, on the host. \since 0.2.0 */
  GK_OP_YIELD,      /**< Yields whenever it is reached; a launch that resumes here goes on behind it. \since 0.2.0 */
  GK_OP_LIST,       /**< Includes the tasks of another list. */
  GK_OP_DO_WHILE,   /**< Runs its block, reads the flag, repeats while it isn't 0. */
  GK_OP_WHILE,      /**< Like DO_WHILE, but reads the flag before each pass. */
  GK_OP_REPEAT,     /**< Runs its block as often as its count says, which it reads when it is reached. \since 0.2.0 */
  GK_OP_IF,         /**< Runs its block if the flag isn't 0. */
  GK_OP_ELSE,       /**< In an IF: the other block. */
  GK_OP_SWITCH,     /**< Runs the CASE whose index is the flag's value, or none. */
  GK_OP_CASE,       /**< In a SWITCH: the block for the next value, from 0. */
  GK_OP_CHECKPOINT, /**< Runs its block, then yields if the flag isn't 0; a launch may start here. */
  GK_OP_PARALLEL,   /**< Runs its SECTIONs in any order or at the same time. */
  GK_OP_SECTION,    /**< In a PARALLEL: a block. */
  GK_OP_END,        /**< Ends the innermost open block. */
} gk_op;

/** Calls another library. gk calls it when it records the graph, in gk_graph_create or the first launch, and after one
 * of its slots was rebound; or each time the task runs (CALL_HOST: always so). It runs on any thread. It must not call
 * gk on this device, except gk_cancel. A result other than GK_OK becomes that of the current create, launch or wait;
 * GK_NOT_READY and numbers that are no gk_result become GK_ERROR_INVALID.
 * @param args    Values of the task's args, in order.
 * @param native  Where to put the work: a CUstream that is being captured, or a hipStream_t; NULL: do it now. */
typedef gk_result (*gk_call)(const gk_value *args, void *native);
enum {
  GK_ONE = 0,       /**< In gk_task.items: the extent is 1. */
  GK_MAX_ARGS = 16, /**< Most arguments of a task. */
  GK_MAX_DEPTH = 64 /**< Most levels of blocks in blocks, and of lists in lists. */
};
enum {
  GK_ALWAYS = 1, /**< gk_task.bits of a top-level task: it runs once in each launch, also if others are skipped. */
  GK_FLOATS = 2  /**< gk_task.bits of a FILL: the pattern is pattern_f32. */
};
/** gk_task.bits of a KERNEL: it must have n dimensions; 0: any number. */
#define GK_DIMENSIONS(n) ((uint32_t)(n) << 4)

/** One line of a list. The macros below make it. */
typedef struct gk_task {
  gk_op op;                   /**< Kind of the line. */
  uint32_t bits;              /**< A task: GK_ALWAYS; KERNEL: GK_DIMENSIONS(n); FILL: GK_FLOATS. */
  const char *name;           /**< Name for messages and traces. A loop's may be the text of its macro's arguments. */
  const gk_kernel *kernel;    /**< KERNEL: its kernel. */
  gk_call call;               /**< CALL, CALL_HOST: its function. */
  const struct gk_list *list; /**< LIST: the included list; args replace the first slots of its table. */
  gk_slot items[3];           /**< KERNEL: x, y, z; COPY, FILL: elements. GK_ONE, GK_ITEMS, a number's slot, or a PTR to
                               * an int32. 0 or less: the task does nothing. Too many: the launch fails at the task. */
  gk_slot args[GK_MAX_ARGS];  /**< Slots, up to the first 0. COPY: to, from. FILL: to. LIST: GK_ITEMS for numbers. */
  gk_slot flag;               /**< DO_WHILE, WHILE, IF, SWITCH, CHECKPOINT: a PTR to an int32. gk never writes it.
                               * REPEAT: its count, a number's slot, a PTR to an int32, or GK_ITEMS(n). */
  uint32_t offset;            /**< Bytes from flag or items[0] to that int32; COPY, FILL: bytes into `to`. */
  uint32_t from_offset;       /**< COPY: bytes into `from`. */
  union {
    uint32_t pattern;         /**< FILL: each 4 bytes. */
    float pattern_f32;        /**< FILL with GK_FLOATS: each element. */
  };
  uint32_t max_iterations;    /**< Loop: most passes; 0: no bound. */
  uint32_t every;             /**< DO_WHILE, WHILE: passes of an entry from one read of its flag to the next, which also
                               * comes at the bound; 0: one. A cancel waits for the next read. \since 0.2.0 */
  int32_t label;              /**< Unique. CHECKPOINT, YIELD: not 0; loop: may be 0. LIST: added to the labels in it. */
  uint32_t reserved[3];       /**< Zero. */
} gk_task;

/** A task list. Several lists may use one table of slots, and slots may be unused. */
typedef struct gk_list {
  uint32_t abi;              /**< GK_ABI. */
  const char *name;          /**< Name for messages. */
  const gk_task *tasks;      /**< The lines. */
  size_t task_count;         /**< Length of tasks; with included lists at most 2^24. */
  const gk_slot_desc *slots; /**< The slots. */
  size_t slot_count;         /**< Length of slots. */
} gk_list;

/* Initializers of array elements, constant or not, anywhere. `(gk_task)GK_RUN(...)` is a value. */
#define GK_LIST(id, t, s) {GK_ABI, #id, (t), GK_COUNT(t), (s), GK_COUNT(s)} /**< Arrays of tasks and slots. */
/** A number that never changes, 1 to 2147483647, in the place of its slot. It is a constant, -(n). \since 0.2.0 */
#define GK_ITEMS(n) GKI_ITEMS(n)
/** Runs kernel k, of one dimension, over n items, with slots for its parameters. n is GK_ONE, GK_ITEMS(8) for 8 items,
 * or the slot that holds the number: a bare 8 is slot 8. */
#define GK_RUN(k, n, ...) GKI_KERNEL_TASK(0, 1, k, (n), 0, 0, __VA_ARGS__)
#define GK_RUN_2D(k, x, y, ...) GKI_KERNEL_TASK(0, 2, k, (x), (y), 0, __VA_ARGS__) /**< Two dimensions. */
#define GK_RUN_3D(k, x, y, z, ...) GKI_KERNEL_TASK(0, 3, k, (x), (y), (z), __VA_ARGS__) /**< Three dimensions. */
/** Runs kernel k once in each launch, also if other tasks are skipped. */
#define GK_RUN_ALWAYS(k, n, ...) GKI_KERNEL_TASK(GK_ALWAYS, 1, k, (n), 0, 0, __VA_ARGS__)
/** Copies n elements from one slot's memory to another's. */
#define GK_COPY(to, from, n) {.op = GK_OP_COPY, .name = #to " = " #from, .items = {n}, .args = {to, from}}
/** Sets each 4 bytes of n elements of slot `to` to the lowest 32 bits of the integer v. Elements of type float and
 * double accept only 0, int64_t 0 and -1. In C, a v of a floating-point type doesn't compile. \sa GK_FILL_F32 */
#define GK_FILL(to, n, v) \
  {.op = GK_OP_FILL, .name = #to " = " #v, .items = {n}, .args = {to}, .pattern = (uint32_t)(GKI_INTEGER(v) | 0)}
/** Sets n float elements of slot `to` to v. */
#define GK_FILL_F32(to, n, v) \
  {.op = GK_OP_FILL, .bits = GK_FLOATS, .name = #to " = " #v, .items = {n}, .args = {to}, .pattern_f32 = (v)}
#define GK_CALL(f, ...) {.op = GK_OP_CALL, .name = #f, .call = (f), .args = {__VA_ARGS__}} /**< Calls the gk_call f. */
/** Calls f each time that it is reached, between the work before, which f sees, and the work behind, which sees f's.
 * gk_graph_create refuses it where the device decides: on CUDA without GK_HOST_GATED. \sa GK_YIELD \since 0.2.0 */
#define GK_CALL_HOST(f, ...) {.op = GK_OP_CALL_HOST, .name = #f, .call = (f), .args = {__VA_ARGS__}}
/** Includes list l. labels_from is added to its labels; the slots replace the first of its table (none: write 0). */
#define GK_INCLUDE(l, labels_from, ...) \
  {.op = GK_OP_LIST, .name = #l, .list = &(l), .args = {__VA_ARGS__}, .label = (labels_from)}
/** The same with the name id, so that a list that is included twice has slots with different names. */
#define GK_INCLUDE_AS(id, l, labels_from, ...) \
  {.op = GK_OP_LIST, .name = #id, .list = &(l), .args = {__VA_ARGS__}, .label = (labels_from)}
/** Arguments: the flag's slot, then any of .offset = , .max_iterations = , .every = , .label = , in this order. */
#define GK_DO_WHILE(...) GKI_BLOCK_TASK(DO_WHILE, __VA_ARGS__)
#define GK_WHILE(...) GKI_BLOCK_TASK(WHILE, __VA_ARGS__) /**< Arguments as for GK_DO_WHILE. */
/** Makes n passes. Arguments: n, a number's slot, a PTR to an int32 or GK_ITEMS, then as GK_DO_WHILE, without .every.
 * \since 0.2.0 */
#define GK_REPEAT(...) {.op = GK_OP_REPEAT, .name = #__VA_ARGS__, .flag = __VA_ARGS__}
#define GK_IF(...) GKI_BLOCK_TASK(IF, __VA_ARGS__) /**< Arguments: the flag's slot, maybe .offset = . */
#define GK_ELSE {.op = GK_OP_ELSE} /**< The other block of the open IF. */
#define GK_SWITCH(...) GKI_BLOCK_TASK(SWITCH, __VA_ARGS__) /**< Arguments as for GK_IF; contains CASEs. */
#define GK_CASE {.op = GK_OP_CASE} /**< The block for the flag's next value, from 0. */
/** A checkpoint with label l, which yields if the flag in slot f isn't 0 at its end. */
#define GK_CHECKPOINT(l, f) {.op = GK_OP_CHECKPOINT, .name = #l, .flag = (f), .label = (l)}
/** The same with the flag at that offset in slot f's memory. */
#define GK_CHECKPOINT_AT(l, f, bytes) {.op = GK_OP_CHECKPOINT, .name = #l, .flag = (f), .offset = (bytes), .label = (l)}
/** Yields with label l whenever it is reached; a launch that resumes at l goes on behind it. \since 0.2.0 */
#define GK_YIELD(l) {.op = GK_OP_YIELD, .name = #l, .label = (l)}
#define GK_TARGET(l) {.op = GK_OP_CHECKPOINT, .name = #l, .label = (l)} /**< Never yields; launches may start here. */
#define GK_PARALLEL {.op = GK_OP_PARALLEL} /**< Contains GK_SECTION blocks that may run at the same time. */
#define GK_SECTION {.op = GK_OP_SECTION} /**< A block of a GK_PARALLEL. */
#define GK_END {.op = GK_OP_END} /**< Ends the innermost open block. */

/* ---- checking a list --------------------------------------------------------------------------------------------- */
/** A problem of a list, or a warning: such a list works, but probably not as intended. */
typedef struct gk_problem {
  const char *code;    /**< Stable name, such as "label-reused"; docs/errors.md has all. */
  const char *message; /**< Names the task, the problem and the fix. Valid until the report returns. */
  size_t task;         /**< Index of the task in the given list; SIZE_MAX: no particular task. */
  bool is_warning;     /**< It is a warning. \since 0.2.0 */
} gk_problem;
/** Receives a problem or a warning, and ignores the warnings whose code isn't wanted. It must not call gk. */
typedef void (*gk_report)(void *user, const gk_problem *problem);
/** A gk_report that prints a line to `file`, a FILE *; NULL: stderr. A warning's line begins with "warning: ". */
void gk_print(void *file, const gk_problem *problem);
/** Checks a list without a device and reports every problem in the order of the tasks; if there is none, warnings.
 * gk_graph_create checks, too, and logs warnings (GK_LOG_WARN). Thread-safe.
 * @param list     May have any contents; its arrays must be as long as it says.
 * @param backend  Also checks that the kernels have code for this backend and that it supports the list; NULL: any.
 * @param report   Receives each problem and warning, and `user`; NULL: warnings are logged.
 * @return GK_OK, also with warnings; GK_ERROR_INVALID, with the first problem as message; GK_ERROR_MEMORY. */
gk_result gk_check(const gk_list *list, const char *backend, gk_report report, void *user);

/* ---- devices ---------------------------------------------------------------------------------------------------- */
/** An open device: its memory, its loaded kernels, and one queue of work. */
typedef struct gk_device gk_device;
/** Options of one backend, as a chain. A device refuses unknown ones; OpenMP has none.
 * \sa gk_cuda_sharing, gk_vulkan_sharing */
typedef struct gk_extension {
  uint32_t id;                     /**< Which struct it is. */
  uint32_t bytes;                  /**< Size of that struct, whose first member this is. */
  const struct gk_extension *next; /**< The next one, or NULL. */
} gk_extension;
/** Which device to open; all zero: the best one. */
typedef struct gk_device_desc {
  const char *backend;      /**< "cuda", "hip", "vulkan", "openmp", a module's; NULL: $GK_BACKEND, or the best. */
  int ordinal;              /**< Number among the backend's devices; 0: its best device. */
  int threads;              /**< For "openmp"; 0: OMP_NUM_THREADS, else all cores that this process may use. */
  const gk_extension *next; /**< Options of the backend, or NULL. */
  uintptr_t reserved[4];    /**< Zero. */
} gk_device_desc;

/** Opens a device, usually in less than a second. The first open of a GPU also tests its driver (docs/cuda.md).
 * Thread-safe. \sa gk_device_list, gk_device_describe
 * @param desc    NULL: the best device of the first backend that starts.
 * @param device  Close it by gk_device_close.
 * @return GK_ERROR_NO_DEVICE: no backend starts; the message has each one's reason. */
gk_result gk_device_open(const gk_device_desc *desc, gk_device **device);
/** Waits for the device's launches and frees its memory. Calls with its graphs fail then; destroy them at any time. */
void gk_device_close(gk_device *device);

/* ---- memory ----------------------------------------------------------------------------------------------------- */
/** Kinds of memory. */
typedef enum gk_memory {
  GK_DEVICE_MEMORY, /**< Fastest for kernels. */
  GK_HOST_MEMORY,   /**< The host accesses it directly, GK_COPY fast, kernels slowly; page-locked if possible. */
} gk_memory;

/** Allocates memory. If the host can't zero it (gk_host_address), the device does, behind earlier launches; this waits.
 * @return The memory, zeroed and aligned to 256 bytes; 0 bytes are allowed. NULL: it failed, gk_error() says why. */
void *gk_alloc(gk_device *device, size_t bytes, gk_memory kind);
/** Frees memory of gk_alloc after all earlier launches. NULL is allowed. Any other address that isn't of gk_alloc, or
 * is freed already, is ignored with a message in gk_error() and the log. A slot bound to it must be bound again. */
void gk_free(gk_device *device, void *memory);
/** Copies from the host; returns when done. The range must lie in one block, if it is gk's memory. */
gk_result gk_upload(gk_device *device, void *to, const void *from_host, size_t bytes);
/** Copies to the host; returns when done. Ranges as in gk_upload. */
gk_result gk_download(gk_device *device, void *to_host, const void *from, size_t bytes);
/** Copies on the device; returns when done. Ranges as in gk_upload; the two may overlap. */
gk_result gk_copy(gk_device *device, void *to, const void *from, size_t bytes);
/** The address at which the host can access the memory (OpenMP: the same one), or NULL. */
void *gk_host_address(gk_device *device, void *memory);

/* ---- graphs ----------------------------------------------------------------------------------------------------- */
/** A list prepared for a device, with the values of its slots and the memory that it owns. */
typedef struct gk_graph gk_graph;
enum {
  GK_HOST_GATED = 1,  /**< gk_graph_create: the host decides, even if the device could. */
  GK_ISOLATE = 2,     /**< gk_graph_create: runs each task separately, so that messages name a task that faults. */
  GK_CANCELLABLE = 4, /**< gk_graph_create: allows gk_cancel; on CUDA it costs a gate behind each loop. */
  GK_NONBLOCKING = 8, /**< gk_graph_create: a launch with 16 under way returns GK_ERROR_BUSY. \since 0.2.0 */
};

/** Checks and plans the list, and compiles kernels that are new to the device. For memory of GK_OWN it may wait for
 * launches, like gk_alloc. Thread-safe.
 * @param device  May be closed before the graph is destroyed.
 * @param bits    Any of GK_HOST_GATED, GK_ISOLATE, GK_CANCELLABLE and GK_NONBLOCKING.
 * @param graph   Destroy it by gk_graph_destroy. */
gk_result gk_graph_create(gk_device *device, const gk_list *list, uint32_t bits, gk_graph **graph);
/** Cancels launches, waits for them, and frees the graph and the memory that it owns. No other thread may use the graph
 * now, and none afterwards; a library built with `./configure.py --debug` refuses later calls. */
void gk_graph_destroy(gk_graph *graph);
/** Frees a text that a call returned, such as gk_dump (gk_info.h). NULL is allowed. */
void gk_free_text(char *text);

/** Binds memory to a slot of type PTR or HOST_PTR: any that the device can access, also PyTorch's or CuPy's; other
 * memory is refused. It holds from the next launch on, and rebuilds nothing unless a GK_CALL uses the slot. If a bind
 * or resize fails, so does the next launch, with its message: no call needs a check. NULL is memory without bytes. */
gk_result gk_bind(gk_graph *graph, gk_slot slot, const void *memory);
/** Binds a number to a slot of type I32, U32 or I64. Refuses a number outside the type's range. */
gk_result gk_bind_int(gk_graph *graph, gk_slot slot, int64_t value);
/** Binds a number to a slot of type F32 or F64. For F32, refuses finite numbers beyond FLT_MAX. */
gk_result gk_bind_float(gk_graph *graph, gk_slot slot, double value);
/** Copies a struct into a slot of type BYTES; bytes must be the slot's element_bytes. */
gk_result gk_bind_bytes(gk_graph *graph, gk_slot slot, const void *value, size_t bytes);
/** Gives a slot of type PTR `count` elements that the graph owns. Keeps the old elements and zeroes new ones. With old
 * memory it waits for earlier launches; without, it waits like gk_alloc. Your own work must not use the old memory. */
gk_result gk_resize(gk_graph *graph, gk_slot slot, size_t count);
/** The memory bound to a slot of type PTR; NULL: none, or no such slot. \sa gk_find_slot */
void *gk_bound(const gk_graph *graph, gk_slot slot);
/** Copies the first `count` elements of a PTR slot's memory to the host, behind earlier work of the device, like
 * gk_download. More elements than the memory is known to have are refused. \since 0.2.0 */
gk_result gk_read(gk_graph *graph, gk_slot slot, void *to, size_t count);
/** Copies `count` elements from the host to a PTR slot's memory, otherwise as gk_read. \since 0.2.0 */
gk_result gk_write(gk_graph *graph, gk_slot slot, const void *from, size_t count);
/** The first slot with that name; "contacts.N" is slot N of a list included as contacts. 0: there is none. */
gk_slot gk_find_slot(const gk_graph *graph, const char *name);

/* ---- launches ---------------------------------------------------------------------------------------------------- */
/** Starts the graph from the top (0) or at the label of a checkpoint or YIELD. Never allocates, with exceptions
 * (docs/cuda.md, docs/hip.md). A graph that can't yield may be launched again without a wait; if 16 launches are under
 * way, this call waits for the oldest.
 * @return GK_ERROR_BUSY: it runs and can yield, or it is GK_NONBLOCKING and 16 are under way. GK_ERROR_INVALID: no such
 * label (the message has all), or a slot in use is unbound or bound wrongly: docs/contract.md, docs/guide.md. */
gk_result gk_launch(gk_graph *graph, int32_t label);
/** The same on a stream of the backend (CUstream, hipStream_t); NULL: its default stream. When it returns, the launch
 * is on the stream, and gk uses the stream no longer. \sa docs/cuda-direct.md
 * @return A failure means no launch. GK_ERROR_INVALID: the stream is captured, or of another context.
 * GK_ERROR_UNSUPPORTED: the backend has no streams. GK_ERROR_BUSY: an earlier launch waits for work of the device. */
gk_result gk_launch_on(gk_graph *graph, int32_t label, void *native_stream);

/** How a launch ended. */
typedef enum gk_state {
  GK_FINISHED,  /**< All of it ran. */
  GK_YIELDED,   /**< A checkpoint or a YIELD paused it. */
  GK_CANCELLED, /**< gk_cancel stopped it. */
} gk_state;
/** How slots bound since the last launch reached the device. */
typedef enum gk_applied {
  GK_UNCHANGED,    /**< No slot was bound. */
  GK_BY_TABLE,     /**< By one copy to the device, of what it reads of slots. */
  GK_BY_NODES,     /**< Also by updates of the nodes with handwritten code that use them. */
  GK_BY_RECORDING, /**< Also by recording a library call again. */
} gk_applied;
/** The passes of a loop in a launch. */
typedef struct gk_loop_status {
  int32_t label;    /**< Its label, or 0. */
  bool hit_bound;   /**< max_iterations ended it at least once. */
  const char *name; /**< Name of its label, else of its flag. */
  uint64_t passes;  /**< Completed passes. */
} gk_loop_status;
/** Whether a checkpoint ran in a launch, or a YIELD ended it. */
typedef struct gk_checkpoint_status {
  int32_t label;    /**< Its label. */
  bool ran;         /**< Its block ran at least once; YIELD: it ended the launch. */
  const char *name; /**< Name of its label. */
} gk_checkpoint_status;
/** The status of a launch. */
typedef struct gk_status {
  uint64_t launch;                         /**< Number of the launch, from 1. */
  gk_state state;                          /**< How it ended. */
  int32_t yielded;                         /**< Label of what yielded, to resume at; 0: none. */
  const char *yielded_name;                /**< Its name, or "". */
  const gk_loop_status *limit;             /**< The first loop that hit its bound, or NULL. */
  gk_applied applied;                      /**< How rebound slots reached the device. */
  uint32_t loop_count;                     /**< Length of loops. */
  uint32_t checkpoint_count;               /**< Length of checkpoints. */
  const gk_loop_status *loops;             /**< In the list's order. */
  const gk_checkpoint_status *checkpoints; /**< Checkpoints and YIELDs, in the list's order. */
} gk_status;

/** Waits for all launches. Fails with the first failure that no wait or poll has reported, or if there was no launch.
 * @param status  May be NULL; receives the status of the last launch, valid until the next launch or destroy. */
gk_result gk_wait(gk_graph *graph, const gk_status **status);
/** The same without waiting: returns GK_NOT_READY while a launch runs. */
gk_result gk_poll(gk_graph *graph, const gk_status **status);
/** gk_launch and gk_wait in one call. Where the host runs the tasks (OpenMP, GK_HOST_GATED), the calling thread does,
 * behind earlier work of the device. Then GK_CALLs outside of sections run on this thread, too. Its affinity stays.
 * @return If the launch is refused, as gk_launch; else as gk_wait. \since 0.2.0 */
gk_result gk_launch_wait(gk_graph *graph, int32_t label, const gk_status **status);
/** Fixes the cause of a yield for gk_run, which resumes there on GK_OK and otherwise ends with that result. It may
 * bind, resize, read and write slots, and clears the flag unless a task does. It must not launch or destroy the graph,
 * nor leave by longjmp, pthread_exit or an exception. \since 0.2.0 */
typedef gk_result (*gk_on_yield)(void *user, gk_graph *graph, const gk_status *status);
/** Launches from the top, calls on_yield at each yield and resumes there, until the graph has finished or is cancelled.
 * Launches as gk_launch_wait does. A gk_cancel in the meantime isn't lost: it stops the next launch, too.
 * @param on_yield  Receives `user` and the launch's status; NULL: a yield is an error.
 * @param totals    May be NULL; receives the last launch's status, but with the passes, the checkpoints that ran and
 *                  the first limit of all its launches. Valid until the next gk_run or destroy.
 * @return GK_ERROR_INVALID: the checkpoint yielded twice in a row, and nothing clears its flag. \since 0.2.0 */
gk_result gk_run(gk_graph *graph, gk_on_yield on_yield, void *user, const gk_status **totals);
/** Asks all launches that run or are queued to stop at their next loop end or checkpoint, and doesn't wait. Later
 * launches run as usual. May be called on any thread. GK_ERROR_UNSUPPORTED: made without GK_CANCELLABLE. */
gk_result gk_cancel(gk_graph *graph);
/** The passes of the loop with that label; label 0: of all loops together. 0: no such loop, or no status. */
uint64_t gk_passes(const gk_status *status, int32_t label);

#define GK_COUNT(array) (sizeof(array) / sizeof((array)[0])) /**< Number of elements of an array. */

/** @cond behind the macros */
#define GKI_KERNEL_TASK(b, d, k, x, y, z, ...) \
  {.op = GK_OP_KERNEL, .bits = (b) | GK_DIMENSIONS(d), .name = #k, .kernel = &(k), .items = {x, y, z}, \
   .args = {__VA_ARGS__}}
#define GKI_BLOCK_TASK(o, ...) {.op = GK_OP_##o, .name = #__VA_ARGS__, .flag = __VA_ARGS__}
#define GKI_FITS_ITEMS(n) ((n) >= 1 && (n) <= 2147483647), "GK_ITEMS takes 1 to 2147483647; one item is GK_ONE"
#ifdef __cplusplus
#define GKI_INTEGER(v) (v)
#define GKI_ITEMS(n) (gki_items<(n)>::value)
extern "C++" {
template <long long n> struct gki_items {
  static_assert(GKI_FITS_ITEMS(n));
  static constexpr gk_slot value = (gk_slot)-n;
};
}
#else /* the compiler's message names the struct */
#define GKI_ITEMS(n) (-(gk_slot)(n) + 0 * (gk_slot)sizeof(struct { _Static_assert(GKI_FITS_ITEMS(n)); int gki_items; }))
extern const struct gki_use_GK_FILL_F32 { char no_integer; } gki_no_integer;
#define GKI_INTEGER(v) _Generic((v), float: gki_no_integer, double: gki_no_integer, default: (v))
#endif
#define GKI_TYPE_int GK_I32
#define GKI_TYPE_int32_t GK_I32
#define GKI_TYPE_uint GK_U32
#define GKI_TYPE_uint32_t GK_U32
#define GKI_TYPE_int64_t GK_I64
#define GKI_TYPE_float GK_F32
#define GKI_TYPE_double GK_F64
#define GKI_GET_int i32
#define GKI_GET_int32_t i32
#define GKI_GET_uint u32
#define GKI_GET_uint32_t u32
#define GKI_GET_int64_t i64
#define GKI_GET_float f32
#define GKI_GET_double f64
/** @endcond */

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
