/* A program that needs no compiler at run time. Its kernels are compiled when it is built (build.ninja). */
#include <gk_info.h>
#include "kernels.h"
#include <stdio.h>

extern const gk_images kernel_images; /* in the file that gk-embed writes */

enum { HEIGHT = 1, BY, COUNT };
static const gk_slot_desc slots[] = {GK_BUFFER(HEIGHT, float), GK_DEFAULT(BY, float, 0.75f), GK_DEFAULT(COUNT, int, 4)};
static const gk_task tasks[] = {GK_RUN(rise, COUNT, HEIGHT, BY)};
static const gk_list list = GK_LIST(list, tasks, slots);

static gk_result run(gk_device *device, gk_graph **graph, void *memory, float *height, size_t count) {
  gk_result result = gk_graph_create(device, &list, 0, graph);
  if (result == GK_OK) result = gk_bind(*graph, HEIGHT, memory);
  if (result == GK_OK) result = gk_launch_wait(*graph, 0, NULL);
  return result == GK_OK ? gk_read(*graph, HEIGHT, height, count) : result;
}

int main(void) {
  float height[4] = {0};
  gk_device *device = NULL;
  gk_graph *graph = NULL;
  void *memory = NULL;
  gk_result result = gk_use_images(&kernel_images);
  if (result == GK_OK) result = gk_device_open(NULL, &device);
  if (result == GK_OK && !(memory = gk_alloc(device, sizeof height, GK_DEVICE_MEMORY))) result = GK_ERROR_MEMORY;
  if (result == GK_OK) result = run(device, &graph, memory, height, GK_COUNT(height));
  if (result == GK_OK) printf("%s: %.2f\n", gk_device_describe(device)->backend, (double)height[0]);
  else fprintf(stderr, "%s\n", gk_error());
  gk_graph_destroy(graph);
  gk_free(device, memory);
  gk_device_close(device);
  return result == GK_OK ? 0 : 1;
}
