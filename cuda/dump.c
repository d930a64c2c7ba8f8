/* The driver draws a graph into a file, and doesn't know gk's names. Node handles in its labels show where gk's names
 * belong. All other text stays as the driver wrote it. */
#include "cuda/dump.h"
#include "base/error.h"
#include "cuda/names.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the driver's drawing ---------------------------------------------------------------------------------------- */

static gk_result read_all(int file, char **drawn) {
  struct stat status;
  if (fstat(file, &status) != 0) return gk_fail(GK_ERROR_DEVICE, "a drawing can't be read: %s", strerror(errno));
  const size_t bytes = (size_t)status.st_size;
  *drawn = gki_array(bytes + 1, 1, "a drawing");
  if (!*drawn) return GK_ERROR_MEMORY;
  const ssize_t read = pread(file, *drawn, bytes, 0);
  if (read == (ssize_t)bytes) return GK_OK;
  gk_host_free(*drawn);
  *drawn = NULL;
  return gk_fail(GK_ERROR_DEVICE, "a drawing can't be read: %s", read < 0 ? strerror(errno) : "it is cut off");
}

/* The file is in memory, since there may be no folder for one on disk. */
static gk_result draw_graph(const gki_cuda_graph *graph, CUgraph whole, char **drawn) {
  const gki_cuda_device *device = graph->device;
  char path[64];
  const char *lacked = device->driver->lacks[GKI_CUDA_FOR_DRAWINGS];
  if (lacked)
    return gk_fail(GK_ERROR_UNSUPPORTED, "graph %s can't be drawn, as the CUDA driver has no %s; install NVIDIA's "
                   "driver anew", graph->plan->name, lacked);
  const int file = memfd_create("gk", MFD_CLOEXEC);
  if (file < 0) return gk_fail(GK_ERROR_DEVICE, "there is no file to draw in: %s", strerror(errno));
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  gk_result result = gki_cuda_graph_result(
      device, graph->plan, device->driver->cuGraphDebugDotPrint(whole, path, GKI_CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE),
      "cuGraphDebugDotPrint");
  if (result == GK_OK) result = read_all(file, drawn);
  close(file);
  return result;
}

/* ---- names into labels ------------------------------------------------------------------------------------------- */

static const char label[] = "label=\"";

/* One past the label's last character. */
static const char *end_of_label(const char *at) {
  while (*at && *at != '"') at += *at == '\\' && at[1] ? 2 : 1;
  return at;
}

/* The name of the node whose handle is in the label. */
static gki_cuda_name *name_in(const gki_cuda_names *names, const char *begin, const char *end) {
  for (const char *at = begin; (at = strstr(at, "0x")) && at < end; at += 2) {
    gki_cuda_name *name = gki_cuda_names_find(names, (uintptr_t)strtoull(at + 2, NULL, 16));
    if (name) return name;
  }
  return NULL;
}

static void add_bytes(gki_text *text, const char *begin, const char *end) {
  while (begin < end) {
    const size_t left = (size_t)(end - begin), bytes = left < 4096 ? left : 4096;
    gki_text_add(text, "%.*s", (int)bytes, begin);
    begin += bytes;
  }
}

/* Names the nodes. A label with an opening brace is a record, which gets one more field; others get one more line. */
static void add_named(gki_text *text, const gki_cuda_names *names, const char *drawn) {
  const char *rest = drawn;
  for (const char *at; (at = strstr(rest, label));) {
    at += sizeof label - 1;
    const char *end = end_of_label(at);
    gki_cuda_name *name = name_in(names, at, end);
    const bool is_record = *at == '{';
    add_bytes(text, rest, at + is_record);
    if (name) {
      gki_cuda_write_name(names, name, GKI_RECORD, text);
      gki_text_add(text, is_record ? "\n| " : "\\n");
      name->is_drawn = true;
    }
    add_bytes(text, at + is_record, end);
    rest = end;
  }
  gki_text_add(text, "%s", rest);
}

static gk_result add_graph(const gki_cuda_graph *graph, CUgraph whole, gki_cuda_names *names, gki_text *text) {
  char *drawn = NULL;
  gk_result result = draw_graph(graph, whole, &drawn);
  if (drawn) add_named(text, names, drawn);
  gk_host_free(drawn);
  return result == GK_OK && text->failed ? GK_ERROR_MEMORY : result;
}

/* Adds bodies that the driver left out, as separate drawings. */
static gk_result add_bodies(const gki_cuda_graph *graph, gki_cuda_names *names, gki_text *text) {
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < names->variant->gates->node_count && result == GK_OK; ++k) {
    const gki_cuda_place *place = &names->variant->places[k];
    const gki_cuda_name *name = place->node ? gki_cuda_names_find(names, (uintptr_t)place->node) : NULL;
    if (!name || name->is_drawn || place->in == names->variant->graph) continue;
    gki_text_add(text, "\n// the body that holds: ");
    gki_cuda_write_name(names, name, GKI_PLAIN, text);
    gki_text_add(text, "\n");
    result = add_graph(graph, place->in, names, text);
    if (!name->is_drawn) break; /* this driver's labels have no handles */
  }
  return result;
}

gk_result gki_cuda_draw(const gki_cuda_graph *graph, const gki_cuda_variant *variant, gki_text *text) {
  gki_cuda_names names;
  gk_result result = gki_cuda_names_make(&names, graph, variant);
  gki_text_add(text, "// ");
  gki_text_quote(text, graph->plan->name, GKI_PLAIN);
  gki_text_add(text, ": %s; by gk %s and CUDA %d.%d\n", variant == &graph->resume ? "launches that resume"
               : graph->serves_both                                                      ? "all launches"
                                                                                 : "launches from the top",
               gk_version(), graph->device->driver->version / 1000, graph->device->driver->version % 1000 / 10);
  if (result == GK_OK) result = add_graph(graph, variant->graph, &names, text);
  if (result == GK_OK) result = add_bodies(graph, &names, text);
  gki_cuda_names_drop(&names);
  return result;
}
