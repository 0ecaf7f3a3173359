/* Points, targets and densities of a case; see run_case.h. */
#include "run_case.h"

#include <math.h>
#include <string.h>

#include "runtime/generate.h"
#include "runtime/io/input.h"
#include "runtime/memory.h"
#include "runtime/options.h"
#include "runtime/points.h"
#include "runtime/regular_points.h"

static fmm_status generate_points(const fmm_case_options *o, int threads, fmm_case *c) {
  char name[32];
  c->n = o->points;
  FMM_TRY(fmm_points_check_rows(c->n, 0));
  FMM_TRY(FMM_ALLOCATE(&c->points, 3 * c->n, "points"));
  return fmm_generate_points(fmm_cli_choice(FMM_DISTRIBUTIONS, o->generate, name), c->n, (uint64_t)o->seed, c->points, threads);
}

static fmm_status generate_densities(const char *kind, const fmm_case_options *o, int threads, fmm_case *c) {
  int64_t values = c->n * c->pair->components;
  c->columns = 1;
  FMM_TRY(FMM_ALLOCATE(&c->densities, values, "densities"));
  return fmm_generate_densities(kind, values, (uint64_t)o->seed, c->densities, threads);
}

fmm_status fmm_case_take_columns(const char *path, int64_t k, fmm_case *c) {
  const int components = c->pair->components, most = FMM_MOST_COLUMNS * components;
  if (k > most)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: %lld density columns; kernel %s takes at most %d at once; give fewer, in several files", path, (long long)k, c->pair->name, most);
  if (k < 1 || k % components)
    return FMM_FAIL(FMM_ERR_INPUT, "%s: %lld density column(s); kernel %s takes %d, or a multiple of that; give others by --densities " FMM_DENSITIES "|FILE, or another --kernel", path, (long long)k, c->pair->name, components);
  c->columns = (int)(k / components);
  return FMM_OK;
}

/* k values a point from a file, as components x columns. */
static fmm_status take_densities(const char *path, fmm_input *in, fmm_case *c) {
  FMM_TRY(fmm_case_take_columns(path, in->k, c));
  c->densities = in->densities;
  in->densities = NULL;
  c->densities_from = path;
  return FMM_OK;
}

static fmm_status other_densities(const fmm_case_options *o, int threads, fmm_case *c) {
  fmm_input in = {0};
  c->densities_from = o->densities;
  if (fmm_is_density_name(o->densities)) return generate_densities(o->densities, o, threads, c);
  FMM_TRY(fmm_input_read_densities(o->densities, c->n, &in));
  fmm_status status = take_densities(o->densities, &in, c);
  fmm_input_free(&in);
  return status;
}

static fmm_status split_input(const fmm_case_options *o, fmm_input *in, fmm_case *c) {
  c->n = in->n, c->points = in->points;
  in->points = NULL;
  if (o->densities) return FMM_OK; /* those of the file are not wanted */
  if (in->k) return take_densities(o->file, in, c);
  if (o->densities_optional) return FMM_OK;
  return FMM_FAIL(FMM_ERR_ARGUMENT, "%s has no density columns; give --densities " FMM_DENSITIES "|FILE", o->file);
}

static fmm_status read_points(const fmm_case_options *o, fmm_case *c) {
  fmm_input in = {0};
  FMM_TRY(fmm_input_read(o->file, &in));
  fmm_status status = split_input(o, &in, c);
  fmm_input_free(&in);
  return status;
}

static fmm_status read_targets(const fmm_case_options *o, fmm_case *c) {
  fmm_input in = {0};
  c->n_targets = c->n;
  if (!o->targets) return FMM_OK;
  FMM_TRY(fmm_input_read(o->targets, &in));
  c->n_targets = in.n, c->targets = in.points;
  in.points = NULL;
  fmm_input_free(&in);
  return FMM_OK;
}

enum { PLACES = 1 << 16 };

/* One of PLACES for a row's place: the same for the same place, else at random. */
static uint64_t place_of(const double row[3]) {
  uint64_t h = 0;
  for (int k = 0; k < 3; k++) {
    const double x = row[k] + 0.0; /* one zero */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    h = fmm_split_mix(h ^ bits, 1);
  }
  return h % PLACES;
}

/* Fields of charges of one sign add up, errors less so: by as many charges as would make the same (sum s)^2 / sum s^2. One alone errs 70 times more
 * (order 9), so that ENOUGH = 70^2 and more make up for it (fmm_density_sign). Those in one place are as one: they are added up first, by places that some share by chance, so that a few
 * more are asked for. */
