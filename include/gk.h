/** @file gk.h
 * Device graphs with loops, branches, parallel sections and checkpoints, from a constant C array. Every program that
 * uses gk needs this header. gk_kernel.h writes kernels, gk_info.h asks about devices, gk_cuda.h shares with CUDA.
 *
 *     GK_KERNEL(advance, (inout(int, x), out(int, more))) { ... more[0] = x[0] > 1; }    // gk_kernel.h
 *     enum { X = 1, MORE };                                                              // slots: what may change
 *     static const gk_slot_desc slots[] = {GK_OWN(X, int, 1), GK_OWN(MORE, int, 1)};
 *     static const gk_task tasks[] = {GK_DO_WHILE(MORE), GK_RUN(advance, GK_ONE, X, MORE), GK_END};
 *     static const gk_list list = GK_LIST(list, tasks, slots);
 *
 *     gk_device_open(NULL, &device);                // once; the best device there is
 *     gk_graph_create(device, &list, 0, &graph);    // once; checks the list, compiles its kernels
 *     gk_bind, gk_resize                            // give slots other numbers and memory, before any launch
 *     gk_launch(graph, 0);                          // returns at once; the device decides when the loop ends
 *     gk_wait(graph, &status);                      // how it ended
 *
 * README.md has the whole program. A checkpoint may pause a launch (yield): the host mends the cause, say a buffer that
 * is too small, and launches again from there (resume). docs/contract.md says what a list means, on every device alike.
 * gk does not schedule over several devices, move memory behind your back, or decide when to launch.
 *
 * Rules for all of this file; docs/guide.md has more about processes, threads and C++:
 * - Structs you fill: zero means default. `reserved` must be zero, unknown bits are refused; new fields come out of
 *   `reserved`, so a layout lasts as long as GK_ABI. Structs gk fills reach you as const pointers and may grow at the
 *   end, except those in arrays. Before version 1.0 any release may change GK_ABI.
 * - Ownership: lists, slot tables, names and values are copied before a call returns. Kernels, and memory bound to a
 *   slot, are pointed to and must outlive the graph. What open, create or alloc made, you close, destroy or free (NULL
 *   is fine there). What a call returns as const is gk's.
 * - Errors: a gk_result, and gk_error() in full sentences. After a failure nothing has changed and outputs are NULL.
 * - Threads: any number may use one device. A graph is for one thread at a time: a call that meets another is answered
 *   by GK_ERROR_BUSY. Only gk_cancel may come from any thread, while the graph lives.
 * - Order: launches, uploads, downloads and copies on a device happen as if one after the other, in the order of the
 *   calls. Launches of gk_launch_on follow earlier ones of their graph, and all but launches of other graphs follow
 *   them; else their order is that of their streams. */
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

#define GK_ABI 1 /**< Layouts and meanings in the public headers; a library of another ABI refuses your lists. */
/** The library's version, "1.2.3". */
const char *gk_version(void);

/* ---- results ---------------------------------------------------------------------------------------------------- */
/** What became of a call, and what to do about it. */
typedef enum gk_result {
  GK_OK = 0,            /**< Done. */
  GK_NOT_READY,         /**< gk_poll only: the launch is still running. */
  GK_ERROR_INVALID,     /**< Your mistake; the message names task, slot and fix. */
  GK_ERROR_UNSUPPORTED, /**< This device or driver can't; the message says what could. */
  GK_ERROR_NO_DEVICE,   /**< No such driver or device: try another backend. */
  GK_ERROR_COMPILE,     /**< A kernel; the message holds the compiler's log, with your file and line. */
  GK_ERROR_MEMORY,      /**< Host or device memory is used up: free some and call again. */
  GK_ERROR_BUSY,        /**< This graph is running, or another thread is in it: wait for it. */
  GK_ERROR_DEVICE,      /**< The driver failed: what is on the device is lost, close it. */
} gk_result;

/** This thread's last failure in full sentences, "" if there was none; valid until its next failing call. */
const char *gk_error(void);
/** The name of a result, "GK_ERROR_BUSY". */
const char *gk_result_name(gk_result result);

