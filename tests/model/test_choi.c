/* Equations 2 to 6 of Choi et al. 2014 against the paper's own machine and against its terms written out here. */
#include "cost_case.h"

/* Table 1 of the paper for the Tesla M2090; the log shipped with the 2014 code shows 0.625 s for the U list of this case. */
static const fmm_choi_machine m2090 = {174.3e9, 129.4e9, 2.99, 1.56, 0.95, 7.61};

static void equation_2_gives_the_measured_u_list_of_the_m2090(void **state) {
  fmm_choi_times t;
  fmm_choi_predict(&m2090, 1048576, 256, 6, &t);
  assert_near(t.ulist_s, 1.56 * 11 * 46 * 46 * 46 * 256.0 * 256 / 174.3e9, 1e-12); /* b = 4096 = 16^3: 3 x 16 - 2 = 46 */
  assert_near(t.ulist_s, 0.63, 0.01);
  assert_near(t.ulist_s, 0.625, 0.01);
}

static void equations_3_to_5_are_streams_of_8_byte_values(void **state) {
  fmm_choi_times t;
  fmm_choi_predict(&m2090, 1048576, 256, 6, &t);
  double b = 4096, n_s = 152;
  assert_near(t.vlist_s, 0.95 * 8 * 3 * b * n_s * sqrt(n_s) * 189 / 129.4e9, 1e-12);
  assert_near(t.up_s, 2.99 * 8 * (4 * 1048576.0 + 2 * b * n_s * 153) / 129.4e9, 1e-12);
  assert_near(t.down_s, 7.61 * 8 * (1048576.0 + 2 * b * n_s * 153) / 129.4e9, 1e-12);
}

/* Eq. 6: the M2090 has 512 units at 1.3 GHz and half as many double instructions a cycle; r = 14: Table 1 says 174.3 GFLOP/s. */
static void equation_6_gives_the_peak_of_table_1(void **state) { assert_near(fmm_choi_peak(14, 1.3e9, 512 / 2), 174.3e9, 0.001); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equation_2_gives_the_measured_u_list_of_the_m2090),
                                     cmocka_unit_test(equations_3_to_5_are_streams_of_8_byte_values),
                                     cmocka_unit_test(equation_6_gives_the_peak_of_table_1)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
