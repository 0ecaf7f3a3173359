/* fmm_plan_direct: the reference sums of a plan's own points and options at chosen target rows (see direct.h). */
#include "arithmetic.h"
#include "direct.h"
#include "plan.h"

/* Sorted position of each asked input row. */
static fmm_status find_rows(const fmm_points *p, int64_t n, const int64_t *rows, double **coordinates) {
  int64_t *position = NULL;
  FMM_TRY(FMM_ALLOCATE(&position, p->n_input, "positions of rows"));
  for (int64_t i = 0; i < p->n; i++) {
    int64_t begin = p->first ? p->first[i] : i, end = p->first ? p->first[i + 1] : i + 1;
    for (int64_t k = begin; k < end; k++) position[p->input_row[k]] = i;
  }
  fmm_status status = FMM_ALLOCATE(coordinates, 3 * n, "the chosen targets");
  for (int64_t r = 0; r < n && status == FMM_OK; r++) {
    int64_t i = position[rows ? rows[r] : r];
    double *c = *coordinates + 3 * r;
    c[0] = p->x[i], c[1] = p->y[i], c[2] = p->z[i];
  }
  FMM_FREE(&position);
  return status;
}

static void deliver(const fmm_setup *s, int64_t n, const double *values, double *potential, double *gradient) {
  int outputs = s->state.pair->info->outputs, columns = s->state.n_columns, stride = s->state.gradient ? 4 : 1;
  for (int64_t i = 0; i < n * outputs; i++)
    for (int k = 0; k < stride * columns; k++) {
      double v = values[i * stride * columns + k];
      if (k < columns) potential[i * columns + k] = s->factor * v;
      else gradient[i * 3 * columns + k - columns] = s->gradient_factor * v;
    }
}

fmm_status fmm_plan_direct(const fmm_plan *plan, const double *densities, int64_t n_rows, const int64_t *rows, double *potential, double *gradient) {
  FMM_OWN_ARITHMETIC();
  FMM_TRY(fmm_call_check_plan(plan, "fmm_plan_direct"));
  fmm_setup *s = plan->setup;
  const fmm_tree *t = &s->tree;
  if (n_rows < 0 || (!rows && n_rows > t->targets.n_input))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "n_rows is %lld; the plan has %lld targets", (long long)n_rows, (long long)t->targets.n_input);
  FMM_TRY(fmm_call_check_host(plan, "rows", (const double *)rows, rows ? n_rows : 0)); /* as large as doubles */
  for (int64_t r = 0; rows && r < n_rows; r++)
    if (rows[r] < 0 || rows[r] >= t->targets.n_input)
      return FMM_FAIL(FMM_ERR_ARGUMENT, "rows[%lld] is %lld; the plan has targets 0 .. %lld", (long long)r, (long long)rows[r], (long long)t->targets.n_input - 1);
  FMM_TRY(fmm_call_check_arrays(plan, n_rows, densities, potential, gradient));
  FMM_TRY(fmm_call_check_spaces(plan, n_rows, densities, potential, gradient, FMM_MEMORY_HOST, FMM_MEMORY_HOST));
  FMM_TRY(fmm_call_check_densities(plan, densities));
  FMM_TRY(fmm_setup_host_points(s));
  double *planes = NULL, *targets = NULL, *values = NULL;
  fmm_status status;
  fmm_direct_case what = {.pair = plan->pair, .params = s->params, .n_columns = s->state.n_columns, .gradient = s->state.gradient, .n_sources = t->sources.n,
                          .x = t->sources.x, .y = t->sources.y, .z = t->sources.z,
                          .normal = t->sources.normal[0] ? (const double *const *)t->sources.normal : NULL, .density_stride = t->sources.n};
  FMM_CHECK(FMM_ALLOCATE(&planes, s->n_density_planes * t->sources.n, "sorted densities"));
  FMM_CHECK(find_rows(&t->targets, n_rows, rows, &targets));
  FMM_CHECK(FMM_ALLOCATE(&values, n_rows * fmm_direct_width(&what), "direct sums"));
  fmm_gather_densities(&t->sources, s->n_density_planes, densities, planes, 0, NULL, plan->threads);
  what.density = planes;
  fmm_direct_sums(&what, n_rows, targets, plan->threads, values, NULL);
  deliver(s, n_rows, values, potential, gradient);
done:
  FMM_FREE(&planes);
  FMM_FREE(&targets);
  FMM_FREE(&values);
  return status;
}
