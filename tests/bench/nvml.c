/* Stands in for NVML, with clocks that tests/bench.py knows. */
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
EXPORT int nvmlDeviceGetClockInfo(void *device, int which, unsigned *megahertz);
EXPORT int nvmlDeviceGetMaxClockInfo(void *device, int which, unsigned *megahertz);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned bytes);

static int started, asked;

int nvmlInit_v2(void) {
  started = 1;
  return 0;
}

int nvmlShutdown(void) {
  started = 0;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  if (!started) return 1;
  *device = &started;
  return strcmp(bus, "0000:01:00.0") == 0 ? 0 : 6;
}

/* Slower each time. */
int nvmlDeviceGetClockInfo(void *device, int which, unsigned *megahertz) {
  *megahertz = (unsigned)(which == 1 ? 1500 - ++asked : 2500);
  return device == &started && started ? 0 : 1;
}

int nvmlDeviceGetMaxClockInfo(void *device, int which, unsigned *megahertz) {
  *megahertz = which == 1 ? 1980 : 2619;
  return device == &started && started ? 0 : 1;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes) {
  snprintf(text, bytes, "580.1");
  return started ? 0 : 1;
}
