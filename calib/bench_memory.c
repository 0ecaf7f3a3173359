/* Memory bandwidth: the triad a = b + s c over arrays that together are several times all last-level caches, each thread on the part that it
 * touched first. Bytes are counted as STREAM does, three doubles an element (the write-allocate of a is not counted).
 * Reference: McCalpin, IEEE TCCA Newsletter (Dec. 1995) 19. */
#include "calib/bench.h"
#include "calib/topology.h"
#include "runtime/memory.h"

typedef struct triad { int threads; int64_t n; double *a, *b, *c; } triad;

static const double default_cache_bytes = 64e6, fewest_bytes = 48e6; /* where the caches are not known; in any case */

/* Elements an array: three arrays are `multiple` times the caches, but at most a quarter of the free memory. */
static int64_t triad_elements(const fmm_topology *topology, double multiple) {
  double caches = topology->last_level_bytes ? (double)topology->last_level_bytes : default_cache_bytes;
  double bytes = multiple * caches < fewest_bytes ? fewest_bytes : multiple * caches;
  if (topology->available_bytes && bytes > 0.25 * (double)topology->available_bytes) bytes = 0.25 * (double)topology->available_bytes;
  return (int64_t)(bytes / (3 * sizeof(double)));
}

static void teardown(void *context) {
  triad *t = context;
  FMM_FREE(&t->a);
  FMM_FREE(&t->b);
  FMM_FREE(&t->c);
  fmm_free_bytes(t);
}

static fmm_status allocate(triad *t) {
  FMM_TRY(FMM_ALLOCATE(&t->a, t->n, "the memory benchmark"));
  FMM_TRY(FMM_ALLOCATE(&t->b, t->n, "the memory benchmark"));
  return FMM_ALLOCATE(&t->c, t->n, "the memory benchmark");
}

static fmm_status setup(int threads, double effort, void **context, fmm_bench_work *work) {
  fmm_topology topology;
  triad *t = NULL;
  FMM_TRY(fmm_topology_read(&topology));
  FMM_TRY(FMM_ALLOCATE_ZERO(&t, 1, "the memory benchmark"));
  t->threads = threads;
  t->n = triad_elements(&topology, effort < 1 ? 3 : 4 * effort);
  fmm_status status = allocate(t);
  if (status != FMM_OK) return teardown(t), status;
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < t->n; i++) t->a[i] = 0, t->b[i] = 1, t->c[i] = (double)(i & 7);
  *work = (fmm_bench_work){.flops = 2 * (double)t->n, .bytes = 24 * (double)t->n, .items = (double)t->n, .item = "element"};
  *context = t;
  return FMM_OK;
}

static double run(void *context) {
  triad *t = context;
  double *restrict a = t->a, *restrict b = t->b, *restrict c = t->c;
  double longest = 0;
#pragma omp parallel num_threads(t->threads) reduction(max : longest)
  {
    double start = fmm_thread_s();
#pragma omp for simd schedule(static) nowait
    for (int64_t i = 0; i < t->n; i++) a[i] = b[i] + 3.0 * c[i];
    longest = fmm_thread_s() - start;
  }
  return longest;
}

const fmm_bench fmm_bench_triad = {"triad", "memory bandwidth, a = b + s c", setup, run, teardown, FMM_PER_BYTE};
