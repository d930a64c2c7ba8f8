#include "cuda/names.h"
#include "base/error.h"
#include "base/name.h"
#include "base/op.h"
#include "cuda/record.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- finding ----------------------------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other) {
  const uintptr_t a = (uintptr_t)((const gki_cuda_name *)one)->node;
  const uintptr_t b = (uintptr_t)((const gki_cuda_name *)other)->node;
  return (a > b) - (a < b);
}

static gki_cuda_name *find(const gki_cuda_names *names, size_t count, uintptr_t node) {
  const gki_cuda_name wanted = {.node = (CUgraphNode)node};
  return count ? bsearch(&wanted, names->all, count, sizeof wanted, compare) : NULL;
}

gki_cuda_name *gki_cuda_names_find(const gki_cuda_names *names, uintptr_t node) {
  return find(names, names->count, node);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool add(gki_cuda_names *names, CUgraphNode node, uint32_t gate, bool recorded) {
  void *all = names->all;
  const bool grown = gki_grow(&all, &names->capacity, names->count + 1, sizeof *names->all, "names of nodes");
  names->all = all;
  if (grown) names->all[names->count++] = (gki_cuda_name){.node = node, .gate = gate, .recorded = recorded};
  return grown;
}

typedef struct known {
  const gki_cuda_names *names;
  size_t count;       /* of sorted names */
  CUgraphNode before; /* the node in front of the call, which may have no name */
} known;

static bool is_known(const void *data, CUgraphNode node) {
  const known *k = data;
  return node == k->before || find(k->names, k->count, (uintptr_t)node);
}

static gk_result add_recorded(gki_cuda_names *names, const gki_cuda_graph *graph, uint32_t gate, size_t sorted) {
  const gki_cuda_place *place = &names->variant->places[gate];
  const gki_cuda_driver *driver = graph->device->driver;
  const known before = {names, sorted, place->before};
  gki_cuda_found found = {0};
  CUgraphNode *ends;
  size_t count = 0;
  CUresult result = gki_cuda_nodes_before(driver, place->node, &ends, &count);
  if (result == CUDA_SUCCESS) result = gki_cuda_find_recorded(driver, ends, count, is_known, &before, &found);
  gk_host_free(ends);
  bool is_added = true;
  for (size_t k = 0; k < found.count && result == CUDA_SUCCESS && is_added; ++k)
    is_added = add(names, found.nodes[k], gate, true);
  gk_host_free(found.nodes);
  if (!is_added) return GK_ERROR_MEMORY;
  return gki_cuda_graph_result(graph->device, graph->plan, result, "looking at what was recorded");
}

static void sort(gki_cuda_names *names) {
  if (names->count) qsort(names->all, names->count, sizeof *names->all, compare);
}

gk_result gki_cuda_names_make(gki_cuda_names *names, const gki_cuda_graph *graph, const gki_cuda_variant *variant) {
  const gk_gates *gates = variant->gates;
  *names = (gki_cuda_names){.variant = variant};
  for (uint32_t k = 0; k < gates->node_count; ++k)
    if (variant->places[k].node && !add(names, variant->places[k].node, k, false)) return GK_ERROR_MEMORY;
  sort(names);
  const size_t sorted = names->count;
  for (uint32_t k = 0; k < gates->node_count; ++k) {
    const gk_gate_node *gate = &gates->nodes[k];
    if (gate->kind != GK_GATE_TASK || gates->plan->nodes[gate->node].op != GK_OP_CALL) continue;
    gk_result result = add_recorded(names, graph, k, sorted);
    if (result != GK_OK) return result;
  }
  sort(names);
  return GK_OK;
}

void gki_cuda_names_drop(gki_cuda_names *names) {
  gk_host_free(names->all);
  *names = (gki_cuda_names){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void gki_cuda_write_task(const gk_plan *plan, uint32_t at, gki_quoting how, gki_text *text) {
  const gk_node *node = &plan->nodes[at];
  const char *op = gki_op_name(node->op);
  gki_text_add(text, "task %" PRIu32 " (", node->source);
  if (gki_op_opens(node->op) && strcmp(op, node->name) != 0) gki_text_add(text, "%s ", op);
  gki_text_quote(text, node->name, how);
  gki_text_add(text, ")");
}

static void write_point(const gk_gates *gates, uint32_t point, gki_quoting how, gki_text *text) {
  static const char *const what[] = {[GK_POINT_YIELD] = "the end of", [GK_POINT_LOOP_END] = "the end of a pass of",
                                     [GK_POINT_HEAD] = "the beginning of", [GK_POINT_BRANCH] = "the way into",
                                     [GK_POINT_MARK] = "the end of", [GK_POINT_ENTER] = "the way into",
                                     [GK_POINT_AIM] = "the counts for targets in",
                                     [GK_POINT_BEGIN] = "the pass number of",
                                     [GK_POINT_PASSES] = "the passes of"};
  gki_text_add(text, "decides: %s ", what[gates->points[point].kind]);
  gki_cuda_write_task(gates->plan, gates->points[point].node, how, text);
}

void gki_cuda_write_name(const gki_cuda_names *names, const gki_cuda_name *name, gki_quoting how, gki_text *text) {
  const gk_gates *gates = names->variant->gates;
  const gk_gate_node *gate = &gates->nodes[name->gate];
  switch (gate->kind) {
  case GK_GATE_PROLOGUE: gki_text_add(text, "gk: a launch begins"); return;
  case GK_GATE_EPILOGUE: gki_text_add(text, "gk: a launch ends, the status is posted"); return;
  case GK_GATE_CONTROL:
    if (gate->point == GK_NONE) gki_text_add(text, "gk: closes what is skipped");
    else write_point(gates, gate->point, how, text);
    return;
  case GK_GATE_SEGMENT: gki_text_add(text, "gk: what a yield or resume may skip, from the node inside on"); return;
  case GK_GATE_TASK:
    gki_cuda_write_task(gates->plan, gate->node, how, text);
    if (gates->plan->nodes[gate->node].op == GK_OP_CALL)
      gki_text_add(text, name->recorded ? ", recorded" : ", its end");
    return;
  default: gki_cuda_write_task(gates->plan, gate->node, how, text);
  }
}
