/* mpi_cg.c with exchanges by NCCL: gk records them into the loop that the GPU runs by itself, so no pass goes through
 * the host. The list is the same; only its exchanges are GK_CALLs.
 *
 * docs/distributed.md has the rules. This needs GPUs that reach each other's memory, one for each rank. It ran on a
 * simulated driver only, without NCCL.
 *
 *   mpicc -std=c11 nccl_cg.c -lgk -lnccl -lcuda -lm -o nccl_cg && mpirun -n 2 ./nccl_cg --side 128 */
#define main mpi_cg_main
#include "mpi_cg.c"
#undef main
#include <cuda.h>
#include <gk_cuda.h>
#include <nccl.h>

static ncclComm_t comm;

static gk_result result_of(ncclResult_t result) {
  if (result == ncclSuccess) return GK_OK;
  fprintf(stderr, "NCCL: %s\n", ncclGetErrorString(result));
  return GK_ERROR_DEVICE;
}

/* native: a stream that is being captured. */
static gk_result nccl_sum(const gk_value *args, void *native) {
  return result_of(ncclAllReduce(args[0].ptr, args[0].ptr, 1, ncclDouble, ncclSum, comm, native));
}
static gk_result nccl_halos(const gk_value *args, void *native) {
  const rank *me = args[1].ptr;
  const size_t plane = (size_t)cells_of_plane(me), inner = (size_t)me->planes * plane;
  double *p = args[0].ptr;
  const struct { int other; double *first, *halo; } sides[] = {{me->below, p + plane, p},
                                                               {me->above, p + inner, p + inner + plane}};
  ncclResult_t result = ncclGroupStart();
  for (int k = 0; k < 2; ++k) {
    if (sides[k].other == MPI_PROC_NULL) continue;
    if (result == ncclSuccess) result = ncclSend(sides[k].first, plane, ncclDouble, sides[k].other, comm, native);
    if (result == ncclSuccess) result = ncclRecv(sides[k].halo, plane, ncclDouble, sides[k].other, comm, native);
  }
  const ncclResult_t end = ncclGroupEnd();
  return result_of(result == ncclSuccess ? end : result);
}

static const gk_task by_nccl[] = TASKS(GK_CALL(nccl_sum, RR), GK_CALL(nccl_halos, P, RANK), GK_CALL(nccl_sum, PQ),
                                       GK_CALL(nccl_sum, RR));
static const gk_list nccl_list = GK_LIST(cg_by_nccl, by_nccl, slots);

/* NCCL works in the context of gk's device. */
static void begin_nccl(const rank *me) {
  CUcontext context;
  ncclUniqueId id;
  setenv("NCCL_GRAPH_MIXING_SUPPORT", "0", 1); /* no waits for events in the loop */
  if (me->number == 0 && result_of(ncclGetUniqueId(&id)) != GK_OK) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (gk_cuda_context(me->device, &context, NULL) != GK_OK || cuCtxPushCurrent(context) != CUDA_SUCCESS)
    fail(me, "the device's context");
  if (result_of(ncclCommInitRank(&comm, me->ranks, id, me->number)) != GK_OK) MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv) {
  rank me;
  options o = begin_rank(&me, argc, argv);
  const gk_status *totals = NULL;
  o.backend = "cuda";
  open_device(&me, &o);
  begin_nccl(&me);
  set_up(&me, &o, &nccl_list);
  /* The sums stay on the GPU. The buffer for residuals has room for all, so that no rank ever resumes: the first launch
   * that does so would record the exchanges again, which all ranks would have to do together. */
  if (gk_resize(me.graph, RR, 3) || gk_resize(me.graph, PQ, 1) || gk_resize(me.graph, HISTORY, MOST_PASSES))
    fail(&me, "memory");
  if (gk_run(me.graph, NULL, NULL, &totals) != GK_OK) fail(&me, "the solver");
  const int wrong = report(&me, &o, totals);
  gk_graph_destroy(me.graph);
  ncclCommDestroy(comm);
  CUcontext context;
  cuCtxPopCurrent(&context); /* it ends with gk's device */
  gk_device_close(me.device);
  MPI_Finalize();
  return wrong;
}
