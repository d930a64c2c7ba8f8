/* Jobs of a device that this thread is in: a call that waits for the device would wait for itself. */
#ifndef GKI_BASE_WITHIN_H
#define GKI_BASE_WITHIN_H
#include "gk_backend.h"

/* Whose job a thread is in: what it calls on that device would wait for itself. */
typedef struct gki_within {
  const void *worker;
  const struct gki_within *outer; /* a job that called another device; NULL: none */
} gki_within;

/* This thread's, the innermost; NULL: none. Who has another thread do part of a job hands it on. */
extern _Thread_local const gki_within *gki_within_now;
/* GK_OK, or why the call can't go on: it is made from within a job of that worker. */
gk_result gki_refuse_within(const void *worker, const char *call);
/* Makes a library call, which gki_refuse_within names. */
gk_result gki_call(const gk_node *node, const gk_value *args, void *native);
#endif