int fmm_densities_in_phase(int64_t n, const double *points, int columns, const double *densities) {
  enum { ENOUGH = 10000 };
  static double at[PLACES]; /* of the one thread that reads a command's case */
  for (int c = 0; c < columns; c++) {
    double sum = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, densities[i * columns + c]);
    memset(at, 0, sizeof at);
    for (int64_t i = 0; i < n; i++) {
      const double s = densities[i * columns + c] / (largest > 0 ? largest : 1);
      if (!(s >= 0)) return 0;
      sum += s, at[points ? place_of(points + 3 * i) : fmm_split_mix(0, (uint64_t)i) % PLACES] += s;
    }
    for (int k = 0; k < PLACES; k++) squares += at[k] * at[k];
    if (sum * sum < squares * fmin(ENOUGH, n / 4.0)) return 0;
  }
  return 1;
}

int fmm_densities_spread(int64_t n, int components, int columns, const double *densities) {
  for (int c = 0; c < columns; c++) {
    double largest = 0, sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++)
      for (int k = 0; k < components; k++) {
        const double f = fabs(densities[(i * components + k) * columns + c]);
        largest = f > largest ? f : largest;
      }
    for (int64_t i = 0; largest > 0 && i < n; i++) {
      double square = 0;
      for (int k = 0; k < components; k++) {
        const double s = densities[(i * components + k) * columns + c] / largest;
        square += s * s;
      }
      sum += sqrt(square), squares += square;
    }
    if (sum * sum < squares * 0.1 * (double)n) return 0;
  }
  return 1;
}

static int has_density(const fmm_case *c, int64_t row) {
  const int64_t width = (int64_t)c->pair->components * c->columns;
  for (int64_t k = 0; k < width; k++)
    if (c->densities[row * width + k] != 0) return 1;
  return 0;
}

/* Points without density as targets alone, where they are many. */
static fmm_status part_sources(fmm_case *c, int threads) {
  const int64_t width = (int64_t)c->pair->components * c->columns, most = c->n / 5;
  int64_t n = 0;
  for (int64_t i = 0; i < c->n && n <= most; i++) n += has_density(c, i);
  if (n == 0 || n > most || fmm_points_regularity(c->n, c->points, threads) != FMM_POINTS_IRREGULAR) return FMM_OK;
  double *sources = NULL;
  FMM_TRY(FMM_ALLOCATE(&sources, 3 * n, "points with density"));
  n = 0;
  for (int64_t i = 0; i < c->n; i++) {
    if (!has_density(c, i)) continue;
    memcpy(sources + 3 * n, c->points + 3 * i, 3 * sizeof *sources);
    memmove(c->densities + n * width, c->densities + i * width, (size_t)width * sizeof *c->densities);
    n++;
  }
  c->targets = c->points, c->n_targets = c->n;
  c->points = sources, c->n = n;
  c->in_phase = 0; /* said of sources that are the targets */
  return FMM_OK;
}

static fmm_status load(const fmm_case_options *o, int threads, fmm_case *c) {
  FMM_TRY(fmm_pair_info_find(o->kernel, &c->pair));
  if (c->pair->takes_normals)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "kernel %s takes a normal a source, which point files do not hold; call the library", c->pair->name);
  if (o->targets) FMM_TRY(fmm_input_check_suffix(o->targets));
  FMM_TRY(o->file ? read_points(o, c) : generate_points(o, threads, c));
  if (!c->densities && o->densities) FMM_TRY(other_densities(o, threads, c));
  else if (!c->densities) FMM_TRY(generate_densities(c->densities_from = "unit", o, threads, c));
  c->in_phase = c->pair->components == 1 && !o->targets && fmm_densities_in_phase(c->n, c->points, c->columns, c->densities);
  c->spread = fmm_densities_spread(c->n, c->pair->components, c->columns, c->densities);
  c->n_points = c->n;
  FMM_TRY(read_targets(o, c));
  return o->targets ? FMM_OK : part_sources(c, threads);
}

fmm_status fmm_case_load(const fmm_case_options *options, int threads, fmm_case *data) {
  *data = (fmm_case){0};
  fmm_status status = load(options, threads, data);
  if (status != FMM_OK) fmm_case_free(data);
  return status;
}

void fmm_case_free(fmm_case *data) {
  FMM_FREE(&data->points);
  FMM_FREE(&data->targets);
  FMM_FREE(&data->densities);
  *data = (fmm_case){0};
}
