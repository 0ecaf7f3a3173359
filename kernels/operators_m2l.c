/* The kernel's transforms for M2L, one a pair of components and an offset between boxes, by FFTW at set-up.
 * Equivalent densities and check potentials are on lattices of the same spacing, so check(t) = sum_s K((t - s) spacing - 2 h d) density(s) with t, s in
 * {0..p-1}^3: differences -(p-1)..p-1, a cyclic convolution of length 2p-1 an axis without wrap-around. With parity, the transform for an offset
 * with mirrored axes is that of the mirrored frequency, so that only d >= 0 is kept; that of one with axes exchanged is that of the frequency with these exchanged, where a kernel has one component and axes are alike to it, so
 * that only d_x <= d_y <= d_z are transformed. Reference: Ying, Biros, Zorin 2004, section 3.3. */
#include <fftw3.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/operators_parts.h"

static pthread_mutex_t planner_mutex = PTHREAD_MUTEX_INITIALIZER; /* FFTW: only execution is thread-safe */

typedef struct table {
  const fmm_operators *o;
  fmm_level_operators *set;
  fftw_plan plan;
  int components;
  int64_t points, half; /* of one real array and of one spectrum (x, y, z half) */
} table;

static void offset_of(const fmm_operators *o, int index, int d[3]) {
  int side = o->n_offsets == 343 ? 7 : 4, low = o->n_offsets == 343 ? 3 : 0;
  d[0] = index / (side * side) - low;
  d[1] = index / side % side - low;
  d[2] = index % side - low;
}

static int adjacent(const int d[3]) { return abs(d[0]) <= 1 && abs(d[1]) <= 1 && abs(d[2]) <= 1; }

/* K at all lattice differences, components^2 arrays one after another. */
static void sample(const table *t, const int d[3], double *values) {
  const fmm_operators *o = t->o;
  int p = o->order, length = o->grid, nn = t->components * t->components;
  double h = t->set->half_width, spacing = 2 * FMM_INNER_RADIUS * h / (p - 1), block[9];
  double source[3] = {2 * h * d[0], 2 * h * d[1], 2 * h * d[2]};
  for (int ix = 0; ix < length; ix++)
    for (int iy = 0; iy < length; iy++)
      for (int iz = 0; iz < length; iz++) {
        double target[3] = {spacing * (ix < p ? ix : ix - length), spacing * (iy < p ? iy : iy - length), spacing * (iz < p ? iz : iz - length)};
        o->pair->matrix(target, source, o->params, block);
        for (int k = 0; k < nn; k++) values[k * t->points + ((int64_t)ix * length + iy) * length + iz] = block[k];
      }
}

/* An offset's sampled kernel and its transforms, components^2 spectra one after another. */
static void transform_offset(const table *t, const int d[3], double *values, double *spectrum) {
  sample(t, d, values);
  for (int k = 0; k < t->components * t->components; k++)
    fftw_execute_dft_r2c(t->plan, values + k * t->points, (fftw_complex *)(spectrum + 2 * k * t->half));
}

static double factor_of(const table *t) { return 1.0 / (double)t->points; }

static void store(const table *t, int index, const double *spectrum) {
  const fmm_operators *o = t->o;
  const double factor = factor_of(t);
  int nn = t->components * t->components;
  for (int k = 0; k < nn; k++)
    for (int64_t xy = 0; xy < (int64_t)o->grid * o->grid; xy++)
      for (int kz = 0; kz < o->order; kz++) {
        const double *from = spectrum + 2 * (k * t->half + xy * o->order + kz);
        double *to = t->set->m2l + 2 * ((((int64_t)kz * o->grid * o->grid + xy) * nn + k) * o->n_offsets + index);
        to[0] = factor * from[0];
        to[1] = factor * from[1];
      }
}

/* Each thread's arrays: components^2 real arrays and spectra. */
static fmm_status transform_each(const table *t, int threads) {
  int nn = t->components * t->components;
  int64_t each = (nn * (t->points + 2 * t->half) + 15) / 16 * 16;
  double *work = NULL;
  FMM_TRY(FMM_ALLOCATE(&work, each * threads, "M2L transform arrays"));
#pragma omp parallel num_threads(threads)
  {
    double *values = work + omp_get_thread_num() * each, *spectrum = values + nn * t->points;
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < t->o->n_offsets; i++) {
      int d[3];
      offset_of(t->o, i, d);
      if (adjacent(d)) memset(spectrum, 0, (size_t)(2 * nn * t->half) * sizeof *spectrum);
      else transform_offset(t, d, values, spectrum);
      store(t, i, spectrum);
    }
  }
  FMM_FREE(&work);
  return FMM_OK;
}

