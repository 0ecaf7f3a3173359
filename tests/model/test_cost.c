/* The cost table against formulas written out here from the rates of a recorded machine. */
#include "cost_case.h"
#include "kernels/pair/pair_tiles.h"

static void a_phase_takes_the_larger_of_compute_and_memory(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores"); /* 12.8 Gpair/s, 160 GFLOP/s, 20 GB/s, 3 us a region, constants 1 */
  fmm_counts c = counts();
  fmm_cost_table t;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds, 1e9 / 12.8e9 + 3e-6, 1e-12);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s, 1e9 / 12.8e9, 1e-12);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][1].limit_s, 1e9 / 25.2e9, 1e-12);
  assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].limit_s, 4e9 / 20e9, 1e-12);
  assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][1].limit_s, 2e9 / 20e9, 1e-12); /* single: half the bytes */
  assert_near(t.level_s[FMM_PHASE_UP][2][FMM_DEVICE_CPU][0], 3.2e9 / 160e9 + 3e-6, 1e-12);
  assert_near(t.level_s[FMM_PHASE_UP][3][FMM_DEVICE_CPU][0], 1e8 * 5 * 2 / 160e9 + 1.6e9 / 160e9 + 3e-6, 1e-12); /* five instructions of a point and two harmonics */
  assert_near(t.total[FMM_PHASE_UP][FMM_DEVICE_CPU][0].seconds,
              t.level_s[FMM_PHASE_UP][2][FMM_DEVICE_CPU][0] + t.level_s[FMM_PHASE_UP][3][FMM_DEVICE_CPU][0], 1e-12);
}

/* Pairs and products of up; 152 unknowns at order 6. A level that memory limits is shared out as its arithmetic is. */
static void the_two_parts_of_a_phase_have_constants_of_their_own(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores"); /* 12.8 Gpair/s, 160 GFLOP/s, 20 GB/s, 3 us a region */
  fmm_counts c = counts();
  fmm_cost_table t;
  m.device[0].constant[FMM_PHASE_UP][0] = (fmm_constant){.value = 2, .other = 5, .chain_s = 1e-8};
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.level_s[FMM_PHASE_UP][2][FMM_DEVICE_CPU][0], 5 * 3.2e9 / 160e9 + 3e-6 + 152e-8, 1e-12);
  assert_near(t.level_s[FMM_PHASE_UP][3][FMM_DEVICE_CPU][0], 2 * 1e8 * 5 * 2 / 160e9 + 5 * 1.6e9 / 160e9 + 3e-6 + 152e-8, 1e-12);
  const fmm_roofline b = fmm_phase_roofline(&m, FMM_DEVICE_CPU, &fmm_info_laplace, &c, FMM_PHASE_UP, 0);
  assert_near(b.other_s, 4.8e9 / 160e9, 1e-12);
  assert_near(b.seconds, 4.8e9 / 160e9 + 1e8 * 5 * 2 / 160e9, 1e-12);
  c.level[FMM_PHASE_UP][3].bytes = 20e9;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  const double pairs_s = 1e8 * 5 * 2 / 160e9, products_s = 1.6e9 / 160e9, share = products_s / (pairs_s + products_s);
  assert_near(t.level_s[FMM_PHASE_UP][3][FMM_DEVICE_CPU][0], 2 * (1 - share) + 5 * share + 3e-6 + 152e-8, 1e-12);
  m.device[0].constant[FMM_PHASE_UP][0].other = 0; /* as value */
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.level_s[FMM_PHASE_UP][2][FMM_DEVICE_CPU][0], 2 * 3.2e9 / 160e9 + 3e-6 + 152e-8, 1e-12);
  assert_true(fmm_phase_unknowns(&c, &fmm_info_stokes, FMM_PHASE_DOWN) == 3 * 152 && fmm_phase_unknowns(&c, &fmm_info_laplace, FMM_PHASE_ULIST) == 0);
}

