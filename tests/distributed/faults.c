/* Faults for one rank of a job, as a library that is loaded before the others (LD_PRELOAD). $MPI_FAULT is "KIND RANK
 * NUMBER": it happens to that rank, in its call of that number (from 1) of MPI_Allreduce, unless stated otherwise.
 *
 *   save, stop     SIGUSR1, SIGUSR2: the example's votes
 *   kill           SIGKILL
 *   finish         the sum is 0 on this rank alone, so it believes to have the solution
 *   alone          gk_resize gives less than is asked, so this rank's list yields more often, and takes its time
 *   call           a vote to stop, and gk_cancel fails on this rank, so its GK_CALL_HOST does
 *   resize, bind   gk_resize fails; gk_bind binds no memory to the slot of that number */
#define _GNU_SOURCE
#include "gk.h"
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls; /* of MPI_Allreduce */

static int number_of(const char *kind) {
  char wanted[16] = "";
  int rank = -1, number = 0, me = -2;
  const char *fault = getenv("MPI_FAULT");
  if (!fault) return 0;
  if (sscanf(fault, "%15s %d %d", wanted, &rank, &number) != 3) abort();
  if (strcmp(wanted, kind) != 0) return 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &me);
  return rank == me ? number : 0;
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++calls;
  if (calls == number_of("save")) raise(SIGUSR1);
  if (calls == number_of("stop") || calls == number_of("call")) raise(SIGUSR2);
  if (calls == number_of("kill")) raise(SIGKILL);
  const int result = PMPI_Allreduce(from, to, count, type, op, comm);
  if (calls == number_of("finish")) memset(to, 0, sizeof(double));
  return result;
}

gk_result gk_resize(gk_graph *graph, gk_slot slot, size_t count) {
  gk_result (*next)(gk_graph *, gk_slot, size_t);
  *(void **)&next = dlsym(RTLD_NEXT, "gk_resize");
  const bool is_running = calls > 0;
  if (is_running && number_of("resize")) return next(graph, slot, SIZE_MAX);
  if (is_running && number_of("alone")) {
    fprintf(stderr, "one rank's buffer stays small\n");
    usleep(200 * 1000);
    count = count / 2 + 1;
  }
  return next(graph, slot, count);
}

gk_result gk_bind(gk_graph *graph, gk_slot slot, const void *memory) {
  gk_result (*next)(gk_graph *, gk_slot, const void *);
  *(void **)&next = dlsym(RTLD_NEXT, "gk_bind");
  return next(graph, slot, slot == number_of("bind") ? NULL : memory);
}

gk_result gk_cancel(gk_graph *graph) {
  gk_result (*next)(gk_graph *);
  *(void **)&next = dlsym(RTLD_NEXT, "gk_cancel");
  return number_of("call") ? GK_ERROR_INVALID : next(graph);
}
