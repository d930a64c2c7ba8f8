/* One implicit Euler step of a deformable triangle mesh, as kernels.
 *
 * A step minimises E(x) = |x - guess|^2 m / (2 h^2) + springs(x) + hinges(x) + contacts(x) + ground(x) + friction(x),
 * the incremental potential of Kane et al. 2000, by Newton's method with a line search. Every part of the second
 * derivative is made positive definite separately, as Teran et al. 2005 do for elements, so that conjugate gradients
 * apply.
 * - springs are edges. Their stiffness makes the mesh act like a membrane (van Gelder 1998).
 * - hinges resist bending through the vector of Bergou et al. 2006. A hinge pulls its length to the length at rest.
 * - contacts push vertices apart that are near now and weren't near at rest.
 * - ground is a barrier that no vertex passes. Friction is the smoothed, lagged friction of Li et al. 2020 (IPC).
 * Forces between vertices come in pairs that cancel, almost to the last bit, and the solver treats translations
 * separately (deflation, Nicolaides 1987). So momentum is right up to rounding, even if the solver's loops end early.
 *
 * Nothing here depends on the order of atomics: they count, take a maximum, or place entries that are sorted later. */
#include "body.h"

GK_SOURCE(softbody, &body_math)

/* ---- begin ------------------------------------------------------------------------------------------------------- */

/* The body's place without forces, where the search starts. A body that touches anything starts at its present place:
 * from beyond a contact the search could end in another minimum, of higher energy. */
GK_KERNEL(predict, (inout(v3, x), out(v3, x_old), out(v3, guess), in(v3, v), in(int, touching), in(int, contact_first),
                    in(world, w), value(int, n))) {
  v3 old = x[i], to = v3_mad(old, w[0].step, v[i]);
  to.y -= w[0].step * w[0].step * w[0].gravity;
  x_old[i] = old;
  guess[i] = to;
  to.y = fmax(to.y, 0.5 * fmin(old.y, w[0].gap));
  if (touching[0] > 0 || contact_first[n] > 0) to = old;
  x[i] = to;
}

/* ---- contacts: count, scan, fill --------------------------------------------------------------------------------- */

GK_FN int cell_of(double position, double cell) {
  return (int)floorf(fminf(fmaxf((float)(position / cell), -1e8f), 1e8f));
}
GK_FN int cell_hash(int x, int y, int z, int cells) { /* cells is a power of two */
  uint h = (uint)x * 73856093u ^ (uint)y * 19349663u ^ (uint)z * 83492791u;
  return (int)((h ^ h >> 15) & (uint)(cells - 1));
}
GK_FN int cell_of_vertex(v3 p, double cell, int cells) {
  return cell_hash(cell_of(p.x, cell), cell_of(p.y, cell), cell_of(p.z, cell), cells);
}

