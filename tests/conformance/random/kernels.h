/* The kernels of random lists: their results depend on the tasks that ran before, how often, and over which items.
 * Memory of a list comes in groups that one section may write: data (x), flags and counts (f), the state of chance (s),
 * a count of any size (e). */
#ifndef RANDOM_KERNELS_H
#define RANDOM_KERNELS_H
#include "gk_kernel.h"
#include "conformance/stay.h"
#include <semaphore.h>
#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE random_kernels
GK_SOURCE(random_kernels)
GK_STRUCT(pair) { int a, b; };

GK_FN uint scramble(uint v) {
  v = (v ^ (v >> 16)) * 0x7feb352du;
  v = (v ^ (v >> 15)) * 0x846ca68bu;
  return v ^ (v >> 16);
}

GK_KERNEL(stir, (inout(uint, x), value(int, id))) { x[i] = x[i] * 31u + (uint)id + (uint)i; }
GK_KERNEL(blend, (inout(uint, x), in(uint, y), value(int, id))) { x[i] = x[i] * 31u + y[i] + (uint)id; }
GK_KERNEL(follow, (inout(uint, x), in(int, pass))) { x[i] = x[i] * 31u + (uint)pass[0]; }
GK_KERNEL(toil, (inout(uint, x), value(int, id))) { /* takes long enough to be shared by several threads */
  uint v = x[i] + (uint)id;
  for (int k = 0; k < 3000; ++k) v = scramble(v);
  x[i] = v;
}
GK_KERNEL_2D(plane, (inout(uint, x), value(int, id))) { x[i + 8 * j] = x[i + 8 * j] * 31u + (uint)(id + i + 10 * j); }
GK_KERNEL_3D(box, (inout(uint, x), value(int, id))) {
  x[i + 8 * (j + 2 * k)] = x[i + 8 * (j + 2 * k)] * 31u + (uint)(id + i + 10 * j + 100 * k);
}
GK_KERNEL(typed, (inout(uint, x), value(uint, g), value(int64_t, j), value(float, r), value(double, q))) {
  x[i] = x[i] * 31u + g + (uint)(int)j + (uint)(int)r + (uint)(int)q;
}
GK_KERNEL(couple, (inout(uint, x), value(pair, p), in(pair, b))) {
  x[i] = x[i] * 31u + (uint)(p.a - p.b) + (uint)b[0].a * 3u + (uint)b[0].b;
}
GK_KERNEL(total, (sum(int, t), sum(uint, u), in(uint, x))) {
  t[0] += (int)(x[i] & 15u);
  u[0] += x[i];
}
GK_KERNEL(weigh, (sum(float, v), sum(double, w), in(uint, x))) { /* of numbers that are exact in any order */
  v[0] += 0.25f * (float)(int)(x[i] & 3u);
  w[0] += 0.125 * (double)(int)(x[i] & 7u);
}
GK_KERNEL(vote, (atomic(int, a), in(uint, x), value(int, id))) {
  gk_atomic_add(&a[0], (int)((x[i] ^ (uint)id) & 7u));
}

/* Throws for the flag or count at f[what % 16]; what / 16 says which dice. Each may be read as a count: 8 at most. */
GK_KERNEL(roll, (inout(int, f), inout(uint, s), value(int, what))) {
  s[0] += 1u;
  uint h = scramble(s[0] * 16u + s[1] + (uint)what), side = h >> 8;
  int dice = what / 16, thrown = 0;
  if (dice == 0) thrown = (side & 1u) == 0u ? 1 : 0;
  else if (dice == 1) thrown = (side & 3u) == 0u ? -3 : 0;
  else if (dice == 2) thrown = (side & 3u) != 0u ? 7 : 0;
  else if (dice == 3) thrown = (int)(side % 6u) - 1;
  else thrown = (int)(side % 10u) - 1;
  f[what % 16] = thrown;
}

/* A count of any size. */
GK_KERNEL(draw, (out(int, e), inout(uint, s), value(int, id))) {
  s[0] += 1u;
  uint h = scramble(s[0] * 16u + s[1] + (uint)id), size = h % 8u, rest = h >> 8;
  if (size < 5u) e[0] = (int)(rest % 9u);
  else if (size == 5u) e[0] = (int)(rest % 40u);
  else if (size == 6u) e[0] = (rest & 1u) != 0u ? 2147483647 : 1000;
  else e[0] = -(int)rest;
}

/* The beginning of a block that is safe to run again: asks for room for as many items as chance wants, and for leave
 * to use it. f[12]: it is refused; f[13]: granted; f[14]: how many. */
GK_KERNEL(ask, (inout(int, f), in(uint, s), inout(int, leave), value(int, room))) {
  int wanted = 1 + (int)(scramble(s[0] + s[1]) % 24u);
  int granted = wanted <= room && leave[0] > 0 ? 1 : 0;
  leave[0] -= granted;
  f[12] = 1 - granted;
  f[13] = granted;
  f[14] = granted * wanted;
}
GK_KERNEL(keep, (out(uint, y), in(uint, x))) { y[i] = x[i] + (uint)i; }
GK_SOURCE_END

/* Where `halt` stops: on the reference something is called, elsewhere the host is told, and waited for. */
typedef struct random_stops {
  int countdown; /* it stops when it comes for the n-th time from now; 0: never */
  void (*here)(void *user);
  void *user;
  sem_t reached, go;
} random_stops;

/* The host data of a CALL. Where the host can touch memory, `near` is set and calls write there, too. Where they are
 * recorded, that is all they do, and `halt` is a kernel of its own. */
typedef struct random_host {
  uint trail;
  int calls, near, recorded;
  random_stops *stops;
} random_host;

static inline gk_result note(const gk_value *args, void *native) {
  random_host *host = (random_host *)args[0].ptr;
  uint *x = (uint *)args[1].ptr;
  if (is_recorded(native)) return record_shift(x, native);
  if (host->recorded) { /* the reference's */
    shift_ints(x);
    return GK_OK;
  }
  host->calls += 1;
  host->trail = host->trail * 31u + (uint)host->calls;
  if (host->near) x[0] = x[0] * 31u + host->trail;
  return GK_OK;
}

/* Of a CALL_HOST: its memory is the host's, too. */
static inline gk_result tell(const gk_value *args, void *native) {
  random_host *host = (random_host *)args[0].ptr;
  uint *x = (uint *)args[1].ptr;
  host->calls += native ? 1000 : 1; /* the reference gives NULL */
  host->trail = host->trail * 31u + x[0] + (uint)host->calls;
  x[0] = x[0] * 31u + host->trail;
  return GK_OK;
}

static inline gk_result halt(const gk_value *args, void *native) {
  random_stops *stops = ((random_host *)args[0].ptr)->stops;
  (void)note(args, native);
  if (!stops->countdown || --stops->countdown) return GK_OK;
  if (stops->here) {
    stops->here(stops->user);
    return GK_OK;
  }
  sem_post(&stops->reached);
  while (sem_wait(&stops->go)) continue;
  return GK_OK;
}
#endif
