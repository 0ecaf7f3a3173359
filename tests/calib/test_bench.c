/* Microbenchmarks: what they say they count is what they do, their rates are finite and positive; medians and spreads. No times are judged. */
#include "test.h"
#include <math.h>
#include "calib/bench.h"
#include "calib/fma_simd.h"
#include "runtime/memory.h"

static const double small = 0.01; /* effort: fractions of a millisecond */

static fmm_bench_work work_of(const fmm_bench *bench, int threads, double effort) {
  fmm_bench_work work;
  void *context;
  assert_ok(bench->setup(threads, effort, &context, &work));
  bench->teardown(context);
  return work;
}

static void every_rate_is_finite_and_positive(void **state) {
  const fmm_bench *const all[] = {&fmm_bench_pair_double, &fmm_bench_pair_single, &fmm_bench_fma_double, &fmm_bench_fma_single, &fmm_bench_triad, &fmm_bench_region};
  for (int i = 0; i < 6; i++)
    for (int threads = 1; threads <= 2; threads++) {
      size_t before = fmm_memory_now();
      fmm_bench_result r;
      assert_ok(fmm_bench_measure(all[i], threads, small, 0, &r));
      if (!(isfinite(r.rate.value) && r.rate.value > 0 && r.rate.spread >= 0 && r.runs >= 8)) fail_msg("%s: %g", all[i]->name, r.rate.value);
      assert_int_equal(fmm_memory_now(), before);
    }
}

static void pair_bench_counts_eleven_flops_a_pair_of_a_leaf_and_its_neighbours(void **state) {
  fmm_bench_work one = work_of(&fmm_bench_pair_double, 1, 0), three = work_of(&fmm_bench_pair_double, 3, 0.7);
  assert_true(one.items == 128.0 * 128 * 27); /* one repeat: 128 targets, 27 leaves of 128 sources */
  assert_true(one.flops == 11 * one.items);
  assert_true(three.items == 3 * 2 * one.items);
  assert_true(work_of(&fmm_bench_pair_single, 1, 0).flops == one.flops);
}

static void multiply_adds_count_two_flops_a_lane_chain_and_iteration(void **state) {
  const fmm_fma_kernel *kernel = fmm_fma_at(fmm_simd_level());
  fmm_bench_work d = work_of(&fmm_bench_fma_double, 2, 0.05), s = work_of(&fmm_bench_fma_single, 2, 0.05);
  assert_true(d.flops == 2.0 * FMM_FMA_CHAINS * kernel->width_double * 1e4 * 2);
  assert_true(s.flops == 2.0 * FMM_FMA_CHAINS * kernel->width_single * 1e4 * 2);
}

/* a <- a/2 + 1 from a = k for chain k: after n steps a = 2 + (k - 2)/2^n, exact in binary. Every lane of every chain is in the sum. */
static void chains_do_every_step_they_count(void **state) {
  for (fmm_simd level = FMM_SIMD_PLAIN; level <= fmm_simd_level(); level++) {
    const fmm_fma_kernel *kernel = fmm_fma_at(level);
    for (int n = 0; n < 4; n++) {
      double expected = 0;
      for (int k = 0; k < FMM_FMA_CHAINS; k++) expected += 2 + (k - 2) / pow(2, n);
      assert_true(kernel->chain_double(n, 0.5, 1) == expected * kernel->width_double);
      assert_true((double)kernel->chain_single(n, 0.5f, 1) == expected * kernel->width_single);
    }
  }
}

static void triad_moves_three_doubles_an_element_beyond_all_caches(void **state) {
  fmm_bench_work w = work_of(&fmm_bench_triad, 1, small);
  assert_true(w.bytes == 24 * w.items);
  assert_true(w.flops == 2 * w.items);
}

static void region_bench_counts_regions(void **state) {
  assert_true(work_of(&fmm_bench_region, 2, 1).items == 5);
  assert_true(work_of(&fmm_bench_region, 2, 0).items == 1);
}

static void medians_and_spreads_are_right(void **state) {
  double odd[] = {5, 1, 3}, even[] = {4, 1, 2, 3}, one[] = {7};
  fmm_rate r = fmm_median_rate(3, odd);
  assert_true(r.value == 3 && fabs(r.spread - 4.0 / 3) < 1e-15);
  r = fmm_median_rate(4, even);
  assert_true(r.value == 2.5 && r.spread == 3 / 2.5);
  r = fmm_median_rate(1, one);
  assert_true(r.value == 7 && r.spread == 0);
  double seconds[] = {2, 9, 1, 3, 4}; /* the fastest quarter: 1, 2 */
  r = fmm_quiet_rate(5, seconds, 15, 0);
  assert_true(r.value == 10 && fabs(r.spread - 8.0 / 3) < 1e-15);
  assert_true(fmm_quiet_rate(5, seconds, 15, 1).value == 0.1);
}

static void a_bench_without_memory_fails_cleanly(void **state) {
  const fmm_bench *const all[] = {&fmm_bench_pair_double, &fmm_bench_fma_double, &fmm_bench_triad, &fmm_bench_region};
  for (int i = 0; i < 4; i++)
    for (int nth = 1; nth <= 4; nth++) {
      size_t before = fmm_memory_now();
      fmm_bench_result r = {.runs = -1};
      fmm_memory_fail_at(nth);
      fmm_status status = fmm_bench_measure(all[i], 1, small, 0, &r);
      fmm_memory_fail_at(0);
      assert_int_equal(fmm_memory_now(), before);
      if (nth == 1) assert_int_equal(status, FMM_ERR_MEMORY);
      if (status != FMM_OK) assert_int_equal(r.runs, -1);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_rate_is_finite_and_positive),
                                     cmocka_unit_test(pair_bench_counts_eleven_flops_a_pair_of_a_leaf_and_its_neighbours),
                                     cmocka_unit_test(multiply_adds_count_two_flops_a_lane_chain_and_iteration),
                                     cmocka_unit_test(chains_do_every_step_they_count),
                                     cmocka_unit_test(triad_moves_three_doubles_an_element_beyond_all_caches),
                                     cmocka_unit_test(region_bench_counts_regions),
                                     cmocka_unit_test(medians_and_spreads_are_right),
                                     cmocka_unit_test(a_bench_without_memory_fails_cleanly)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
