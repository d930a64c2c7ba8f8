/* A libcuda.so.1 for driver_test that does what the environment says. FAKE_KIND, by its build: 2: has both
 * cuGetProcAddress; 1: a driver of CUDA 11, has the first alone; 0: an older one, has neither; -1: is no driver. */
#include "cuda/abi.h"
#include "gk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma GCC visibility push(default)

extern int fake_cuda_starts; /* the number of its starts */
int fake_cuda_starts;

#if FAKE_KIND >= 0
static int number(const char *name, int usual) {
  const char *text = getenv(name);
  return text ? atoi(text) : usual;
}

CUresult cuDriverGetVersion(int *version);
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
static CUresult describe(CUresult error, const char **text, const char *of_memory, const char *of_others) {
  *text = error == CUDA_ERROR_UNKNOWN ? NULL : error == CUDA_ERROR_OUT_OF_MEMORY ? of_memory : of_others;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
static CUresult error_name(CUresult error, const char **name) {
  return describe(error, name, "CUDA_ERROR_OUT_OF_MEMORY", "NAME");
}
static CUresult error_text(CUresult error, const char **text) {
  return describe(error, text, "out of memory", "a text");
}
static CUresult nothing(void) { return CUDA_ERROR_NOT_SUPPORTED; }

#define ENTRY(name, version, since, parameters) {#name, version},
static const struct { const char *name; int version; } entries[] = {GKI_CUDA_ENTRIES(ENTRY)};

#define FUNCTION(name) ((void *)(uintptr_t)(name))
static void *function_for(const char *name) {
  if (strcmp(name, "cuInit") == 0) return FUNCTION(start);
  if (strcmp(name, "cuDeviceGetCount") == 0) return FUNCTION(count_devices);
  if (strcmp(name, "cuGetErrorName") == 0) return FUNCTION(error_name);
  return strcmp(name, "cuGetErrorString") == 0 ? FUNCTION(error_text) : FUNCTION(nothing);
}

/* Strict: a version other than the one that gk was written for fails the test. */
static CUresult find(const char *name, void **entry, int version, cuuint64_t flags) {
  const char *lacks = getenv("FAKE_CUDA_LACKS");
  size_t k = 0;
  while (k < GK_COUNT(entries) && strcmp(entries[k].name, name) != 0) ++k;
  if (k == GK_COUNT(entries) || entries[k].version != version || flags != 0 ||
      version > number("FAKE_CUDA_VERSION", 13000)) {
    fprintf(stderr, "asked for %s of %d with flags %llu\n", name, version, (unsigned long long)flags);
    abort();
  }
  *entry = lacks && strcmp(lacks, name) == 0 ? NULL : function_for(name);
  return *entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, cuuint64_t flags);
CUresult cuGetProcAddress(const char *name, void **entry, int version, cuuint64_t flags) {
  if (FAKE_KIND == 2) abort(); /* there is a better one */
  const CUresult result = find(name, entry, version, flags);
  if (result != CUDA_SUCCESS) *entry = FUNCTION(nothing); /* no manual documents what it writes there then */
  return result;
}
#endif

#if FAKE_KIND == 2
typedef CUdriverProcAddressQueryResult query_result;
CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags, query_result *status);
CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags, query_result *status) {
  *status = find(name, entry, version, flags) == CUDA_SUCCESS ? CU_GET_PROC_ADDRESS_SUCCESS
                                                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS; /* as some real drivers answer: only the entry shows it */
}
#endif
