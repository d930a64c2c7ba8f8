/* What the driver here answers to the probe, for each device, one JSON object per line.
 *   probe [REPEATS]     asks so often, 5 if nothing is said, and notes where answers differ
 *   probe REPEATS busy  meanwhile copies go to and fro on a stream beside: what a kernel wrote, the node behind it sees
 *                       all the same, every time
 * Without a driver or device that is what the one line says, and the exit code is 2. After a graph that never ends, or
 * under which the context failed, or where other work keeps the device busy, nothing more is asked of that device: the
 * line says why, and the exit code is 1. */
#include "cuda/image.h"
#include "cuda/probe.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put_text(const char *name, const char *text) {
  printf(",\"%s\":\"", name);
  for (const char *c = text; *c; ++c) {
    if (*c == '"' || *c == '\\') putchar('\\');
    if ((unsigned char)*c >= ' ') putchar(*c);
  }
  putchar('"');
}

static int refuse(const char *why) {
  printf("{\"device\":null");
  put_text("why", why);
  puts("}");
  return 2;
}

enum { LOST = 1 };

typedef struct summary {
  gki_cuda_caps last, first;
  uint32_t yes[GKI_CUDA_QUESTION_COUNT], no[GKI_CUDA_QUESTION_COUNT], not_shown[GKI_CUDA_QUESTION_COUNT];
  uint32_t overlaps, least_us;
} summary;

static bool is_lost(const summary *s) { return s->last.hangs || s->last.busy || s->last.broke; }

static void ask(const gki_cuda_driver *driver, CUcontext context, const gki_cuda_builtin *builtin, int repeats,
                summary *s) {
  for (int k = 0; k < repeats && !is_lost(s); ++k) {
    gki_cuda_probe_again(driver, context, builtin->module, builtin->refused, &s->last);
    if (k == 0) s->first = s->last;
    if (k == 0 || s->last.microseconds < s->least_us) s->least_us = s->last.microseconds;
    s->overlaps += s->last.overlaps;
    for (int q = 0; q < GKI_CUDA_QUESTION_COUNT; ++q) {
      s->yes[q] += s->last.answers[q] == GKI_CUDA_YES;
      s->no[q] += s->last.answers[q] == GKI_CUDA_NO;
      s->not_shown[q] += s->last.answers[q] == GKI_CUDA_NOT_SHOWN;
    }
  }
}

/* What was shown once is true, unless another try failed. */
static const char *answer_of(const summary *s, int q) {
  if (s->no[q]) return s->yes[q] || s->not_shown[q] ? "both" : "no";
  return s->yes[q] ? "yes" : s->not_shown[q] ? "not shown" : "not asked";
}

static void print_summary(const summary *s, int ordinal, const char *name, int arch, const char *kernels,
                          uint64_t copies) {
  printf("{\"device\":%d", ordinal);
  put_text("name", name);
  printf(",\"sm\":%d,\"driver\":%d,\"conditional\":%s,\"hangs\":%s,\"busy\":%s,\"broke\":%s,\"ways\":%u", arch,
         s->last.driver_version, s->last.conditional ? "true" : "false", s->last.hangs ? "true" : "false",
         s->last.busy ? "true" : "false", s->last.broke ? "true" : "false", s->last.quirks);
  printf(",\"first_us\":%u,\"least_us\":%u,\"overlaps\":%u,\"copies\":%llu",
         s->first.microseconds, s->least_us, s->overlaps, (unsigned long long)copies);
  put_text("kernels", kernels);
  put_text("why", s->last.why);
  puts("}");
  for (uint32_t k = 0; k < s->last.graph_count; ++k) {
    const gki_cuda_probe_timing *first = &s->first.graphs[k], *last = &s->last.graphs[k];
    printf("{\"device\":%d", ordinal);
    put_text("graph", last->name);
    printf(",\"nodes\":%u,\"build_us\":%u,\"instantiate_us\":%u,\"run_us\":%u,\"first_us\":%u}\n", last->nodes,
           last->build_us, last->instantiate_us, last->run_us,
           first->build_us + first->instantiate_us + first->run_us);
  }
  for (int q = 0; q < GKI_CUDA_QUESTION_COUNT; ++q) {
    printf("{\"device\":%d", ordinal);
    put_text("probe", gki_cuda_questions[q].name);
    put_text("question", gki_cuda_questions[q].text);
    put_text("answer", answer_of(s, q));
    printf(",\"way_if_no\":%u", gki_cuda_questions[q].quirk);
    if (s->yes[q] || s->no[q] || s->not_shown[q]) put_text("graph", s->last.graphs[s->last.asked_in[q]].name);
    puts("}");
  }
}