GK_KERNEL(count_cells, (atomic(int, count), in(v3, x), in(world, w), value(int, cells))) {
  gk_atomic_add(&count[cell_of_vertex(x[i], w[0].cell, cells)], 1);
}
/* A prefix sum in three kernels: blocks, the blocks' sums by one item, blocks again. */
GK_KERNEL(scan_blocks, (out(int, block), in(int, count), value(int, n))) {
  int end = (i + 1) * SCAN_BLOCK < n ? (i + 1) * SCAN_BLOCK : n, total = 0;
  for (int k = i * SCAN_BLOCK; k < end; ++k) total += count[k];
  block[i] = total;
}
GK_KERNEL(scan_totals, (inout(int, block), out(int, first), value(int, blocks), value(int, n))) {
  int total = 0;
  for (int k = 0; k < blocks; ++k) {
    int here = block[k];
    block[k] = total;
    total = here > 1073741824 - total ? 1073741824 : total + here; /* above any buffer's size, without overflow */
  }
  first[n] = total;
}
GK_KERNEL(scan_spread, (out(int, first), in(int, block), in(int, count), value(int, n))) {
  int end = (i + 1) * SCAN_BLOCK < n ? (i + 1) * SCAN_BLOCK : n, at = block[i];
  for (int k = i * SCAN_BLOCK; k < end; ++k) {
    first[k] = at;
    at += count[k];
  }
}
GK_KERNEL(place, (out(int, member), atomic(int, count), in(int, first), in(v3, x), in(world, w), value(int, cells))) {
  int c = cell_of_vertex(x[i], w[0].cell, cells);
  member[first[c] + gk_atomic_add(&count[c], -1) - 1] = i;
}
GK_KERNEL(sort_cell, (inout(int, member), in(int, first))) { /* atomics placed the members in any order */
  for (int k = first[i] + 1; k < first[i + 1]; ++k) {
    int m = member[k], at = k;
    while (at > first[i] && member[at - 1] > m) {
      member[at] = member[at - 1];
      --at;
    }
    member[at] = m;
  }
}
/* Runs twice: first with room 0 to count, then to fill. A pair keeps the distance `reach`, or 0.7 of its distance at
 * rest if that is less, so a body at rest doesn't touch itself. Both ends compute with the same numbers and agree. */
GK_KERNEL(find_contacts, (out(int, count), out(contact, contacts), in(int, first), in(v3, x), in(v3, rest),
                          in(int, cell_first), in(int, member), in(int, spring_first), in(int, spring_other),
                          in(world, w), value(int, cells), value(int, room))) {
  if (room > 0 && first[i] == first[i + 1]) return; /* the first run found none */
  v3 p = x[i];
  double cell = w[0].cell, reach = w[0].reach;
  int cx = cell_of(p.x, cell), cy = cell_of(p.y, cell), cz = cell_of(p.z, cell), found = 0;
  for (int c = 0; c < 27; ++c) {
    int ax = cx + c % 3 - 1, ay = cy + c / 3 % 3 - 1, az = cz + c / 9 - 1;
    int h = cell_hash(ax, ay, az, cells);
    for (int k = cell_first[h]; k < cell_first[h + 1]; ++k) {
      int j = member[k];
      v3 q = x[j], d = v3_sub(q, p), d_rest = v3_sub(rest[j], rest[i]);
      double near = v3_dot(d, d);
      if (j == i || near > 1.69 * reach * reach || near > 0.8281 * v3_dot(d_rest, d_rest)) continue;
      /* Another cell may have the same hash. */
      if (cell_of(q.x, cell) != ax || cell_of(q.y, cell) != ay || cell_of(q.z, cell) != az) continue;
      bool here = spring_first[i + 1] - spring_first[i] < spring_first[j + 1] - spring_first[j];
      int s = spring_first[here ? i : j], end = spring_first[here ? i + 1 : j + 1]; /* search the shorter list */
      while (s < end && spring_other[s] != (here ? j : i)) ++s;
      if (s < end) continue; /* joined by an edge */
      int at = room > 0 ? first[i] + found : 0;
      if (at < room) {
        contacts[at].other = j;
        contacts[at].reach = (float)fmin(reach, 0.7 * sqrt(v3_dot(d_rest, d_rest)));
      }
      ++found;
    }
  }
  count[i] = found;
}
GK_KERNEL(judge_room, (out(int, overflow), in(int, first), value(int, n), value(int, room))) {
  overflow[0] = first[n] > room ? 1 : 0;
}

/* ---- the terms of the energy: gradient and curvature, gathered by each vertex ------------------------------------ */

