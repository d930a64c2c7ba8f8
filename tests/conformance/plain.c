/* Plain graphs. */
#include "conformance.h"
#include "kernels.h"

CASE(two_tasks) {
  enum { A = 1, B };
  static const gk_slot_desc slots[] = {GK_OWN(A, int, 1), GK_OWN(B, int, 1)};
  static const gk_task tasks[] = {GK_RUN(count, GK_ONE, A), GK_RUN(count, GK_ONE, B)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  trace(s, 0, "A=1 B=1");
}

CASE(three_tasks_chained) {
  enum { A = 1, B, C, N };
  static const gk_slot_desc slots[] = {GK_OWN(A, int, 64), GK_OWN(B, int, 64), GK_OWN(C, int, 64),
                                       GK_DEFAULT(N, int, 64)};
  static const gk_task tasks[] = {GK_RUN(add_to, N, B, A), GK_RUN(add_to, N, C, B), GK_RUN(add_to, N, A, C)};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put_at(s, A, 63, 5);
  put(s, A, 2);
  trace(s, 0, "A=4 B=2 C=2 A[63]=10 B[63]=5 C[63]=5 A[1]=0");
  trace(s, 0, "A=12 B=6 C=8");
}
