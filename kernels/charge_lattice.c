/* Charges on a lattice (charge_lattice.h). Fields inside: sums over a cube of sites around the target with the weights of Evjen, Phys. Rev. 39 (1932) 675: sites on
 * its faces, edges and corners count a half, a quarter, an eighth, so that the cube is neutral; it gives Madelung's constant to 1e-3. */
#include "kernels/charge_lattice.h"

#include <math.h>
#include <stdint.h>

enum { REACH = 3, SIDE = 2 * REACH + 1, SITES = 8, EDGE_OF_A_MILLION = 100 };

/* In [-1, 1), of a site and an axis (the mixer of splitmix64). */
static double hashed(const int site[3], int axis) {
  uint64_t z = 4 * ((uint64_t)(site[0] + 4096) << 26 | (uint64_t)(site[1] + 4096) << 13 | (uint64_t)(site[2] + 4096)) + (uint64_t)axis + 1;
  z *= 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (double)((z ^ z >> 31) >> 11) * 0x1p-52 - 1;
}

static void place(const fmm_charge_lattice *l, const int site[3], double at[3]) {
  for (int a = 0; a < 3; a++) at[a] = l->origin[a] + l->spacing * (site[a] + l->moved * hashed(site, a));
}

static double charge_of(const int site[3]) { return (site[0] + site[1] + site[2]) & 1 ? -1 : 1; }

int fmm_charge_lattice_fill(const fmm_charge_lattice *l, const double low[3], double edge, int most, double *const at[3], double *charge) {
  int n = 0, begin[3], end[3], site[3];
  for (int a = 0; a < 3; a++) {
    begin[a] = (int)floor((low[a] - l->origin[a]) / l->spacing - l->moved);
    end[a] = (int)ceil((low[a] + edge - l->origin[a]) / l->spacing + l->moved);
  }
  for (site[0] = begin[0]; site[0] <= end[0]; site[0]++)
    for (site[1] = begin[1]; site[1] <= end[1]; site[1]++)
      for (site[2] = begin[2]; site[2] <= end[2]; site[2]++) {
        double x[3];
        int inside = 1;
        place(l, site, x);
        for (int a = 0; a < 3; a++) inside &= x[a] >= low[a] && x[a] < low[a] + edge;
        if (!inside || n == most) continue;
        for (int a = 0; a < 3; a++) at[a][n] = x[a];
        charge[n++] = charge_of(site);
      }
  return n;
}

/* Adds weight times what a unit of every component at `source` causes at `target`: the potential, or the derivative along an axis (by a difference). */
static void add_field(const fmm_charge_lattice *l, const fmm_pair *pair, const double *params, const double target[3], const double source[3], double weight, int axis,
                      double field[3]) {
  int nc = pair->info->equivalent_components;
  double step = axis < 0 ? 0 : 1e-4 * l->spacing, plus[9], minus[9] = {0}, at[3] = {target[0], target[1], target[2]};
  if (axis >= 0) at[axis] += step;
  pair->matrix(at, source, params, plus);
  if (axis >= 0) at[axis] -= 2 * step, pair->matrix(at, source, params, minus);
  for (int i = 0; i < nc; i++)
    for (int j = 0; j < nc; j++) field[i] += weight * (axis < 0 ? plus[i * nc + j] : (plus[i * nc + j] - minus[i * nc + j]) / (2 * step));
}

/* Of one site, the mean square over components; lowest: of the third index of the lattice's sites (its surface), or -REACH. */
static double square_at(const fmm_charge_lattice *l, const fmm_pair *pair, const double *params, const int site[3], int lowest, int axis) {
  double field[3] = {0}, target[3], source[3], sum = 0;
  place(l, site, target);
  for (int i = 0; i < SIDE * SIDE * SIDE; i++) {
    int d[3] = {i / (SIDE * SIDE) - REACH, i / SIDE % SIDE - REACH, i % SIDE - REACH}, other[3];
    double weight = 1;
    for (int a = 0; a < 3; a++) other[a] = site[a] + d[a], weight *= d[a] == REACH || d[a] == -REACH ? 0.5 : 1;
    if ((!d[0] && !d[1] && !d[2]) || d[2] < lowest) continue;
    place(l, other, source);
    add_field(l, pair, params, target, source, weight * charge_of(other), axis, field);
  }
  int nc = pair->info->equivalent_components;
  for (int k = 0; k < nc; k++) sum += field[k] * field[k] / nc;
  return sum;
}

double fmm_charge_lattice_square(const fmm_charge_lattice *l, const fmm_pair *pair, const double *params, int gradient) {
  const int origin[3] = {0, 0, 0};
  double sum = 0;
  if (gradient && l->moved == 0) { /* of the six faces' share of the sites, by the three axes */
    for (int axis = 0; axis < 3; axis++) sum += square_at(l, pair, params, origin, 0, axis) / 3;
    return sum * 6 / EDGE_OF_A_MILLION;
  }
  for (int s = 0; s < SITES; s++) {
    const int site[3] = {s & 1, s >> 1 & 1, s >> 2 & 1};
    for (int axis = 0; axis < (gradient ? 3 : 1); axis++) sum += square_at(l, pair, params, site, -REACH, gradient ? axis : -1) / (SITES * (gradient ? 3 : 1));
  }
  return sum;
}
