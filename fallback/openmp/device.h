/* An open device: its team, and the costs that it has measured. */
#ifndef GKI_OPENMP_DEVICE_H
#define GKI_OPENMP_DEVICE_H
#include "openmp/team.h"

/* The expected time of waking a team, until it is measured. */
#define GKI_WAKE_NS 20000.0f
/* The expected time of sharing a task with an awake team. A longer measurement is repeated. */
#define GKI_DISPATCH_NS 1000.0f

/* Only the thread that runs the launches of a device measures its costs. */
typedef struct gki_openmp_device {
  gki_team team;
  float dispatch_ns;       /* expected time of sharing a task with an awake team */
  float dispatch_floor_ns; /* least of calibrated_ns; GKI_DISPATCH_NS from doubted_at until the next calibration */
  float calibrated_ns[8];  /* the latest calibrations */
  uint32_t calibrations;
  uint64_t doubted_at;     /* time (gki_now_ns) from which a floor above GKI_DISPATCH_NS is doubted */
  float pause_ns;          /* from the calibration to doubted_at; 0: the floor isn't above */
  bool fixed;              /* a test has set the costs */
  float clock_ns;          /* what reading the clock adds to a measured time */
  float wake_ns;           /* expected time of sharing a task with a team that sleeps or hasn't started */
  size_t memory;           /* bytes of the machine; to ask the system takes longer than most allocations */
  char name[160], driver[160];
} gki_openmp_device;
#endif