/* A GPU takes many leaves' moments: of a pair of point and surface point so many multiply-adds as 105 pairs of degree and order have, for 152 points, and no root; of one leaf less sums with surfaces. */
static void moments_of_many_leaves_are_priced_by_their_recurrence(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  c.level[FMM_WORK_UP_GPU][3] = (fmm_work){.pairs = 1e9, .flops = 11e9, .bytes = 10, .entries = 20};
  const fmm_device_rates *d = &m.device[FMM_DEVICE_GPU];
  for (int single = 0; single < 2; single++) {
    c.n_leaves = FMM_MOMENTS_MANY;
    const fmm_roofline many = fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, single);
    assert_near(many.seconds, 1e9 * 5 * 105 / 152 * 2 / d->fma_flops_per_s[single].value, 1e-12);
    c.n_leaves--;
    assert_true(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, single).seconds > 1.2 * many.seconds);
  }
}

/* Two instructions beside the root for seven, with gradients seven for thirteen, where the GPU's kernels for lattices serve. */
static void sums_along_the_rows_of_surfaces_are_priced_by_what_they_do(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  c.level[FMM_WORK_UP_GPU][3] = (fmm_work){.pairs = 1e9, .flops = 11e9, .bytes = 10, .entries = 20};
  const double pair_s = 1 / 1170e9, instructions_per_s = 31.1e12 / 2, rsqrt = instructions_per_s * pair_s - 7;
  const double along = 1e9 * (2 + rsqrt) / instructions_per_s, any = 1e9 * (7 + rsqrt) / instructions_per_s;
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, 0).seconds, along, 1e-12);
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, 1).seconds, along, 1e-12); /* above order 5 these sums are double */
  c.order = 9;
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, 0).seconds, any, 1e-12);
  c.order = 6, c.third_order = 1;
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, 0).seconds, any, 1e-12);
  c.third_order = 0, c.gradient = 1; /* at points: not up */
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_UP, 0).seconds, along, 1e-12);
  c.level[FMM_WORK_DOWN_GPU][3] = c.level[FMM_WORK_UP_GPU][3];
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_DOWN, 0).seconds, 1e9 * (7 + rsqrt) / instructions_per_s, 1e-12);
  c.order = 9;
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_DOWN, 0).seconds, 1e9 * (13 + rsqrt) / instructions_per_s, 1e-12);
}

static void a_phase_without_work_costs_nothing(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  fmm_cost_table t;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  for (int d = 0; d < FMM_N_DEVICES; d++) assert_true(t.total[FMM_PHASE_WLIST][d][0].seconds == 0 && t.total[FMM_PHASE_DOWN][d][0].seconds == 0);
}

static void constants_and_entries_enter_and_an_unmeasured_phase_takes_the_worst(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_counts c = counts();
  fmm_cost_table t;
  m.device[0].constant[FMM_PHASE_ULIST][0] = (fmm_constant){.value = 3, .entry_s = 1e-6, .p90_error = 0.25, .n_held_out = 4};
  m.device[0].constant[FMM_PHASE_VLIST][0].value = 0;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][0][0].seconds, 3 * 1e9 / 12.8e9 + 1e-6 * 1000 + 3e-6, 1e-12);
  assert_true(t.total[FMM_PHASE_ULIST][0][0].p90_error == 0.25);
  m.device[0].constant[FMM_PHASE_ULIST][0].n_held_out = 0; /* then it is the error of the runs that were fitted */
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_true(t.total[FMM_PHASE_ULIST][0][0].p90_error == 0);
  assert_near(t.total[FMM_PHASE_VLIST][0][0].seconds, 3 * 4e9 / 20e9 + 3e-6, 1e-12);
  m.device[0].constant[FMM_PHASE_UP][0].other = 7; /* of either part */
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_VLIST][0][0].seconds, 7 * 4e9 / 20e9 + 3e-6, 1e-12);
}

static void other_interactions_are_priced_by_instructions_of_equation_6(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  fmm_cost_table t;
  double pair_s = 1 / 1170e9, instructions_per_s = 31.1e12 / 2, rsqrt = instructions_per_s * pair_s - 7; /* about 6.3 */
  assert_true(rsqrt > 5 && rsqrt < 8);
  fmm_cost_table_make(&m, &c, &fmm_info_stokes, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][0].limit_s, 1e9 * (fmm_info_stokes.instructions + rsqrt) / instructions_per_s, 1e-12);
  c.gradient = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][0].limit_s, 1e9 * (fmm_info_laplace.gradient_instructions + rsqrt) / instructions_per_s, 1e-12);
}

