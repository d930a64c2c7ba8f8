/* The common language of kernels, a kernel or more for each row of the table in docs/kernels.md.
 * tests/unit/kernel/language_test.c runs them on the host; compilers.py gives them to each device compiler there is. */
#include "gk_kernel.h"

GK_SOURCE(language)

/* ---- types, numbers, conversions --------------------------------------------------------------------------------- */
GK_KERNEL(types, (out(double, y), value(int, a), value(uint, b), value(int64_t, c), value(float, d),
                  value(double, e))) {
  int32_t f = a;
  uint32_t g = b;
  bool h = f > 0 && g > 0u;
  if (h) y[i] = (double)f + (double)g + (double)c + (double)d + e;
}

GK_KERNEL(casts, (out(int, y), in(float, x))) {
  int positive = (int)(x[i] > 0.0f);
  uint bits = (uint) x[i];
  y[i] = (int)-x[i] + 10 * positive + (int)((float)(int)x[i] * 2.0f) + (int)(
    bits) /* (float) in a comment stays */ + (int)(bool)positive;
}

GK_KERNEL(implicit, (out(float, y))) {
  uint u = 7;
  float f = 3;
  y[i] = f + (float)u;
}

GK_KERNEL(numbers, (out(double, y))) {
  double half_of = 0.5, tiny = 1e-3, whole = 2.;
  float a = 1.0f, b = .5f, c = 1e-6f, d = 1.e+1F;
  uint hex = 0xffu;
  int64_t large = 5000000000LL;
  y[i] = half_of + tiny + whole + (double)(a + b + c + d) + (double)hex + (double)large;
}

/* ---- statements -------------------------------------------------------------------------------------------------- */
GK_KERNEL(statements, (out(int, y))) {
  int n = 0, at;
  if (i == 3) return;
  for (int k = 0; k < 10; ++k) {
    if (k % 2 == 0) continue;
    if (k > 7) break;
    n += k;
  }
  do n += 100; while (n < 250);
  while (n > 300) n--;
  switch (i) {
  case 0: n = 1; break;
  case 1:
  case 2: n += 1000; break;
  default: n = -n;
  }
  for (at = 0, n *= 2; at < 2; ++at, n += 1) {}
  y[i] = i != 0 ? n : (n & 3) | (8 ^ 1) << 4 >> 4;
}

/* ---- structs and arrays ------------------------------------------------------------------------------------------ */
GK_STRUCT(v3) { float x, y, z; };
GK_STRUCT(frame) { v3 origin, axes[2]; int kind; float weights[3]; };

GK_FN v3 plus(v3 a, v3 b) { v3 r = {a.x + b.x, a.y + b.y, a.z + b.z}; return r; }
GK_FN v3 frame_axis(frame f, int k) { return f.axes[k]; }
GK_FN float total_of(const float t[3]) {
  return t[0] + t[1] + t[2];
}

GK_KERNEL(structs, (inout(v3, x), in(frame, y), sum(float, z))) {
  v3 p = plus(x[i], y[0].origin), q;
  q = frame_axis(y[0], 1);
  p.x += q.x; /* x, y and z are members here, and parameters elsewhere */
  p.y += y[0].weights[2];
  x[i] = p;
  z[0] += p.z;
}

GK_KERNEL(arrays, (out(float, y))) {
  float t[3] = {1.0f, 2.0f, 4.0f}, grid[2][2];
  grid[1][0] = total_of(t);
  t[i % 3] = grid[1][0];
  y[i] = total_of(t);
}

GK_KERNEL(by_value, (out(float, y), value(frame, f), value(int, n))) {
  y[i] = f.axes[i % 2].y + (float)(f.kind * n) + total_of(f.weights);
}

/* ---- the preprocessor -------------------------------------------------------------------------------------------- */
#define N 8
#define SQUARE(v) ((v) * (v))
#define TO_FLOAT(v) (float)(v)
#define TWO_LINES(a, b) \
  ((a) + (b))
GK_CONST float table[3] = {0.5f, 1.5f, 2.5f};
GK_CONST int fives = 5;

GK_KERNEL(preprocessor, (out(float, y))) {
#if N > 4
  int n = SQUARE(N);
#else
  int n = 0;
#endif
#define INSIDE 1000
  y[i] = TO_FLOAT(n) + table[i % 3] + TWO_LINES(1.0f, 2.0f) + (float)fives;
}

