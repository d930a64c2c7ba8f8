/* The graphs that probe.c runs, and the values that their counters have if the answers are yes. */
#ifndef GKI_CUDA_PROBE_GRAPHS_H
#define GKI_CUDA_PROBE_GRAPHS_H
#include "cuda/caps.h"
#include "cuda/driver.h"
#include "cuda/gates.h"

enum { GKI_PROBE_SETTINGS = 192, GKI_PROBE_COUNTERS = 160, GKI_PROBE_EXPECTED = 128, GKI_PROBE_OVERLAPS = 4,
       GKI_PROBE_CHANGED = 5 };

/* In device memory; a copy in pinned memory is the source. */
typedef struct gki_probe_memory {
  gki_cuda_setting settings[GKI_PROBE_SETTINGS];
  uint32_t counters[GKI_PROBE_COUNTERS];
  uint32_t heartbeats;
} gki_probe_memory;

/* A counter's values after the first and the second launch, each from zero. */
typedef struct gki_probe_expected {
  gki_cuda_question question;
  uint32_t counter, first, second;
} gki_probe_expected;

/* A counter of how often branches ran at the same time. If they never did, the question stays open. */
typedef struct gki_probe_overlap { gki_cuda_question question; uint32_t counter; } gki_probe_overlap;

/* A kernel node that is updated between the launches. It then counts with another counter and sets no handle. */
typedef struct gki_probe_changed {
  CUgraphNode node;
  uint32_t counter;
  bool swaps; /* to another function */
} gki_probe_changed;

/* A graph while it is made. Nothing is added after the first call that failed. */
typedef struct gki_probe_trial {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUfunction set_list, set_beside;
  CUdeviceptr memory;           /* gki_probe_memory */
  gki_cuda_setting *settings;   /* in pinned memory */
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
  bool is_vital;  /* if it can't run, the device has no conditional nodes */
  uint32_t unless; /* skipped if one of these quirks is known by then */
} gki_probe_graph;

extern const gki_probe_graph gki_probe_graphs[GKI_CUDA_PROBE_GRAPHS];

/* Keeps the first failure. True: none so far. */
bool gki_probe_check(gki_probe_trial *trial, CUresult result, const char *call);

/* Updates the nodes in `changed`. An update that the driver refuses shows in the counts, as a "no". */
void gki_probe_update(gki_probe_trial *trial, CUgraphExec exec);

/* A graph of one kernel that any device runs. */
void gki_probe_build_heartbeat(gki_probe_trial *trial);
#endif
