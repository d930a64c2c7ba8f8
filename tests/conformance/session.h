/* The work of a child: loads modules, looks at a device, tries a case. */
#ifndef SESSION_H
#define SESSION_H
#include "harness.h"
#include "process.h"

enum { MODULES_MAX = 32, BACKENDS_MAX = 40, CONSTRUCTS_MAX = 40 };

/* The capability report, as a child saw it. */
typedef struct report {
  gk_result result; /* of opening a device */
  char error[1000];
  char device[200], driver[200];
  size_t count;
  struct { char construct[24]; gk_support how; char why[300]; } constructs[CONSTRUCTS_MAX];
} report;

/* Memory that children write and the runner reads. */
typedef struct answer {
  outcome outcome;
  char text[2200];
  unsigned long at, tried; /* sweeps: what failed last; how many times something did */
  size_t failure;          /* and in which way */
  report report;
  size_t name_count;
  char names[BACKENDS_MAX][64];
} answer;

typedef struct session {
  const char *modules[MODULES_MAX];
  size_t module_count;
  bool here; /* no processes, for debuggers */
  int seconds;
  uint64_t seed;
  uint32_t bits; /* for every graph */
  enum { NO_SWEEP, SWEEP_MEMORY, SWEEP_CALLS } sweep;
  unsigned long most, at;   /* so many k of each case, evenly spread, or 0: all; this one alone, or 0 */
  bool every_way;           /* each k in every way, not in one after the other by turns */
  answer *slip;
} session;

extern session the_session;

/* In a child (or here): registers and loads; false: the slip says why not. */
bool enter_session(void);

/* From the runner: they start the child. */
void list_backends(ended *e);                     /* names, into the slip */
void look_at_backend(const char *name, ended *e); /* report, into the slip */
void try_case(const char *backend, const case_entry *c, ended *e);

/* faults.c. In a child: the case for each k; from the runner: which of them it was. */
void sweep_case(const char *backend, const case_entry *c);
void describe_failure(const char *backend, char *text, size_t bytes);

/* In a child: the own backend's complaint after a trial, into the text; true: none. */
bool own_is_content(const char *backend, char *text, size_t bytes);
#endif
