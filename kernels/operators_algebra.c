/* Small dense algebra of the set-up (LAPACK, BLAS), the regrouping of one vector, and operators as plain dense matrices. */
#include <cblas.h>
#include <lapacke.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "kernels/operators_parts.h"
#include "runtime/memory.h"

/* OpenBLAS built on threads of its own obeys these; built on OpenMP it runs one thread inside our team. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
extern int openblas_get_num_threads(void) __attribute__((weak));

static pthread_mutex_t blas_mutex = PTHREAD_MUTEX_INITIALIZER;
static int threads_before, threads_served; /* those whose calls found room for their buffers */

/* OpenBLAS takes a buffer of 128 MiB (BUFFER_SIZE of common_x86_64.h) at a calling thread's first call and keeps it, and where address space
 * or data is limited (ulimit -v, -d) tries again for ever, as its own threads do from the start; so room for all is asked for beforehand, and for the heap of
 * 64 MiB of address space that a thread's first allocation reserves. Nothing of it is touched. */
enum { BUFFER = 129 << 20, HEAP = 64 << 20 };
typedef struct limited { int resource, protection; size_t heap; const char *what, *option; } limited;
static const limited kinds[] = {{RLIMIT_AS, PROT_NONE, HEAP, "address space", "-v"}, {RLIMIT_DATA, PROT_READ | PROT_WRITE, 0, "data", "-d"}}; /* only what can be written is data */

static fmm_status check_room_of(const limited *kind, int threads) {
  const size_t own = openblas_get_num_threads && !threads_served ? (size_t)openblas_get_num_threads() - 1 : 0;
  const size_t bytes = (size_t)(threads - threads_served) * (BUFFER + kind->heap) + own * BUFFER;
  struct rlimit limit;
  if (getrlimit(kind->resource, &limit) || limit.rlim_cur == RLIM_INFINITY) return FMM_OK;
  void *room = mmap(NULL, bytes, kind->protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED && fmm_memory_give_back()) room = mmap(NULL, bytes, kind->protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return FMM_FAIL(FMM_ERR_MEMORY, "no memory for LAPACK's buffers (%zu bytes of %s for %d threads; the limit is %llu bytes); raise it (ulimit %s), or use fewer threads",
                    bytes, kind->what, threads, (unsigned long long)limit.rlim_cur, kind->option);
  munmap(room, bytes);
  return FMM_OK;
}

static fmm_status check_room(int threads) {
  if (threads <= threads_served) return FMM_OK;
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) FMM_TRY(check_room_of(&kinds[k], threads));
  threads_served = threads;
  return FMM_OK;
}

fmm_status fmm_blas_single_thread_begin(int threads) {
  pthread_mutex_lock(&blas_mutex);
  fmm_status status = check_room(threads);
  if (status != FMM_OK) {
    pthread_mutex_unlock(&blas_mutex);
    return status;
  }
  if (!openblas_set_num_threads || !openblas_get_num_threads) return FMM_OK;
  threads_before = openblas_get_num_threads();
  if (threads_before > 1) openblas_set_num_threads(1); /* which makes its threads anew where a command has ended them */
  return FMM_OK;
}

void fmm_blas_single_thread_end(void) {
  if (openblas_set_num_threads && openblas_get_num_threads && threads_before > 1) openblas_set_num_threads(threads_before);
  pthread_mutex_unlock(&blas_mutex);
}

/* With room of our own: LAPACKE's prints where it finds none. */
fmm_status fmm_small_svd(int m, double *a, double *ut, double *sigma, double *vt) {
  double wanted = 0, *work = NULL;
  lapack_int *whole = NULL;
  fmm_status status = FMM_OK;
  if (m == 0) return FMM_OK;
  /* Read by columns, the row-major a is A^T = V S U^T: its left vectors by columns are V^T by rows, its right ones by columns U by rows. */
  lapack_int info = LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'A', m, m, a, m, sigma, vt, m, ut, m, &wanted, -1, NULL);
  const lapack_int size = (lapack_int)wanted;
  FMM_CHECK(FMM_ALLOCATE(&work, size, "LAPACK's workspace"));
  FMM_CHECK(FMM_ALLOCATE(&whole, 8 * m, "LAPACK's workspace"));
  if (!info) info = LAPACKE_dgesdd_work(LAPACK_COL_MAJOR, 'A', m, m, a, m, sigma, vt, m, ut, m, work, size, whole);
  if (info) FMM_CHECK(FMM_FAIL(FMM_ERR_INTERNAL, "SVD of a %d x %d check-to-equivalent block failed (dgesdd: %d)", m, m, (int)info));
  for (int i = 0; i < m; i++) /* U by rows -> U^T by rows */
    for (int j = 0; j < i; j++) {
      double t = ut[(int64_t)i * m + j];
      ut[(int64_t)i * m + j] = ut[(int64_t)j * m + i];
      ut[(int64_t)j * m + i] = t;
    }
