/* Soft spheres in a periodic box, as kernels: velocity Verlet (Swope et al. 1982) over lists of neighbours with a skin
 * (Verlet 1967). The lists are made again from a grid of cells when a sphere has moved half of the skin.
 *
 * Lengths are in diameters, and masses are 1. Two spheres at a distance r < 1 push each other by stiffness (1 - r).
 * Each sphere adds up its pushes in the order of its list, and lists come from sorted cells. So the positions don't
 * depend on the order of atomics, and a run repeats bit for bit. */
#include "bench/apps/particles_app.h"

GK_SOURCE(bench_particles, &particles_math)

GK_FN int bench_first_of_list(int i, int room, setting s) { return s.by_rank != 0 ? i : i * room; }
GK_FN int bench_step_of_list(setting s) { return s.by_rank != 0 ? s.n : 1; }

GK_KERNEL(bench_begin_run, (out(int, step), out(int, stale), out(int, searches), out(double, energy),
                            out(double, along_x), out(double, along_y), out(double, along_z))) {
  step[0] = 0;
  stale[0] = 1; /* regardless of the lists so far */
  searches[0] = 0;
  energy[0] = 0.0;
  along_x[0] = 0.0;
  along_y[0] = 0.0;
  along_z[0] = 0.0;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* Half of the step's change of velocity, and the whole change of place. */
GK_KERNEL(bench_advance, (inout(vec, x), inout(vec, v), atomic(int, stale), in(vec, force), in(vec, listed),
                          value(setting, s))) {
  double half = 0.5 * s.step;
  vec to = {v[i].x + half * force[i].x, v[i].y + half * force[i].y, v[i].z + half * force[i].z};
  vec at = {bench_wrapped(x[i].x + s.step * to.x, s.side), bench_wrapped(x[i].y + s.step * to.y, s.side),
            bench_wrapped(x[i].z + s.step * to.z, s.side)};
  x[i] = at;
  v[i] = to;
  if (bench_square(bench_vec_apart(listed[i], at, s.side)) > s.moves) gk_atomic_exchange(&stale[0], 1);
}
/* The force at the new place, and the other half of the change of velocity. */
GK_KERNEL(bench_push, (out(vec, force), inout(vec, v), in(vec, x), in(int, count), in(int, neighbour), value(int, room),
                       value(setting, s))) {
  vec here = x[i], sum = {0.0, 0.0, 0.0};
  int at = bench_first_of_list(i, room, s), stride = bench_step_of_list(s);
  for (int k = 0; k < count[i]; ++k, at += stride) {
    vec d = bench_vec_apart(here, x[neighbour[at]], s.side);
    double near = bench_square(d);
    if (near >= 1.0 || near <= 0.0) continue;
    double pull = s.stiffness * (1.0 - 1.0 / sqrt(near));
    sum.x += pull * d.x;
    sum.y += pull * d.y;
    sum.z += pull * d.z;
  }
  double half = 0.5 * s.step;
  force[i] = sum;
  v[i].x += half * sum.x;
  v[i].y += half * sum.y;
  v[i].z += half * sum.z;
}
GK_KERNEL(bench_next_step, (inout(int, step), out(int, going), value(int, steps))) {
  step[0] += 1;
  going[0] = step[0] < steps ? 1 : 0;
}

/* ---- lists of neighbours ----------------------------------------------------------------------------------------- */

GK_KERNEL(bench_count_cells, (out(int, cell), atomic(int, count), in(vec, x), value(setting, s))) {
  int c = (bench_cell_along(x[i].z, s) * s.cells + bench_cell_along(x[i].y, s)) * s.cells + bench_cell_along(x[i].x, s);
  cell[i] = c;
  gk_atomic_add(&count[c], 1);
}
/* A prefix sum in three kernels: blocks, the blocks' sums by one item, blocks again. */
GK_KERNEL(bench_scan_blocks, (out(int, block), in(int, count), value(int, n))) {
  int end = (i + 1) * SCAN_BLOCK < n ? (i + 1) * SCAN_BLOCK : n, total = 0;
  for (int k = i * SCAN_BLOCK; k < end; ++k) total += count[k];
  block[i] = total;
}
GK_KERNEL(bench_scan_totals, (inout(int, block), out(int, first), value(int, blocks), value(int, n))) {
  int total = 0;
  for (int k = 0; k < blocks; ++k) {
    int here = block[k];
    block[k] = total;
    total += here;
  }
  first[n] = total;
}
GK_KERNEL(bench_scan_spread, (out(int, first), in(int, block), in(int, count), value(int, n))) {
  int end = (i + 1) * SCAN_BLOCK < n ? (i + 1) * SCAN_BLOCK : n, at = block[i];
  for (int k = i * SCAN_BLOCK; k < end; ++k) {
    first[k] = at;
    at += count[k];
  }
}
GK_KERNEL(bench_place, (out(int, member), atomic(int, count), in(int, first), in(int, cell))) {
  member[first[cell[i]] + gk_atomic_add(&count[cell[i]], -1) - 1] = i;
}
GK_KERNEL(bench_sort_cell, (inout(int, member), in(int, first))) { /* atomics placed the members in any order */
  for (int k = first[i] + 1; k < first[i + 1]; ++k) {
    int m = member[k], at = k;
    while (at > first[i] && member[at - 1] > m) {
      member[at] = member[at - 1];
      --at;
    }
    member[at] = m;
  }
}
/* Counting goes on beyond the room of a list, so that the host learns the length of the longest. */
GK_KERNEL(bench_find_neighbours, (out(int, count), out(int, neighbour), out(vec, listed), atomic(int, wanted),
                                  in(vec, x), in(int, first), in(int, member), value(int, room), value(setting, s))) {
  vec here = x[i];
  int cx = bench_cell_along(here.x, s), cy = bench_cell_along(here.y, s), cz = bench_cell_along(here.z, s), m = s.cells,
      found = 0;
  int begin = bench_first_of_list(i, room, s), stride = bench_step_of_list(s);
  double reach = s.reach * s.reach;
  for (int c = 0; c < 27; ++c) {
    int ax = cx + c % 3 - 1, ay = cy + c / 3 % 3 - 1, az = cz + c / 9 - 1;
    vec from = {ax < 0 ? here.x + s.side : ax >= m ? here.x - s.side : here.x,
                ay < 0 ? here.y + s.side : ay >= m ? here.y - s.side : here.y,
                az < 0 ? here.z + s.side : az >= m ? here.z - s.side : here.z};
    ax += ax < 0 ? m : ax >= m ? -m : 0;
    ay += ay < 0 ? m : ay >= m ? -m : 0;
    az += az < 0 ? m : az >= m ? -m : 0;
    int h = (az * m + ay) * m + ax, end = first[h + 1];
    for (int k = first[h]; k < end; ++k) {
      int j = member[k];
      vec d = {x[j].x - from.x, x[j].y - from.y, x[j].z - from.z};
      if (bench_square(d) >= reach || j == i) continue;
      if (found < room) neighbour[begin + found * stride] = j;
      ++found;
    }
  }
  count[i] = found < room ? found : room;
  listed[i] = here;
  if (found > room) gk_atomic_max(&wanted[0], found);
}
GK_KERNEL(bench_check_room, (out(int, overflow), out(int, stale), inout(int, searches), in(int, wanted))) {
  overflow[0] = wanted[0] > 0 ? 1 : 0;
  stale[0] = overflow[0];
  searches[0] += 1 - overflow[0];
}

/* ---- energy and momentum ----------------------------------------------------------------------------------------- */

GK_KERNEL(bench_sum_conserved, (sum(double, energy), sum(double, along_x), sum(double, along_y), sum(double, along_z),
                           in(vec, x), in(vec, v), in(int, count), in(int, neighbour), value(int, room),
                           value(setting, s))) {
  double paired = 0.0;
  int at = bench_first_of_list(i, room, s), stride = bench_step_of_list(s);
  for (int k = 0; k < count[i]; ++k, at += stride) {
    double by = fmax(1.0 - sqrt(bench_square(bench_vec_apart(x[i], x[neighbour[at]], s.side))), 0.0);
    paired += s.stiffness * by * by;
  }
  energy[0] += 0.5 * bench_square(v[i]) + 0.25 * paired; /* each pair occurs twice */
  along_x[0] += v[i].x;
  along_y[0] += v[i].y;
  along_z[0] += v[i].z;
}
GK_SOURCE_END
