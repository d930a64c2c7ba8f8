/* How entries are found: by cuGetProcAddress, each at the version whose signature was asked for. */
#include "sim.h"
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
typedef void (*any_function)(void);

EXPORT CUresult cuGetProcAddress(const char *name, void **entry, int version, cuuint64_t flags);
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status);

/* Entries that had another signature from `first` up to the version that gk uses. */
static const struct { const char *name; int first, until; } older[] = {
  {"cuStreamBeginCapture", 10000, 10010}, {"cuMemAlloc", 2000, 3020}, {"cuMemFree", 2000, 3020},
  {"cuMemGetInfo", 2000, 3020}, {"cuDeviceTotalMem", 2000, 3020}, {"cuCtxPushCurrent", 2000, 4000},
  {"cuCtxPopCurrent", 2000, 4000}, {"cuStreamDestroy", 2000, 4000}, {"cuEventDestroy", 2000, 4000},
  {"cuCtxCreate", 2000, 3020}, {"cuCtxDestroy", 2000, 4000}, {"cuMemHostGetDevicePointer", 2020, 3020},
  {"cuMemHostRegister", 4000, 6050}, {"cuGraphAddNode", 12020, 12030}, {"cuStreamGetCaptureInfo", 10010, 12030},
  {"cuStreamUpdateCaptureDependencies", 11030, 12030}, {"cuGraphAddDependencies", 10000, 12030},
  {"cuGraphNodeGetDependencies", 10000, 12030}, {"cuDevicePrimaryCtxRelease", 7000, 11000},
  {"cuDevicePrimaryCtxReset", 7000, 11000}, {"cuGraphGetEdges", 10000, 12030}};
/* Entries that have another one from `first` on. */
static const struct { const char *name; int first; } newer[] = {
  {"cuGraphInstantiateWithParams", 99000}, {"cuCtxCreate", 11040}, {"cuCtxGetDevice", 13000},
  {"cuStreamGetCtx", 12050}, {"cuGraphKernelNodeGetParams", 12000}, {"cuGraphExecKernelNodeSetParams", 12000}};

static CUresult other_signature(void) {
  sim_broken("signature", "an entry was called that cuGetProcAddress gave for another version, with another signature");
  return CUDA_ERROR_UNKNOWN;
}

static bool is_other(const char *name, int version, bool *known) {
  for (size_t k = 0; k < sizeof older / sizeof *older; ++k)
    if (strcmp(older[k].name, name) == 0 && version >= older[k].first && older[k].first <= sim_version) {
      *known = true;
      if (version < older[k].until || sim_version < older[k].until) return true;
    }
  for (size_t k = 0; k < sizeof newer / sizeof *newer; ++k)
    if (strcmp(newer[k].name, name) == 0 && version >= newer[k].first && sim_version >= newer[k].first) return true;
  return false;
}

typedef struct known_entry { const char *name; int version, since; any_function function; } known_entry;

static const known_entry known[] = {
#define KNOWN(name, version, since, parameters) {#name, version, since, (any_function)sim_##name},
  SIM_ALL_ENTRIES(KNOWN)
#undef KNOWN
};

static CUdriverProcAddressQueryResult find(const char *name, int version, any_function *function) {
  if (strcmp(name, "cuGraphAddKernelNode") == 0 && version >= 12000 && sim_version >= 12000)
    name = "cuGraphAddKernelNode_v2";
  *function = NULL;
  bool is_known = false;
  if (sim_lacks(name)) return CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (is_other(name, version, &is_known)) {
    *function = (any_function)other_signature;
    return CU_GET_PROC_ADDRESS_SUCCESS;
  }
  for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
    if (strcmp(known[k].name, name) != 0) continue;
    if (known[k].since > sim_version) break;
    if (version < known[k].version) return CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    *function = known[k].function;
    return CU_GET_PROC_ADDRESS_SUCCESS;
  }
  return is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *name, void **entry, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
  sim_entered = "cuGetProcAddress";
  if (!name || !entry || flags > 2) return sim_invalid("a bad argument");
  any_function function;
  SIM_HOLD(sim_lock);
  CUdriverProcAddressQueryResult found = find(name, version, &function);
  _Static_assert(sizeof function == sizeof *entry, "POSIX: they are the same");
  memcpy(entry, &function, sizeof function);
  if (status) *status = found;
  /* Drivers differ in the pointer that they write beside the status. */
  return found != CU_GET_PROC_ADDRESS_SUCCESS && (!status || sim_says_no("procaddress")) ? CUDA_ERROR_NOT_FOUND
                                                                                         : CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **entry, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, entry, version, flags, NULL);
}

/* For programs that ask for the version before anything else. */
EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version) { return sim_cuDriverGetVersion(version); }
