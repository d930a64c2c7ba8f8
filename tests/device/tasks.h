/* Shared by the tests' backends: they carry out a plan's tasks on memory that is elsewhere than its addresses say, and
 * check the rules of gk_backend.h at every launch. */
#ifndef DEVICE_TASKS_H
#define DEVICE_TASKS_H
#include "gk_backend.h"

typedef struct device_tasks {
  const gk_plan *plan;
  const gk_value *values;
  const size_t *capacity; /* as in gk_launch_args */
  void *(*here)(void *user, const void *address, size_t bytes); /* where it really is; NULL: nowhere */
  void *user;
  uint64_t *random; /* kernels are called for parts of their items, in any order; NULL: for halves, in order */
  bool in_process;  /* CALL_HOSTs, too; else common calls them */
} device_tasks;

/* A KERNEL, COPY, FILL, CALL or, in process, CALL_HOST; of other nodes nothing. An address that is nowhere is
 * GK_ERROR_DEVICE. */
gk_result device_run_node(const device_tasks *tasks, uint32_t node);
gk_result device_read_flag(const device_tasks *tasks, uint32_t node, int32_t *flag);
/* The int in a slot's memory; the node is for messages. */
gk_result device_read_int(const device_tasks *tasks, uint32_t node, uint32_t slot, uint32_t offset, int32_t *value);

/* The rule that a launch's arguments break; NULL: none. launched: the launch's number, as the backend counts. */
const char *device_bad_args(const gk_plan *plan, const gk_launch_args *launch, uint64_t launched);
#endif
