/* Pairs of quanta that are too near for single precision, found by boxes around vectors of targets (kernels/pair/pair_arrays.c), against all pairs one by one. */
#include "random.h"
#include "test.h"

#include <math.h>
#include <stdalign.h>
#include <string.h>

#include "kernels/pair/pair_block.h"
#include "kernels/simd.h"

enum { SOURCES = 300 };
typedef struct sets {
  alignas(64) int32_t target[3][FMM_PAIR_BLOCK];
  alignas(64) int32_t source[3][SOURCES + FMM_PAIR_MAX_LANES];
  int n_targets, n_sources;
} sets;

/* Targets along a way, as leaves have them, some of which are in places of sources; lanes beyond them repeat the last. */
static void fill(sets *s, double extent, int n_targets, int n_sources) {
  s->n_targets = n_targets, s->n_sources = n_sources;
  for (int a = 0; a < 3; a++) {
    double way = 0;
    for (int j = 0; j < n_sources; j++) s->source[a][j] = (int32_t)(extent * (2 * uniform() - 1));
    for (int i = 0; i < FMM_PAIR_BLOCK; i++) {
      way += 0.2 * (2 * uniform() - 1);
      s->target[a][i] = i < n_targets ? (int32_t)(extent * fmax(-1, fmin(1, way))) : s->target[a][n_targets - 1];
    }
  }
  for (int k = 0; k < 3; k++) {
    const int i = (int)(uniform() * n_targets), j = (int)(uniform() * n_sources);
    for (int a = 0; a < 3; a++) s->target[a][i] = s->source[a][j];
  }
  for (int i = n_targets; i < FMM_PAIR_BLOCK; i++)
    for (int a = 0; a < 3; a++) s->target[a][i] = s->target[a][n_targets - 1];
}

static double square(const sets *s, int i, int j) {
  double sum = 0;
  for (int a = 0; a < 3; a++) sum += ((double)s->target[a][i] - s->source[a][j]) * ((double)s->target[a][i] - s->source[a][j]);
  return sum;
}

/* A limit below which about so many pairs are, and near which none is. */
static double limit_for(const sets *s, int wanted) {
  double limit = 1;
  for (int n = 0; n < wanted && limit < 0x1p64; limit *= 1.3) {
    n = 0;
    for (int i = 0; i < s->n_targets; i++)
      for (int j = 0; j < s->n_sources; j++) n += square(s, i, j) < 1.3 * limit && square(s, i, j) > 0;
  }
  for (int i = 0; i < s->n_targets; i++)
    for (int j = 0; j < s->n_sources; j++)
      if (fabs(square(s, i, j) / limit - 1) < 1e-5) limit *= 1 + 3e-5, i = 0, j = -1;
  return limit;
}

static void check(const sets *s, double limit) {
  const fmm_pair_call call = {.n_targets = s->n_targets, .target = {s->target[0], s->target[1], s->target[2]}, .n_sources = s->n_sources, .source = {s->source[0], s->source[1], s->source[2]}};
  fmm_pair_indices found[FMM_PAIR_MOST_NEAR];
  const int n = fmm_pair_arrays()->near_pairs(&call, (float)limit, found);
  int k = 0;
  for (int j = 0; j < s->n_sources; j++)
    for (int i = 0; i < s->n_targets; i++) {
      if (square(s, i, j) == 0 || !(square(s, i, j) < limit)) continue;
      if (k < FMM_PAIR_MOST_NEAR && (k >= n || found[k].target != i || found[k].source != j)) fail_msg("pair %d: %d, %d of %d targets and %d sources is missing", k, i, j, s->n_targets, s->n_sources);
      k++;
    }
  assert_int_equal(n, k > FMM_PAIR_MOST_NEAR ? FMM_PAIR_MOST_NEAR + 1 : k);
}

static void near_pairs_are_those_that_are_near(void **state) {
  static sets s;
  const int targets[] = {1, 7, 15, 16, 17, 33, 100, 255, FMM_PAIR_BLOCK}, sources[] = {1, 15, 16, 70, SOURCES}, wanted[] = {0, 1, 5, 40, 90};
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
    for (size_t j = 0; j < sizeof sources / sizeof *sources; j++)
      for (size_t w = 0; w < sizeof wanted / sizeof *wanted; w++) {
        fill(&s, w % 2 ? 0x1p30 - 8 : 1000, targets[t], sources[j]);
        const double limit = limit_for(&s, wanted[w]);
        for (int simd = FMM_SIMD_PLAIN; simd < FMM_N_SIMD; simd++) {
          fmm_simd_cap((fmm_simd)simd);
          check(&s, limit);
        }
      }
  fmm_simd_cap(FMM_SIMD_AVX512);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(near_pairs_are_those_that_are_near)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