/* Difference, square (six instructions) and root serve two interactions; of either are its other instructions, and a load and a store for two values. Only
 * where leaves have mates, on the CPU, and where that wins: not Stokes with gradient. */
static void u_in_both_directions_is_priced_by_what_they_share(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_counts c = counts();
  fmm_cost_table t;
  double instructions_per_s = 160e9 / 2, rsqrt = instructions_per_s / 12.8e9 - 7; /* below 1: taken for 1 */
  if (!(rsqrt > 1)) rsqrt = 1;
  double one_s = 1 / 12.8e9 / (7 + rsqrt);
  c.same_points = 1, c.n_leaves = 64;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s, 1e9 * one_s * ((6 + rsqrt) / 2 + 1 + 1), 1e-12);
  c.gradient = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s, 1e9 * one_s * ((6 + rsqrt) / 2 + 7 + 4), 1e-12);
  fmm_cost_table_make(&m, &c, &fmm_info_stokes, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s, 1e9 * one_s * (fmm_info_stokes.gradient_instructions + rsqrt), 1e-12);
  c.n_leaves = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s, 1e9 * one_s * (13 + rsqrt), 1e-12);
}

/* A core sums a leaf alone: direct sums of few points take as long with many cores as with one. */
static void fewer_leaves_than_cores_leave_cores_idle(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200"), one = m;
  fmm_machine_use_units(&one, FMM_DEVICE_CPU, 1);
  const double launch = m.device[0].launch_s.value, launch_of_one = one.device[0].launch_s.value;
  for (int leaves = 1; leaves <= 32; leaves *= 2) {
    fmm_counts c = counts();
    fmm_cost_table t, u;
    c.n_leaves = leaves;
    fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
    fmm_cost_table_make(&one, &c, &fmm_info_laplace, &u);
    const double all = t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds - launch, alone = u.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].seconds - launch_of_one;
    assert_near(all, alone / (leaves < 16 ? leaves : 16), 1e-9);
  }
}

/* V's transforms have a constant of their own on a GPU alone. */
static void transforms_on_cpu_cores_go_with_the_products(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  fmm_cost_table t;
  c.level[FMM_PHASE_VLIST][4] = (fmm_work){.flops = 9e12, .other = 4e12, .bytes = 1, .entries = 1};
  m.device[FMM_DEVICE_CPU].constant[FMM_PHASE_VLIST][0] = (fmm_constant){.value = 2, .other = 5};
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].seconds, 2 * 9e12 / m.device[FMM_DEVICE_CPU].fma_flops_per_s[0].value + m.device[FMM_DEVICE_CPU].launch_s.value, 1e-12);
}

/* Where a GPU sums U in both directions it is priced by that work, a multiply-add more a pair, in both precisions; with gradients in single alone, by five operations more. The CPU knows nothing of it. */
static void u_on_the_gpu_in_both_directions_is_a_work_of_its_own(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  fmm_cost_table t, one_way;
  c.same_points = 1, c.n_leaves = 64, c.both_on_gpu[0] = c.both_on_gpu[1] = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  c.both_on_gpu[0] = c.both_on_gpu[1] = 0;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &one_way);
  for (int precision = 0; precision < FMM_N_PRECISIONS; precision++)
    assert_true(t.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][precision].limit_s < 0.8 * one_way.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][precision].limit_s);
  assert_true(t.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s == one_way.total[FMM_PHASE_ULIST][FMM_DEVICE_CPU][0].limit_s);
  fmm_cost_table plain, with;
  c.gradient = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &plain);
  c.both_on_gpu[1] = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &with);
  const fmm_device_rates *d = &m.device[FMM_DEVICE_GPU];
  const double root = d->fma_flops_per_s[1].value / 2 * 11 / d->pair_flops_per_s[1].value - 7, pairs = c.total[FMM_WORK_ULIST_GPU_BOTH].pairs / c.total[FMM_WORK_ULIST_GPU].pairs;
  const fmm_cost *u = with.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU], *v = plain.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU];
  assert_true(u[0].limit_s == v[0].limit_s && root > 1);
  assert_near(u[1].limit_s / v[1].limit_s, pairs * (13 + 5 + root) / (13 + root), 1e-12);
}

