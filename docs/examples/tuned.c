/* A kernel tuned for CUDA, in a loop of gk: heat spreads over a plate until the temperatures hardly change.
 *
 * `spread` is handwritten, with blocks of 16 x 16 threads and a tile in shared memory. `compare` and `decide` are
 * portable and decide about the next pass. The device alone knows the number of passes. Then the program uses a plate
 * of another size. gk updates only the nodes of `spread` for it.
 *
 *   cc -std=c11 tuned.c -lgk -lm -o tuned && ./tuned */
#include <gk_kernel.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

GK_SOURCE(tuned)
/* The items of compare are cells. It sums the change; decide sets the flag if the sum is above the limit. */
GK_KERNEL(compare, (in(float, a), in(float, b), sum(float, change))) { change[0] += fabsf(a[i] - b[i]); }
GK_KERNEL(decide, (inout(float, change), value(float, limit), out(int, again), inout(int, passes))) {
  again[i] = change[i] > limit ? 1 : 0;
  change[i] = 0.0f;
  passes[i] += 1;
}
GK_SOURCE_END

/* CUDA C++ as in a .cu file, with its own launch shape and parameters. */
static const char spread_text[] =
  "extern \"C\" __global__ void spread(float *to, const float *from, int width, int height) {\n"
  "  extern __shared__ float tile[];\n" /* 18 x 18 */
  "  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;\n"
  "  for (int k = threadIdx.y * 16 + threadIdx.x; k < 18 * 18; k += 256) {\n"
  "    const int tx = blockIdx.x * 16 + k % 18 - 1, ty = blockIdx.y * 16 + k / 18 - 1;\n"
  "    tile[k] = tx >= 0 && tx < width && ty >= 0 && ty < height ? from[ty * width + tx] : 0.0f;\n"
  "  }\n"
  "  __syncthreads();\n"
  "  if (x >= width || y >= height) return;\n"
  "  const float *at = tile + (threadIdx.y + 1) * 18 + threadIdx.x + 1;\n"
  "  const bool inside = x > 0 && x < width - 1 && y > 0 && y < height - 1;\n"
  "  to[y * width + x] = inside ? 0.25f * (at[-1] + at[1] + at[-18] + at[18]) : at[0];\n"
  "}\n";
static const gk_code spread_code = {.text = spread_text, .block = {16, 16}, .shared_bytes = 18 * 18 * sizeof(float)};
static const gk_param spread_params[] = {
  {"to", "float", sizeof(float), sizeof(float), GK_PTR, GK_ACCESS_OUT},
  {"from", "float", sizeof(float), sizeof(float), GK_PTR, GK_ACCESS_IN},
  {"width", "int", sizeof(int), sizeof(int), GK_I32, GK_ACCESS_VALUE},
  {"height", "int", sizeof(int), sizeof(int), GK_I32, GK_ACCESS_VALUE}};
static const gk_kernel spread = {.name = "spread", .params = spread_params, .param_count = GK_COUNT(spread_params),
                                 .dimensions = 2, .cuda = &spread_code};

enum { A = 1, B, WIDTH, HEIGHT, CELLS, CHANGE, LIMIT, AGAIN, PASSES };
static const gk_slot_desc slots[] = {
  GK_BUFFER(A, float),       GK_BUFFER(B, float),        GK_SCALAR(WIDTH, int),
  GK_SCALAR(HEIGHT, int),    GK_SCALAR(CELLS, int),      GK_OWN(CHANGE, float, 1),
  GK_DEFAULT(LIMIT, float, 0.5f), GK_OWN(AGAIN, int, 1), GK_OWN(PASSES, int, 1)};
static const gk_task tasks[] = {
  GK_FILL(PASSES, GK_ONE, 0),
  GK_DO_WHILE(AGAIN, .max_iterations = 1000),
    GK_RUN_2D(spread, WIDTH, HEIGHT, B, A, WIDTH, HEIGHT),
    GK_RUN_2D(spread, WIDTH, HEIGHT, A, B, WIDTH, HEIGHT),
    GK_RUN(compare, CELLS, A, B, CHANGE),
    GK_RUN(decide, GK_ONE, CHANGE, LIMIT, AGAIN, PASSES),
  GK_END};
static const gk_list list = GK_LIST(list, tasks, slots);

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, gk_error());
  exit(1);
}

/* The same on the host. */
static int passes_on_host(float *a, float *b, int width, int height) {
  for (int passes = 1;; ++passes) {
    for (int half = 0; half < 2; ++half) {
      const float *from = half ? b : a;
      float *to = half ? a : b;
      for (int k = 0; k < width * height; ++k) {
        const int x = k % width, y = k / width, inside = x > 0 && x < width - 1 && y > 0 && y < height - 1;
        to[k] = inside ? 0.25f * (from[k - 1] + from[k + 1] + from[k - width] + from[k + width]) : from[k];
      }
    }
    double change = 0;
    for (int k = 0; k < width * height; ++k) change += fabs((double)a[k] - (double)b[k]);
    if (change <= 0.5) return passes;
  }
}

static void spread_over(gk_graph *graph, int width, int height) {
  const size_t cells = (size_t)width * (size_t)height;
  float *a = calloc(cells, sizeof *a), *b = calloc(cells, sizeof *b), *found = calloc(cells, sizeof *found);
  if (!a || !b || !found) exit(1);
  for (int x = 0; x < width; ++x) a[x] = 10.0f; /* one edge is hot */
  if (gk_resize(graph, A, cells) != GK_OK || gk_resize(graph, B, cells) != GK_OK) fail("memory");
  gk_write(graph, A, a, cells);
  gk_bind_int(graph, WIDTH, width);
  gk_bind_int(graph, HEIGHT, height);
  gk_bind_int(graph, CELLS, (int)cells);
  const gk_status *status;
  int passes = 0;
  if (gk_launch_wait(graph, 0, &status) != GK_OK) fail("spreading");
  if (gk_read(graph, PASSES, &passes, 1) != GK_OK || gk_read(graph, A, found, cells) != GK_OK) fail("reading");
  const int wanted = passes_on_host(a, b, width, height);
  float worst = 0;
  for (size_t k = 0; k < cells; ++k) worst = fmaxf(worst, fabsf(a[k] - found[k]));
  printf("%d x %d: %d passes, %s\n", width, height, passes,
         status->applied == GK_BY_NODES ? "nodes were updated" : "no node was updated");
  if (abs(passes - wanted) > 1 || worst > 0.1f) { /* sums of floats have no fixed order */
    fprintf(stderr, "the host has %d passes and other temperatures, by up to %g\n", wanted, (double)worst);
    exit(1);
  }
  free(a);
  free(b);
  free(found);
}

int main(void) {
  gk_device *device;
  gk_graph *graph;
  if (gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device) != GK_OK) fail("no CUDA here");
  if (gk_graph_create(device, &list, 0, &graph) != GK_OK) fail("the list");
  spread_over(graph, 20, 12);
  spread_over(graph, 20, 12); /* the same size and memory */
  spread_over(graph, 33, 17);
  gk_graph_destroy(graph);
  gk_device_close(device);
  return 0;
}
