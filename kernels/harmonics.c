/* Tables of the solid harmonics, and their values at a point in plain C. See harmonics.h. */
#include "kernels/harmonics.h"

#include <math.h>
#include <string.h>

#include "kernels/simd.h"
#include "runtime/memory.h"

/* What a harmonic is odd along: (x + i y)^m goes over into (-1)^m times its conjugate where x does into -x. */
static int parity_of(int l, int m, int sine) { return ((m + sine) & 1) | sine << 1 | ((l + m) & 1) << 2; }

/* (2l)! / (2^l l! (l-m)!), which is (2l-1)!! / (l-m)!. */
static long double lead(int l, int m) {
  long double value = 1;
  for (int i = 1; i <= l; i++) value *= 2 * i - 1;
  for (int i = 2; i <= l - m; i++) value /= i;
  return value;
}

/* The harmonic's part of one in whose units derivatives have factors of 1 and 1/2: lead / (l+m)!. */
static long double unit(int l, int m) {
  long double value = lead(l, m);
  for (int i = 2; i <= l + m; i++) value /= i;
  return value;
}

static void fill_tables(fmm_harmonics *h) {
  for (int m = 0; m <= h->degree; m++)
    for (int l = m; l <= h->degree; l++) {
      const int k = fmm_harmonic_pair(h->degree, l, m);
      long double ratio = m ? 2 : 1; /* times (l-m)!/(l+m)! */
      for (int i = l - m + 1; i <= l + m; i++) ratio /= i;
      h->weight[k] = (double)(ratio * lead(l, m) * lead(l, m));
      h->step[k] = l > m ? ((l - 1.) * (l - 1) - m * m) / ((2. * l - 1) * (2. * l - 3)) : 0;
      h->single_step[k] = (float)h->step[k];
      h->unit[k] = (double)unit(l, m);
    }
}

static void fill_places(fmm_harmonics *h) {
  int n = 0;
  for (int chi = 0; chi < FMM_MIRRORS; chi++) {
    h->begin[chi] = n;
    for (int m = 0; m <= h->degree; m++)
      for (int l = m; l <= h->degree; l++)
        for (int sine = 0; sine <= (m > 0); sine++)
          if (parity_of(l, m, sine) == chi) h->place[2 * fmm_harmonic_pair(h->degree, l, m) + sine] = n++;
  }
  h->begin[FMM_MIRRORS] = n;
  for (int l = 0; l <= h->degree; l++) h->place[2 * fmm_harmonic_pair(h->degree, l, 0) + 1] = -1;
  for (int i = 0; i < 2 * h->n_pairs; i++) {
    const int nowhere = FMM_HARMONIC_OUTPUTS * h->n_terms;
    h->row[0][i] = h->place[i] < 0 ? nowhere : h->place[i];
    for (int o = 0; o < FMM_HARMONIC_OUTPUTS; o++) h->row[1][i * FMM_HARMONIC_OUTPUTS + o] = h->place[i] < 0 ? nowhere : o * h->n_terms + h->place[i];
  }
}

/* d/d axis of value `sine` of (l, m) holds factor times value `to_sine` of (l-1, to_m). */
static void add_slope(fmm_harmonics *h, int axis, int l, int m, int sine, int to_m, int to_sine, double factor) {
  if (to_m > l - 1 || (to_m == 0 && to_sine)) return;
  const long double units = unit(l - 1, to_m) / unit(l, m);
  h->slope[h->n_slopes++] = (fmm_harmonic_slope){.axis = axis, .to = h->place[2 * fmm_harmonic_pair(h->degree, l - 1, to_m) + to_sine],
                                                 .from = h->place[2 * fmm_harmonic_pair(h->degree, l, m) + sine], .factor = (double)(factor * units)};
}