/* ---- beside the probe -------------------------------------------------------------------------------------------- */

enum { COPIED = 4 << 20 };

typedef struct beside {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUstream stream;
  CUdeviceptr memory;
  void *pinned;
  pthread_t thread;
  atomic_bool ends;
  uint64_t copies;
  bool runs;
} beside;

static void *copy_to_and_fro(void *at) {
  beside *b = at;
  const gki_cuda_driver *d = b->driver;
  if (d->cuCtxPushCurrent(b->context) != CUDA_SUCCESS) return NULL;
  for (CUresult result = CUDA_SUCCESS; result == CUDA_SUCCESS && !atomic_load(&b->ends); b->copies += 2) {
    result = d->cuMemcpyHtoDAsync(b->memory, b->pinned, COPIED, b->stream);
    if (result == CUDA_SUCCESS) result = d->cuMemcpyDtoHAsync(b->pinned, b->memory, COPIED, b->stream);
    if (result == CUDA_SUCCESS) result = d->cuStreamSynchronize(b->stream);
  }
  (void)d->cuCtxPopCurrent(&b->context);
  return NULL;
}

static void begin_beside(beside *b) {
  const gki_cuda_driver *d = b->driver;
  b->runs = d->cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
            d->cuMemAlloc(&b->memory, COPIED) == CUDA_SUCCESS &&
            d->cuMemHostAlloc(&b->pinned, COPIED, 0) == CUDA_SUCCESS &&
            pthread_create(&b->thread, NULL, copy_to_and_fro, b) == 0;
}

/* A lost device keeps the result that it has. */
static void end_beside(beside *b, bool lost) {
  const gki_cuda_driver *d = b->driver;
  atomic_store(&b->ends, true);
  if (lost) return;
  if (b->runs) pthread_join(b->thread, NULL);
  if (b->pinned) (void)d->cuMemFreeHost(b->pinned);
  if (b->memory) (void)d->cuMemFree(b->memory);
  if (b->stream) (void)d->cuStreamDestroy(b->stream);
}

static int ask_device(const gki_cuda_driver *driver, int ordinal, int repeats, bool busy) {
  static summary s;
  static beside b;
  static gki_cuda_builtin builtin;
  CUdevice device;
  CUcontext context;
  char name[256] = "";
  int major = 0, minor = 0;
  s = (summary){.least_us = 0};
  if (driver->cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
      driver->cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS ||
      driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
      driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS ||
      driver->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS)
    return refuse("the device can't be used");
  (void)driver->cuCtxPushCurrent(context);
  (void)gki_cuda_builtin_load(driver, &builtin);
  b = (beside){.driver = driver, .context = context};
  if (busy) begin_beside(&b);
  ask(driver, context, &builtin, repeats, &s);
  end_beside(&b, is_lost(&s));
  print_summary(&s, ordinal, name, 10 * major + minor,
                !builtin.module ? "none" : builtin.translated ? "PTX" : "machine code", busy ? b.copies : 0);
  if (is_lost(&s)) return LOST; /* calls that give something back would wait for a graph that doesn't end */
  gki_cuda_builtin_unload(driver, &builtin);
  (void)driver->cuCtxPopCurrent(&context);
  (void)driver->cuDevicePrimaryCtxRelease(device);
  return 0;
}

int main(int argc, char **argv) {
  const int repeats = argc > 1 ? atoi(argv[1]) : 5;
  const bool busy = argc > 2 && strcmp(argv[2], "busy") == 0;
  const gki_cuda_driver *driver;
  int count = 0, code = 0;
  if (repeats < 1 || argc > 3 || (argc > 2 && !busy)) return refuse("say `probe [REPEATS]` or `probe REPEATS busy`");
  if (gki_cuda_driver_get(&driver) != GK_OK) return refuse(gk_error());
  if (driver->cuDeviceGetCount(&count) != CUDA_SUCCESS) return refuse("cuDeviceGetCount fails");
  for (int k = 0; k < count; ++k) code |= ask_device(driver, k, repeats, busy);
  fflush(stdout);
  if (code & LOST) _exit(LOST); /* nothing is given back at the end of the process, either */
  return code;
}
