/* What cuGraphDebugDotPrint writes. Kernels, copies and fills have the form that drivers of 12.x were seen to give with
 * all flags: records, and handles as 16 hexadecimal digits. No report shows conditional nodes: a guess. */
#include "sim.h"
#include <ctype.h>
#include <stdio.h>

typedef struct drawing {
  FILE *file;
  unsigned graphs; /* the number of those that have a number */
  bool handles;
} drawing;

enum { VERBOSE = 1, HANDLES = 1 << 10 };

static void write_kernel(FILE *file, const sim_node *node, bool handles) {
  const sim_call *call = node->work.call;
  fprintf(file, "KERNEL\n| {ID | %zu | %s\\<\\<\\<%u,%u,0\\>\\>\\>}\n", node->index, call->name, call->grid[0],
          call->block[0]);
  if (handles)
    fprintf(file, "| {{node handle | func handle} | {0x%016llX | 0x%016llX}}\n", (unsigned long long)node->base.handle,
            (unsigned long long)call->function);
}

static void write_other(FILE *file, const sim_node *node, bool handles) {
  fputc('\n', file);
  for (const char *name = sim_node_name(node->work.type); *name; ++name) fputc(toupper((unsigned char)*name), file);
  if (handles)
    fprintf(file, "\n| {{ID | node handle} | {%zu | 0x%016llX}}\n", node->index, (unsigned long long)node->base.handle);
  else fprintf(file, "\n| {ID | %zu}\n", node->index);
}

static void draw_graph(drawing *d, const sim_graph *graph);

static void draw_inside(drawing *d, const sim_node *node) {
  if (node->child) draw_graph(d, node->child);
  if (sim_says_no("drawn")) return;
  for (unsigned body = 0; node->bodies && body < node->size; ++body) draw_graph(d, node->bodies[body]);
}

static void draw_graph(drawing *d, const sim_graph *graph) {
  const unsigned number = ++d->graphs;
  fprintf(d->file, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n", number, number);
  for (size_t k = 0; k < graph->count; ++k) {
    const sim_node *node = graph->nodes[k];
    fprintf(d->file, "\"graph_%u_node_%zu\"[style=\"%s\" shape=\"record\" label=\"{", number, k,
            node->work.call ? "bold" : "solid");
    if (node->work.call) write_kernel(d->file, node, d->handles);
    else write_other(d->file, node, d->handles);
    fprintf(d->file, "}\"];\n\n");
  }
  for (size_t k = 0; k < graph->count; ++k)
    for (size_t other = 0; other < graph->nodes[k]->after_count; ++other)
      fprintf(d->file, "\"graph_%u_node_%zu\" -> \"graph_%u_node_%zu\";\n", number,
              graph->nodes[k]->after[other]->index, number, k);
  for (size_t k = 0; k < graph->count; ++k) draw_inside(d, graph->nodes[k]);
  fprintf(d->file, "}\n");
}

CUresult sim_cuGraphDebugDotPrint(CUgraph handle, const char *path, unsigned int flags) {
  SIM_ENTER(cuGraphDebugDotPrint);
  SIM_FIND_GRAPH(graph, handle);
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return sim_invalid("can't write there");
  drawing d = {.file = file, .handles = (flags & (VERBOSE | HANDLES)) && !sim_says_no("handles")};
  fprintf(file, "digraph dot {\n");
  draw_graph(&d, graph);
  fprintf(file, "}\n");
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
