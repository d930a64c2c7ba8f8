#include "hip/compile.h"
#include "base/fork.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RTC(name) hiprtc##name
#define RTC_CODE(name) HIPRTC_##name
#define RTC_LIBRARY gki_hip_driver
#include "kernel/rtc.inc"

/* Versions of HIP, and the architectures that hipRTC knows from then on. Debian's 5.2 has the first line. Such an
 * architecture's device library is in AMD's packages of that version. */
static const struct { int since; const char *names; } known[] = {
    {502, " gfx803 gfx900 gfx906 gfx908 gfx90a gfx940 gfx1010 gfx1030 gfx1031 "},
    {505, " gfx90c gfx1011 gfx1012 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 gfx1100 gfx1101 gfx1102 gfx1103 "},
    {600, " gfx941 gfx942 "},
    {604, " gfx1150 gfx1151 gfx1200 gfx1201 "},
    {700, " gfx950 gfx1152 gfx1153 "},
};

/* Since when; 0: no version that gk knows of. */
static int known_since(const char *architecture) {
  char name[32];
  snprintf(name, sizeof name, " %.*s ", (int)strcspn(architecture, ":"), architecture);
  for (size_t k = 0; k < GK_COUNT(known); ++k)
    if (strstr(known[k].names, name)) return known[k].since;
  return 0;
}

bool gki_hip_knows(int version, const char *architecture) {
  const int since = known_since(architecture);
  return since && version >= since;
}

uint32_t gki_hip_target(const char *architecture) {
  char *end = NULL;
  const unsigned long number = strncmp(architecture, "gfx", 3) == 0 ? strtoul(architecture + 3, &end, 16) : 0;
  return number <= UINT32_MAX && end && (!*end || *end == ':') ? (uint32_t)number : 0;
}

static gk_result refuse(const gki_hip_driver *driver, const char *architecture) {
  const int since = known_since(architecture);
  char advice[128];
  if (driver->no_compiler[0])
    return gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: kernels can't be compiled: %s", driver->no_compiler);
  if (since) snprintf(advice, sizeof advice, "install HIP %d.%d or newer", since / 100, since % 100);
  else snprintf(advice, sizeof advice, "this version of gk knows of no hipRTC that does");
  return gk_fail(GK_ERROR_UNSUPPORTED, "backend hip: hipRTC of %s isn't known to compile for %s, and one that doesn't "
                 "know an architecture may end the process, so it isn't tried; %s", driver->name, architecture, advice);
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* hipRTC of some versions isn't thread-safe. */
GKI_PROCESS_LOCK(lock)

gk_result gki_hip_compile(const gki_hip_driver *driver, const char *architecture, const gki_unit *text,
                          gki_compiled *image) {
  char target[GKI_HIP_NAME_BYTES + 32], with[128];
  *image = (gki_compiled){0};
  if (driver->no_compiler[0] || !gki_hip_knows(driver->version, architecture)) return refuse(driver, architecture);
  snprintf(target, sizeof target, "--offload-arch=%s", architecture);
  snprintf(with, sizeof with, "hipRTC of %s for %.60s", driver->name, architecture);
  pthread_mutex_lock(&lock);
  const gk_result result =
      rtc_compile(&(rtc_work){driver, text, target, with, driver->hiprtcGetCodeSize, driver->hiprtcGetCode}, image);
  pthread_mutex_unlock(&lock);
  return result;
}