/* The longest tile is waited for by all multiprocessors: it takes its pairs' time on one of them, times the constant; no part of the limit. */
static void the_longest_tile_of_u_comes_on_top(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200"); /* 1,170 Gpair/s, 132 multiprocessors */
  fmm_counts c = counts();
  fmm_cost_table without, with;
  m.device[FMM_DEVICE_GPU].constant[FMM_PHASE_ULIST][0].value = 1.5;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &without);
  const double roofline = fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_ULIST, 0).seconds;
  c.level[FMM_WORK_ULIST_GPU][4].longest = 2e6;
  fmm_counts_add_up(&c);
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &with);
  const fmm_cost *a = &without.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][0], *b = &with.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][0];
  assert_near(b->seconds - a->seconds, 1.5 * 2e6 * 132 / 1170e9, 1e-9);
  assert_true(a->limit_s == b->limit_s);
  assert_near(fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_ULIST, 0).seconds, roofline + 2e6 * 132 / 1170e9, 1e-9);
}

/* On a lattice a warp has a quarter of a multiprocessor; of order 9 the 386 targets of a row are 13 tiles, of which one is waited for, of four warps' sources. */
static void the_longest_row_of_x_comes_on_top(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  m.device[FMM_DEVICE_GPU].constant[FMM_PHASE_XLIST][0].value = 1.5;
  for (int order = 6; order <= 9; order += 3) { /* lattices are there up to order 8 */
    fmm_counts c = counts();
    fmm_cost_table without, with;
    c.order = order, c.n_surface = 6 * (order - 1) * (order - 1) + 2;
    c.level[FMM_WORK_XLIST_GPU][4].pairs = 1e8, c.level[FMM_WORK_XLIST_GPU][4].entries = 100;
    fmm_counts_add_up(&c);
    fmm_cost_table_make(&m, &c, &fmm_info_laplace, &without);
    const double a_pair = fmm_phase_roofline(&m, FMM_DEVICE_GPU, &fmm_info_laplace, &c, FMM_PHASE_XLIST, 0).seconds / 1e8;
    c.level[FMM_WORK_XLIST_GPU][4].longest = 2e4;
    fmm_counts_add_up(&c);
    fmm_cost_table_make(&m, &c, &fmm_info_laplace, &with);
    const fmm_cost *a = &without.total[FMM_PHASE_XLIST][FMM_DEVICE_GPU][0], *b = &with.total[FMM_PHASE_XLIST][FMM_DEVICE_GPU][0];
    assert_near(b->seconds - a->seconds, 1.5 * 2e4 * 132 * a_pair * (order == 6 ? 4 : 4.0 / 13), 1e-9);
    assert_true(a->limit_s == b->limit_s && a_pair > 0);
  }
}

/* The GPU's U in single for this machine, less the launch, which both precisions have alike here. */
static double tight_ulist_s(const fmm_machine *m, const fmm_counts *counts, const fmm_pair_info *pair, double share, int precision) {
  fmm_counts c = *counts;
  fmm_cost_table t;
  c.tight_share = share;
  fmm_cost_table_make(m, &c, pair, &t);
  return t.total[FMM_PHASE_ULIST][FMM_DEVICE_GPU][precision].seconds - m->device[FMM_DEVICE_GPU].launch_s.value;
}

static fmm_machine machine_with_u_on_the_gpu(void) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_constant *u = m.device[FMM_DEVICE_GPU].constant[FMM_PHASE_ULIST];
  u[0] = (fmm_constant){.value = 1.4, .gradient = 0.8}, u[1] = (fmm_constant){.value = 1.1};
  return m;
}

