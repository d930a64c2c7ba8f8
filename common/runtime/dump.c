/* gk_dump: a list or a graph in writing. */
#include "base/error.h"
#include "check/check.h"
#include "dump/dump.h"
#include "runtime/graph.h"
#include "runtime/worker.h"
#include <stdlib.h>
#include <string.h>

static char *dump_list(const gk_list *list, const char *format) {
  gki_blocks blocks = {0};
  gki_planned planned = {0};
  char *text = NULL;
  gk_result result = gki_blocks_read(&blocks, list);
  if (result == GK_OK) result = gki_check(&blocks, NULL, NULL, NULL);
  if (result == GK_OK) result = gki_plan_make(&planned, &blocks, NULL, 0);
  if (result == GK_OK) text = gki_plan_dump(&planned.plan, format);
  gki_plan_free(&planned);
  gki_blocks_free(&blocks);
  return text;
}

static char *join(const char *const *parts, size_t count) {
  size_t bytes = 1, used = 0;
  for (size_t k = 0; k < count; ++k) bytes += strlen(parts[k]);
  char *text = gki_array(bytes, 1, "a dump");
  for (size_t k = 0; k < count && text; ++k) {
    size_t length = strlen(parts[k]);
    memcpy(text + used, parts[k], length);
    used += length;
  }
  return text;
}

typedef struct dump_job { gki_job job; const gk_graph *graph; const char *format; char *lowered; } dump_job;

static void run_dump(gki_job *at) {
  dump_job *job = (dump_job *)at;
  job->lowered = job->graph->device->backend->dump(job->graph->state, job->format);
}

/* The plan and the backend's dump, if there is one; in DOT only the latter. The backend's entry runs in the order of
 * the device's work, since a graph's entries must not run at the same time. */
static char *dump_graph(const gk_graph *graph, const char *format) {
  char *plan = gki_plan_dump(&graph->planned.plan, format);
  const gk_backend *backend = graph->device->backend;
  dump_job job = {.job.run = run_dump, .graph = graph, .format = format};
  if (plan && backend->dump) gki_worker_run(&graph->device->worker, &job.job);
  char *lowered = job.lowered;
  if (!lowered) return plan;
  const char *const as_dot[] = {lowered}, *const as_json[] = {"{\"plan\": ", plan, ", \"lowered\": ", lowered, "}"};
  const char *const as_text[] = {plan, "\non ", backend->name, ":\n", lowered};
  char *text = strcmp(format, "dot") == 0    ? join(as_dot, GK_COUNT(as_dot))
               : strcmp(format, "json") == 0 ? join(as_json, GK_COUNT(as_json))
                                             : join(as_text, GK_COUNT(as_text));
  gk_host_free(plan);
  free(lowered);
  return text;
}

char *gk_dump(const gk_list *list, const gk_graph *graph, const char *format) {
  gki_begin();
  if (!format || (strcmp(format, "text") != 0 && strcmp(format, "dot") != 0 && strcmp(format, "json") != 0)) {
    gk_fail(GK_ERROR_INVALID, "gk_dump: there is no format \"%s\"; there are text, dot, json",
            format ? format : "(NULL)");
    return NULL;
  }
  if (!list == !graph) {
    gk_fail(GK_ERROR_INVALID, "gk_dump: give a list or a graph, and NULL for the other");
    return NULL;
  }
  if (list) return dump_list(list, format);
  gk_graph *entered = (gk_graph *)(uintptr_t)graph;
  if (gki_graph_enter(entered, "gk_dump") != GK_OK) return NULL;
  char *text = dump_graph(graph, format);
  gki_graph_leave(entered);
  return text;
}