GK_KERNEL(stretching, (out(term, stretch), out(bond, bonds), in(v3, x), in(int, first), in(int, other),
                       in(spring, springs))) {
  v3 sum = {0.0, 0.0, 0.0};
  sym3 block = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (int k = first[i]; k < first[i + 1]; ++k) {
    v3 d = v3_sub(x[other[k]], x[i]);
    double length = v3_length(d), stiffness = springs[k].stiffness, rest = springs[k].rest;
    v3 n = v3_scale(length > 1e-12 ? 1.0 / length : 0.0, d);
    bond b = bond_of(n, stiffness, length > rest ? stiffness * (1.0 - rest / length) : 0.0);
    sum = v3_mad(sum, stiffness * (rest - length), n);
    block = sym3_add(block, bond_block(b, 1.0));
    bonds[k] = b;
  }
  stretch[i].gradient = sum;
  stretch[i].block = block;
}

GK_FN v3 hinge_vector(hinge g, v3 a, v3 b, v3 c, v3 d) {
  v3 r = v3_scale(g.wb, v3_sub(b, a));
  r = v3_mad(r, g.wc, v3_sub(c, a));
  return v3_mad(r, g.wd, v3_sub(d, a));
}
GK_KERNEL(turning, (out(v3, turn), out(bond, hinge_bonds), in(v3, x), in(hinge, hinges))) {
  hinge g = hinges[i];
  v3 s = hinge_vector(g, x[g.a], x[g.b], x[g.c], x[g.d]);
  double length = v3_length(s);
  v3 n = v3_scale(length > 1e-12 ? 1.0 / length : 0.0, s);
  double across = length > g.rest ? g.stiffness * (1.0 - g.rest / length) : 0.0;
  hinge_bonds[i] = bond_of(n, g.stiffness, g.rest > 0.0 ? across : g.stiffness);
  turn[i] = v3_scale(g.stiffness, v3_mad(s, -g.rest, n));
}
GK_KERNEL(bending, (out(term, bend), in(v3, turn), in(bond, hinge_bonds), in(int, share_first), in(int, share_hinge),
                    in(double, share_weight))) {
  v3 sum = {0.0, 0.0, 0.0};
  sym3 block = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (int k = share_first[i]; k < share_first[i + 1]; ++k) {
    double weight = share_weight[k];
    sum = v3_mad(sum, weight, turn[share_hinge[k]]);
    block = sym3_add(block, bond_block(hinge_bonds[share_hinge[k]], weight * weight));
  }
  bend[i].gradient = sum;
  bend[i].block = block;
}

GK_FN double push_between(double m, double n, world w) { return w.push * (m * n / (m + n)) / (w.step * w.step); }
GK_KERNEL(pushing, (out(term, push), out(bond, contact_bonds), in(v3, x), in(double, mass), in(int, contact_first),
                    in(contact, contacts), in(world, w))) {
  v3 sum = {0.0, 0.0, 0.0};
  sym3 block = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  for (int k = contact_first[i]; k < contact_first[i + 1]; ++k) {
    int j = contacts[k].other;
    v3 d = v3_sub(x[j], x[i]);
    double length = v3_length(d), reach = (double)contacts[k].reach;
    double stiffness = length < reach && length > 1e-12 ? push_between(mass[i], mass[j], w[0]) : 0.0;
    v3 n = v3_scale(length > 1e-12 ? 1.0 / length : 0.0, d);
    bond b = bond_of(n, stiffness, 0.0);
    sum = v3_mad(sum, stiffness * (reach - length), n);
    block = sym3_add(block, bond_block(b, 1.0));
    contact_bonds[k] = b;
  }
  push[i].gradient = sum;
  push[i].block = block;
}

/* ---- the linear system A u = r ----------------------------------------------------------------------------------- */

/* The ground's barrier, divided by mass / step^2, for y below the gap: gap (gap - y)^2 / y; and its force. */
GK_FN double ground_energy(double y, double gap) { return y < gap ? gap * (gap - y) * (gap - y) / y : 0.0; }
GK_FN double ground_push(double y, double gap) { return y < gap ? gap * (gap * gap / (y * y) - 1.0) : 0.0; }

