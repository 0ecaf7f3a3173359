/* What every phase implementation is given and promises, on either device.
 *
 * A phase reads the state below, handles the target boxes of [row_begin, row_end) of its list (rows of fmm_rows; for up and down: all
 * boxes), and writes only those targets' values. It allocates nothing: its workspace was reserved by `reserve`.
 * Bits never depend on the number of threads: work is cut into blocks that only the tree fixes, threads pick blocks. */
#ifndef FMM_PHASE_H
#define FMM_PHASE_H
#include "kernels/operators.h"
#include "kernels/translate.h"
#include "runtime/counts.h"

/* Arrays of one evaluation on one device. Planes are of sorted unique points. n = operators->n, cols = n_columns.
 * Scaled units: coordinates as in the tree; results are multiplied by the kernel's scale when they are scattered. */
typedef struct fmm_state {
  const fmm_tree *tree;
  const fmm_lists *lists;
  const fmm_pair *pair;
  const double *params;          /* in scaled units */
  const fmm_operators *operators;
  int n_columns, gradient, threads;
  fmm_precision precision[FMM_N_PHASES];
  double tolerance;              /* accuracy that variants may exploit (Newton steps) */
  double cancelled;              /* by how much values may be smaller than what they are sums of (runtime/choose_order.h): U's roots in double are as much more exact; 0: they are not */
  int harmonics;                 /* points and surfaces by solid harmonics (kernels/harmonics.h) where the operators have them, else by sums of all pairs */
  double largest_density;        /* magnitude, for what is scaled to fit a float; 0: not known, nothing is scaled */
  const double *density;         /* planes [component*cols + column][sources.n] */
  double *potential;             /* planes [(output*(gradient?4:1) + k)*cols + column][targets.n], added to by U, W, down */
  double *up_equivalent;         /* [box][column][n]: upward equivalent densities, zeros at first, written by up where a box has sources */
  double *down_check;            /* [box][column][n]: downward check potentials: V writes (zero where a box has no V row), X adds; down by surfaces leaves leaves' equivalent densities in their place */
  void *workspace[FMM_N_PHASES]; /* each implementation's own, from reserve; freed with FMM_FREE-like `release` */
} fmm_state;

/* Check-to-equivalent maps amplify noise by the inverse of their smallest kept singular value, some (outer/inner)^2 = 20 an order. Densities that
 * hold the noise of single-precision sums or of a single-precision V list, 1e-7, times that amplification give it back without harm only if they
 * are summed accurately (laplace with gradient, most points at one place, tolerance 1e-4: error 2e-6 at order 5, 1e-4 at order 6 in single,
 * 3e-6 in double; uniform, 1e-6, reduced double: 4e-6 at order 7). So cheaper pair sums than double serve surfaces of low order only
 * (FMM_MOST_ORDER_OF_CHEAP_SUMS, runtime/counts.h). */
static inline int fmm_cheap_surface_sums(const fmm_state *state) { return state->operators->order <= FMM_MOST_ORDER_OF_CHEAP_SUMS; }
static inline fmm_precision fmm_surface_precision(const fmm_state *state, fmm_phase phase) {
  return fmm_cheap_surface_sums(state) ? state->precision[phase] : FMM_PRECISION_DOUBLE;
}
static inline double fmm_surface_tolerance(const fmm_state *state) { return fmm_cheap_surface_sums(state) ? state->tolerance : 0; }
/* Of U's roots; sums in float round by more than these err. */
static inline double fmm_tolerance_of_roots(const fmm_state *state) {
  return state->cancelled > 1 && state->precision[FMM_PHASE_ULIST] == FMM_PRECISION_DOUBLE ? state->tolerance / state->cancelled : state->tolerance;
}

/* Whether columns are evaluated in units of their own (runtime/column_units.h): both devices ask. */
static inline int fmm_scales_columns(int n_columns, const fmm_precision precision[FMM_N_PHASES]) {
  int single = 0;
  for (int phase = 0; phase < FMM_N_PHASES; phase++) single |= precision[phase] != FMM_PRECISION_DOUBLE;
  return n_columns > 1 && single;
}

static inline int fmm_by_harmonics(const fmm_state *state) { return state->harmonics && state->operators->harmonics.n_terms > 0; }
/* In the phase's precision whatever the order: no inverse amplifies what rounding makes of moments. */
static inline const fmm_harmonic_kernels *fmm_phase_harmonics(const fmm_state *state, fmm_phase phase) { return fmm_harmonic_kernels_find(state->precision[phase] != FMM_PRECISION_DOUBLE); }

/* What a thread needs for it: lanes of boxes (kernels/translate.h), and each lane's harmonics one after the other.
 * terms: [FMM_HARMONIC_OUTPUTS n_terms + 1][FMM_LANES], the last row of what is no term, at first zero; values: [FMM_LANES + 1][stride], the last is room. */
typedef struct fmm_harmonic_lanes { double *terms, *values; int stride; } fmm_harmonic_lanes;
static inline fmm_harmonic_box fmm_harmonic_box_of(const fmm_tree *tree, int32_t box, int outside) {
  return (fmm_harmonic_box){.center = {tree->center_x[box], tree->center_y[box], tree->center_z[box]}, .per_side = 0.5 / fmm_half_width(tree, tree->level[box]), .outside = outside};
}
static inline int fmm_harmonic_stride(const fmm_state *state, int gradient) { return 2 * state->operators->harmonics.n_pairs * (gradient ? FMM_HARMONIC_OUTPUTS : 1); }
static inline size_t fmm_harmonic_doubles(const fmm_state *state, int gradient) {
  const size_t values = (FMM_LANES + 1) * (size_t)fmm_harmonic_stride(state, gradient), line = 8; /* every thread's from a cache line's beginning on */
  return (FMM_HARMONIC_OUTPUTS * (size_t)state->operators->harmonics.n_terms + 1) * FMM_LANES + (values + line - 1) / line * line;
}
static inline fmm_harmonic_lanes fmm_harmonic_lanes_at(const fmm_state *state, int gradient, double *room) {
  return (fmm_harmonic_lanes){.terms = room, .values = room + (FMM_HARMONIC_OUTPUTS * (size_t)state->operators->harmonics.n_terms + 1) * FMM_LANES, .stride = fmm_harmonic_stride(state, gradient)};
}

typedef struct fmm_phase_impl {
  fmm_phase phase;
  fmm_device device;
  const char *name;              /* "ulist_cpu" */
  fmm_status (*reserve)(fmm_state *state);  /* may be NULL */
  void (*release)(fmm_state *state);        /* may be NULL */
  size_t (*bytes)(const fmm_state *state);  /* workspace that reserve took; may be NULL */
  /* Rows [begin, end) of the phase's list; up and down: [0, n_boxes) only, level by level inside. Starts its own OpenMP team of
   * state->threads threads (CPU). Never fails but by device faults. */
  fmm_status (*run)(fmm_state *state, int64_t row_begin, int64_t row_end);
} fmm_phase_impl;

/* CPU implementations; each picks its instruction set (fmm_simd_level) and precision inside. */
extern const fmm_phase_impl fmm_up_cpu, fmm_ulist_cpu, fmm_vlist_cpu, fmm_wlist_cpu, fmm_xlist_cpu, fmm_down_cpu;
/* Plain C references of the same phases, slow and simple, double only: the checkasm side. */
extern const fmm_phase_impl fmm_up_reference, fmm_ulist_reference, fmm_vlist_reference, fmm_wlist_reference, fmm_xlist_reference, fmm_down_reference;
#endif
