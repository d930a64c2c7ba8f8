/* Loops. */
#include "conformance.h"
#include "kernels.h"

CASE(counter) {
  enum { N = 1, A };
  static const gk_slot_desc slots[] = {GK_OWN(N, int, 1), GK_OWN(A, int, 1)};
  static const gk_task tasks[] = {GK_DO_WHILE(N), GK_RUN(count, GK_ONE, A), GK_RUN(decrease, GK_ONE, N), GK_END};
  subject *s = graph_of(t, LIST_OF(tasks, slots), 0);
  put(s, N, 5);
  trace(s, 0, "A=5 N=0, passes N=5");
  put(s, N, 10);
  trace(s, 0, "A=15 N=0, passes N=10");
}