/* Friction's force, divided by the distance slid. */
GK_FN double friction_rate(double slid, double slip) {
  return slid < slip ? (2.0 - slid / slip) / slip : 1.0 / slid;
}
GK_FN double friction_energy(double slid, double slip) {
  return slid < slip ? slid * slid / slip * (1.0 - slid / (3.0 * slip)) : slid - slip / 3.0;
}
GK_FN double slid_by(v3 a, v3 b) { return sqrt((a.x - b.x) * (a.x - b.x) + (a.z - b.z) * (a.z - b.z)); }

/* r = - gradient; `rows` is A times a translation; `inverse` is that of A's diagonal block. */
GK_KERNEL(assemble, (out(v3, r), out(v3, rows), out(sym3, inverse), sum(double, sum_x), sum(double, sum_y),
                     sum(double, sum_z), sum(double, gain), in(v3, x), in(v3, x_old), in(v3, guess), in(double, mass),
                     in(double, load), in(term, stretch), in(term, bend), in(term, push), in(world, w))) {
  double inertia = mass[i] / (w[0].step * w[0].step), gap = w[0].gap, y = x[i].y;
  v3 g = v3_scale(inertia, v3_sub(x[i], guess[i])), row = {inertia, inertia, inertia};
  g = v3_add(g, v3_add(stretch[i].gradient, v3_add(bend[i].gradient, push[i].gradient)));
  if (y < gap) {
    double stiffness = inertia * w[0].ground, ratio = gap / y;
    g.y -= stiffness * ground_push(y, gap);
    row.y += 2.0 * stiffness * ratio * ratio * ratio;
  }
  if (load[i] > 0.0) {
    double rate = w[0].friction * load[i] * friction_rate(slid_by(x[i], x_old[i]), w[0].slip);
    g.x += rate * (x[i].x - x_old[i].x);
    g.z += rate * (x[i].z - x_old[i].z);
    row.x += rate;
    row.z += rate;
  }
  r[i] = v3_scale(-1.0, g);
  rows[i] = row;
  inverse[i] =
      sym3_inverse(sym3_add(sym3_diagonal(row), sym3_add(stretch[i].block, sym3_add(bend[i].block, push[i].block))));
  sum_x[0] -= g.x;
  sum_y[0] -= g.y;
  sum_z[0] -= g.z;
  gain[0] += v3_dot(g, v3_sub(x[i], x_old[i]));
}
GK_KERNEL(add_rows, (sum(double, row_x), sum(double, row_y), sum(double, row_z), in(v3, rows))) {
  row_x[0] += rows[i].x;
  row_y[0] += rows[i].y;
  row_z[0] += rows[i].z;
}
/* The best translation. It makes the residual's sum 0, and the sum stays 0. */
GK_KERNEL(translate, (out(control, c), inout(double, sum_x), inout(double, sum_y), inout(double, sum_z),
                      inout(double, row_x), inout(double, row_y), inout(double, row_z))) {
  c[0].weight = v3_of(row_x[0], row_y[0], row_z[0]);
  c[0].shift = v3_of(sum_x[0] / row_x[0], sum_y[0] / row_y[0], sum_z[0] / row_z[0]);
  c[0].first = -1.0;
  sum_x[0] = 0.0;
  sum_y[0] = 0.0;
  sum_z[0] = 0.0;
  row_x[0] = 0.0;
  row_y[0] = 0.0;
  row_z[0] = 0.0;
}
GK_KERNEL(start_solve, (out(v3, u), inout(v3, r), out(v3, z), sum(double, rz), sum(double, sum_x), sum(double, sum_y),
                        sum(double, sum_z), in(v3, rows), in(sym3, inverse), in(control, c))) {
  v3 rest = v3_sub(r[i], v3_times(rows[i], c[0].shift)), s = sym3_apply(inverse[i], rest);
  u[i] = c[0].shift;
  r[i] = rest;
  z[i] = s;
  rz[0] += v3_dot(rest, s);
  sum_x[0] += rows[i].x * s.x;
  sum_y[0] += rows[i].y * s.y;
  sum_z[0] += rows[i].z * s.z;
}
/* Decides after start_solve and after each pass whether to continue. */
GK_KERNEL(judge_solve, (inout(control, c), out(int, solving), inout(double, rz), inout(double, pq),
                        inout(double, sum_x), inout(double, sum_y), inout(double, sum_z), in(world, w))) {
  double now = rz[0];
  if (c[0].first < 0.0) {
    c[0].first = now;
    c[0].beta = 0.0;
  } else {
    c[0].beta = c[0].rz > 0.0 ? now / c[0].rz : 0.0;
  }
  c[0].rz = now;
  c[0].shift = v3_of(sum_x[0] / c[0].weight.x, sum_y[0] / c[0].weight.y, sum_z[0] / c[0].weight.z);
  solving[0] = now > fmax(w[0].cg * w[0].cg * c[0].first, w[0].enough) ? 1 : 0;
  rz[0] = 0.0;
  pq[0] = 0.0;
  sum_x[0] = 0.0;
  sum_y[0] = 0.0;
  sum_z[0] = 0.0;
}
GK_KERNEL(direct, (inout(v3, p), in(v3, z), in(control, c))) {
  v3 s = v3_sub(z[i], c[0].shift);
  p[i] = c[0].beta > 0.0 ? v3_mad(s, c[0].beta, p[i]) : s;
}
GK_KERNEL(multiply_hinges, (out(v3, turn), in(v3, p), in(hinge, hinges), in(bond, hinge_bonds))) {
  hinge g = hinges[i];
  turn[i] = bond_apply(hinge_bonds[i], hinge_vector(g, p[g.a], p[g.b], p[g.c], p[g.d]));
}
GK_KERNEL(multiply, (out(v3, q), sum(double, pq), in(v3, p), in(v3, rows), in(int, spring_first), in(int, spring_other),
                     in(bond, bonds), in(int, share_first), in(int, share_hinge), in(double, share_weight),
                     in(v3, turn), in(int, contact_first), in(contact, contacts), in(bond, contact_bonds))) {
  v3 here = p[i], sum = v3_times(rows[i], here);
  for (int k = spring_first[i]; k < spring_first[i + 1]; ++k)
    sum = v3_add(sum, bond_apply(bonds[k], v3_sub(here, p[spring_other[k]])));
  for (int k = share_first[i]; k < share_first[i + 1]; ++k) sum = v3_mad(sum, share_weight[k], turn[share_hinge[k]]);
  for (int k = contact_first[i]; k < contact_first[i + 1]; ++k)
    sum = v3_add(sum, bond_apply(contact_bonds[k], v3_sub(here, p[contacts[k].other])));
  q[i] = sum;
  pq[0] += v3_dot(here, sum);
}
GK_KERNEL(advance, (inout(v3, u), inout(v3, r), out(v3, z), sum(double, rz), sum(double, sum_x), sum(double, sum_y),
                    sum(double, sum_z), in(v3, p), in(v3, q), in(v3, rows), in(sym3, inverse), in(double, pq),
                    in(control, c))) {
  double alpha = pq[0] > 0.0 ? c[0].rz / pq[0] : 0.0;
  v3 rest = v3_mad(r[i], -alpha, q[i]), s = sym3_apply(inverse[i], rest);
  u[i] = v3_mad(u[i], alpha, p[i]);
  r[i] = rest;
  z[i] = s;
  rz[0] += v3_dot(rest, s);
  sum_x[0] += rows[i].x * s.x;
  sum_y[0] += rows[i].y * s.y;
  sum_z[0] += rows[i].z * s.z;
}

