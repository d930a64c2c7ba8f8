/* Written by bench/tools/costs.py from bench/results: what gk chooses by, and each number's source. */
#ifndef GKI_BASE_COSTS_H
#define GKI_BASE_COSTS_H

enum {
  /* So many tasks of a segment read a guard themselves; more go behind one IF node. Assumed, as no device was
   * measured yet: an IF node is taken to cost as much as a few kernels that find their guard closed. */
  GKI_COST_MOST_GUARDED = 8,
  /* So many bytes are copied or filled by one warp as fast as by a grid. Assumed, as no device was measured yet:
   * eight bytes per thread of a warp. */
  GKI_COST_SMALL_BYTES = 256,
  /* So long a wait looks at a status or an event before it asks the driver to sleep. Assumed, as no device was
   * measured yet: waking a thread is taken to cost some tens of microseconds. */
  GKI_COST_SPIN_NS = 20000,
};
#endif
