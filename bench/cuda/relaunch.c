#include "bench/cuda/relaunch.h"
#include "bench/harness/harness.h"
#include "cuda/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From cuda.h. */
enum { DEVICE_LAUNCH = 4, INPUT_CUBIN = 0, INPUT_PTX = 1, INPUT_LIBRARY = 4, ERROR_LOG = 5, ERROR_LOG_BYTES = 6,
       LOG_BYTES = 500 };
typedef struct CUlinkState_st *CUlinkState;
static struct {
  CUresult (*create)(unsigned count, int *options, void **values, CUlinkState *state);
  CUresult (*add)(CUlinkState state, int type, void *data, size_t bytes, const char *name, unsigned count,
                  int *options, void **values);
  CUresult (*add_file)(CUlinkState state, int type, const char *path, unsigned count, int *options, void **values);
  CUresult (*complete)(CUlinkState state, void **image, size_t *bytes);
  CUresult (*destroy)(CUlinkState state);
} linker;

/* NVRTC declares these itself, as in the device runtime. */
static const char text[] =
  "extern \"C\" __global__ void less_and_again(int *left) {\n"
  "  if ((*left -= 1) != 0) cudaGraphLaunch(cudaGetCurrentGraphExec(), (cudaStream_t)0x0100000000000000);\n"
  "}\n"; /* the stream is cudaStreamGraphTailLaunch */

static char missing[LOG_BYTES + 300];
static CUmodule module;
static CUfunction again;

static const char *because(const char *what, CUresult result, const char *log) {
  char why[200];
  gki_cuda_describe_result(bench_hand_driver, result, why, sizeof why);
  snprintf(missing, sizeof missing, "%s: %s%s%.*s", what, why, *log ? ": " : "", (int)strcspn(log, "\n"), log);
  return missing;
}

/* The usual places of a toolkit's libcudadevrt.a. */
static bool find_runtime(char *path, size_t bytes) {
  static const char *const folders[] = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
  const char *homes[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
  for (size_t h = 0; h < sizeof homes / sizeof *homes; ++h)
    for (size_t f = 0; homes[h] && f < sizeof folders / sizeof *folders; ++f) {
      snprintf(path, bytes, "%s/%s/libcudadevrt.a", homes[h], folders[f]);
      if (access(path, R_OK) == 0) return true;
    }
  return false;
}

static bool has_linker(void) {
  return bench_hand_has("cuLinkCreate", 6050, &linker.create) && bench_hand_has("cuLinkAddData", 6050, &linker.add) &&
         bench_hand_has("cuLinkAddFile", 6050, &linker.add_file) &&
         bench_hand_has("cuLinkComplete", 5050, &linker.complete) &&
         bench_hand_has("cuLinkDestroy", 5050, &linker.destroy);
}

static const char *link_module(const gki_compiled *code, bool is_ptx, const char *runtime) {
  char log[LOG_BYTES] = "";
  void *image;
  size_t bytes;
  CUlinkState state;
  CUresult result = linker.create(2, (int[]){ERROR_LOG, ERROR_LOG_BYTES},
                                  (void *[]){log, (void *)(uintptr_t)(sizeof log - 1)}, &state);
  if (result != CUDA_SUCCESS) return because("cuLinkCreate", result, "");
  result = linker.add(state, is_ptx ? INPUT_PTX : INPUT_CUBIN, code->bytes, code->size, "relaunch", 0, NULL, NULL);
  if (result == CUDA_SUCCESS) result = linker.add_file(state, INPUT_LIBRARY, runtime, 0, NULL, NULL);
  if (result == CUDA_SUCCESS) result = linker.complete(state, &image, &bytes);
  if (result == CUDA_SUCCESS) result = bench_hand_driver->cuModuleLoadDataEx(&module, image, 0, NULL, NULL);
  const char *why = result == CUDA_SUCCESS ? NULL : because("the device runtime can't be linked", result, log);
  linker.destroy(state);
  return why;
}

static CUgraph graph_of(int kernels, int *x, int *left) {
  const CUgraph whole = bench_hand_graph();
  CUgraphNode last = NULL;
  for (int k = 1; k < kernels; ++k) last = bench_hand_kernel(whole, last, "more", 1, 1, (void *[]){&x});
  bench_hand_add(whole, last, again, 1, 1, (void *[]){&left});
  return whole;
}

/* Makes three passes. An error makes the variant missing and doesn't end the program. */
static const char *try_one(gk_device *device) {
  enum { PASSES = 3 };
  int *left = bench_hand_ints(device, 1);
  const CUgraph whole = graph_of(1, NULL, left);
  CUgraphExec exec = NULL;
  bench_hand_put(left, PASSES);
  CUresult result = bench_hand_driver->cuGraphInstantiateWithFlags(&exec, whole, DEVICE_LAUNCH);
  if (result == CUDA_SUCCESS) result = bench_hand_driver->cuGraphUpload(exec, bench_hand_stream);
  if (result == CUDA_SUCCESS) result = bench_hand_driver->cuGraphLaunch(exec, bench_hand_stream);
  if (result == CUDA_SUCCESS) result = bench_hand_driver->cuStreamSynchronize(bench_hand_stream);
  const char *why = result == CUDA_SUCCESS ? NULL : because("a graph that is launched from the device", result, "");
  if (!why && bench_hand_value(left) != 0) why = "a graph that launches itself didn't make its passes";
  if (exec) bench_hand_exec_end(exec);
  HAND(bench_hand_driver->cuGraphDestroy(whole));
  gk_free(device, left);
  return why;
}

const char *bench_relaunch_begin(gk_device *device) {
  char runtime[400];
  int major, minor;
  CUdevice at;
  gki_cuda_compiler compiler;
  gki_compiled code;
  const gki_unit source = {.text = text, .file = "bench/cuda/relaunch.c", .options = "--relocatable-device-code=true"};
  if (!has_linker()) return "the driver has no linker for device code";
  if (!find_runtime(runtime, sizeof runtime)) return "no toolkit with libcudadevrt.a was found";
  HAND(bench_hand_driver->cuCtxGetDevice(&at));
  HAND(bench_hand_driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, at));
  HAND(bench_hand_driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, at));
  if (gki_cuda_compiler_get(10 * major + minor, bench_hand_driver->version, &compiler) != GK_OK ||
      gki_cuda_compile(&compiler, &source, &code) != GK_OK)
    return gk_error();
  const char *why = link_module(&code, compiler.is_ptx, runtime);
  gki_compiled_free(&code);
  if (why) return why;
  CUresult result = bench_hand_driver->cuModuleGetFunction(&again, module, "less_and_again");
  why = result == CUDA_SUCCESS ? try_one(device) : because("what was linked has no kernel", result, "");
  if (why) bench_relaunch_end();
  return why;
}

CUgraphExec bench_relaunch_exec(int kernels, int *x, int *left) {
  const CUgraph whole = graph_of(kernels, x, left);
  CUgraphExec exec;
  HAND(bench_hand_driver->cuGraphInstantiateWithFlags(&exec, whole, DEVICE_LAUNCH));
  HAND(bench_hand_driver->cuGraphUpload(exec, bench_hand_stream));
  HAND(bench_hand_driver->cuGraphDestroy(whole));
  return exec;
}

void bench_relaunch_end(void) {
  if (module) HAND(bench_hand_driver->cuModuleUnload(module));
  module = NULL;
}
