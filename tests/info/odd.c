/* A backend for gk-info's tests. Its devices: one that can be opened, one that hangs, one that crashes, one that is
 * lost, another that can be opened. $ODD says what else shall go wrong. */
#include "gk_backend.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool odd(const char *what) {
  const char *wanted = getenv("ODD");
  return wanted && strcmp(wanted, what) == 0;
}

static void hang(void) {
  for (;;) pause();
}

static gk_result open_device(void *device, const gk_device_desc *desc) {
  (void)device;
  puts("this backend prints, too");
  fflush(stdout);
  if (odd("all hang")) hang();
  if (odd("all lost")) return gk_fail(GK_ERROR_DEVICE, "lost like all others");
  if (desc->ordinal > 0 && (odd("end") || odd("no facts"))) return gk_fail(GK_ERROR_NO_DEVICE, "there is one");
  switch (desc->ordinal) {
  case 1: hang(); break;
  case 2: raise(SIGKILL); break;
  case 3: return gk_fail(GK_ERROR_DEVICE, "lost: \"%s\"\nfor \xFF good", "it");
  case 0:
  case 4: return GK_OK;
  default: break;
  }
  return gk_fail(GK_ERROR_NO_DEVICE, "there are five");
}

static void end(void) { _exit(7); }

static void close_device(void *device) {
  (void)device;
  if (odd("end")) atexit(end);
}

static void describe(void *device, gk_device_info *info) {
  static const gk_capability lines[] = {{"KERNEL", GK_BATCHED, "Two\nlines."}, {"IF", (gk_support)99, ""}};
  (void)device;
  info->name = "odd \"one\"\v\x01 \xC3\xA9\xED\xA0\x80";
  info->driver = "";
  info->capability_count = 2;
  info->capabilities = lines;
}

static gk_result refuse(void) { return gk_fail(GK_ERROR_UNSUPPORTED, "this backend does nothing"); }

static gk_result alloc(void *device, size_t bytes, gk_memory kind, void **memory) {
  (void)device, (void)bytes, (void)kind, (void)memory;
  return refuse();
}

static void free_nothing(void *device, void *memory) { (void)device, (void)memory; }

static gk_result copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  (void)device, (void)direction, (void)to, (void)from, (void)bytes;
  return refuse();
}

static gk_result lower(void *device, void *graph, const gk_plan *plan, void *const *code, gk_mode *mode) {
  (void)device, (void)graph, (void)plan, (void)code, (void)mode;
  return refuse();
}

static void drop(void *graph) { (void)graph; }

static gk_result run(void *graph, const gk_launch_args *launch, gk_launch_result *record) {
  (void)graph, (void)launch, (void)record;
  return refuse();
}

static void of_backend(gk_fact_visit visit, void *user) {
  if (odd("facts hang")) hang();
  visit(user, &(gk_fact){"zoo", "animal", "gn\xC3\xBC", ""});
  visit(user, &(gk_fact){"zoo", "none", NULL, "because"});
}

static void of_device(void *device, gk_fact_visit visit, void *user) {
  (void)device;
  visit(user, &(gk_fact){"own", "colour", "a\tblue", "why\r\nnot"});
}

static const void *query(const char *name) {
  static const gk_fact_source source = {.bytes = sizeof source, .of_backend = of_backend, .of_device = of_device};
  return strcmp(name, GK_FACTS) == 0 && !odd("no facts") ? &source : NULL;
}

static const gk_backend backend = {
  .abi = GK_BACKEND_ABI, .bytes = sizeof backend, .name = "odd", .device_bytes = 1, .graph_bytes = 1,
  .open = open_device, .close = close_device, .describe = describe, .alloc = alloc, .free = free_nothing, .copy = copy,
  .lower = lower, .drop = drop, .run = run, .query = query,
};

__attribute__((visibility("default"))) const gk_backend *gk_backend_export(void) {
  if (odd("load hangs")) hang();
  return &backend;
}