/* ---- line search ------------------------------------------------------------------------------------------------- */

GK_KERNEL(start_search, (inout(control, c), out(uint, largest))) {
  c[0].alpha = 0.0; /* the first trial only measures the energy before the step */
  c[0].trials = 0;
  c[0].accepted = 0;
  largest[0] = 0u;
}
/* A vertex that would pass the ground stops before it. The energy decides whether the step is good. */
GK_KERNEL(try_step, (out(v3, trial), in(v3, x), in(v3, u), in(control, c))) {
  v3 to = v3_mad(x[i], c[0].alpha, u[i]);
  to.y = fmax(to.y, 0.2 * x[i].y);
  trial[i] = to;
}
GK_KERNEL(add_energy, (sum(double, energy), in(v3, trial), in(v3, x_old), in(v3, guess), in(double, mass),
                       in(double, load), in(int, spring_first), in(int, spring_other), in(spring, springs),
                       in(int, contact_first), in(contact, contacts), in(world, w))) {
  v3 here = trial[i], d = v3_sub(here, guess[i]);
  double inertia = mass[i] / (w[0].step * w[0].step), paired = 0.0;
  double total = inertia * (0.5 * v3_dot(d, d) + w[0].ground * ground_energy(here.y, w[0].gap));
  if (load[i] > 0.0) total += w[0].friction * load[i] * friction_energy(slid_by(here, x_old[i]), w[0].slip);
  for (int k = spring_first[i]; k < spring_first[i + 1]; ++k) {
    double by = v3_length(v3_sub(trial[spring_other[k]], here)) - springs[k].rest;
    paired += springs[k].stiffness * by * by;
  }
  for (int k = contact_first[i]; k < contact_first[i + 1]; ++k) {
    int j = contacts[k].other;
    double by = fmax((double)contacts[k].reach - v3_length(v3_sub(trial[j], here)), 0.0);
    paired += push_between(mass[i], mass[j], w[0]) * by * by;
  }
  energy[0] += total + 0.25 * paired; /* each pair occurs twice */
}
GK_KERNEL(add_hinges, (sum(double, energy), in(v3, trial), in(hinge, hinges))) {
  hinge g = hinges[i];
  double by = v3_length(hinge_vector(g, trial[g.a], trial[g.b], trial[g.c], trial[g.d])) - g.rest;
  energy[0] += 0.5 * g.stiffness * by * by;
}
GK_KERNEL(judge_search, (inout(control, c), out(int, searching), inout(double, energy))) {
  double now = energy[0], alpha = c[0].alpha;
  int trial = c[0].trials;
  energy[0] = 0.0;
  searching[0] = 1;
  c[0].trials = trial + 1;
  if (trial == 0) {
    c[0].before = now;
    c[0].best = 0.0;
    c[0].alpha = 1.0;
  } else if (c[0].accepted == 2) { /* the best trial again */
    searching[0] = 0;
  } else if (c[0].best > 0.0 ? now < c[0].least : now <= c[0].before + 1e-13 * fabs(c[0].before)) { /* false for NaN */
    c[0].accepted = 1;
    c[0].best = alpha;
    c[0].least = now;
    if (alpha < 1.0 || alpha > 10.0) searching[0] = 0;
    else c[0].alpha = 2.0 * alpha;
  } else if (c[0].best > 0.0) {
    c[0].alpha = c[0].best;
    c[0].accepted = 2;
  } else {
    c[0].alpha = 0.5 * alpha;
    searching[0] = trial < 20 ? 1 : 0;
  }
}
GK_KERNEL(accept, (inout(v3, x), atomic(uint, largest), in(v3, trial), in(control, c))) {
  if (c[0].accepted == 0) return;
  /* Positive floats order like their bits. */
  gk_atomic_max(&largest[0], gk_bits((float)v3_length(v3_sub(trial[i], x[i]))));
  x[i] = trial[i];
}
/* Unbalanced forces add energy along a step. The loop ends when that energy is small. */
GK_KERNEL(judge_newton, (out(int, moving), in(uint, largest), inout(double, gain), in(control, c), in(world, w))) {
  bool moves = largest[0] > gk_bits((float)w[0].still) || gain[0] > w[0].gain;
  moving[0] = c[0].accepted != 0 && moves ? 1 : 0;
  gain[0] = 0.0;
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

GK_KERNEL(finish, (out(v3, v), out(double, load), in(v3, x), in(v3, x_old), in(double, mass), in(world, w))) {
  v[i] = v3_scale(1.0 / w[0].step, v3_sub(x[i], x_old[i]));
  load[i] = mass[i] / (w[0].step * w[0].step) * w[0].ground * ground_push(x[i].y, w[0].gap);
}
/* Energy and momentum of the state, for the host's checks. */
GK_KERNEL(measure, (sum(double, energy), sum(double, kinetic), sum(double, momentum_x), sum(double, momentum_y),
                    sum(double, momentum_z), sum(int, touching), in(v3, x), in(v3, v), in(double, mass),
                    in(int, spring_first), in(int, spring_other), in(spring, springs), in(int, contact_first),
                    in(contact, contacts), in(world, w))) {
  double moving = 0.5 * mass[i] * v3_dot(v[i], v[i]), paired = 0.0;
  for (int k = spring_first[i]; k < spring_first[i + 1]; ++k) {
    double by = v3_length(v3_sub(x[spring_other[k]], x[i])) - springs[k].rest;
    paired += springs[k].stiffness * by * by;
  }
  for (int k = contact_first[i]; k < contact_first[i + 1]; ++k) {
    int j = contacts[k].other;
    double by = fmax((double)contacts[k].reach - v3_length(v3_sub(x[j], x[i])), 0.0);
    paired += push_between(mass[i], mass[j], w[0]) * by * by;
  }
  double barrier = mass[i] / (w[0].step * w[0].step) * w[0].ground * ground_energy(x[i].y, w[0].gap);
  energy[0] += moving + mass[i] * w[0].gravity * x[i].y + barrier + 0.25 * paired;
  kinetic[0] += moving;
  momentum_x[0] += mass[i] * v[i].x;
  momentum_y[0] += mass[i] * v[i].y;
  momentum_z[0] += mass[i] * v[i].z;
  touching[0] += x[i].y < w[0].gap ? 1 : 0;
}
/* A step may gain energy where the energy isn't a convex function of the shape (a fold snaps, vertices roll over each
 * other). This kernel removes it from the motion about the centre of mass, by one factor for all vertices, so momentum
 * stays (the idea of Dinev et al. 2018, FEPR). `taken` has the sum of removed energy. */
GK_KERNEL(judge_energy, (inout(double, energy), inout(double, kinetic), out(double, keep), inout(double, highest),
                         inout(double, taken), in(double, momentum_x), in(double, momentum_y), in(double, momentum_z),
                         in(world, w))) {
  double along = momentum_x[0] * momentum_x[0] + momentum_y[0] * momentum_y[0] + momentum_z[0] * momentum_z[0];
  double inner = kinetic[0] - 0.5 * along / w[0].mass, surplus = energy[0] - highest[0];
  keep[0] = 1.0;
  if (surplus > 0.0 && inner > 0.0) {
    double back = fmin(surplus, inner);
    keep[0] = sqrt(fmax(1.0 - back / inner, 0.0));
    energy[0] -= back;
    kinetic[0] -= back;
    taken[0] += back;
  }
  highest[0] = energy[0];
}
GK_KERNEL(take_back, (inout(v3, v), in(double, keep), in(double, momentum_x), in(double, momentum_y),
                      in(double, momentum_z), in(world, w))) {
  if (keep[0] == 1.0) return;
  v3 centre = {momentum_x[0] / w[0].mass, momentum_y[0] / w[0].mass, momentum_z[0] / w[0].mass};
  v[i] = v3_mad(centre, keep[0], v3_sub(v[i], centre));
}
GK_SOURCE_END
