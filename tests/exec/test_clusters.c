/* Plans with clusters below the finest cell, whose own plans belong to them: in what is made once, in memory and its cap, in plan_id, in times. */
#include "test.h"

#include <string.h>

#include "plan_error.h"
#include "runtime/generate.h"
#include "runtime/plan.h"

/* Two clusters below the finest cell, so large that direct sums would be costly. */
static void plans_of_clusters_share_their_operators(void **state) {
  enum { M = 60000 };
  static double many[3 * M];
  fmm_options o = defaults(1e-6);
  fmm_plan *plan = NULL;
  o.leaf_size = 60, o.order = 5, o.root_scale = 1;
  assert_ok(fmm_generate_points("uniform", M, 3, many, 2));
  for (int i = 0; i < M; i++)
    for (int k = 0; k < 3 && i % 3 < 2; k++) many[3 * i + k] = 1e-9 * many[3 * i + k] + (i % 3) * 0.9;
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, M, many, NULL, 0, NULL));
  assert_int_equal(plan->setup->n_nested, 2);
  assert_true(plan->setup->operators && plan->setup->operator_bytes > 0);
  for (int k = 0; k < 2; k++) {
    const fmm_setup *inner = plan->setup->nested[k].plan->setup;
    assert_true(inner->far_field && inner->operators == plan->setup->operators);
    assert_int_equal(inner->operator_bytes, 0); /* made once, counted once */
  }
  fmm_plan_destroy(&plan);
}

/* A cluster left to direct sums is one leaf, and so one thread's work: with leaves as large as these it may still not be a fifth of all points. */
static void a_cluster_of_a_fifth_of_the_points_has_a_plan_of_its_own_whatever_the_leaf_size(void **state) {
  enum { M = 60000 };
  static double many[3 * M];
  fmm_options o = defaults(1e-3);
  o.order = 4, o.root_scale = 1;
  assert_ok(fmm_generate_points("uniform", M, 3, many, 2));
  for (int i = 0; i < M; i += 5)
    for (int k = 0; k < 3; k++) many[3 * i + k] = 0.3 + 1e-12 * many[3 * i + k];
  for (o.leaf_size = 32; o.leaf_size <= 1024; o.leaf_size *= 4) {
    fmm_plan *plan = NULL;
    assert_ok(fmm_plan_create(&plan, &o));
    assert_ok(fmm_plan_set_points(plan, M, many, NULL, 0, NULL));
    assert_int_equal(plan->setup->n_nested, 1);
    fmm_plan_destroy(&plan);
  }
}

enum { N = 20000 };
static double points[3 * N];

/* All but a tenth of the points in one cluster. */
static void fill_clustered(void) {
  assert_ok(fmm_generate_points("uniform", N, 3, points, 2));
  for (int i = 0; i < N; i++)
    for (int k = 0; k < 3 && i % 10; k++) points[3 * i + k] = 0.3 + 1e-9 * points[3 * i + k];
}

static fmm_status set_points(const fmm_options *o, fmm_plan_info *info) {
  fmm_plan *plan = NULL;
  info->struct_size = sizeof *info;
  assert_ok(fmm_plan_create(&plan, o));
  fmm_status status = fmm_plan_set_points(plan, N, points, NULL, 0, NULL);
  if (status == FMM_OK) assert_ok(fmm_plan_get_info(plan, info));
  fmm_plan_destroy(&plan);
  return status;
}

static void the_cap_on_host_memory_is_on_what_is_reported(void **state) {
  fmm_options o = defaults(1e-3);
  fmm_plan_info info, capped;
  fill_clustered();
  assert_ok(set_points(&o, &info));
  o.host_memory_cap = info.host_bytes;
  assert_ok(set_points(&o, &capped));
  assert_int_equal(capped.host_bytes, info.host_bytes);
  o.host_memory_cap = info.host_bytes - 1;
  assert_int_equal(set_points(&o, &capped), FMM_ERR_MEMORY);
  char needed[32];
  snprintf(needed, sizeof needed, "%zu bytes", info.host_bytes);
  assert_non_null(strstr(fmm_last_error(), needed));
}

/* Of one plan on this machine: its cluster's root scale, the outer one's choices being named. */
static double root_scale_of_the_cluster(const fmm_machine *machine, char id[17]) {
  fmm_options o = defaults(1e-3);
  fmm_plan *plan = NULL;
  o.leaf_size = 60, o.order = 4, o.root_scale = 1, o.precision = FMM_PRECISION_DOUBLE, o.schedule = FMM_SCHEDULE_CPU;
  assert_ok(fmm_plan_create_with(&plan, &o, machine));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  assert_int_equal(plan->setup->n_nested, 1);
  double root_scale = plan->setup->nested[0].plan->setup->info.root_scale;
  strcpy(id, plan->setup->info.plan_id);
  fmm_plan_destroy(&plan);
  return root_scale;
}

