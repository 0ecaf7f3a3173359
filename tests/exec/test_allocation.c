/* Nothing is allocated while a plan executes, by whichever library: the program's own malloc and its kin count, and pass on to glibc's. What the
 * OpenMP runtime keeps for its teams is its own (none was seen with GCC 12), and so is what threads of the GPU's driver do: these plans run on CPU
 * cores and make no CUDA call while they execute, but the driver was asked for a GPU before. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hybridfmm/fmm.h"
#include "runtime/binding.h"
#include "runtime/generate.h"
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || !defined(__GLIBC__)
int main(void) { return 77; } /* a sanitiser has its own malloc */
#else

extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t n, size_t bytes), *__libc_realloc(void *p, size_t bytes), *__libc_memalign(size_t a, size_t bytes);
enum { MOST = 64 };
static atomic_int counting, n_calls;
static void *caller[MOST];

static void count(void *from) {
  if (!atomic_load(&counting)) return;
  int i = atomic_fetch_add(&n_calls, 1);
  if (i < MOST) caller[i] = from;
}

#define EXPORT __attribute__((visibility("default")))
EXPORT void *malloc(size_t bytes) { return count(__builtin_return_address(0)), __libc_malloc(bytes); }
EXPORT void *calloc(size_t n, size_t bytes) { return count(__builtin_return_address(0)), __libc_calloc(n, bytes); }
EXPORT void *realloc(void *p, size_t bytes) { return count(__builtin_return_address(0)), __libc_realloc(p, bytes); }
EXPORT void *memalign(size_t a, size_t bytes) { return count(__builtin_return_address(0)), __libc_memalign(a, bytes); }
EXPORT void *aligned_alloc(size_t a, size_t bytes) { return count(__builtin_return_address(0)), __libc_memalign(a, bytes); }
EXPORT int posix_memalign(void **p, size_t a, size_t bytes) {
  count(__builtin_return_address(0));
  void *block = __libc_memalign(a, bytes);
  if (!block) return ENOMEM;
  *p = block;
  return 0;
}

static void begin_counting(void) {
  atomic_store(&n_calls, 0);
  atomic_store(&counting, 1);
}

static char first_caller[256];

/* Calls since then, but for those from the OpenMP runtime and the GPU's driver; names the first. */
static int end_counting(void) {
  atomic_store(&counting, 0);
  int n = atomic_load(&n_calls), others = n > MOST ? n - MOST : 0;
  snprintf(first_caller, sizeof first_caller, "unknown");
  for (int i = 0; i < n && i < MOST; i++) {
    Dl_info info = {0};
    if (dladdr(caller[i], &info) && info.dli_fname && (strstr(info.dli_fname, "omp") || strstr(info.dli_fname, "libcuda."))) continue;
    if (!others++) snprintf(first_caller, sizeof first_caller, "%s, %s", info.dli_fname ? info.dli_fname : "?", info.dli_sname ? info.dli_sname : "?");
  }
  return others;
}

enum { N = 3000, COLUMNS = 2 };
static double points[3 * N], density[3 * COLUMNS * N], potential[3 * COLUMNS * N], gradient[9 * COLUMNS * N];

static void nothing_is_allocated_by(const char *kernel, fmm_precision precision, int threads, int bind, int with_gradient) {
  fmm_options o;
  fmm_plan *plan = NULL;
  assert_ok(fmm_options_init(&o));
  o.kernel = kernel, o.precision = precision, o.threads = threads, o.oversubscribe = 1, o.bind_threads = bind, o.gradient = with_gradient;
  o.n_columns = COLUMNS, o.schedule = FMM_SCHEDULE_CPU, o.leaf_size = 40, o.tolerance = 1e-3;
  begin_counting();
  assert_ok(fmm_plan_create(&plan, &o));
  assert_ok(fmm_plan_set_points(plan, N, points, NULL, 0, NULL));
  assert_true(end_counting() > 0); /* counting works */
  for (int run = 0; run < 2; run++) {
    begin_counting();
    fmm_status status = fmm_plan_execute(plan, density, potential, with_gradient ? gradient : NULL);
    int others = end_counting();
    assert_ok(status);
    if (others) fail_msg("%s, precision %d, %d threads, bind %d, gradient %d: %d allocations in execution %d, the first by %s",
                         kernel, precision, threads, bind, with_gradient, others, run, first_caller);
  }
  fmm_plan_destroy(&plan);
}

static void executing_allocates_nothing_whatever_is_computed(void **state) {
  static const char *const kernels[] = {"laplace", "stokes", "yukawa"};
  for (int k = 0; k < 3; k++)
    for (int precision = FMM_PRECISION_DOUBLE; precision <= FMM_PRECISION_SINGLE; precision++)
      nothing_is_allocated_by(kernels[k], (fmm_precision)precision, 2, 1, precision == FMM_PRECISION_DOUBLE);
}

static void executing_allocates_nothing_with_threads_bound_or_not(void **state) {
  for (int threads = 1; threads <= 3; threads++)
    for (int bind = 0; bind < 2; bind++) nothing_is_allocated_by("laplace", FMM_PRECISION_AUTO, threads, bind, 0);
}

/* Where it is bound, and when the calling thread's mask has changed since the places were chosen. */
static void binding_allocates_nothing(void **state) {
  for (int threads = 1; threads <= 4; threads++) {
    fmm_binding *b = NULL;
    cpu_set_t before, one;
    int core = 0;
    assert_ok(fmm_binding_create(&b, threads));
    fmm_binding_begin(b, 1); /* the team's threads are started */
    fmm_binding_end(b);
    begin_counting();
    fmm_binding_begin(b, 1);
    fmm_binding_end(b);
    assert_int_equal(end_counting(), 0);
    sched_getaffinity(0, sizeof before, &before);
    while (!CPU_ISSET(core, &before)) core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    begin_counting();
    fmm_binding_begin(b, 1);
    fmm_binding_end(b);
    assert_int_equal(end_counting(), 0);
    sched_setaffinity(0, sizeof before, &before);
    fmm_binding_destroy(&b);
  }
}

int main(void) {
  const char *preloaded = getenv("LD_PRELOAD");
  if (preloaded && strstr(preloaded, "vgpreload")) return 77; /* Valgrind has its own malloc */
  assert_ok(fmm_generate_points("plummer", N, 1, points, 1));
  for (int i = 0; i < N / 10; i++) points[3 * i] = points[0], points[3 * i + 1] = points[1], points[3 * i + 2] = points[2] + 1e-13 * i; /* a cluster below the finest cell */
  assert_ok(fmm_generate_densities("signed", 3 * COLUMNS * N, 1, density, 1));
  const struct CMUnitTest tests[] = {cmocka_unit_test(executing_allocates_nothing_whatever_is_computed),
                                     cmocka_unit_test(executing_allocates_nothing_with_threads_bound_or_not), cmocka_unit_test(binding_allocates_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
