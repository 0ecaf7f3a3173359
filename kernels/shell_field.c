/* Making operators that keep a far shell's field, and adding that field to points. See shell_field.h. */
#include "kernels/shell_field.h"

#include <math.h>
#include <string.h>

#include "kernels/operators_parts.h"
#include "kernels/pair/shell.h"

void fmm_shell_range(const fmm_operators *o, int component, int *begin, int *end) {
  const fmm_parity_map *map = &o->parity;
  int chi = 0;
  while (map->n_blocks > 1 && fmm_component_parity(o->pair->info->parity, chi, component)) chi++; /* even along all axes */
  *begin = map->begin[chi], *end = map->begin[chi + 1];
}

void fmm_shell_parts(const fmm_operators *o, const fmm_level_operators *set, const double *coefficients, double *parts) {
  for (int k = 0; k < o->parity.n_components; k++) {
    int begin, end;
    double sum = 0;
    fmm_shell_range(o, k, &begin, &end);
    for (int i = begin; i < end && set->shell; i++) sum += set->shell[k * o->n + i] * coefficients[i];
    parts[k] = sum;
  }
}

void fmm_shell_add(double decay2, const double center[3], double part, int gradient, int64_t n, const double *x, const double *y, const double *z, double *value, int64_t value_stride) {
  if (part == 0) return; /* of boxes that keep none, where the series may not hold */
  if (decay2 == 0) {
    for (int64_t i = 0; i < n; i++) value[i] += part;
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    const double d[3] = {x[i] - center[0], y[i] - center[1], z[i] - center[2]}, at = decay2 * (d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    value[i] += part * fmm_shell_value(at);
    if (!gradient) continue;
    const double slope = 2 * decay2 * part * fmm_shell_slope(at);
    for (int k = 0; k < 3; k++) value[(k + 1) * value_stride + i] += slope * d[k];
  }
}

/* Fields that L2L keeps: component k's shell field, of strength 1, and those that are linear near the middle: along axis a, one component alone x_a times 6 dF/dz (a derivative of the shell field), which of
 * several components needs a != k for its divergence to vanish, or (a == k) x_a in it and -x_b in the next one, of which those of two components are enough. */
typedef struct field { int component, axis; /* axis -1: the shell field */ } field;
enum { MOST_FIELDS = 3 + 8 };

/* The shell fields come first. */
static int list_fields(const fmm_operators *o, field list[MOST_FIELDS]) {
  const int nc = o->parity.n_components;
  int n = 0;
  for (int k = 0; k < nc; k++) list[n++] = (field){k, -1};
  for (int k = 0; k < nc; k++)
    for (int a = 0; a < 3; a++)
      if (nc == 1 || a != k || k + 1 < nc) list[n++] = (field){k, a};
  return n;
}

/* A field around the origin at the check points of a box there (octant < 0) or of its child; natural unknowns. Linear ones in units of the half-width. */
static void fill_check(const fmm_operators *o, double half_width, field what, int octant, double *natural) {
  const int ns = o->n_surface, k = what.component;
  memset(natural, 0, (size_t)o->n * sizeof *natural);
  for (int i = 0; i < ns; i++) {
    double at[3];
    for (int a = 0; a < 3; a++) at[a] = octant < 0 ? FMM_INNER_RADIUS * half_width * o->surface[3 * i + a] : half_width / 2 * ((octant >> a & 1 ? 1 : -1) + FMM_INNER_RADIUS * o->surface[3 * i + a]);
    const double z = o->shell_decay2 * (at[0] * at[0] + at[1] * at[1] + at[2] * at[2]);
    natural[k * ns + i] = what.axis < 0 ? fmm_shell_value(z) : 6 * fmm_shell_slope(z) * at[what.axis] / half_width;
    if (what.axis == k && o->parity.n_components > 1) natural[(k + 1) * ns + i] = -at[k + 1] / half_width;
  }
}

/* panels += column times row, which begins with the panels' first column; of it most is zero where there is parity. */
static void add_outer(fmm_panels *panels, const double *column, const double *row) {
  for (int j = 0; j < panels->columns; j++)
    for (int i = 0; row[j] != 0 && i < panels->rows; i++) panels->data[((int64_t)(i / FMM_PANEL_ROWS) * panels->columns + j) * FMM_PANEL_ROWS + i % FMM_PANEL_ROWS] += column[i] * row[j];
}

/* Natural values as those that, spread over the orbits, are they. */
static void unspread(const fmm_operators *o, const double *natural, double *regrouped) {
  fmm_regroup(o, natural, regrouped);
  for (int i = 0; i < o->n; i++) regrouped[i] /= o->parity.n_blocks;
}

/* L2L of a field's coefficients e to the field at the child's check points, by what `row` takes of coefficients: 1 of these, nothing of other fields'. work: 4 n. */
static void correct_l2l(const fmm_operators *o, fmm_level_operators *set, field what, const double *e, const double *row, double *work) {
  const int blocks = o->parity.n_blocks, n = o->n;
  double *wanted = work, *made = work + n, *scratch = work + 2 * n;
  for (int octant = 0; octant < (blocks == 1 ? 8 : 1); octant++) {
    fill_check(o, set->half_width, what, octant, wanted);
    memset(made, 0, (size_t)n * sizeof *made);
    fmm_apply_l2l(o, set, octant, e, made, scratch);
    for (int i = 0; i < n; i++) wanted[i] -= made[i];
    unspread(o, wanted, made);
    for (int chi = 0; chi < blocks; chi++) add_outer(&set->l2l[blocks == 1 ? octant : chi], made + o->parity.begin[chi], row);
  }
}

/* down_second of component k's shell field's coefficients e to nothing. work: 3 n. */
static void correct_second(const fmm_operators *o, fmm_level_operators *set, int component, const double *e, const double *row, double *work) {
  double *natural = work, *regrouped = work + o->n;
  int begin, end;
  fmm_shell_range(o, component, &begin, &end);
  fmm_apply_second(o, set->down_second, 1, e, natural, work + 2 * o->n);
  unspread(o, natural, regrouped);
  for (int i = 0; i < o->n; i++) regrouped[i] = -regrouped[i];
  for (int chi = 0; chi < o->parity.n_blocks; chi++)
    if (o->parity.begin[chi] <= begin && begin < o->parity.begin[chi + 1]) add_outer(&set->down_second[chi], regrouped + begin, row + begin);
}

static double dot(int n, const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* v less its parts along n_basis orthonormal vectors; twice, for rounding. Returns the square of what is left. */
static double project_out(int n, double *v, int n_basis, const double *basis) {
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < n_basis; i++) {
      const double part = dot(n, v, basis + i * n);
      for (int k = 0; k < n; k++) v[k] -= part * basis[i * n + k];
    }
  return dot(n, v, v);
}

/* row: what takes the strength of each field of coefficients, from fields' own coefficients e: the part that is orthogonal to all others', over its square. Fields that the others nearly give (of orders with hardly
 * any points) have none. basis: room for n_fields vectors. */
static void make_rows(int n, int n_fields, const double *e, double *row, double *basis) {
  const double least = 0.01; /* of a field's square that is its own */
  for (int f = 0; f < n_fields; f++) {
    double *r = row + f * n;
    int n_basis = 0;
    for (int g = 0; g < n_fields; g++) {
      double *b = basis + n_basis * n;
      if (g == f) continue;
      memcpy(b, e + g * n, (size_t)n * sizeof *b);
      const double left = project_out(n, b, n_basis, basis);
      if (!(left > least * dot(n, e + g * n, e + g * n))) continue;
      for (int k = 0; k < n; k++) b[k] /= sqrt(left);
      n_basis++;
    }
    memcpy(r, e + f * n, (size_t)n * sizeof *r);
    const double own = project_out(n, r, n_basis, basis);
    for (int k = 0; k < n; k++) r[k] = own > least * dot(n, e + f * n, e + f * n) ? r[k] / own : 0;
  }
}

fmm_status fmm_shell_create(const fmm_operators *o, fmm_level_operators *set) {
  const int n = o->n, nc = o->parity.n_components;
  field list[MOST_FIELDS];
  double *e = NULL, *shell = NULL;
  if (!o->pair->info->shell_field || o->shell_decay2 * set->half_width * set->half_width > FMM_SHELL_MOST * FMM_SHELL_MOST) return FMM_OK;
  const int all = list_fields(o, list), n_fields = set->l2l[0].data ? all : nc;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&e, (3 * n_fields + 4) * n, "shell fields"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&shell, nc * n, "coefficients of shell fields"));
  double *row = e + n_fields * n, *work = row + 2 * n_fields * n;
  for (int f = 0; f < n_fields; f++) {
    fill_check(o, set->half_width, list[f], -1, work);
    fmm_apply_first(o, set->down_first, 1, work, e + f * n, work + n);
  }
  make_rows(n, n_fields, e, row, row + n_fields * n);
  for (int f = 0; f < n_fields && set->l2l[0].data; f++) correct_l2l(o, set, list[f], e + f * n, row + f * n, work);
  for (int k = 0; k < nc; k++) correct_second(o, set, k, e + k * n, row + k * n, work);
  memcpy(shell, row, (size_t)(nc * n) * sizeof *shell);
  set->shell = shell, shell = NULL;
done:
  FMM_FREE(&e);
  FMM_FREE(&shell);
  return status;
}