done:
  FMM_FREE(&work);
  FMM_FREE(&whole);
  return status;
}

void fmm_small_product(int rows, int columns, int inner, const double *a, const double *b, double *c) {
  if (rows && columns) cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, 1, a, inner, b, columns, 0, c, columns);
}

/* Eight values in place: out[psi] = sum_g sign(psi, g) in[g]. */
static void walsh_hadamard(double v[FMM_MIRRORS]) {
  for (int bit = 1; bit < FMM_MIRRORS; bit *= 2)
    for (int i = 0; i < FMM_MIRRORS; i++)
      if (!(i & bit)) {
        double a = v[i], b = v[i | bit];
        v[i] = a + b;
        v[i | bit] = a - b;
      }
}

void fmm_regroup(const fmm_operators *o, const double *natural, double *regrouped) {
  const fmm_parity_map *map = &o->parity;
  if (map->n_blocks == 1) {
    memcpy(regrouped, natural, (size_t)o->n * sizeof *natural);
    return;
  }
  for (int k = 0; k < map->n_components; k++)
    for (int i = 0; i < o->shape.n_orbits; i++) {
      double v[FMM_MIRRORS];
      const int32_t *slot = map->slot + (k * o->shape.n_orbits + i) * FMM_MIRRORS;
      for (int g = 0; g < FMM_MIRRORS; g++) v[g] = natural[k * o->n_surface + o->shape.orbit[i * FMM_MIRRORS + g]];
      walsh_hadamard(v);
      for (int chi = 0; chi < FMM_MIRRORS; chi++)
        if (slot[chi] >= 0) regrouped[slot[chi]] = v[fmm_component_parity(o->pair->info->parity, chi, k)];
    }
}

void fmm_spread(const fmm_operators *o, const double *regrouped, double *natural) {
  const fmm_parity_map *map = &o->parity;
  if (map->n_blocks == 1) {
    memcpy(natural, regrouped, (size_t)o->n * sizeof *natural);
    return;
  }
  for (int k = 0; k < map->n_components; k++)
    for (int i = 0; i < o->shape.n_orbits; i++) {
      double v[FMM_MIRRORS];
      const int32_t *slot = map->slot + (k * o->shape.n_orbits + i) * FMM_MIRRORS;
      for (int chi = 0; chi < FMM_MIRRORS; chi++) v[fmm_component_parity(o->pair->info->parity, chi, k)] = slot[chi] >= 0 ? regrouped[slot[chi]] : 0;
      walsh_hadamard(v);
      for (int g = 0; g < FMM_MIRRORS; g++) natural[k * o->n_surface + o->shape.orbit[i * FMM_MIRRORS + g]] = v[g];
    }
}

fmm_status fmm_panels_reserve(fmm_panels *panels, int rows, int columns) {
  const int n_panels = (rows + FMM_PANEL_ROWS - 1) / FMM_PANEL_ROWS;
  const int64_t last = (int64_t)columns * FMM_PANEL_ROWS;
  FMM_TRY(FMM_ALLOCATE(&panels->data, n_panels * last, "translation operators"));
  panels->rows = rows;
  panels->columns = columns;
  if (n_panels) memset(panels->data + (n_panels - 1) * last, 0, (size_t)last * sizeof *panels->data); /* padding */
  return FMM_OK;
}

