/* A list of gk, with a loop and a checkpoint, inside a CUDA graph made by hand. It runs between a kernel that prepares
 * its input and a kernel that uses its result. The program launches its own graph. gk_cuda_arm sets the new bindings
 * and the starting place for the next launch, and gk_poll reports how the launch ended.
 *
 *   cc list_inside.c -lgk -lcuda -lnvrtc -o list_inside && ./list_inside */
#include "by_hand.h"
#include <gk_cuda.h>
#include <gk_kernel.h>

#define CHECK_GK(call) \
  do { \
    if ((call) != GK_OK) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, gk_error()); \
      exit(1); \
    } \
  } while (0)

GK_SOURCE(list_inside)
/* Newton's step for a square root. Another step follows if this one changed the root much. */
GK_KERNEL(improve, (inout(float, root), in(float, of), out(int, again))) {
  float next = 0.5f * (root[i] + of[i] / root[i]), change = next > root[i] ? next - root[i] : root[i] - next;
  again[i] = change > 0.00001f ? 1 : 0;
  root[i] = next;
}
/* Sets the yield flag if the root is large. */
GK_KERNEL(judge, (in(float, root), value(float, most), out(int, stops))) { stops[i] = root[i] > most ? 1 : 0; }
GK_SOURCE_END

static const char kernels[] =
  "extern \"C\" __global__ void prepare(float *of, float *root) { *of *= 2; *root = 1; }\n"
  "extern \"C\" __global__ void use(const float *root, float *sum) { *sum += *root; }\n";

enum { ROOT = 1, OF, AGAIN, STOPS, MOST };
enum { TOO_LARGE = 1, NEWTON };
static const gk_slot_desc slots[] = {GK_BUFFER(ROOT, float), GK_BUFFER(OF, float), GK_OWN(AGAIN, int, 1),
                                     GK_OWN(STOPS, int, 1), GK_DEFAULT(MOST, float, 100)};
static const gk_task tasks[] = {
  GK_DO_WHILE(AGAIN, .label = NEWTON, .max_iterations = 50),
    GK_RUN(improve, GK_ONE, ROOT, OF, AGAIN),
  GK_END,
  GK_CHECKPOINT(TOO_LARGE, STOPS), GK_RUN(judge, GK_ONE, ROOT, MOST, STOPS), GK_END,
};
static const gk_list list = GK_LIST(list, tasks, slots);

int main(void) {
  gk_device *device;
  CUcontext context;
  CUstream stream;
  CHECK_GK(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device));
  CHECK_GK(gk_cuda_context(device, &context, &stream));
  CHECK(cuCtxPushCurrent(context));
  CUmodule module = compile(kernels);
  float *memory = gk_alloc(device, 3 * sizeof *memory, GK_DEVICE_MEMORY), *of = memory, *root = memory + 1;
  float *sum = memory + 2, values[][3] = {{8, 0, 0}, {5000, 0, 0}, {50000, 0, 0}}, found;

  CUgraph whole;
  CHECK(cuGraphCreate(&whole, 0));
  CUgraphNode prepared = add_kernel(whole, NULL, module, "prepare", 1, (void *[]){&of, &root}), last;

  gk_graph *graph;
  CHECK_GK(gk_cuda_add(device, &list, 0, whole, &prepared, 1, &graph, &last));
  gk_bind(graph, ROOT, root);
  gk_bind(graph, OF, of);
  add_kernel(whole, last, module, "use", 1, (void *[]){&root, &sum});

  CUgraphExec exec;
  CHECK(cuGraphInstantiateWithFlags(&exec, whole, 0));
  for (int k = 0; k < 3; ++k) {
    const gk_status *status;
    CHECK_GK(gk_upload(device, memory, values[k], sizeof values[k]));
    CHECK_GK(gk_cuda_arm(graph, exec, 0));
    CHECK(cuGraphLaunch(exec, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK_GK(gk_poll(graph, &status));
    CHECK_GK(gk_download(device, &found, sum, sizeof found));
    printf("launch %d: root %.1f after %d steps, %s\n", (int)status->launch, (double)found,
           (int)gk_passes(status, NEWTON), status->state == GK_YIELDED ? status->yielded_name : "finished");
  }
  CHECK(cuGraphExecDestroy(exec)); /* before the list's graph */
  gk_graph_destroy(graph);
  CHECK(cuGraphDestroy(whole));
  CHECK(cuModuleUnload(module));
  CHECK(cuCtxPopCurrent(NULL));
  gk_device_close(device);
  return 0;
}
