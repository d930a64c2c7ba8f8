/** @file gk_info.h
 * For programs that list devices and their capabilities, dump lists and graphs, print facts about this machine, or set
 * the log or the allocator. A program that only opens a device and runs lists doesn't need it. */
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

/** A device, or the reason why there is none. */
typedef struct gk_device_entry {
  const char *backend; /**< For gk_device_desc. */
  int ordinal;         /**< For gk_device_desc. */
  bool usable;         /**< Whether it can be opened. */
  const char *name;    /**< Name of the device; "" if it can't be opened. */
  const char *why;     /**< Why it can't be opened, else "". */
} gk_device_entry;

/** Receives an entry of gk_device_list, which is valid until it returns. */
typedef void (*gk_device_visit)(void *user, const gk_device_entry *entry);

/** Visits each device of each backend, in the order in which gk_device_open tries them. A backend without devices is
 * one entry with its reason, and so is each device that fails. Takes as long as opening each. Thread-safe.
 * @return GK_OK; GK_ERROR_INVALID: no `visit`; GK_ERROR_MEMORY. */
gk_result gk_device_list(gk_device_visit visit, void *user);

/* ---- how a device does each construct ---------------------------------------------------------------------------- */

/** How a device supports a construct. */
typedef enum gk_support {
  GK_REFUSED,   /**< Not supported: gk_graph_create fails. */
  GK_ON_HOST,   /**< The host decides after waiting for the device. */
  GK_IN_SERIES, /**< One part after the other, though the contract allows them to overlap. */
  GK_BATCHED,   /**< The device runs several passes, then asks the host. */
  GK_NATIVE,    /**< The device decides by itself. */
} gk_support;

/** One line of the capability report. */
typedef struct gk_capability {
  const char *construct; /**< A name of gk_op, such as "WHILE"; or "SUM", "ALWAYS", "CANCEL", "LAUNCH_ON", of which
                          * backends may omit some. */
  gk_support how;        /**< How it is supported. */
  const char *why;       /**< The reason, in a sentence. */
} gk_capability;

/** A device and its capabilities. */
typedef struct gk_device_info {
  const char *backend;                 /**< Name of its backend. */
  const char *name;                    /**< Name of the device. */
  const char *driver;                  /**< Name and version of its driver or runtime. */
  int ordinal;                         /**< Number among the backend's devices. */
  int threads;                         /**< Number of host threads that share a task; 1 on other devices. */
  size_t capability_count;             /**< Length of capabilities. */
  const gk_capability *capabilities;   /**< One entry per construct. */
} gk_device_info;

/** The report on a device, valid as long as the device. Thread-safe. NULL: no device; gk_error() says why. */
const gk_device_info *gk_device_describe(const gk_device *device);

/* ---- dumps ------------------------------------------------------------------------------------------------------- */

/** Writes down the plan of a list, or of a graph together with its form on the device after earlier launches. Give one
 * of the two. \sa gk_free_text
 * @param list    Checked first; NULL with a graph.
 * @param graph   NULL with a list.
 * @param format  "text", "dot" (Graphviz) or "json".
 * @return A text to free by gk_free_text; NULL: gk_error() says why. */
char *gk_dump(const gk_list *list, const gk_graph *graph, const char *format);

/* ---- facts, which gk-info prints beside the devices' reports ----------------------------------------------------- */

/** A fact, valid until the visit returns. */
typedef struct gk_fact {
  const char *group; /**< Such as "driver". The facts of a group are consecutive. */
  const char *name;  /**< Such as "library"; unique in the group. Names and groups don't change between versions. */
  const char *value; /**< A short value, or NULL. */
  const char *why;   /**< More about the value, or why there is none; may be "", never NULL. */
} gk_fact;

/** Receives a fact. */
typedef void (*gk_fact_visit)(void *user, const gk_fact *fact);

/** Visits facts about the library in this process: its version, the environment variables that it reads, its cache of
 * compiled kernels. Loads the modules of $GK_MODULES. Thread-safe.
 * @return GK_OK; GK_ERROR_INVALID: no `visit`. */
gk_result gk_facts(gk_fact_visit visit, void *user);

/** Visits facts about an open device. Thread-safe.
 * @return GK_OK; GK_ERROR_INVALID: no `visit` or device; GK_ERROR_DEVICE: it is a forked parent's. */
gk_result gk_device_facts(const gk_device *device, gk_fact_visit visit, void *user);

/* ---- the log ----------------------------------------------------------------------------------------------------- */

/** How much gk logs. $GK_LOG is the initial level: a number or a name ("debug"). */
typedef enum gk_log_level {
  GK_LOG_NONE,  /**< Nothing; the default. */
  GK_LOG_ERROR, /**< Each failure, as in gk_error; not of a backend after which another one starts. */
  GK_LOG_WARN,  /**< Unexpected but working: a backend that can't start, a slow lowering. */
  GK_LOG_INFO,  /**< Devices opened, graphs made. */
  GK_LOG_DEBUG, /**< Each launch, each rebinding. */
} gk_log_level;

/** Receives a line without its end. Called on any thread, also on several at once; must not call gk. */
typedef void (*gk_log_sink)(void *user, gk_log_level level, const char *line);

/** Sets level and sink for the process; sink NULL: standard error. Waits until no thread is in the previous sink.
 * Thread-safe. */
void gk_set_log(gk_log_level level, gk_log_sink sink, void *user);

/* ---- host memory ------------------------------------------------------------------------------------------------- */

/** Functions for gk's own host memory. All three are required; any thread may call them. */
typedef struct gk_allocator {
  void *user;                                            /**< First argument of the three. */
  void *(*alloc)(void *user, size_t bytes);              /**< Like malloc: aligned for any type; NULL: out of memory. */
  void *(*resize)(void *user, void *at, size_t bytes);   /**< Like realloc; `at` may be NULL. */
  void (*free)(void *user, void *at);                    /**< Like free; `at` may be NULL. */
} gk_allocator;

/** Sets the allocator for the whole process; NULL: malloc, realloc and free. No other thread may be in gk. Memory for
 * kernels (gk_alloc, gk_resize) doesn't come from here.
 * @return GK_OK; GK_ERROR_INVALID: one of the three is NULL; GK_ERROR_BUSY: a device is open or a module is loaded. */
gk_result gk_set_allocator(const gk_allocator *allocator);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