static void what_a_cluster_s_plan_chooses_is_in_the_plan_id(void **state) {
  char id[3][17];
  fmm_machine machine;
  fill_clustered();
  fmm_machine_nominal(2, &machine);
  double before = root_scale_of_the_cluster(&machine, id[0]);
  assert_true(root_scale_of_the_cluster(&machine, id[1]) == before);
  assert_string_equal(id[0], id[1]);
  for (int p = 0; p < FMM_N_PRECISIONS; p++) machine.device[FMM_DEVICE_CPU].pair_flops_per_s[p].value /= 30;
  assert_true(root_scale_of_the_cluster(&machine, id[2]) != before);
  assert_string_not_equal(id[0], id[2]);
}

static void clusters_are_in_the_predicted_and_the_measured_time(void **state) {
  static double density[N], p[N];
  fmm_options o = defaults(1e-3);
  fmm_plan *plan = NULL;
  fmm_plan_info info = {.struct_size = sizeof info};
  char text[4096];
  fill_clustered();
  o.schedule = FMM_SCHEDULE_CPU;
  assert_ok(fmm_generate_densities("unit", N, 5, density, 2));
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  assert_ok(fmm_plan_execute(plan, density, p, NULL));
  assert_ok(fmm_plan_get_info(plan, &info));
  assert_int_equal(info.n_clusters, 1);
  assert_true(info.clusters_predicted_s > 0 && info.clusters_predicted_s == plan->setup->nested[0].plan->setup->info.predicted_s);
  assert_true(info.predicted_s == plan->setup->makespan.seconds + info.clusters_predicted_s);
  assert_true(info.clusters_measured_s > 0 && info.clusters_measured_s < info.last_evaluation_s);
  assert_ok(fmm_plan_explain(plan, text, sizeof text, NULL));
  assert_non_null(strstr(text, "1 cluster after them"));
  fmm_plan_destroy(&plan);
}

/* Where clusters are leaves of a tree whose other leaves are of many sizes: pairs inside a cluster are summed by its own plan or directly, no list has them. */
static void pairs_of_trees_with_clusters_are_summed_once(void **state) {
  enum { M = 4000 };
  static double many[3 * M];
  static const double at[3] = {0.412, 0.287, 0.719}, sizes[] = {1e-2, 1e-6, 1e-9, 1e-12}, tolerances[] = {1e-3, 1e-6, 1e-9};
  int clustered = 0;
  for (int s = 0; s < 4; s++) {
    assert_ok(fmm_generate_points("uniform", M, 3, many, 2));
    for (int i = 0; i < M; i++)
      for (int k = 0; k < 3 && i % 10; k++) many[3 * i + k] = at[k] + sizes[s] * (many[3 * i + k] - 0.5);
    for (int t = 0; t < 3; t++)
      for (int leaf = 64; leaf <= 256; leaf *= 2)
        for (int gradient = 0; gradient < 2; gradient++) {
          fmm_options o = defaults(tolerances[t]);
          fmm_plan_info info = {.struct_size = sizeof info};
          fmm_plan *plan = NULL;
          o.leaf_size = leaf, o.schedule = FMM_SCHEDULE_CPU, o.gradient = gradient;
          assert_ok(fmm_plan_create(&plan, &o));
          assert_ok(fmm_plan_set_points(plan, M, many, NULL, 0, NULL));
          assert_ok(fmm_plan_get_info(plan, &info));
          clustered += info.n_clusters > 0;
          fmm_plan_destroy(&plan);
          double error = error_of(&o, M, many, 0, NULL);
          if (!(error <= tolerances[t])) fail_msg("cluster of %g, leaf %d, gradient %d: error %g, tolerance %g", sizes[s], leaf, gradient, error, tolerances[t]);
        }
  }
  assert_true(clustered > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_of_clusters_share_their_operators), cmocka_unit_test(a_cluster_of_a_fifth_of_the_points_has_a_plan_of_its_own_whatever_the_leaf_size),
      cmocka_unit_test(the_cap_on_host_memory_is_on_what_is_reported), cmocka_unit_test(what_a_cluster_s_plan_chooses_is_in_the_plan_id),
      cmocka_unit_test(clusters_are_in_the_predicted_and_the_measured_time),
      cmocka_unit_test(pairs_of_trees_with_clusters_are_summed_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
