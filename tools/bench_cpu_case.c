/* The case that bench-cpu times (bench_cpu_case.h). */
#include "tools/bench_cpu_case.h"

#include <math.h>
#include <string.h>

#include "runtime/direct.h"
#include "runtime/file.h"
#include "runtime/generate.h"
#include "runtime/memory.h"

static fmm_status make_case(fmm_bench_case *c, uint64_t seed) {
  FMM_TRY(FMM_ALLOCATE(&c->points, 3 * c->n, "points"));
  FMM_TRY(FMM_ALLOCATE(&c->density, c->n * c->pair->components, "densities"));
  FMM_TRY(fmm_generate_points(c->dist, c->n, seed, c->points, 1));
  return fmm_generate_densities(c->densities, c->n * c->pair->components, seed + 1, c->density, 1);
}

static fmm_status allocate_samples(fmm_bench_case *c) {
  FMM_TRY(FMM_ALLOCATE(&c->rows, c->samples, "samples"));
  FMM_TRY(FMM_ALLOCATE(&c->exact, c->samples, "direct sums"));
  return FMM_ALLOCATE(&c->exact_gradient, 3 * c->samples, "direct sums");
}

/* The file's parts after its head, in order. */
enum { N_PARTS = 5 };
typedef struct part { void *data; size_t bytes; } part;
static void list_parts(const fmm_bench_case *c, part parts[N_PARTS]) {
  size_t n = (size_t)c->n, samples = (size_t)c->samples;
  parts[0] = (part){c->points, 24 * n}, parts[1] = (part){c->density, 8 * n};
  parts[2] = (part){c->rows, 8 * samples}, parts[3] = (part){c->exact, 8 * samples}, parts[4] = (part){c->exact_gradient, 24 * samples};
}

static fmm_status write_case(const fmm_bench_case *c) {
  int64_t head[2] = {c->n, c->samples};
  part parts[N_PARTS];
  fmm_replacement file;
  list_parts(c, parts);
  FMM_TRY(fmm_replace_begin(&file, c->write));
  fmm_status status = fmm_replace_write(&file, head, sizeof head);
  for (int i = 0; i < N_PARTS && status == FMM_OK; i++) status = fmm_replace_write(&file, parts[i].data, parts[i].bytes);
  if (status == FMM_OK) status = fmm_replace_commit(&file);
  fmm_replace_abandon(&file);
  return status;
}

static fmm_status read_part(fmm_reader *file, part p) {
  size_t got;
  FMM_TRY(fmm_reader_read(file, p.data, p.bytes, &got));
  return got == p.bytes ? FMM_OK : FMM_FAIL(FMM_ERR_INPUT, "%s is shorter than its case", file->path);
}

static fmm_status read_parts(fmm_bench_case *c, fmm_reader *file) {
  int64_t head[2];
  part parts[N_PARTS];
  FMM_TRY(read_part(file, (part){head, sizeof head}));
  if (head[0] < 1 || head[1] < 1) return FMM_FAIL(FMM_ERR_INPUT, "%s holds no case", c->read);
  c->n = head[0], c->samples = head[1];
  FMM_TRY(FMM_ALLOCATE(&c->points, 3 * c->n, "points"));
  FMM_TRY(FMM_ALLOCATE(&c->density, c->n, "densities"));
  FMM_TRY(allocate_samples(c));
  list_parts(c, parts);
  for (int i = 0; i < N_PARTS; i++) FMM_TRY(read_part(file, parts[i]));
  return FMM_OK;
}

static fmm_status read_case(fmm_bench_case *c) {
  fmm_reader file;
  FMM_TRY(fmm_reader_open(&file, c->read));
  fmm_status status = read_parts(c, &file);
  fmm_reader_close(&file);
  return status;
}

/* Direct sums of potential and gradient at sampled rows. */
static fmm_status sum_directly(fmm_bench_case *c) {
  const fmm_pair *pair;
  double *planes = NULL, *targets = NULL, *values = NULL;
  fmm_status status;
  if (c->samples > c->n) c->samples = c->n;
  FMM_TRY(fmm_pair_find("laplace", &pair));
  FMM_TRY(allocate_samples(c));
  fmm_sample_rows(c->n, c->samples, 3, c->rows);
  FMM_CHECK(FMM_ALLOCATE(&planes, 3 * c->n, "planes of the points"));
  FMM_CHECK(FMM_ALLOCATE(&targets, 3 * c->samples, "samples"));
  FMM_CHECK(FMM_ALLOCATE(&values, 4 * c->samples, "direct sums"));
  for (int64_t i = 0; i < 3 * c->n; i++) planes[i % 3 * c->n + i / 3] = c->points[i];
  for (int64_t i = 0; i < c->samples; i++) memcpy(targets + 3 * i, c->points + 3 * c->rows[i], 3 * sizeof *targets);
  fmm_direct_case what = {.pair = pair, .n_columns = 1, .gradient = 1, .n_sources = c->n, .x = planes, .y = planes + c->n, .z = planes + 2 * c->n,
                          .density = c->density, .density_stride = c->n};
  fmm_direct_sums(&what, c->samples, targets, 2, values, NULL);
  for (int64_t i = 0; i < c->samples; i++) {
    c->exact[i] = values[4 * i];
    memcpy(c->exact_gradient + 3 * i, values + 4 * i + 1, 3 * sizeof *values);
  }
done:
  FMM_FREE(&planes);
  FMM_FREE(&targets);
  FMM_FREE(&values);
  return status;
}

fmm_status fmm_bench_case_obtain(fmm_bench_case *c, uint64_t seed) {
  if (c->read) return read_case(c);
  FMM_TRY(make_case(c, seed));
  if (c->samples > 0 && !strcmp(c->pair->name, "laplace")) FMM_TRY(sum_directly(c));
  else c->samples = 0;
  return c->write ? write_case(c) : FMM_OK;
}

void fmm_bench_case_free(fmm_bench_case *c) {
  double **arrays[] = {&c->points, &c->density, &c->exact, &c->exact_gradient};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) FMM_FREE(arrays[i]);
  FMM_FREE(&c->rows);
}

double fmm_bench_relative_error(int64_t n, const int64_t *rows, int width, const double *computed, const double *exact) {
  double error = 0, size = 0;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < width; k++) {
      double e = exact[i * width + k], d = computed[rows[i] * width + k] - e;
      error += d * d, size += e * e;
    }
  return sqrt(error / size);
}
