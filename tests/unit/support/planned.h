/* A list that was read and planned, for tests that need no device. */
#ifndef PLANNED_H
#define PLANNED_H
#include "test.h"
#include "plan/plan.h"
#include "gk_gates.h"

typedef struct planned_list {
  gki_blocks blocks;
  gki_planned planned;
  const gk_gates *gates; /* NULL: gates_of_planned didn't make any */
} planned_list;

static inline const gk_plan *plan_list(planned_list *p, const gk_list *list) {
  *p = (planned_list){.gates = NULL};
  assert_ok(gki_blocks_read(&p->blocks, list));
  assert_ok(gki_plan_make(&p->planned, &p->blocks, NULL, 0));
  return &p->planned.plan;
}

static inline const gk_plan *plan_tasks(planned_list *p, const gk_task *tasks, uint32_t count,
                                        const gk_slot_desc *slots, uint32_t slot_count) {
  const gk_list list = {GK_ABI, "list", tasks, count, slots, slot_count};
  return plan_list(p, &list);
}

static inline const gk_gates *gates_of_planned(planned_list *p, uint32_t bits) {
  assert_ok(gk_gates_make(&p->planned.plan, bits, &p->gates));
  return p->gates;
}

static inline void free_planned(planned_list *p) {
  if (p->gates) gk_gates_free(p->gates);
  gki_plan_free(&p->planned);
  gki_blocks_free(&p->blocks);
}
#endif