/* Of U in single on a GPU the share that is too tight for float is summed in double, of leaves that are summed in both directions what they have with themselves; nothing else knows of it. */
static void tiles_too_tight_for_float_are_priced_in_double(void **state) {
  const fmm_machine m = machine_with_u_on_the_gpu();
  fmm_counts c = counts();
  fmm_cost_table none, all;
  c.same_points = 1, c.n_leaves = 64, c.own_pairs = 1.5e8, c.both_on_gpu[0] = c.both_on_gpu[1] = 1;
  const double single = tight_ulist_s(&m, &c, &fmm_info_laplace, 0, 1), half = tight_ulist_s(&m, &c, &fmm_info_laplace, 0.5, 1), tight = tight_ulist_s(&m, &c, &fmm_info_laplace, 1, 1);
  const double in_double = tight_ulist_s(&m, &c, &fmm_info_laplace, 0, 0), own = c.own_pairs / c.total[FMM_WORK_ULIST_GPU_BOTH].pairs;
  assert_true(own > 0.01 && own < 0.9 && in_double > 1.3 * single);
  assert_near(tight, own * in_double + (1 - own) * single, 1e-12);
  assert_near(half, (single + tight) / 2, 1e-12);
  c.n_leaves = 1; /* all pairs are such */
  assert_near(tight_ulist_s(&m, &c, &fmm_info_laplace, 1, 1), in_double, 1e-12);
  c.gradient = 1; /* where double itself would be summed one way, such tiles are in both directions too */
  const double in_both = tight_ulist_s(&m, &c, &fmm_info_laplace, 0, 0);
  c.both_on_gpu[0] = 0;
  assert_near(tight_ulist_s(&m, &c, &fmm_info_laplace, 1, 1), in_both, 1e-12);
  assert_true(tight_ulist_s(&m, &c, &fmm_info_laplace, 0, 0) > 1.1 * in_both);
  c.gradient = 0, c.both_on_gpu[0] = 1;
  c.n_leaves = 64;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &none);
  c.tight_share = 1;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &all);
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int device = 0; device < FMM_N_DEVICES; device++)
      for (int precision = 0; precision < FMM_N_PRECISIONS; precision++)
        if (phase != FMM_PHASE_ULIST || device != FMM_DEVICE_GPU || !precision)
          assert_true(none.total[phase][device][precision].seconds == all.total[phase][device][precision].seconds);
}

/* Where U is summed one way too: single precision in which all is too tight costs as much as double, not less. */
static void tight_tiles_cost_what_double_costs_where_that_is_one_way(void **state) {
  const fmm_machine m = machine_with_u_on_the_gpu();
  fmm_counts same = counts(), c;
  same.same_points = 1, same.n_leaves = 64;
  for (int kind = 0; kind < 6; kind++) {
    const fmm_pair_info *pair = kind == 5 ? &fmm_info_stokes : &fmm_info_laplace;
    c = same;
    if (kind == 0) c.same_points = 0;
    if (kind == 1) c.n_leaves = 1;
    if (kind == 2) c.n_columns = 3;
    if (kind == 3) c.third_order = 1;
    if (kind == 4) c.gradient = 1;
    assert_near(tight_ulist_s(&m, &c, pair, 1, 1), tight_ulist_s(&m, &c, pair, 1, 0), 1e-12);
  }
}

/* A time that holds sums in single and in double tells of both constants, so that what was measured is foretold after one step; without tight tiles it tells of one. */
static void learning_from_u_with_tight_tiles_takes_one_step(void **state) {
  fmm_machine m = machine_with_u_on_the_gpu();
  fmm_constant *u = m.device[FMM_DEVICE_GPU].constant[FMM_PHASE_ULIST];
  fmm_counts c = counts();
  c.same_points = 1, c.n_leaves = 64, c.both_on_gpu[0] = c.both_on_gpu[1] = 1, c.tight_share = 0.8;
  const double foretold = tight_ulist_s(&m, &c, &fmm_info_laplace, 0.8, 1), ratio = 1.3;
  fmm_cost_learn(&m, &c, FMM_PHASE_ULIST, FMM_DEVICE_GPU, 1, ratio);
  assert_near(tight_ulist_s(&m, &c, &fmm_info_laplace, 0.8, 1), ratio * foretold, 1e-12);
  assert_near(u[0].value, 1.3 * 1.4, 1e-12);
  assert_near(u[1].value, 1.3 * 1.1, 1e-12);
  fmm_cost_learn(&m, &c, FMM_PHASE_ULIST, FMM_DEVICE_GPU, 0, 1 / ratio);
  assert_near(u[0].value, 1.4, 1e-12);
  assert_near(u[1].value, 1.3 * 1.1, 1e-12);
  c.tight_share = 0;
  fmm_cost_learn(&m, &c, FMM_PHASE_ULIST, FMM_DEVICE_GPU, 1, 1 / ratio);
  assert_near(u[0].value, 1.4, 1e-12);
  assert_near(u[1].value, 1.1, 1e-12);
}

