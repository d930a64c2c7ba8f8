#include "base/sort.h"

/* A heap sort. */
void gki_sort(uint32_t *order, uint32_t count, gki_before before, const void *user) {
  for (uint32_t half = count / 2, end = count; end > 1;) {
    uint32_t at = 0, child, moved;
    if (half > 0) {
      moved = order[at = --half];
    } else {
      moved = order[--end];
      order[end] = order[0];
    }
    for (; (child = 2 * at + 1) < end; at = child) {
      if (child + 1 < end && before(user, order[child], order[child + 1])) ++child;
      if (!before(user, moved, order[child])) break;
      order[at] = order[child];
    }
    order[at] = moved;
  }
}
