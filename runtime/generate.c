/* Standard distributions and densities from a counter-based generator. */
#include "generate.h"

#include <math.h>
#include <string.h>

enum { stream_points = 1, stream_densities = 2, draws_per_row = 4 };

static uint64_t stream_key(uint64_t seed, uint64_t stream) { return fmm_split_mix(fmm_split_mix(seed, 1), stream); }

/* Taylor series of the sine (first = x) and cosine (first = 1) for |x| <= pi/4; 18 powers leave 1e-18. */
static double series(double first, double x2, int k) {
  double terms[9], sum = 0;
  for (int i = 0; i < 9; i++, k += 2) {
    terms[i] = first;
    first *= -x2 / (double)((k + 1) * (k + 2));
  }
  for (int i = 8; i >= 0; i--) sum += terms[i];
  return sum;
}

/* Sine and cosine of `turns` full turns, in [0, 1). */
static void sine_cosine(double turns, double *sine, double *cosine) {
  const double two_pi = 6.283185307179586476925;
  int quarter = (int)(4 * turns + 0.5);
  double x = (turns - 0.25 * quarter) * two_pi, s = series(x, x * x, 1), c = series(1, x * x, 0);
  *sine = quarter & 1 ? c : s;
  *cosine = quarter & 1 ? s : c;
  if (quarter & 2) *sine = -*sine;
  if ((quarter + 1) & 2) *cosine = -*cosine;
}

/* Cube root of m in (0, 1]: Newton from a power of two, quadratic after a few steps. */
static double cube_root(double m) {
  int exponent;
  (void)frexp(m, &exponent);
  double r = ldexp(1, (exponent + 2 - 3000) / 3 + 1000); /* at least the root */
  for (int i = 0; i < 9; i++) r = (2 * r + m / (r * r)) / 3;
  return r;
}

static void on_sphere(const double u[draws_per_row], double p[3]) {
  double s, c, z = 2 * u[0] - 1, radius = sqrt(1 - z * z);
  sine_cosine(u[1], &s, &c);
  p[0] = radius * c, p[1] = radius * s, p[2] = z;
}

static void in_cube(const double u[draws_per_row], double p[3]) { memcpy(p, u, 3 * sizeof *p); }

static void on_ellipsoid(const double u[draws_per_row], double p[3]) {
  double st, ct, sp, cp;
  sine_cosine(u[0] / 2, &st, &ct); /* theta in [0, pi) */
  sine_cosine(u[1], &sp, &cp);
  p[0] = st * cp, p[1] = st * sp, p[2] = 4 * ct;
}

/* Enclosed mass m = r^3 / (1 + r^2)^(3/2), solved for r. */
static void in_plummer(const double u[draws_per_row], double p[3]) {
  double root = cube_root(0.999 * (u[2] + 0x1p-54)), m23 = root * root, r = sqrt(m23 / (1 - m23));
  on_sphere(u, p);
  for (int a = 0; a < 3; a++) p[a] *= r;
}

typedef struct distribution { const char *name; void (*place)(const double u[draws_per_row], double p[3]); } distribution;

static const distribution distributions[] = {{"uniform", in_cube}, {"ellipsoid", on_ellipsoid}, {"sphere", on_sphere}, {"plummer", in_plummer}};
enum { n_distributions = sizeof distributions / sizeof *distributions };
const char *const fmm_distribution_names[] = {"uniform", "ellipsoid", "sphere", "plummer", NULL};
const char *const fmm_density_names[] = {"unit", "signed", "ones", NULL};

int fmm_is_density_name(const char *name) {
  for (int i = 0; fmm_density_names[i]; i++)
    if (!strcmp(name, fmm_density_names[i])) return 1;
  return 0;
}

static fmm_status find_distribution(const char *name, const distribution **found) {
  for (int i = 0; i < n_distributions; i++)
    if (!strcmp(name, distributions[i].name)) return *found = &distributions[i], FMM_OK;
  return FMM_FAIL(FMM_ERR_ARGUMENT, "distribution '%s' is not known; there are uniform, ellipsoid, sphere, plummer", name);
}

fmm_status fmm_generate_point_range(const char *name, int64_t first, int64_t n, uint64_t seed, double *points, int threads) {
  const distribution *d;
  FMM_TRY(find_distribution(name, &d));
  const uint64_t key = stream_key(seed, stream_points);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n; i++) {
    double u[draws_per_row];
    for (uint64_t k = 0; k < draws_per_row; k++) u[k] = fmm_generate_fraction(key, (first + i) * draws_per_row + (int64_t)k);
    d->place(u, points + 3 * i);
  }
  return FMM_OK;
}

fmm_status fmm_generate_points(const char *name, int64_t n, uint64_t seed, double *points, int threads) {
  return fmm_generate_point_range(name, 0, n, seed, points, threads);
}

fmm_status fmm_generate_densities(const char *kind, int64_t n_values, uint64_t seed, double *densities, int threads) {
  int ones = !strcmp(kind, "ones"), is_signed = !strcmp(kind, "signed");
  if (!ones && !is_signed && strcmp(kind, "unit")) return FMM_FAIL(FMM_ERR_ARGUMENT, "densities '%s' are not known; there are unit, signed, ones", kind);
  const uint64_t key = stream_key(seed, stream_densities);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < n_values; i++) densities[i] = ones ? 1 : fmm_generate_fraction(key, i) - (is_signed ? 0.5 : 0);
  return FMM_OK;
}

uint64_t fmm_generate_key(uint64_t seed) { return stream_key(seed, stream_densities); }
