/** @file gk_info.h
 * For programs that ask or say more than a launch takes: which devices there are and how each does loops and branches,
 * what became of a list, what gk has found on this machine, where its host memory comes from and who gets its log. A
 * program that opens a device and runs lists on it does without. */
#ifndef GK_INFO_H
#define GK_INFO_H

#include "gk.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- which devices there are ------------------------------------------------------------------------------------- */

/** One device that is, or could not be, there. */
typedef struct gk_device_entry {
  const char *backend; /**< For gk_device_desc. */
  int ordinal;         /**< For gk_device_desc. */
  bool usable;         /**< It can be opened. */
  const char *name;    /**< The device's own, "" if it can't be opened. */
  const char *why;     /**< If it can't be opened: why; else "". */
} gk_device_entry;

/** Gets one entry of gk_device_list; what it points to is gone when it returns. */
typedef void (*gk_device_visit)(void *user, const gk_device_entry *entry);

/** Visits every device of every backend, in the order in which gk_device_open tries them; a backend without any comes
 * once, with its reason, and so does each device that failed. Takes as long as opening each. Thread-safe. */
gk_result gk_device_list(gk_device_visit visit, void *user);

/* ---- how a device does each construct ---------------------------------------------------------------------------- */

/** How a construct is done on a device. */
typedef enum gk_support {
  GK_REFUSED,   /**< Not at all: gk_graph_create says so. */
  GK_ON_HOST,   /**< The host decides after waiting for the device. */
  GK_IN_SERIES, /**< One part after the other, where the contract would let them overlap. */
  GK_BATCHED,   /**< Several at once on the device, then a word with the host. */
  GK_NATIVE,    /**< Where the tasks run, with nobody in between. */
} gk_support;

/** One line of the capability report. */
typedef struct gk_capability {
  const char *construct; /**< "WHILE", "PARALLEL" ... as in the names of gk_op; also "SUM", "ALWAYS", "CANCEL",
                              "LAUNCH_ON", of which backends may leave some out. */
  gk_support how;        /**< How it is done. */
  const char *why;       /**< In a sentence. */
} gk_capability;

/** What a device is, and how it does each construct. */
typedef struct gk_device_info {
  const char *backend;                 /**< Its backend's name. */
  const char *name;                    /**< The device's own. */
  const char *driver;                  /**< Its driver's or runtime's version, in words. */
  int ordinal;                         /**< Among its backend's devices. */
  int threads;                         /**< Host threads that share a task; 1 where kernels run elsewhere. */
  size_t capability_count;             /**< Length of capabilities. */
  const gk_capability *capabilities;   /**< One line per construct. */
} gk_device_info;

/** Lives as long as the device. Thread-safe. */
const gk_device_info *gk_device_describe(const gk_device *device);

/* ---- what became of a list --------------------------------------------------------------------------------------- */

/** A plan in writing. Give the list, or the graph (then with what became of it on its device, after earlier launches),
 * the other being NULL.
 * @param list    Checked first; or NULL.
 * @param graph   Or NULL.
 * @param format  "text", "dot" (Graphviz) or "json".
 * @return To be freed by gk_free_text; NULL: gk_error() says why. */
char *gk_dump(const gk_list *list, const gk_graph *graph, const char *format);

/* ---- facts: what gk-info prints beside the devices' own reports -------------------------------------------------- */

/** One fact. What it points to is gone when the visit returns. */
typedef struct gk_fact {
  const char *group; /**< "driver"; the facts of a group come one behind the other. */
  const char *name;  /**< "library"; names and groups last, for those who look a fact up. Once in its group. */
  const char *value; /**< In few words; NULL: there is none. */
  const char *why;   /**< More about it, or why there is none; perhaps "", never NULL. */
} gk_fact;

/** Gets one fact. */
typedef void (*gk_fact_visit)(void *user, const gk_fact *fact);

/** Facts of the library as this process has it: its version, the environment that it looks at, where it keeps what is
 * compiled. Loads the modules of $GK_MODULES. Thread-safe. */
gk_result gk_facts(gk_fact_visit visit, void *user);

/** Facts of an open device. Thread-safe. */
gk_result gk_device_facts(const gk_device *device, gk_fact_visit visit, void *user);

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/** How much gk says. $GK_LOG sets it at first: a number or a name ("debug"). */
typedef enum gk_log_level {
  GK_LOG_NONE,  /**< Nothing; the default. */
  GK_LOG_ERROR, /**< Each failure, as gk_error has it; not of a backend after which another could start. */
  GK_LOG_WARN,  /**< What works, but not as you may think: a backend that can't start, a lowering that is slow. */
  GK_LOG_INFO,  /**< Devices opened, graphs made. */
  GK_LOG_DEBUG, /**< Each launch, each rebinding. */
} gk_log_level;

/** Gets one line without its end. May be called from any thread, even by several at once; must not call gk. */
typedef void (*gk_log_sink)(void *user, gk_log_level level, const char *line);

/** Sets level and sink for the process; sink NULL: standard error. Once it returns, no thread is still in the
 * previous sink: it waits for those that are. Thread-safe. */
void gk_set_log(gk_log_level level, gk_log_sink sink, void *user);

/* ---- host memory ------------------------------------------------------------------------------------------------- */

/** Where gk takes its own host memory from. All three are needed; they may be called from any thread. */
typedef struct gk_allocator {
  void *user;                                            /**< First argument of the three. */
  void *(*alloc)(void *user, size_t bytes);              /**< As malloc: aligned for anything; NULL: none is left. */
  void *(*resize)(void *user, void *at, size_t bytes);   /**< As realloc, `at` may be NULL. */
  void (*free)(void *user, void *at);                    /**< As free, `at` may be NULL. */
} gk_allocator;

/** Sets the allocator for the whole process; NULL: malloc and its kin again. Refused (GK_ERROR_BUSY) while any device
 * is open or a module is loaded, since what one allocator gave another can't take back. Not to be called while another
 * thread is in gk. Memory for kernels (gk_alloc, gk_resize) is the backend's affair and doesn't come from here. */
gk_result gk_set_allocator(const gk_allocator *allocator);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
