/* What the files of the runner share; cases see conformance.h alone. */
#ifndef HARNESS_H
#define HARNESS_H
#include "conformance.h"
#include <setjmp.h>
#include <stdatomic.h>

typedef enum outcome { PASSED, FAILED, SKIPPED, GAVE_UP /* because of a failure that was injected */ } outcome;

typedef struct other_device { gk_device *device; struct other_device *next; } other_device;

struct trial {
  const char *backend;
  gk_device *device;
  bool (*injected)(gk_result code); /* sweeps: a call may end with that code by now (GK_OK: whether any has failed) */
  bool (*failed)(void); /* sweeps: whether a call has failed */
  atomic_bool gives_up; /* what doesn't hold from now on is due to that */
  bool sweep;
  outcome outcome;
  char text[2000]; /* what failed, or why it is skipped */
  bool borrowed;   /* another trial closes the device */
  uint32_t bits;   /* for every graph, beside those that the case asks for */
  buffer *buffers;
  subject *subjects;
  other_device *others;
  void *page; /* see page_of */
  jmp_buf end;
};

typedef void (*case_body)(trial *t);

typedef struct case_entry {
  const char *chapter, *name;
  const char *needs; /* constructs of the capability report, a blank in between; or NULL */
  case_body body;
} case_entry;
extern const case_entry cases[];
extern const size_t case_count;

/* Opens a device of that backend, runs the case on it and gives everything back, however the case ended. The trial has
 * backend and injected set, the rest zeroed. */
void run_trial(trial *t, case_body body);

/* Sweeps: whether a call has failed. Then verdicts that don't hold are due to that. Any thread. */
bool give_up_if_failed(trial *t);

/* A graph whose reference has another list, which must come to the same; and slots of the same numbers. */
subject *graph_beside(trial *t, const gk_list *list, const gk_list *for_reference, uint32_t bits);
/* A little memory that host and device use at once: zeroed at first, the same each time. NULL: there is none such. */
void *page_of(trial *t);

/* trace.c: what a case says must have come of a launch; status NULL: memory alone. */
void check_trace(subject *s, const char *file, int line, const gk_status *status, const char *wanted);
trial *trial_of(const subject *s);
/* For launches that the harness has no name for; finish_launches compares. */
struct reference *reference_of(subject *s);
#endif
