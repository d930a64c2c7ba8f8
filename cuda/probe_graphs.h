/* The graphs with which probe.c asks, and what the counters in them show if the answers are yes. */
#ifndef GKI_CUDA_PROBE_GRAPHS_H
#define GKI_CUDA_PROBE_GRAPHS_H
#include "gates.h"
#include "probe.h"

enum { GKI_PROBE_SETTINGS = 192, GKI_PROBE_COUNTERS = 160, GKI_PROBE_EXPECTED = 128, GKI_PROBE_OVERLAPS = 4 };

/* In device memory, and in pinned memory as it goes there. */
typedef struct gki_probe_memory {
  gki_cuda_setting settings[GKI_PROBE_SETTINGS];
  uint32_t counters[GKI_PROBE_COUNTERS];
} gki_probe_memory;

/* After two launches, each from zero. */
typedef struct gki_probe_expected {
  gki_cuda_question question;
  uint32_t counter, first, second;
} gki_probe_expected;

/* A counter that shows how often branches were at work at once; if never, nothing is known of the question. */
typedef struct gki_probe_overlap { gki_cuda_question question; uint32_t counter; } gki_probe_overlap;

/* One graph in the making. After the first call that failed nothing more is made. */
typedef struct gki_probe_trial {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUfunction set_list, set_beside;
  CUdeviceptr memory;           /* gki_probe_memory */
  gki_cuda_setting *settings;   /* of the pinned one */
  CUgraph graph;
  CUgraphNode updated;          /* gets no settings from the second launch on; NULL: none */
  uint32_t updated_counter;
  uint32_t setting_count, counter_count, expected_count, node_count;
  gki_probe_overlap overlaps[GKI_PROBE_OVERLAPS];
  uint32_t overlap_count;
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

/* Takes the settings away from `updated`. */
void gki_probe_update(gki_probe_trial *trial, CUgraphExec exec);
#endif