GK_KERNEL(uses_inside, (out(int, y))) {
  y[i] = INSIDE;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */
GK_KERNEL(functions, (out(float, y), in(float, x))) {
  float a = x[i]; /* in (0, 1) */
  y[16 * i + 0] = sqrtf(a) + fabsf(-a);
  y[16 * i + 1] = fminf(a, 0.5f) + fmaxf(a, 0.5f);
  y[16 * i + 2] = fmaf(a, 2.0f, 1.0f);
  y[16 * i + 3] = floorf(-a) + ceilf(a) + truncf(1.0f + a);
  y[16 * i + 4] = expf(a) + logf(a);
  y[16 * i + 5] = powf(a, 3.0f);
  y[16 * i + 6] = sinf(a) + cosf(a) + tanf(a);
  y[16 * i + 7] = tanhf(a);
  y[16 * i + 8] = asinf(a) + acosf(a) + atanf(a);
  y[16 * i + 9] = atan2f(a, -1.0f);
  y[16 * i + 10] = exp2f(a) + log2f(a);
  y[16 * i + 11] = roundf(a) + roundf(-2.5f) + roundf(0.49999997f);
  y[16 * i + 12] = fmodf(5.0f + a, 3.0f) + fmodf(-5.0f, 3.0f) + fmodf(1e9f, 7.0f);
  y[16 * i + 13] = INFINITY > a ? 1.0f : 0.0f;
  y[16 * i + 14] = (float)gk_bits(1.0f);
  y[16 * i + 15] = sinhf(a) + coshf(a);
}

/* The two that gk_kernel.h writes out in GLSL, of any numbers. */
GK_KERNEL(exact_functions, (out(float, y), in(float, a), in(float, b))) {
  y[2 * i] = roundf(a[i]);
  y[2 * i + 1] = fmodf(a[i], b[i]);
}

GK_KERNEL(doubles, (inout(double, y))) {
  double d = y[i];
  y[i] = sqrt(d) + fabs(-d) + fmin(d, 1.0) + fmax(d, 2.0);
}

/* ---- atomics and sums -------------------------------------------------------------------------------------------- */
GK_STRUCT(counter) { int n; uint most; float weight; };

GK_KERNEL(atomics, (atomic(int, a), atomic(uint, b), atomic(counter, c), atomic(float, d), out(int, order))) {
  order[i] = gk_atomic_add(&a[0], 1);
  gk_atomic_min(&a[1], -i);
  gk_atomic_max(&a[2], i);
  gk_atomic_or(&a[3], 1 << (i % 8));
  gk_atomic_exchange(&a[4], 7);
  gk_atomic_cas(&a[5], 0, 9);
  gk_atomic_add(&b[0], 2u);
  gk_atomic_min(&b[1], (uint)i);
  gk_atomic_max(&b[2], gk_bits(1.0f));
  gk_atomic_or(&b[3], 4u);
  gk_atomic_exchange( &b[4], 7u);
  gk_atomic_cas(
    &b[5], 0u, 9u);
  gk_atomic_add(&c[i % 2].n, 1);
  gk_atomic_max(&c[0].most, (uint)gk_atomic_add(&a[6], 1));
  gk_atomic_add(&c[1].weight, 0.5f);
  gk_atomic_add(&d[0], 1.0f);
}

GK_KERNEL(loads, (atomic(int, a), atomic(uint, b), atomic(counter, c), atomic(float, d), out(int, seen))) {
  gk_atomic_max(&a[0], gk_atomic_load(&a[1]) + i);
  gk_atomic_add(&c[1].n, gk_atomic_load(&c[0].n));
  gk_atomic_or(&c[1].most, gk_atomic_load( &b[i % 2]));
  gk_atomic_add(&c[1].weight, gk_atomic_load(&c[0].weight) + gk_atomic_load(&d[0]));
  seen[i] = gk_atomic_load(&a[0]);
}

GK_KERNEL(load_of_double, (atomic(double, a), out(double, y))) {
  y[i] = gk_atomic_load(&a[i]) + 0.5;
}

/* The old values of a[0] are multiples of 0.25, each once. */
GK_KERNEL(add_to_doubles, (atomic(double, a), out(double, y))) {
  const uint third = 3u;
  y[(int)(4.0 * gk_atomic_add( &a [0], 0.25))] = 1.0;
  gk_atomic_add(&a[i % 2 + 1], -gk_atomic_load(&a[third]) * (double)i);
  gk_atomic_add(
    &a[i % 2 + 4],
    0.5);
}

/* Says that it looks, and looks until it sees something. */
GK_KERNEL(look, (atomic(int, a), out(int, seen), value(int, patience))) {
  int there = 0;
  gk_atomic_exchange(&a[1], 1);
  for (int n = 0; n < patience && there == 0; ++n) there = gk_atomic_load(&a[0]);
  seen[i] = there;
}

GK_KERNEL(sums, (sum(int, a), sum(uint, b), sum(float, c), in(float, x))) {
  if (i % 3 == 0) return;
  a[0] -= i;
  b[0] += 2u;
  c[0] += x[i];
  if (i % 2 == 0) c[0] += 1.0f;
}

GK_KERNEL(sum_of_doubles, (sum(double, total))) {
  total[0] += 0.25;
}

/* ---- more than one dimension ------------------------------------------------------------------------------------- */
GK_KERNEL_2D(plane, (out(int, y), value(int, nx), sum(int, n))) {
  y[j * nx + i] = 1000 * j + i;
  n[0] += 1;
}

GK_KERNEL_3D(box, (inout(int, y), value(int, nx), value(int, ny), sum(int, n))) {
  if (i == 1) return;
  y[(k * ny + j) * nx + i] += 10000 * k + 100 * j + i;
  n[0] += k;
}

/* ---- names that GLSL has for itself ------------------------------------------------------------------------------ */
GK_STRUCT(sample) { float length, texture; };
GK_FN float mix(float input, float filter) { return input + filter; }

GK_KERNEL(names, (out(sample, buffer), in(float, input), value(float, step), sum(int, active))) {
  float vec3 = input[i], dot = mix(vec3, step);
  sample shared;
  shared.length = dot;
  shared.texture = (float)(int)vec3;
  buffer[i] = shared;
  active[0] += 1;
}

/* Names that the composed text might have for itself. */
GK_KERNEL(our_names, (out(int, push), in(int, arguments), sum(int, item), value(int, type), inout(int, at),
                      value(frame, main), atomic(int, gki))) {
  int count = type + main.kind, n = count, data = 1;
  push[i] = arguments[i] + n;
  at[i] += data;
  item[0] += 1;
  gk_atomic_add(&gki[0], 2);
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */
GK_STRUCT(inner) { double d; float f, g; };
GK_STRUCT(outer) { int a; inner b; float c[3]; inner e[2]; int64_t h; };

GK_KERNEL(layout, (inout(outer, y))) {
  y[i].c[2] += y[i].b.g + (float)y[i].e[1].d;
  y[i].h += 1;
}
GK_SOURCE_END