/* An offset d >= 0 with its axes in rising order: which of the spectra, -1 of neighbours, and to which of its axes each of d's went. */
typedef struct exchanged { int spectrum, axis[3]; } exchanged;
enum { SIDE = 4, OFFSETS = SIDE * SIDE * SIDE, RISING = 20 };

/* Fills all of them; returns how many spectra there are, of offsets rising[0 ..]. */
static int exchange_axes(exchanged all[OFFSETS], int rising[RISING][3]) {
  int number[OFFSETS], n = 0;
  for (int i = 0; i < OFFSETS; i++) {
    const int d[3] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE};
    number[i] = -1;
    if (d[0] <= d[1] && d[1] <= d[2] && !adjacent(d)) memcpy(rising[n], d, sizeof d), number[i] = n++;
  }
  for (int i = 0; i < OFFSETS; i++) {
    const int d[3] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE};
    int sorted[3];
    for (int a = 0; a < 3; a++) {
      all[i].axis[a] = 0;
      for (int b = 0; b < 3; b++) all[i].axis[a] += d[b] < d[a] || (d[b] == d[a] && b < a);
      sorted[all[i].axis[a]] = d[a];
    }
    all[i].spectrum = number[(sorted[0] * SIDE + sorted[1]) * SIDE + sorted[2]];
  }
  return n;
}

/* The table's row of one frequency. */
static void fill_row(const table *t, const exchanged all[OFFSETS], const double *spectra, const int k[3], double *row) {
  const int length = t->o->grid, order = t->o->order;
  const double factor = factor_of(t);
  for (int i = 0; i < OFFSETS; i++) {
    int f[3];
    for (int a = 0; a < 3; a++) f[all[i].axis[a]] = k[a];
    const int conjugate = f[2] >= order;
    for (int a = 0; a < 3 && conjugate; a++) f[a] = f[a] ? length - f[a] : 0;
    row[2 * i] = row[2 * i + 1] = 0; /* of neighbours */
    if (all[i].spectrum < 0) continue;
    const double *from = spectra + 2 * (all[i].spectrum * t->half + ((int64_t)f[0] * length + f[1]) * order + f[2]);
    row[2 * i] = factor * from[0], row[2 * i + 1] = factor * (conjugate ? -from[1] : from[1]);
  }
}

/* Whether the kernel, of one component, is the same with axes exchanged: told by what it is at a few places, near and far, since no interaction has to say so. */
static int axes_are_alike(const fmm_operators *o, double half_width) {
  static const int order[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  static const double places[][3] = {{0.31, 1.93, 2.62}, {2.11, 0.47, 5.3}, {0.13, 0.29, 0.053}, {6.7, 3.2, 0.9}}, source[3] = {0, 0, 0};
  const double same = 1e-11;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
      double at[2][3], value[2];
      for (int a = 0; a < 3; a++) at[0][a] = half_width * places[i][a], at[1][a] = half_width * places[i][order[k][a]];
      for (int n = 0; n < 2; n++) o->pair->matrix(at[n], source, o->params, &value[n]);
      if (!(fabs(value[0] - value[1]) <= same * fabs(value[0]))) return 0;
    }
  return 1;
}

static fmm_status transform_rising(const table *t, int threads) {
  exchanged all[OFFSETS];
  int rising[RISING][3];
  const int n = exchange_axes(all, rising), length = t->o->grid;
  const int64_t points = (t->points + 15) / 16 * 16;
  double *work = NULL;
  FMM_TRY(FMM_ALLOCATE(&work, points * threads + 2 * n * t->half, "M2L transform arrays"));
  double *spectra = work + points * threads;
#pragma omp parallel num_threads(threads)
  {
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < n; i++) transform_offset(t, rising[i], work + omp_get_thread_num() * points, spectra + 2 * i * t->half);
#pragma omp for schedule(static)
    for (int64_t zx = 0; zx < (int64_t)t->o->order * length; zx++)
      for (int y = 0; y < length; y++)
        fill_row(t, all, spectra, (const int[3]){(int)(zx % length), y, (int)(zx / length)}, t->set->m2l + 2 * (zx * length + y) * OFFSETS);
  }
  FMM_FREE(&work);
  return FMM_OK;
}