/* ---- types and values -------------------------------------------------------------------------------------------- */
/** The type of a slot or a parameter. */
typedef enum gk_type {
  GK_NO_TYPE,  /**< None: refused. */
  GK_PTR,      /**< Memory of the device. */
  GK_I32,      /**< int32_t */
  GK_U32,      /**< uint32_t */
  GK_I64,      /**< int64_t */
  GK_F32,      /**< float */
  GK_F64,      /**< double */
  GK_BYTES,    /**< A struct kept by the graph: `in` parameters get the address of a copy, `value` ones it. */
  GK_HOST_PTR, /**< An address of the host's, handed through to CALL. */
} gk_type;
/** What a slot holds. */
typedef union gk_value {
  void *ptr;   /**< GK_PTR, GK_HOST_PTR; GK_BYTES: where the copy is. */
  int32_t i32; /**< GK_I32 */
  uint32_t u32; /**< GK_U32 */
  int64_t i64; /**< GK_I64 */
  float f32;   /**< GK_F32 */
  double f64;  /**< GK_F64 */
} gk_value;
/** A kernel, as GK_KERNEL (gk_kernel.h) defines it, or as written by hand. \sa gk_code.h */
typedef struct gk_kernel gk_kernel;

/* ---- slots: constants, and all that may change between launches ------------------------------------------------- */
/** A slot's number in your enum, from 1 on. */
typedef int32_t gk_slot;
enum { GK_HAS_VALUE = 1 /**< gk_slot_desc.bits: `value` is bound to it at first. */ };
/** A slot: a named argument of a graph. One without a value or memory of its own must be bound before a launch whose
 * tasks need it; tasks that have no items don't need memory. */
typedef struct gk_slot_desc {
  gk_slot slot;           /**< Its number; 1 to 65,535, each once, in any order. */
  gk_type type;           /**< What it holds. */
  const char *name;       /**< In messages, and for gk_find_slot. */
  const char *element;    /**< PTR, BYTES: the type there, checked against kernels' parameters; NULL: unchecked. */
  uint32_t element_bytes; /**< Unit of COPY, FILL and gk_resize; 0: 1. */
  uint32_t bits;          /**< GK_HAS_VALUE or 0. */
  gk_value value;         /**< With GK_HAS_VALUE. */
  size_t count;           /**< PTR: at first, memory of the graph's own is bound to it: so many elements, zeroed. */
  uintptr_t reserved[2];  /**< Zero. */
} gk_slot_desc;

