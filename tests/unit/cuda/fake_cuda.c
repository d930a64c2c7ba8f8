/* A libcuda.so.1 for cuda_driver_test that does as the environment says. FAKE_KIND, by its build: 2: has both
 * cuGetProcAddress; 1: a driver of CUDA 11, has the first alone; 0: an older one, has neither; -1: is no driver. */
#include "cuda/abi.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))

/* How often it was started. */
extern int fake_cuda_starts;
SEEN int fake_cuda_starts;

#if FAKE_KIND >= 0
static int number(const char *name, int usual) {
  const char *text = getenv(name);
  return text ? atoi(text) : usual;
}

SEEN CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version) {
  *version = number("FAKE_CUDA_VERSION", 13000);
  return (CUresult)number("FAKE_CUDA_VERSION_ANSWER", 0);
}
#endif

#if FAKE_KIND >= 1
static CUresult start(unsigned int flags) {
  __atomic_add_fetch(&fake_cuda_starts, 1, __ATOMIC_RELAXED);
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : (CUresult)number("FAKE_CUDA_INIT", 0);
}
static CUresult count_devices(int *count) {
  *count = number("FAKE_CUDA_DEVICES", 1);
  return (CUresult)number("FAKE_CUDA_COUNT_ANSWER", 0);
}
static CUresult error_name(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_UNKNOWN ? NULL : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "NAME";
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult error_text(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_UNKNOWN ? NULL : error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "a text";
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult nothing(void) { return CUDA_ERROR_NOT_SUPPORTED; }

static const struct { const char *name; int version; } entries[] = {
#define ENTRY(name, version, since, parameters) {#name, version},
    GKI_CUDA_ENTRIES(ENTRY)
#undef ENTRY
};

static void *function_for(const char *name) {
  if (strcmp(name, "cuInit") == 0) return (void *)(uintptr_t)start;
  if (strcmp(name, "cuDeviceGetCount") == 0) return (void *)(uintptr_t)count_devices;
  if (strcmp(name, "cuGetErrorName") == 0) return (void *)(uintptr_t)error_name;
  if (strcmp(name, "cuGetErrorString") == 0) return (void *)(uintptr_t)error_text;
  return (void *)(uintptr_t)nothing;
}

/* Strict: a version other than the one that gk was written for is a failure of the test. */
static CUresult find(const char *name, void **entry, int version, cuuint64_t flags) {
  const char *lacks = getenv("FAKE_CUDA_LACKS");
  size_t k = 0;
  while (k < sizeof entries / sizeof entries[0] && strcmp(entries[k].name, name) != 0) ++k;
  if (k == sizeof entries / sizeof entries[0] || entries[k].version != version || flags != 0 ||
      version > number("FAKE_CUDA_VERSION", 13000)) {
    fprintf(stderr, "asked for %s of %d with flags %llu\n", name, version, (unsigned long long)flags);
    abort();
  }
  *entry = lacks && strcmp(lacks, name) == 0 ? NULL : function_for(name);
  return *entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SEEN CUresult cuGetProcAddress(const char *name, void **entry, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **entry, int version, cuuint64_t flags) {
  if (FAKE_KIND == 2) abort(); /* there is a better one */
  const CUresult result = find(name, entry, version, flags);
  if (result != CUDA_SUCCESS) *entry = (void *)(uintptr_t)nothing; /* what it puts there then no manual says */
  return result;
}
#endif

#if FAKE_KIND == 2
SEEN CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *status);
CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  CUresult result = find(name, entry, version, flags);
  *status = result == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS; /* as real ones answer for some: only the entry tells */
}
#endif