/* In either precision, whose constants tell what arithmetic is. */
static void v_on_the_gpu_is_priced_in_its_own_form(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  fmm_cost_table t;
  m.device[FMM_DEVICE_GPU].constant[FMM_PHASE_VLIST][0] = (fmm_constant){.value = 2, .entry_s = 1e-3, .byte_s = 1e-12};
  m.device[FMM_DEVICE_GPU].constant[FMM_PHASE_VLIST][1] = (fmm_constant){.value = 0.5};
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_GPU][0].seconds, 2 * 9e12 / 31.1e12 + 1e-3 * 30 + 1e-12 * 4e9 + m.device[FMM_DEVICE_GPU].launch_s.value, 1e-12);
  assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_GPU][1].seconds, 0.5 * 9e12 / 31.1e12 + m.device[FMM_DEVICE_GPU].launch_s.value, 1e-12);
  assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_CPU][0].limit_s, 4e9 / 142e9, 1e-12);
}

/* Beside what is predicted, whatever constants say: of doubles tensor cores make twice what multiply-adds do, of halves 16 times what those in float do, three for a product in single, up to order 8. */
static void what_a_gpu_s_tensor_cores_allow_limits_products(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  fmm_cost_table t;
  const double doubles = 2 * m.device[FMM_DEVICE_GPU].fma_flops_per_s[0].value, floats = m.device[FMM_DEVICE_GPU].fma_flops_per_s[1].value;
  c.level[FMM_WORK_VLIST_GPU][4].other = 2e12;
  c.level[FMM_WORK_UP_GPU][3] = (fmm_work){.flops = 3e12, .other = 3e12, .entries = 5};
  fmm_counts_add_up(&c);
  for (c.order = 8; c.order <= 9; c.order++) {
    fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
    assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_GPU][0].limit_s, 7e12 / doubles + 2 * 2e12 / doubles, 1e-12);
    assert_near(t.total[FMM_PHASE_VLIST][FMM_DEVICE_GPU][1].limit_s, c.order == 8 ? 7e12 * 3 / 16 / floats + 2e12 / floats : 7e12 / doubles + 2 * 2e12 / doubles, 1e-12);
    assert_near(t.total[FMM_PHASE_UP][FMM_DEVICE_GPU][0].limit_s, 3e12 / doubles, 1e-12);
  }
}

static void an_absent_gpu_is_infeasible_with_a_reason(void **state) {
  fmm_machine m = recorded_machine("cpu-2-cores");
  fmm_counts c = counts();
  fmm_cost_table t;
  fmm_cost_table_make(&m, &c, &fmm_info_laplace, &t);
  for (int phase = 0; phase < FMM_N_PHASES; phase++) {
    assert_true(t.total[phase][FMM_DEVICE_CPU][0].feasible);
    assert_false(t.total[phase][FMM_DEVICE_GPU][0].feasible);
    assert_true(isinf(t.total[phase][FMM_DEVICE_GPU][0].seconds));
    assert_non_null(strstr(t.total[phase][FMM_DEVICE_GPU][0].reason, "no usable GPU"));
  }
}

