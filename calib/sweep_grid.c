/* Which combinations a sweep visits, and in which order (sweep.h). */
#include <string.h>

#include "calib/sweep.h"

enum { MOST_VALUES = 8, DISTRIBUTIONS = 3 };

/* Zero-terminated values of each axis, by device; points are multiplied for CPUs of many cores. */
typedef struct sweep_grid { int64_t n_points[MOST_VALUES]; int leaf_size[MOST_VALUES], order[MOST_VALUES]; } sweep_grid;
static const sweep_grid grids[FMM_N_DEVICES][FMM_N_EFFORTS] = {
    {{{12000, 25000, 50000}, {40, 100, 250}, {4, 6, 8}}, /* leaves as large as are chosen: pairs beyond them are not to be guessed */
     {{20000, 60000, 180000, 500000}, {30, 70, 160, 400}, {4, 5, 7, 10}}, /* more than outer caches hold; the orders of 3, 6 and 9 digits */
     {{5000, 20000, 80000, 300000, 1000000}, {25, 50, 100, 200, 400}, {3, 4, 6, 8, 10, 12}}},
    {{{50000, 150000, 500000}, {60, 150, 400}, {4, 6, 8}}, /* the quickest: of a GPU that is filled */
     {{20000, 80000, 350000, 1500000}, {50, 120, 250, 500}, {4, 6, 8, 10}},
     {{20000, 80000, 350000, 1500000, 4000000}, {40, 80, 150, 300, 600}, {3, 4, 6, 8, 10, 12}}},
};
static const char *const names[FMM_N_EFFORTS] = {"quick", "standard", "thorough"};
static const char *const distributions[DISTRIBUTIONS] = {"ellipsoid", "uniform", "plummer"}; /* all six phases, on a surface; the trees of the 2014 model; leaves of all sizes in space */

const char *fmm_effort_name(fmm_effort effort) { return names[effort]; }

fmm_status fmm_effort_find(const char *name, fmm_effort *effort) {
  for (int i = 0; i < FMM_N_EFFORTS; i++)
    if (!strcmp(name, names[i])) return *effort = (fmm_effort)i, FMM_OK;
  return FMM_FAIL(FMM_ERR_ARGUMENT, "effort '%s' is not known; choose quick, standard or thorough", name);
}

static int count(const int *values) {
  int n = 0;
  while (n < MOST_VALUES && values[n]) n++;
  return n;
}

static int count_points(const int64_t *values) {
  int n = 0;
  while (n < MOST_VALUES && values[n]) n++;
  return n;
}

static int coprime(int a, int b) {
  while (b) {
    int r = a % b;
    a = b, b = r;
  }
  return a == 1;
}

/* A step near the golden section of n and coprime to it: multiples of it modulo n visit all of 0..n-1, every prefix well spread. */
static int golden_step(int n) {
  int step = (int)(0.6180339887498949 * n + 0.5);
  while (step > 1 && !coprime(step, n)) step--;
  return step < 1 ? 1 : step;
}

/* One of every three consecutive combinations, never the first; which one drifts, so that no value of an axis is always or never held out. */
static int is_held_out(int position) {
  int block = position / 3;
  return position % 3 == (2 + block + block / 3) % 3;
}

/* One of every four, the first among them; which one drifts, so that factors are of every order of every distribution. */
static int measures_factors(int position) { return position % 4 == (position / 4 + position / 16) % 4; }

/* Four cores a unit: the same time a combination, roughly, on small and large machines. */
static int64_t scale_points(int64_t n, int threads) { return n * (threads < 8 ? 1 : threads > 64 ? 16 : threads / 4); }

fmm_sweep_case fmm_sweep_case_at(fmm_device device, fmm_effort effort, int threads, int position, int *total) {
  const sweep_grid *g = &grids[device][effort];
  int nn = count_points(g->n_points), nq = count(g->leaf_size), np = count(g->order), n = DISTRIBUTIONS * nn * nq * np;
  int index = (int)((int64_t)position * golden_step(n) % n);
  *total = n;
  fmm_sweep_case c = {.held_out = is_held_out(position), .factors = measures_factors(position)};
  c.distribution = distributions[index % DISTRIBUTIONS], index /= DISTRIBUTIONS;
  c.order = g->order[index % np], index /= np;
  c.leaf_size = g->leaf_size[index % nq], index /= nq;
  c.n_points = device == FMM_DEVICE_CPU ? scale_points(g->n_points[index], threads) : g->n_points[index];
  return c;
}
