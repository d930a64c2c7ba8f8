/* The jobs of devices that this thread runs inside of. From within a job, a call that waits for its device would wait
 * for itself. */
#ifndef GKI_BASE_WITHIN_H
#define GKI_BASE_WITHIN_H
#include "gk_backend.h"

/* The job that a thread is in. */
typedef struct gki_within {
  const void *worker;
  const struct gki_within *outer; /* a job that called another device; NULL: none */
} gki_within;

/* This thread's innermost job; NULL: none. A thread that lets another thread do part of a job passes it on. */
extern _Thread_local const gki_within *gki_within_now;
/* GK_OK, or a failure with the reason: the call is made from within a job of that worker. */
gk_result gki_refuse_within(const void *worker, const char *call);
/* Makes a library call, which gki_refuse_within names. */
gk_result gki_call(const gk_node *node, const gk_value *args, void *native);
/* The same in a launch: a failure is that of the task. */
gk_result gki_call_task(const gk_node *node, const gk_value *args, void *native);
#endif
