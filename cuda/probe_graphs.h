/* The graphs that probe.c runs, and the values of their counters if the answers are yes. */
#ifndef GKI_CUDA_PROBE_GRAPHS_H
#define GKI_CUDA_PROBE_GRAPHS_H
#include "cuda/caps.h"
#include "cuda/driver.h"
#include "cuda/gates.h"

enum { GKI_PROBE_SETTINGS = 192, GKI_PROBE_COUNTERS = 160, GKI_PROBE_EXPECTED = 128, GKI_PROBE_OVERLAPS = 4,
       GKI_PROBE_CHANGED = 5 };

/* In device memory, and in pinned memory as it goes there. */
typedef struct gki_probe_memory {
  gki_cuda_setting settings[GKI_PROBE_SETTINGS];
  uint32_t counters[GKI_PROBE_COUNTERS];
  uint32_t beats;
} gki_probe_memory;

/* After two launches, each from zero. */
typedef struct gki_probe_expected {
  gki_cuda_question question;
  uint32_t counter, first, second;
} gki_probe_expected;

/* A counter that shows how often branches were at work at once; if never, nothing is known of the question. */
typedef struct gki_probe_overlap { gki_cuda_question question; uint32_t counter; } gki_probe_overlap;

/* A kernel that another one takes the place of from the second launch on: it counts with another counter, and sets
 * nothing. */
typedef struct gki_probe_changed {
  CUgraphNode node;
  uint32_t counter;
  bool swaps; /* it is another function */
} gki_probe_changed;

/* One graph in the making. After the first call that failed nothing more is made. */
typedef struct gki_probe_trial {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUfunction set_list, set_beside;
  CUdeviceptr memory;           /* gki_probe_memory */
  gki_cuda_setting *settings;   /* of the pinned one */
  CUgraph graph;
  uint32_t setting_count, counter_count, expected_count, node_count;
  gki_probe_overlap overlaps[GKI_PROBE_OVERLAPS];
  uint32_t overlap_count;
  gki_probe_changed changed[GKI_PROBE_CHANGED];
  uint32_t changed_count;
  CUresult result;
  const char *call;             /* that failed */
  gki_probe_expected expected[GKI_PROBE_EXPECTED];
} gki_probe_trial;

typedef struct gki_probe_graph {
  const char *name;
  void (*build)(gki_probe_trial *trial);
  int since;      /* drivers before it aren't asked */
  bool is_vital;  /* if it can't be run there are no conditional nodes to be had */
  uint32_t unless; /* no way of these must be taken by what is known before it */
} gki_probe_graph;

extern const gki_probe_graph gki_probe_graphs[GKI_CUDA_PROBE_GRAPHS];

/* The first failure counts. True: none so far. */
bool gki_probe_check(gki_probe_trial *trial, CUresult result, const char *call);

/* Updates what is to be another kernel. What the driver refuses to is a "no" by the counts. */
void gki_probe_update(gki_probe_trial *trial, CUgraphExec exec);

/* A graph of one kernel that any device runs. */
void gki_probe_build_beat(gki_probe_trial *trial);
#endif