#define GK_BUFFER(s, T) GK_OWN(s, T, 0) /**< Slot s points to elements of type T, by gk_bind or gk_resize. */
/** Slot s points to n elements of type T in memory that the graph owns. */
#define GK_OWN(s, T, n) \
  {.slot = (s), .type = GK_PTR, .name = #s, .element = #T, .element_bytes = sizeof(T), .count = (n)}
#define GK_RAW_BUFFER(s) {.slot = (s), .type = GK_PTR, .name = #s} /**< Memory that kernels see as different types. */
/** Slot s is a number: int, uint (or int32_t, uint32_t), int64_t, float or double. */
#define GK_SCALAR(s, T) {.slot = (s), .type = GKI_TYPE_##T, .name = #s}
/** The same with a value to begin with. */
#define GK_DEFAULT(s, T, v) \
  {.slot = (s), .type = GKI_TYPE_##T, .name = #s, .bits = GK_HAS_VALUE, .value = {.GKI_GET_##T = (v)}}
/** Slot s is a struct T, copied into the graph by gk_bind_bytes. */
#define GK_STRUCT_VALUE(s, T) {.slot = (s), .type = GK_BYTES, .name = #s, .element = #T, .element_bytes = sizeof(T)}

/* ---- task lists ------------------------------------------------------------------------------------------------- */
/** What a line of a list is. Each from DO_WHILE to SECTION has an END of its own, but IF and its ELSE share one. */
typedef enum gk_op {
  GK_OP_NONE,       /**< Refused: a task was forgotten. */
  GK_OP_KERNEL,     /**< A kernel over some items. */
  GK_OP_COPY,       /**< Elements from one slot's memory to another's. */
  GK_OP_FILL,       /**< A 4-byte pattern, repeated. */
  GK_OP_CALL,       /**< Work of another library. */
  GK_OP_LIST,       /**< The tasks of another list, as if they stood here. */
  GK_OP_DO_WHILE,   /**< Runs its block, reads the flag, repeats while it isn't 0. */
  GK_OP_WHILE,      /**< Reads the flag first. */
  GK_OP_IF,         /**< Runs its block if the flag isn't 0. */
  GK_OP_ELSE,       /**< In an IF: the other block. */
  GK_OP_SWITCH,     /**< Runs the CASE whose index is the flag's value, or none. */
  GK_OP_CASE,       /**< In a SWITCH: for 0, 1, 2 ... in their order. */
  GK_OP_CHECKPOINT, /**< Runs its block, then yields if the flag isn't 0; a launch may start here. */
  GK_OP_PARALLEL,   /**< Its SECTIONs have no order among themselves. */
  GK_OP_SECTION,    /**< In a PARALLEL: a block. */
  GK_OP_END,        /**< Closes the block that is open. */
} gk_op;

/** Work of another library. Called when the graph is made and after one of its slots was rebound, or each time the task
 * runs, on any thread. It must not call gk on this device, but for gk_cancel. An answer other than GK_OK becomes that
 * of the create, launch or wait at hand; GK_NOT_READY and what is no gk_result become GK_ERROR_INVALID.
 * @param args    The task's args, in order.
 * @param native  Where to record it (CUstream or hipStream_t under capture, VkCommandBuffer); NULL: do it at once. */
typedef gk_result (*gk_call)(const gk_value *args, void *native);
enum {
  GK_ONE = 0,       /**< In gk_task.items: one. */
  GK_MAX_ARGS = 16, /**< Arguments of a task at most. */
  GK_MAX_DEPTH = 64 /**< Blocks in blocks, and lists in lists, at most. */
};
enum {
  GK_ALWAYS = 1, /**< gk_task.bits of a task at the top level: runs once in every launch, whatever is skipped. */
  GK_FLOATS = 2  /**< gk_task.bits of a FILL: its number is pattern_f32. */
};
/** gk_task.bits of a KERNEL: items are given in n dimensions; a kernel of another number is refused; 0: none is. */
#define GK_DIMENSIONS(n) ((uint32_t)(n) << 4)

/** One line of a list; made by the macros below. */
typedef struct gk_task {
  gk_op op;                   /**< What it is. */
  uint32_t bits;              /**< KERNEL, COPY, FILL, CALL: GK_ALWAYS; KERNEL: GK_DIMENSIONS(n); FILL: GK_FLOATS. */
  const char *name;           /**< In messages and traces. A loop's may be the text of its macro's arguments. */
  const gk_kernel *kernel;    /**< KERNEL. */
  gk_call call;               /**< CALL. */
  const struct gk_list *list; /**< LIST: its tasks; args stand for the first slots of its table. */
  gk_slot items[3];           /**< KERNEL: x, y, z; COPY, FILL: elements. GK_ONE, a number's slot, or a PTR to an int32.
                               * 0 or less: the task does nothing; too many, and it is reached: the launch fails. */
  gk_slot args[GK_MAX_ARGS];  /**< Up to the first 0. COPY: to, from. FILL: to. */
  gk_slot flag;               /**< Loop, IF, SWITCH, CHECKPOINT: a PTR to an int32, which gk reads and never writes. */
  uint32_t offset;            /**< Bytes from flag or items[0] to that int32; COPY, FILL: bytes into `to`. */
  uint32_t from_offset;       /**< COPY: bytes into `from`. */
  union {
    uint32_t pattern;         /**< FILL: each 4 bytes. */
    float pattern_f32;        /**< FILL with GK_FLOATS: each element. */
  };
  uint32_t max_iterations;    /**< Loop: passes at most; 0: no bound. */
  int32_t label;              /**< CHECKPOINT: not 0; loop: 0 or not; each once. LIST: added to its labels. */
  uint32_t reserved[4];       /**< Zero. */
} gk_task;

/** A task list. Several may use one table of slots; a slot may go unused. */
typedef struct gk_list {
  uint32_t abi;              /**< GK_ABI. */
  const char *name;          /**< In messages. */
  const gk_task *tasks;      /**< The lines. */
  size_t task_count;         /**< Length of tasks; at most 2^24 as composed. */
  const gk_slot_desc *slots; /**< The table. */
  size_t slot_count;         /**< Length of slots. */
} gk_list;

/* Elements of an array, constant or not, at file level or in a function. `(gk_task)GK_RUN(...)` is one as a value. */
#define GK_LIST(id, t, s) {GK_ABI, #id, (t), GK_COUNT(t), (s), GK_COUNT(s)} /**< Of an array of tasks, one of slots. */
/** Kernel k, of one dimension, over n items, with slots for its parameters. n is a slot where their number is, or
 * GK_ONE, never the number itself: 8 is slot 8, whatever that is. */
#define GK_RUN(k, n, ...) GKI_KERNEL_TASK(0, 1, k, (n), 0, 0, __VA_ARGS__)
#define GK_RUN_2D(k, x, y, ...) GKI_KERNEL_TASK(0, 2, k, (x), (y), 0, __VA_ARGS__) /**< Of two dimensions. */
#define GK_RUN_3D(k, x, y, z, ...) GKI_KERNEL_TASK(0, 3, k, (x), (y), (z), __VA_ARGS__) /**< Of three. */
/** A kernel that runs once in every launch, whatever is skipped. */
#define GK_RUN_ALWAYS(k, n, ...) GKI_KERNEL_TASK(GK_ALWAYS, 1, k, (n), 0, 0, __VA_ARGS__)
/** n elements from one slot's memory to another's. */
#define GK_COPY(to, from, n) {.op = GK_OP_COPY, .name = #to " = " #from, .items = {n}, .args = {to, from}}
/** n elements of slot `to`, each 4 bytes set to the integer v, -2^31 to 2^32 - 1 (of others their lowest 32 bits).
 * Floats, doubles, int64_t take 0 alone (int64_t: -1, too). In C a v with a point doesn't compile: \sa GK_FILL_F32 */
#define GK_FILL(to, n, v) \
  {.op = GK_OP_FILL, .name = #to " = " #v, .items = {n}, .args = {to}, .pattern = (uint32_t)(GKI_INTEGER(v) | 0)}
/** n elements of slot `to`, of floats, each set to v. */
#define GK_FILL_F32(to, n, v) \
  {.op = GK_OP_FILL, .bits = GK_FLOATS, .name = #to " = " #v, .items = {n}, .args = {to}, .pattern_f32 = (v)}
#define GK_CALL(f, ...) {.op = GK_OP_CALL, .name = #f, .call = (f), .args = {__VA_ARGS__}} /**< A gk_call with slots. */
/** The tasks of list l; labels_from is added to its labels; slots stand for the first of its table (none: write 0). */
#define GK_INCLUDE(l, labels_from, ...) \
  {.op = GK_OP_LIST, .name = #l, .list = &(l), .args = {__VA_ARGS__}, .label = (labels_from)}
/** The same named id, so that a list that is included twice has slots of other names each time. */
#define GK_INCLUDE_AS(id, l, labels_from, ...) \
  {.op = GK_OP_LIST, .name = #id, .list = &(l), .args = {__VA_ARGS__}, .label = (labels_from)}
/** Takes the flag's slot, then any of .offset = , .max_iterations = , .label = , in this order. */
#define GK_DO_WHILE(...) GKI_BLOCK_TASK(DO_WHILE, __VA_ARGS__)
#define GK_WHILE(...) GKI_BLOCK_TASK(WHILE, __VA_ARGS__) /**< As GK_DO_WHILE. */
#define GK_IF(...) GKI_BLOCK_TASK(IF, __VA_ARGS__) /**< Takes the flag's slot, then perhaps .offset = . */
#define GK_ELSE {.op = GK_OP_ELSE} /**< The other block of the IF that is open. */
#define GK_SWITCH(...) GKI_BLOCK_TASK(SWITCH, __VA_ARGS__) /**< As GK_IF; holds GK_CASE blocks. */
#define GK_CASE {.op = GK_OP_CASE} /**< For the flag's value 0, 1, 2 ... in their order. */
/** Label l, yields if slot f's flag isn't 0 at its end. */
#define GK_CHECKPOINT(l, f) {.op = GK_OP_CHECKPOINT, .name = #l, .flag = (f), .label = (l)}
/** The same, the flag so many bytes into slot f's memory. */
#define GK_CHECKPOINT_AT(l, f, bytes) {.op = GK_OP_CHECKPOINT, .name = #l, .flag = (f), .offset = (bytes), .label = (l)}
#define GK_TARGET(l) {.op = GK_OP_CHECKPOINT, .name = #l, .label = (l)} /**< Never yields: a place to resume at. */
#define GK_PARALLEL {.op = GK_OP_PARALLEL} /**< Holds GK_SECTION blocks that may run side by side. */
#define GK_SECTION {.op = GK_OP_SECTION} /**< One of the blocks of a GK_PARALLEL. */
#define GK_END {.op = GK_OP_END} /**< Closes the block that is open. */

/* ---- whether a list is right ------------------------------------------------------------------------------------- */
/** Something wrong with a list. */
typedef struct gk_problem {
  const char *code;    /**< Stable, for tests: "label-reused". All of them: docs/errors.md. */
  const char *message; /**< The task by index and name, what is wrong, what to do. Gone when the report returns. */
  size_t task;         /**< The task's index in the list that was given; SIZE_MAX: none in particular. */
} gk_problem;
/** Gets one problem; it must not call gk. */
typedef void (*gk_report)(void *user, const gk_problem *problem);
/** A gk_report that prints a line: `file` is a FILE *, NULL is stderr. */
void gk_print(void *file, const gk_problem *problem);
/** Judges a list without a device and reports every problem in the order of the tasks. Thread-safe.
 * @param list     Any bytes a gk_list may hold, as long as its arrays are as long as it says.
 * @param backend  Whether the kernels have code for it, and it takes every construct; NULL: any.
 * @param report   May be NULL: the answer alone counts. `user` is for it.
 * @return GK_OK; GK_ERROR_INVALID, the first problem being gk_error(); GK_ERROR_MEMORY. */
gk_result gk_check(const gk_list *list, const char *backend, gk_report report, void *user);

/* ---- devices ---------------------------------------------------------------------------------------------------- */
/** An open device of some backend: memory, kernels made ready, one line of work. */
typedef struct gk_device gk_device;
/** What only one backend knows, as a chain. A device refuses what it doesn't know; OpenMP knows none. */
typedef struct gk_extension {
  uint32_t id;                     /**< Which. */
  uint32_t bytes;                  /**< Size of the whole struct of which this is the first member. */
  const struct gk_extension *next; /**< Or NULL. */
} gk_extension;
/** Which device to open; all zero: the best there is. */
typedef struct gk_device_desc {
  const char *backend;      /**< "cuda", "openmp", or a module's; NULL: $GK_BACKEND, or the first able. */
  int ordinal;              /**< Among the backend's devices; 0: the one it likes best. */
  int threads;              /**< "openmp"; 0: OMP_NUM_THREADS, else all cores this process may use. */
  const gk_extension *next; /**< Sharing a context, a stream ... */
  uintptr_t reserved[4];    /**< Zero. */
} gk_device_desc;

/** Opens a device, usually in less than a second; the first of a GPU also tries what its driver does (docs/cuda.md).
 * \sa gk_device_list, gk_device_describe
 * @param desc    NULL: the first backend that is able, its best device.
 * @param device  Yours, to be closed by gk_device_close.
 * @return GK_ERROR_NO_DEVICE where none can start, with each backend's reason. */
gk_result gk_device_open(const gk_device_desc *desc, gk_device **device);
/** Waits for what runs, frees the device's memory. Destroy its graphs before or after; after it they fail politely. */
void gk_device_close(gk_device *device);

/* ---- memory ----------------------------------------------------------------------------------------------------- */
/** Kinds of memory. */
typedef enum gk_memory {
  GK_DEVICE_MEMORY, /**< Where kernels are fastest. */
  GK_HOST_MEMORY,   /**< Page-locked where that exists: the host uses it directly, kernels slowly, GK_COPY fast. */
} gk_memory;

/** Waits for earlier launches if the host can't write that memory (gk_host_address): then the device zeroes it.
 * @return Memory, zeroed and aligned to 256 bytes; 0 bytes are fine. NULL: it failed, gk_error() says why. */
void *gk_alloc(gk_device *device, size_t bytes, gk_memory kind);
/** Frees what gk_alloc gave, after all earlier launches. NULL is fine. An address that gk_alloc didn't give, or that is
 * freed already, is left alone: gk_error() and the log say so. A slot that is bound to it must be bound anew. */
void gk_free(gk_device *device, void *memory);
/** Copies from the host and returns when done. Any address inside a block of gk's will do; a range that leaves the
 * block is refused. Memory that gk doesn't know (of the caller's own) is taken at its word. */
gk_result gk_upload(gk_device *device, void *to, const void *from_host, size_t bytes);
/** Copies to the host and returns when done; ranges as in gk_upload. */
gk_result gk_download(gk_device *device, void *to_host, const void *from, size_t bytes);
/** Copies on the device and returns when done; ranges as in gk_upload; the two may overlap. */
gk_result gk_copy(gk_device *device, void *to, const void *from, size_t bytes);
/** Where the host can touch that memory (OpenMP: always, at the same address), or NULL. */
void *gk_host_address(gk_device *device, void *memory);

/* ---- graphs ----------------------------------------------------------------------------------------------------- */
/** A list made ready for a device, with its slots' values and memory. */
typedef struct gk_graph gk_graph;
enum {
  GK_HOST_GATED = 1,  /**< gk_graph_create: the host decides, though the device could. */
  GK_ISOLATE = 2,     /**< gk_graph_create: each task by itself, so that the one that faults is named. */
  GK_CANCELLABLE = 4, /**< gk_graph_create: gk_cancel is allowed; on CUDA it costs a gate behind each loop. */
};

/** Checks the list, plans it, compiles kernels that are new to the device. Waits for launches at most where gk_alloc
 * does, for memory of GK_OWN.
 * @param device  Must live until the graph is destroyed, or be closed first.
 * @param bits    GK_HOST_GATED, GK_ISOLATE, GK_CANCELLABLE or 0.
 * @param graph   Yours, to be destroyed by gk_graph_destroy. */
gk_result gk_graph_create(gk_device *device, const gk_list *list, uint32_t bits, gk_graph **graph);
/** Cancels and waits, frees the graph and the memory that it owns. Not to be called while another thread is in it.
 * Calls with it afterwards are undefined, as in C; a library built with `./configure.py --debug` refuses them. */
void gk_graph_destroy(gk_graph *graph);
/** Frees the text that a call gave, as gk_dump (gk_info.h) does; NULL is fine. */
void gk_free_text(char *text);

/** Binds memory to a slot of type PTR or HOST_PTR: any that the device can reach (PyTorch's, CuPy's ...; what it can't
 * reach is refused). Binding never rebuilds, and counts from the next launch on. A bind or resize that fails makes that
 * launch fail with its message, so several need no checks in between. NULL unbinds: it is memory of no bytes. */
gk_result gk_bind(gk_graph *graph, gk_slot slot, const void *memory);
/** Binds a number to a slot of type I32, U32 or I64; one that is out of range is refused. */
gk_result gk_bind_int(gk_graph *graph, gk_slot slot, int64_t value);
/** Binds a number to a slot of type F32 or F64; for F32 a finite one beyond FLT_MAX is refused. */
gk_result gk_bind_float(gk_graph *graph, gk_slot slot, double value);
/** Copies a struct into a slot of type BYTES; bytes must be the slot's element_bytes. */
gk_result gk_bind_bytes(gk_graph *graph, gk_slot slot, const void *value, size_t bytes);
/** Gives a slot of type PTR so many elements of the graph's own memory, and binds it. Keeps what was there, zeroes what
 * is new. Waits for earlier launches where there was memory, else at most as gk_alloc does; your own work with the old
 * memory must be over. */
gk_result gk_resize(gk_graph *graph, gk_slot slot, size_t count);
/** The memory bound to a slot of type PTR; NULL: none, or no such slot. */
void *gk_bound(const gk_graph *graph, gk_slot slot);
/** The slot of that name (the first of several); "contacts.N" in the list whose INCLUDE is named contacts; 0: none. */
gk_slot gk_find_slot(const gk_graph *graph, const char *name);

/* ---- launches ---------------------------------------------------------------------------------------------------- */
/** Starts the graph from the top (0) or at a checkpoint's label. Neither blocks nor allocates, with two exceptions
 * (docs/cuda.md). A graph that can't yield may be launched up to 16 times before it is waited for.
 * @return GK_ERROR_BUSY: it is running and can yield, or 16 are. GK_ERROR_INVALID: there is no such label (the message
 * names those there are), or a slot in use isn't bound, or not as it must be: docs/contract.md, docs/guide.md. */
gk_result gk_launch(gk_graph *graph, int32_t label);
/** The same in the order of a stream of the backend's (CUstream, hipStream_t), NULL being its default one. When it
 * returns, the launch is on the stream, which gk doesn't touch any more. \sa docs/cuda-direct.md
 * @return After a failure there was no launch. GK_ERROR_INVALID: the stream is captured, or of another context.
 * GK_ERROR_UNSUPPORTED: no streams. GK_ERROR_BUSY: an earlier launch of the graph waits for work of the device. */
gk_result gk_launch_on(gk_graph *graph, int32_t label, void *native_stream);

/** How a launch ended. */
typedef enum gk_state {
  GK_FINISHED,  /**< All of it ran. */
  GK_YIELDED,   /**< A checkpoint paused it. */
  GK_CANCELLED, /**< gk_cancel stopped it. */
} gk_state;
/** How slots bound since the launch before reached the device. */
typedef enum gk_applied {
  GK_UNCHANGED,    /**< There were none. */
  GK_BY_TABLE,     /**< In the table of slots: at no cost per task. */
  GK_BY_NODES,     /**< Also by an update of each node that uses one: kernels with code by hand. */
  GK_BY_RECORDING, /**< A library call was recorded again. */
} gk_applied;
/** What a loop did in a launch. */
typedef struct gk_loop_status {
  int32_t label;    /**< 0: it has none. */
  bool hit_bound;   /**< It ended because of max_iterations, once at least. */
  const char *name; /**< Of its label, else of its flag. */
  uint64_t passes;  /**< Completed: its end was reached. */
} gk_loop_status;
/** What a checkpoint did in a launch. */
typedef struct gk_checkpoint_status {
  int32_t label;    /**< Its label. */
  bool ran;         /**< Its block ran, once at least. */
  const char *name; /**< Of its label. */
} gk_checkpoint_status;
/** How a launch went. */
typedef struct gk_status {
  uint64_t launch;                         /**< Its number, from 1. */
  gk_state state;                          /**< How it ended. */
  int32_t yielded;                         /**< The label to resume at; 0: none. */
  const char *yielded_name;                /**< "" if none. */
  const gk_loop_status *limit;             /**< The first loop that hit its bound, or NULL. */
  gk_applied applied;                      /**< How rebound slots reached the device. */
  uint32_t loop_count;                     /**< Length of loops. */
  uint32_t checkpoint_count;               /**< Length of checkpoints. */
  const gk_loop_status *loops;             /**< In the list's order. */
  const gk_checkpoint_status *checkpoints; /**< In the list's order. */
} gk_status;

/** Waits for the last launch; fails if it failed, or if there was none.
 * @param status  May be NULL; else gets the launch's status, valid until the next launch or destroy. */
gk_result gk_wait(gk_graph *graph, const gk_status **status);
/** The same without waiting: GK_NOT_READY while it runs. */
gk_result gk_poll(gk_graph *graph, const gk_status **status);
/** Asks what runs or is queued to stop at the next loop end or checkpoint; later launches aren't concerned. From any
 * thread. Without any launch under way it does nothing; without GK_CANCELLABLE the answer is GK_ERROR_UNSUPPORTED. */
gk_result gk_cancel(gk_graph *graph);
/** The passes of the loop of that label; 0: of all loops together. */
uint64_t gk_passes(const gk_status *status, int32_t label);

#define GK_COUNT(array) (sizeof(array) / sizeof((array)[0])) /**< Elements of an array. */

/** @cond behind the macros */
#define GKI_KERNEL_TASK(b, d, k, x, y, z, ...) \
  {.op = GK_OP_KERNEL, .bits = (b) | GK_DIMENSIONS(d), .name = #k, .kernel = &(k), .items = {x, y, z}, \
   .args = {__VA_ARGS__}}
#define GKI_BLOCK_TASK(o, ...) {.op = GK_OP_##o, .name = #__VA_ARGS__, .flag = __VA_ARGS__}
#ifdef __cplusplus
#define GKI_INTEGER(v) (v)
#else /* the compiler complains of the struct's name */
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