static void transfers_carry_densities_results_and_equivalents(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_counts c = counts();
  c.n_columns = 2, c.gradient = 1;
  fmm_cost_table t;
  fmm_cost_table_make(&m, &c, &fmm_info_stokes, &t);
  assert_true(t.density_bytes == 8.0 * 3 * 2 * 1000 && t.potential_bytes == 8.0 * 3 * 4 * 2 * 2000);
  assert_true(t.up_equivalent_bytes == 8.0 * 3 * 152 * 2 * 300);
  assert_near(t.sum_s, 3 * t.potential_bytes / 142e9 + m.device[FMM_DEVICE_CPU].launch_s.value, 1e-12);
  assert_near(t.frame_s, (3 * t.density_bytes + 3 * t.potential_bytes + 8 * 3000 + t.down_check_bytes) / 142e9, 1e-12);
  assert_true(t.h2d_bytes_per_s == 55e9 && t.driving_slowdown == 1);
  assert_true(t.joint_s == t.evaluation_s && t.staging_s == 0); /* this profile has neither */
}

static void what_is_beside_the_phases_is_as_measured(void **state) {
  fmm_machine m = recorded_machine("xeon16-h200");
  fmm_device_rates *cpu = &m.device[FMM_DEVICE_CPU], *gpu = &m.device[FMM_DEVICE_GPU];
  fmm_counts c = counts();
  fmm_cost_table t;
  cpu->evaluation_s.value = 3e-4, cpu->staging_bytes_per_s.value = 50e9;
  gpu->evaluation_s.value = 4e-5, gpu->joint_s.value = 9e-5, gpu->staging_s.value = 1e-4;
  fmm_cost_table_make(&m, &c, &fmm_info_stokes, &t);
  assert_near(t.frame_s, 3e-4 + (3 * t.density_bytes + 3 * t.potential_bytes + 8 * 3000 + t.down_check_bytes) / 50e9, 1e-12);
  assert_true(t.evaluation_s == 4e-5 && t.joint_s == 9e-5 && t.staging_s == 1e-4 && t.team_bytes == 262144);
  fmm_machine_use_units(&m, FMM_DEVICE_CPU, 4); /* of 16 cores: a quarter of the rate */
  fmm_cost_table_make(&m, &c, &fmm_info_stokes, &t);
  assert_near(t.frame_s, 3e-4 + fmm_frame_bytes(&t, &c) / 12.5e9, 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_phase_takes_the_larger_of_compute_and_memory),
                                     cmocka_unit_test(the_two_parts_of_a_phase_have_constants_of_their_own),
                                     cmocka_unit_test(moments_of_many_leaves_are_priced_by_their_recurrence),
                                     cmocka_unit_test(sums_along_the_rows_of_surfaces_are_priced_by_what_they_do),
                                     cmocka_unit_test(a_phase_without_work_costs_nothing),
                                     cmocka_unit_test(constants_and_entries_enter_and_an_unmeasured_phase_takes_the_worst), cmocka_unit_test(transforms_on_cpu_cores_go_with_the_products),
                                     cmocka_unit_test(other_interactions_are_priced_by_instructions_of_equation_6),
                                     cmocka_unit_test(the_longest_tile_of_u_comes_on_top), cmocka_unit_test(the_longest_row_of_x_comes_on_top),
      cmocka_unit_test(u_on_the_gpu_in_both_directions_is_a_work_of_its_own),
                                     cmocka_unit_test(tiles_too_tight_for_float_are_priced_in_double),
                                     cmocka_unit_test(tight_tiles_cost_what_double_costs_where_that_is_one_way),
                                     cmocka_unit_test(learning_from_u_with_tight_tiles_takes_one_step),
                                     cmocka_unit_test(u_in_both_directions_is_priced_by_what_they_share),
                                     cmocka_unit_test(fewer_leaves_than_cores_leave_cores_idle),
                                     cmocka_unit_test(v_on_the_gpu_is_priced_in_its_own_form),
                                     cmocka_unit_test(what_a_gpu_s_tensor_cores_allow_limits_products),
                                     cmocka_unit_test(an_absent_gpu_is_infeasible_with_a_reason),
                                     cmocka_unit_test(what_is_beside_the_phases_is_as_measured),
                                     cmocka_unit_test(transfers_carry_densities_results_and_equivalents)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