/* With R = unit * H, (d/dx - i d/dy) R_l^m = R_(l-1)^(m-1), (d/dx + i d/dy) R_l^m = -R_(l-1)^(m+1), d/dz R_l^m = R_(l-1)^m, and R_l^(-1) = -conj R_l^1. */
static void fill_slopes(fmm_harmonics *h) {
  for (int m = 0; m <= h->degree; m++)
    for (int l = m > 1 ? m : 1; l <= h->degree; l++)
      for (int sine = 0; sine <= (m > 0); sine++) {
        add_slope(h, 2, l, m, sine, m, sine, 1);
        if (m == 0) {
          add_slope(h, 0, l, 0, 0, 1, 0, -1);
          add_slope(h, 1, l, 0, 0, 1, 1, -1);
          continue;
        }
        add_slope(h, 0, l, m, sine, m - 1, sine, 0.5);
        add_slope(h, 0, l, m, sine, m + 1, sine, -0.5);
        add_slope(h, 1, l, m, sine, m - 1, !sine, sine ? 0.5 : -0.5);
        add_slope(h, 1, l, m, sine, m + 1, !sine, sine ? 0.5 : -0.5);
      }
}

fmm_status fmm_harmonics_create(fmm_harmonics *h, int degree) {
  const int n = fmm_harmonic_pairs(degree);
  *h = (fmm_harmonics){.degree = degree, .n_pairs = n, .n_terms = (degree + 1) * (degree + 1)};
  fmm_status status = FMM_OK;
  FMM_CHECK(FMM_ALLOCATE(&h->place, 2 * n, "places of harmonics"));
  FMM_CHECK(FMM_ALLOCATE(&h->row[0], 2 * n, "places of harmonics"));
  FMM_CHECK(FMM_ALLOCATE(&h->row[1], 2 * n * FMM_HARMONIC_OUTPUTS, "places of harmonics"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&h->step, n + 1, "steps of harmonics"));
  FMM_CHECK(FMM_ALLOCATE(&h->weight, n, "weights of harmonics"));
  FMM_CHECK(FMM_ALLOCATE(&h->unit, n, "units of harmonics"));
  FMM_CHECK(FMM_ALLOCATE_ZERO(&h->single_step, n + 1, "steps of harmonics"));
  FMM_CHECK(FMM_ALLOCATE(&h->slope, 5 * h->n_terms, "derivatives of harmonics"));
  fill_tables(h);
  fill_places(h);
  fill_slopes(h);
done:
  if (status != FMM_OK) fmm_harmonics_free(h);
  return status;
}

void fmm_harmonics_free(fmm_harmonics *h) {
  FMM_FREE(&h->place);
  for (int i = 0; i < 2; i++) FMM_FREE(&h->row[i]);
  FMM_FREE(&h->step);
  FMM_FREE(&h->weight);
  FMM_FREE(&h->unit);
  FMM_FREE(&h->single_step);
  FMM_FREE(&h->slope);
  *h = (fmm_harmonics){0};
}

void fmm_harmonics_at(const fmm_harmonics *h, const double at[3], double *value) {
  const double x = at[0], y = at[1], z = at[2], r2 = x * x + y * y + z * z;
  double c = 1, s = 0;
  for (int m = 0, k = 0; m <= h->degree; m++) {
    double q = 1, before = 0;
    for (int l = m; l <= h->degree; l++, k++) {
      value[2 * k] = q * c, value[2 * k + 1] = q * s;
      if (l == h->degree) continue;
      const double next = z * q - h->step[k + 1] * r2 * before;
      before = q, q = next;
    }
    const double next = x * c - y * s;
    s = x * s + y * c, c = next;
  }
}

extern const fmm_harmonic_kernels fmm_harmonics_double_plain, fmm_harmonics_double_avx2, fmm_harmonics_double_avx512, fmm_harmonics_single_plain, fmm_harmonics_single_avx2,
    fmm_harmonics_single_avx512;

const fmm_harmonic_kernels *fmm_harmonic_kernels_find(int single) {
  static const fmm_harmonic_kernels *const table[2][FMM_N_SIMD] = {{&fmm_harmonics_double_plain, &fmm_harmonics_double_avx2, &fmm_harmonics_double_avx512},
                                                                   {&fmm_harmonics_single_plain, &fmm_harmonics_single_avx2, &fmm_harmonics_single_avx512}};
  return table[single][fmm_simd_level()];
}