fmm_status fmm_m2l_create(const fmm_operators *o, fmm_level_operators *set, int threads) {
  int length = o->grid, c = o->parity.n_components;
  table t = {.o = o, .set = set, .components = c, .points = (int64_t)length * length * length, .half = (int64_t)length * length * o->order};
  double *real = NULL, *half = NULL;
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&set->m2l, 2 * (int64_t)o->n_frequencies * c * c * o->n_offsets, "M2L transforms"));
  FMM_CHECK(FMM_ALLOCATE(&real, t.points, "a transform's input"));
  FMM_CHECK(FMM_ALLOCATE(&half, 2 * t.half, "a transform's output"));
  FMM_CHECK(fmm_memory_spare((size_t)4 << 20, "FFTW's plans")); /* it aborts where there is none */
  pthread_mutex_lock(&planner_mutex); /* unaligned: components' arrays follow each other */
  t.plan = fftw_plan_dft_r2c_3d(length, length, length, real, (fftw_complex *)half, FFTW_ESTIMATE | FFTW_UNALIGNED | FFTW_PRESERVE_INPUT);
  pthread_mutex_unlock(&planner_mutex);
  if (!t.plan) FMM_CHECK(FMM_FAIL(FMM_ERR_MEMORY, "FFTW could not plan a transform of %d^3 points", length));
  status = o->n_offsets == OFFSETS && c == 1 && axes_are_alike(o, set->half_width) ? transform_rising(&t, threads) : transform_each(&t, threads);
  pthread_mutex_lock(&planner_mutex);
  fftw_destroy_plan(t.plan);
  pthread_mutex_unlock(&planner_mutex);
done:
  FMM_FREE(&real);
  FMM_FREE(&half);
  return status;
}

/* The row of stored transforms for a frequency with any sign of kz, and whether it must be conjugated. */
static const double *row_of(const fmm_operators *o, const fmm_level_operators *set, int kx, int ky, int kz, int out, int in, int *conjugate) {
  int length = o->grid, c = o->parity.n_components;
  *conjugate = kz < 0;
  if (kz < 0) kx = -kx, ky = -ky, kz = -kz;
  kx = (kx + 2 * length) % length;
  ky = (ky + 2 * length) % length;
  return set->m2l + 2 * ((((int64_t)(kz * length + kx) * length + ky) * c * c + out * c + in) * o->n_offsets);
}

void fmm_m2l_gather(const fmm_operators *o, const fmm_level_operators *set, int kx, int ky, int kz, int out, int in, double full[343][2]) {
  int conjugate;
  if (o->n_offsets == 343) {
    memcpy(full, row_of(o, set, kx, ky, kz, out, in, &conjugate), 343 * sizeof full[0]);
    return;
  }
  for (int g = 0; g < FMM_MIRRORS; g++) { /* offsets mirrored by g: frequency mirrored by g, and the pair's own signs */
    const double *row = row_of(o, set, g & 1 ? -kx : kx, g & 2 ? -ky : ky, g & 4 ? -kz : kz, out, in, &conjugate);
    double sign = 1;
    if (o->pair->info->parity == FMM_PARITY_VECTOR) sign = fmm_mirror_sign(1 << out, g) * fmm_mirror_sign(1 << in, g);
    double imaginary_sign = conjugate ? -sign : sign;
    for (int dx = 0; dx < 4; dx++)
      for (int dy = 0; dy < 4; dy++)
        for (int dz = 0; dz < 4; dz++) {
          int x = g & 1 ? 3 - dx : 3 + dx, y = g & 2 ? 3 - dy : 3 + dy, z = g & 4 ? 3 - dz : 3 + dz;
          const double *from = row + 2 * ((dx * 4 + dy) * 4 + dz);
          full[(x * 7 + y) * 7 + z][0] = sign * from[0];
          full[(x * 7 + y) * 7 + z][1] = imaginary_sign * from[1];
        }
  }
}