void fmm_panels_fill(fmm_panels *panels, int first, int columns, const double *matrix, int64_t row_stride, int64_t column_stride, const double *row_factor, const double *column_factor) {
  for (int begin = 0; begin < panels->rows; begin += FMM_PANEL_ROWS) {
    const int rows = panels->rows - begin < FMM_PANEL_ROWS ? panels->rows - begin : FMM_PANEL_ROWS;
    const double *from = matrix + begin * row_stride;
    double *to = panels->data + (int64_t)begin * panels->columns + (int64_t)first * FMM_PANEL_ROWS;
    for (int j = 0; j < columns; j++)
      for (int i = 0; i < rows; i++) {
        double value = from[i * row_stride + j * column_stride];
        if (row_factor) value *= row_factor[begin + i];
        if (column_factor) value *= column_factor[j];
        to[j * FMM_PANEL_ROWS + i] = value;
      }
  }
}

fmm_status fmm_panels_pack(fmm_panels *panels, int rows, int columns, const double *matrix, int64_t row_stride, int64_t column_stride,
                           const double *row_factor, const double *column_factor) {
  FMM_TRY(fmm_panels_reserve(panels, rows, columns));
  fmm_panels_fill(panels, 0, columns, matrix, row_stride, column_stride, row_factor, column_factor);
  return FMM_OK;
}

/* Entry (i, j) of an operator in the regrouped basis. */
static double regrouped_entry(const fmm_operators *o, const fmm_level_operators *set, fmm_operator_kind kind, int octant, int i, int j) {
  const fmm_panels *groups[] = {set->up_first, set->up_second, set->down_first, set->down_second, set->m2m, set->l2l};
  const fmm_panels *panels = groups[kind];
  const fmm_parity_map *map = &o->parity;
  if (map->n_blocks == 1) return fmm_panel_entry(&panels[kind >= FMM_OPERATOR_M2M ? octant : 0], i, j);
  int row = 0, column = 0;
  while (i >= map->begin[row + 1]) row++;
  while (j >= map->begin[column + 1]) column++;
  if (kind >= FMM_OPERATOR_M2M) return fmm_mirror_sign(row ^ column, octant) * fmm_panel_entry(&panels[row], i - map->begin[row], j);
  return row == column ? fmm_panel_entry(&panels[row], i - map->begin[row], j - map->begin[row]) : 0;
}

/* Row of a functional on regrouped sums as a functional on natural unknowns: the transpose of fmm_regroup. */
static void pull_back(const fmm_operators *o, const double *regrouped, double *natural) {
  const fmm_parity_map *map = &o->parity;
  if (map->n_blocks == 1) {
    memcpy(natural, regrouped, (size_t)o->n * sizeof *natural);
    return;
  }
  memset(natural, 0, (size_t)o->n * sizeof *natural);
  for (int k = 0; k < map->n_components; k++)
    for (int i = 0; i < o->shape.n_orbits; i++) {
      double v[FMM_MIRRORS];
      const int32_t *slot = map->slot + (k * o->shape.n_orbits + i) * FMM_MIRRORS;
      for (int chi = 0; chi < FMM_MIRRORS; chi++) v[fmm_component_parity(o->pair->info->parity, chi, k)] = slot[chi] >= 0 ? regrouped[slot[chi]] : 0;
      walsh_hadamard(v);
      for (int g = 0; g < FMM_MIRRORS; g++) natural[k * o->n_surface + o->shape.orbit[i * FMM_MIRRORS + g]] += v[g];
    }
}

fmm_status fmm_operators_dense(const fmm_operators *o, const fmm_level_operators *set, fmm_operator_kind kind, int octant, double *matrix) {
  int n = o->n, natural_input = kind == FMM_OPERATOR_UP_FIRST || kind == FMM_OPERATOR_DOWN_FIRST || kind == FMM_OPERATOR_M2M;
  double *line = NULL;
  FMM_TRY(FMM_ALLOCATE(&line, 2 * n, "one line of an operator"));
  for (int i = 0; i < n; i++) { /* i: coefficient, a row of what takes natural input, a column of the others */
    for (int j = 0; j < n; j++) line[j] = natural_input ? regrouped_entry(o, set, kind, octant, i, j) : regrouped_entry(o, set, kind, octant, j, i);
    if (natural_input) {
      pull_back(o, line, matrix + (int64_t)i * n);
      continue;
    }
    fmm_spread(o, line, line + n);
    for (int j = 0; j < n; j++) matrix[(int64_t)j * n + i] = line[n + j];
  }
  FMM_FREE(&line);
  return FMM_OK;
}
