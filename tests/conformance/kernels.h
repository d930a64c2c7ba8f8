/* The kernels of the conformance suite: portable, so that a backend of any kind can run them. Results depend on order
 * and number of executions where that is to be seen. */
#ifndef CONFORMANCE_KERNELS_H
#define CONFORMANCE_KERNELS_H
#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE conformance_kernels
#include "gk_kernel.h"
GK_SOURCE(conformance_kernels)

GK_STRUCT(line) { int factor, offset; };

GK_KERNEL(count, (inout(int, x))) { x[i] += 1; }
GK_KERNEL(decrease, (inout(int, n))) { n[i] -= 1; }
GK_KERNEL(lower, (inout(int, n))) { if (n[i] > 0) n[i] -= 1; }
GK_KERNEL(set, (out(int, x), value(int, v))) { x[i] = v; }
GK_KERNEL(add, (inout(int, x), value(int, a))) { x[i] += a; }
GK_KERNEL(assign, (out(int, x), in(int, y))) { x[i] = y[i]; }
GK_KERNEL(add_to, (inout(int, x), in(int, y))) { x[i] += y[i]; }
GK_KERNEL(append, (inout(int, x), in(int, digit))) { x[i] = x[i] * 10 + digit[i]; }
/* Tells any order of any ids from any other. */
GK_KERNEL(note, (inout(int, x), value(int, id))) { x[i] = (int)((uint)x[i] * 31u + (uint)id); }
GK_KERNEL(below, (out(int, flag), in(int, x), value(int, limit))) { flag[i] = x[i] < limit ? 1 : 0; }
GK_KERNEL(total, (in(int, x), sum(int, t))) { t[0] += x[i]; }
GK_KERNEL(total_float, (in(float, x), sum(float, t))) { t[0] += x[i]; }
GK_KERNEL(moments, (in(int, x), sum(int, zeroth), sum(int, first), sum(int, second))) {
  zeroth[0] += 1;
  first[0] += x[i];
  second[0] += x[i] * x[i];
}
GK_KERNEL(apply, (inout(int, x), value(line, l))) { x[i] = x[i] * l.factor + l.offset; }
GK_KERNEL(apply_in, (inout(int, x), in(line, l))) { x[i] = x[i] * l[0].factor + l[0].offset; }
GK_KERNEL(scale, (inout(float, y), value(float, a), value(double, b))) { y[i] *= a * (float)b; }
GK_KERNEL(wide, (out(int64_t, to), value(int64_t, big), value(uint, large))) { to[0] = big; to[1] = (int64_t)large; }
GK_KERNEL_2D(number, (out(int, x), value(int, width))) { x[i + j * width] = i + 100 * j; }
GK_KERNEL_3D(number_3d, (out(int, x), value(int, width), value(int, height))) {
  x[i + width * (j + height * k)] = i + 100 * j + 10000 * k;
}
/* When it ran last, in ticks of a clock. */
GK_KERNEL(stamp, (inout(int, clock), out(int, at))) {
  clock[0] += 1;
  at[i] = clock[0];
}
/* Never clears the flag. */
GK_KERNEL(raise_at, (out(int, flag), in(int, x), in(int, wanted))) {
  if (x[i] == wanted[0]) flag[i] = 1;
}
GK_KERNEL(agree, (inout(int, times), in(int, a), in(int, b))) {
  if (a[i] == b[i]) times[i] += 1;
}
/* As far as there is room. */
GK_KERNEL(squares, (out(int, to), atomic(int, full), value(int, room))) {
  if (i < room) to[i] = i * i;
  else gk_atomic_exchange(&full[0], 1);
}
/* Comes to a meeting and waits a while for the others; `met`: this item has seen them all. */
GK_KERNEL(meet, (atomic(int, here), out(int, met), value(int, others), value(int, patience))) {
  int seen = gk_atomic_add(&here[0], 1) + 1;
  for (int k = 0; k < patience && seen < others; k++) { seen = gk_atomic_add(&here[0], 0); }
  met[i] = seen >= others ? 1 : 0;
}
GK_SOURCE_END

/* Tasks over one item. */
#define HIT(x) GK_RUN(count, GK_ONE, x)
#define HIT_ALWAYS(x) GK_RUN_ALWAYS(count, GK_ONE, x)
#define DOWN(n) GK_RUN(decrease, GK_ONE, n)
#define LOWER(n) GK_RUN(lower, GK_ONE, n) /* stays at 0 */
#define SET(x, v) GK_FILL(x, GK_ONE, v)
#define ADD_TO(x, y) GK_RUN(add_to, GK_ONE, x, y)
#define NOTE(x, id) GK_RUN(note, GK_ONE, x, id)
/* Blocks around what is between the parentheses. */
#define PARALLEL(...) GK_PARALLEL, __VA_ARGS__, GK_END
#define SECTION(...) GK_SECTION, __VA_ARGS__, GK_END
#endif
