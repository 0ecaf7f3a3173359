/* The case of fmm-predict: points of a file are read; generated ones are only named, with what is known of their densities. */
#include <string.h>

#include "predict.h"
#include "runtime/generate.h"
#include "runtime/io/input.h"

/* Columns and signs of a generated case's densities from a file. */
static fmm_status read_densities(const char *path, fmm_case *c) {
  fmm_input in = {0};
  FMM_TRY(fmm_input_read_densities(path, c->n, &in));
  fmm_status status = fmm_case_take_columns(path, in.k, c);
  if (status == FMM_OK) {
    c->in_phase = c->pair->components == 1 && fmm_densities_in_phase(c->n, NULL, c->columns, in.densities);
    c->spread = fmm_densities_spread(c->n, c->pair->components, c->columns, in.densities);
  }
  fmm_input_free(&in);
  return status;
}

static fmm_status name_case(const fmm_case_options *o, fmm_case *c) {
  FMM_TRY(fmm_pair_info_find(o->kernel, &c->pair));
  if (o->targets)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--targets '%s' goes with a FILE of sources; a generated case is predicted at its own points", o->targets);
  c->n_points = c->n = c->n_targets = o->points;
  c->columns = 1;
  c->densities_from = o->densities ? o->densities : "unit";
  c->in_phase = c->pair->components == 1 && strcmp(c->densities_from, "signed") != 0;
  c->spread = 1; /* of what is generated */
  return fmm_is_density_name(c->densities_from) ? FMM_OK : read_densities(o->densities, c);
}

fmm_status fmm_predict_take_case(fmm_prediction_run *run) {
  fmm_case_options *o = &run->options.c;
  o->densities_optional = 1;
  FMM_TRY(fmm_case_check(o));
  if (o->file) FMM_TRY(fmm_input_check_suffix(o->file));
  FMM_TRY(o->file ? fmm_case_load(o, 1, &run->data) : name_case(o, &run->data));
  FMM_TRY(fmm_case_to_options(o, &run->plan));
  run->plan.n_columns = run->data.columns;
  run->plan.density_sign = run->data.in_phase ? FMM_DENSITY_NONNEGATIVE : FMM_DENSITY_SIGNED;
  run->plan.densities_spread = run->data.spread;
  return FMM_OK;
}
