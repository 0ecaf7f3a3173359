/* Inside of the CUDA implementation of runtime/gpu.h: the seam through which every CUDA call goes, the device plan, and what the phases'
 * launchers (kernels/PHASE/PHASE_cuda.cu) and the host side (runtime/gpu/gpu_*.cu) share. CUDA C++ in the manner of C: no classes but kernel
 * templates. Names d_... are device pointers. Layout of the device arrays: as in fmm_state, and as said at the fields. */
#ifndef FMM_GPU_CUDA_H
#define FMM_GPU_CUDA_H
#include <cuda_runtime.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
extern "C" {
#include "kernels/level_cost.h"
#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_tiles.h"
#include "kernels/shell_field.h"
#include "kernels/vlist/vlist_windows.h"
#include "runtime/gpu.h"
#include "runtime/jobs.h"
}
#include "runtime/gpu/gpu_desk_cuda.h"
#include "runtime/gpu/gpu_queues_cuda.h"
#include "runtime/gpu/gpu_sums_cuda.h"
#include "kernels/vlist/vlist_lines_cuda.h"

/* The seam: counts calls and fails the one asked for (fmm_gpu_fail_at). */
cudaError_t fmm_cuda_gate(void);
fmm_status fmm_cuda_failed(cudaError_t error, const char *call, const char *file, int line);
#define CUDA_TRY(call)                                                                                    \
  do {                                                                                                    \
    cudaError_t cuda_error_ = fmm_cuda_gate();                                                            \
    if (cuda_error_ == cudaSuccess) cuda_error_ = (call);                                                 \
    if (cuda_error_ != cudaSuccess) return fmm_cuda_failed(cuda_error_, #call, __FILE__, __LINE__);       \
  } while (0)
/* The same as an expression, where something must be freed first: the call is made even when the seam fails it. */
static inline fmm_status fmm_cuda_checked(cudaError_t error, const char *call, const char *file, int line) {
  cudaError_t gate = fmm_cuda_gate();
  if (gate != cudaSuccess) error = gate;
  return error == cudaSuccess ? FMM_OK : fmm_cuda_failed(error, call, file, line);
}
#define CUDA_CHECKED(call) fmm_cuda_checked((call), #call, __FILE__, __LINE__)
#define CUDA_LAUNCHED() CUDA_TRY(cudaGetLastError())

/* Launches a kernel; carveout: part of a multiprocessor's fast memory that is to be shared memory, in per cent, -1: as the driver chooses for this kernel.
 * Kernels of which the driver chooses different parts are never on one multiprocessor at once. early: its blocks may be placed while the kernel before it in
 * the stream still runs; it must call fmm_cuda_await_earlier before it touches what others write. */
template <typename... P, typename... A>
static inline cudaError_t fmm_cuda_launch_when(int early, void (*kernel)(P...), dim3 blocks, int threads, size_t bytes, cudaStream_t stream, int carveout, const A &...arguments) {
  cudaLaunchConfig_t c = {};
  cudaLaunchAttribute attribute[2] = {};
  c.gridDim = blocks, c.blockDim = dim3((unsigned)threads), c.dynamicSmemBytes = bytes, c.stream = stream, c.attrs = attribute;
#if CUDART_VERSION >= 13000
  if (carveout >= 0) attribute[c.numAttrs].id = cudaLaunchAttributePreferredSharedMemoryCarveout, attribute[c.numAttrs++].val.sharedMemCarveout = (unsigned)carveout;
#else
  (void)carveout;
#endif
  if (early) attribute[c.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization, attribute[c.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  return cudaLaunchKernelEx(&c, kernel, P(arguments)...);
}
template <typename... P, typename... A>
static inline cudaError_t fmm_cuda_launch(void (*kernel)(P...), dim3 blocks, int threads, size_t bytes, cudaStream_t stream, int carveout, const A &...arguments) {
  return fmm_cuda_launch_when(0, kernel, blocks, threads, bytes, stream, carveout, arguments...);
}
/* Waits for the kernels before this one in its stream, and lets the next one's blocks be placed. */
static __device__ __forceinline__ void fmm_cuda_await_earlier(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Makes a device current for a scope and restores the caller's; where that is another, which naming it makes a context on. */
struct fmm_cuda_on_device {
  int before, device;
  explicit fmm_cuda_on_device(int wanted) : device(wanted) {
    if (cudaGetDevice(&before) != cudaSuccess) before = device;
    if (before != device) cudaSetDevice(device);
  }
  ~fmm_cuda_on_device() {
    if (before != device && cudaSetDevice(before) != cudaSuccess) cudaGetLastError();
  }
};

/* An execution's results: factors; where the device writes them: the caller's memory, or page-locked memory of the plan's, from which finish copies them `to` the caller's
 * arrays. direct: one of them is a page-locked array of the caller's. pieces: in which they come to the plan's memory. */
typedef struct fmm_cuda_results { double factor, gradient_factor, *potential, *gradient, *to_potential, *to_gradient; int direct, pieces; } fmm_cuda_results;

/* Columns of one batched product. */
typedef struct fmm_cuda_batch { int64_t begin, end; int level; } fmm_cuda_batch; /* columns [begin, end) of d_column_box */

/* One level's operators on the device: with parity by blocks in the order of fmm_cuda_parity_place, else dense, padded to m_pad rows and k_pad columns, zero filled, in the order of fmm_cuda_tile_place. */
typedef struct fmm_cuda_operators {
  double *d_up_first, *d_up_second, *d_down_first, *d_down_second;
  double *d_m2m;      /* 8 matrices one after another, of an octant's, with parity of a block's rows each */
  double *d_l2l;      /* 8 */
  double2 *d_m2l;     /* [frequency, kz slowest][out][in][343] */
  double *d_up_moments;   /* fmm_level_operators.up_moments, fmm_cuda_up_moments_terms(order) columns a block, for p->block rows and those that fill tiles; NULL: leaves are not by moments */
  double *d_down_moments; /* fmm_level_operators.down_moments, with gradients over the harmonics' units, fmm_cuda_down_moments_rows(order) rows a block; NULL: leaves are not by harmonics */
  double *d_shell;    /* (dense) of fmm_level_operators, zeros where it has none; with parity it is a row of d_down_first (gpu_upload.cu) */
} fmm_cuda_operators;

/* Place of the first density (row * width + component and column) and the first result row that are not finite; inverted high word of the largest density. */
enum { FMM_CUDA_BAD_DENSITY, FMM_CUDA_BAD_RESULT, FMM_CUDA_LARGEST, FMM_CUDA_N_REPORT };
/* Pieces of n things, each half of what is left, since the last is waited for; they begin where a warp's whole lines may. */
static inline int64_t fmm_cuda_piece_begin(int64_t n, int piece, int pieces) { return piece == pieces ? n : (n - (n >> piece)) / 32 * 32; }

enum { FMM_CUDA_MOST_SHELLS = 3 /* components of equivalent densities */ };
struct fmm_gpu_plan : fmm_cuda_queues {
  size_t least_stage; /* as in the request */
  fmm_cuda_desk desk; /* in the stage, while the plan is made */
  /* shape */
  int threads;
  int overlaps;                      /* U beside the far chain (gpu_execute.cu): then all phases take the same part of fast memory as shared memory */
  int carveout;                      /* that part in per cent, or -1 */
  int early;                         /* short products are placed before the kernel ahead of them has ended; not where U runs beside: its blocks would wait */
  unsigned phases;
  int densities_from_host, results_to_host;
  int64_t most_entries;              /* as in the request */
  int falls_back;                    /* U one way though it might be summed in both directions */
  int columns, gradient, components, equivalents, outputs, values; /* values: outputs * (gradient ? 4 : 1) */
  int order, grid, n_surface, n_orbits, n, n_levels, n_operator_levels;
  double outer_radius;               /* fmm_operators */
  int k_pad, m_pad;                  /* n rounded up to 16 and to 32 */
  int up_moments_fit, down_leaves_fit, both_fits; /* the device has the shared memory that kernels/up/up_moments_cuda.cu, kernels/down/down_leaves_cuda.cu and kernels/pair/pair_both_cuda.cu take */
  int block;                         /* unknowns of a parity block, padded: up and down's products are those of kernels/parity_cuda.cu; 0: dense ones */
  int64_t matrix;                    /* doubles of one operator */
  int64_t n_sources, n_targets, n_input_sources, n_input_targets;
  int32_t n_boxes, n_leaves, first_far[2]; /* first_far: boxes of the first level with a far field, from and to */
  int same_points, merged_sources, merged_targets;
  const fmm_pair_info *info;
  double params[FMM_MAX_PARAMS], tolerance;
  fmm_precision precision[FMM_N_PHASES];

  /* memory */
  void *held[FMM_GPU_N_BLOCKS];      /* on the device: what is known before the host's tables are made, but operators, and the rest */
  fmm_gpu_operators kept;            /* on the device */
  int operators_there;               /* nonzero: an earlier plan's, which need not be sent */
  size_t available, first_bytes /* of the first that are used */, held_bytes[FMM_GPU_N_BLOCKS], host_bytes, spectrum_bytes; /* available: for all three together */
  char *stage;                       /* page-locked: densities, results, the report and what has arrived, one after the other */
  size_t stage_bytes;                /* before the report */
  fmm_gpu_stage locked;              /* the memory that it is */
  double *stage_in, *stage_out;      /* in it; NULL: not needed */
  unsigned *arrived;                 /* in it: nonzero for each piece of results that is there */
  double began_s;                    /* its making */
  int n_parts;
  fmm_gpu_part part[FMM_GPU_MOST_PARTS];

  /* points, boxes */
  double *d_source[3], *d_target[3], *d_normal[3];
  uint32_t *d_source_row, *d_target_row;
  int64_t *d_source_first, *d_target_first; /* as in fmm_points; first NULL when nothing was merged */
  uint32_t *d_target_position;       /* of an input row: its unique target */
  double *d_center[3], *d_half, *d_surface; /* d_half a box */
  int *d_tiny;                       /* nonzero: coordinates are so small that squares of distances may be subnormal without being zero */
  double *d_degree_in;               /* per box: half^-degree (1 when not homogeneous): check potentials -> unit box */
  double *d_degree_out, *d_degree_parent; /* per box: half^degree, and the parent's */

  /* state */
  double *d_density_input, *d_density; /* input layout; planes */
  unsigned long long *d_report, *report; /* of this execution, by integer minima, all ones: nothing; on the device, and its copy in the stage */
  double *d_scale;                   /* power of two that takes it to about 1, and its inverse: densities and spectra in float */
  unsigned *d_column_largest;        /* high words of columns' largest magnitudes, and the powers of two that take them to about 1, with their inverses; */
  double *d_column_unit;             /* NULL where columns are not scaled */
  double *d_result;                  /* potentials by the caller's rows, on their way to page-locked arrays of the caller's; NULL with gradients */
  double *d_near, *d_far;            /* potentials of U, W and of down; planes */
  double *d_up_equivalent, *d_down_check, *d_coefficient, *d_down_equivalent, *d_check_in; /* [box][column][n]; coefficients only without parity */
  double *d_kept;                    /* regrouped values between levels, [box][column][8 block] */
  int16_t *d_moment_place;           /* fmm_cuda_up_moments_fill */
  int16_t *d_harmonic_slot;          /* of each row of d_down_moments: cosine 2 k or sine 2 k + 1 of pair k (kernels/harmonics.h), -1: none */
  int16_t *d_orbit_point, *d_orbit_place, *d_pad; /* of the surface's orbits, as in fmm_cuda_parity */
  double *d_shell, shell_decay2;     /* [box][column][equivalents]: leaves' shell fields (kernels/shell_field.h), times d_degree_in as the densities are; fmm_operators */
  int shell_place[FMM_CUDA_MOST_SHELLS]; /* with parity: where a component's is among a box's regrouped values */

  /* pair sums */
  fmm_cuda_sums sums[FMM_N_SUMS];
  double *d_tight;                   /* room of fmm_cuda_mark_tight */
  void *wide;                        /* U's parts in double, where they are too large for the floats that they were to be */
  size_t wide_bytes;
  int n_runs;
  fmm_cuda_run *d_run;               /* of the surface, for sums onto it */
  unsigned *d_next_tile;             /* of U, where blocks take tiles in turn */

  /* products: columns are boxes; first the leaves with sources by ascending box (P2M's slots), then the boxes with children from the deepest
   * level up, then level by level down those with targets, sorted by octant in tiles of FMM_GPU_TILE_BOXES (with parity those that have children), then leaves with targets */
  fmm_cuda_operators op[FMM_MAX_LEVELS];
  int64_t n_columns, n_leaf_columns, n_up_columns, n_down_columns;
  int32_t *d_column_box;             /* -1: padding */
  int32_t *d_child;                  /* 8 an up column, with parity a down column too: child by octant or -1 */
  int32_t *d_parent;                 /* of a down column */
  int32_t *d_tile_octant;            /* of each tile of down columns */
  int n_leaf_batches, n_up_batches, n_down_batches, n_target_leaf_batches;
  fmm_cuda_batch leaf_batch[FMM_MAX_LEVELS], up_batch[FMM_MAX_LEVELS], down_batch[FMM_MAX_LEVELS], target_leaf_batch[FMM_MAX_LEVELS];
  double *d_work[2];                 /* [column of a batch][n]: P2M's check potentials, coefficients */

  /* V */
  int64_t v_rows, v_slots;
  int32_t *d_slot_child, *d_row_child; /* 8 a slot or row: box or -1; slot v_slots is empty; in which order octants and slots are: gpu_vlist.cu */
  int64_t v_positions;               /* rows in the products' order: by windows of FMM_V_WINDOW rows, in each by which neighbours there are */
  int32_t *d_v_row;                  /* row of a position, -1: none */
  fmm_cuda_v_line *d_v_line;         /* FMM_V_LINES of each FMM_V_A_WARP positions */
  int n_v_groups;
  struct { int64_t begin, end, first_window; int level; } v_group[FMM_MAX_LEVELS]; /* rows of one operator set */
  int v_single, v_halves;            /* spectra in float; then also: those of sources in halves, for the tensor cores */
  float *d_v_slot_unit;              /* of halves: [column, component][slot] */
  uint32_t *d_v_line_unit;           /* and the same as products read them, [column, component][line][16] */
  int slab;                          /* planes kz done at once, 1 .. order + 1 */
  double *d_v_partial;               /* sums between slabs, [row][child][column, component][surface point]; NULL with one slab */
  void *d_spectrum, *d_product;      /* double2, halves (sources) or float2 [frequency of the slab][(column, component)][slot][8], the same by row */
  double *d_twiddle;                 /* cos, sin of 2 pi j / grid */
  int16_t *d_grid_surface;           /* order^3: surface point or -1 */
  int children_forward, children_inverse; /* children a thread block */
  int fixed_transforms;              /* kernels compiled for this order are used */

  cudaStream_t caller;
  int64_t sent_rows[FMM_CUDA_PIECES_IN]; /* where the pieces of this execution end */
  int n_sent;
  unsigned ran, copied;
  int shares_u;                      /* U runs beside the far chain, whose end brings more blocks for it */
  int densities_sorted;              /* on their way in, in this execution */
  int up_pending;                    /* up_done was recorded in this execution */
  int reports;                       /* the report was asked for in this execution */
  int running;                       /* between begin and a finish that succeeded */
  fmm_cuda_results results;          /* all zero before they are asked for */
};

static inline int fmm_cuda_has(const fmm_gpu_plan *p, fmm_phase phase) { return (int)(p->phases >> phase & 1); }
static inline int fmm_cuda_has_far(const fmm_gpu_plan *p) { return (p->phases & ~(1u << FMM_PHASE_ULIST)) != 0; }
/* The first level with operators of its own. */
static inline int fmm_cuda_first_set(const fmm_gpu_plan *p) { return p->n_operator_levels == 1 ? 0 : 2; }

/* Rows of a pair sum, enqueued. kernels/pair/pair_cuda.cu, one function a pair interaction, chosen by fmm_cuda_pair_find. */
typedef struct fmm_cuda_pair_job {
  const fmm_gpu_plan *plan;
  fmm_cuda_sum sum;
  int64_t tile_begin, tile_end;
  cudaStream_t stream, tight_stream; /* tight: of the precise tiles, which are enqueued first (NULL: they were) */
  int takers;                        /* blocks that take the float tiles in turn (p->d_next_tile); 0: a block a tile */
} fmm_cuda_pair_job;
typedef cudaError_t fmm_cuda_pair_launch(const fmm_cuda_pair_job *job);
fmm_cuda_pair_launch *fmm_cuda_pair_find(const fmm_pair_info *info);
/* Most targets a lane of this sum's kernel can hold. */
int fmm_cuda_pair_most(const fmm_gpu_plan *plan, fmm_cuda_sum sum);
fmm_status fmm_cuda_sum_run(fmm_gpu_plan *plan, fmm_cuda_sum sum, int64_t row_begin, int64_t row_end, cudaStream_t stream);
/* Sums between points and surfaces as lattices (kernels/pair/pair_lattice_cuda.cu): whether they serve this one, and its tiles, enqueued. */
int fmm_cuda_lattice_serves(const fmm_gpu_plan *plan, fmm_cuda_sum sum);
cudaError_t fmm_cuda_lattice_sum(const fmm_cuda_pair_job *job);
/* Makes d_unit of tiles and ends. */
cudaError_t fmm_cuda_lattice_units(const fmm_gpu_plan *plan, fmm_cuda_sum sum, cudaStream_t stream);
/* U in both directions at once (kernels/pair/pair_both_cuda.cu): whether it serves, and values of a point; rows [row_begin, row_end), enqueued. */
int fmm_cuda_both_serves(const fmm_gpu_plan *plan);
/* A thread block's shared memory, at most. */
int fmm_cuda_both_bytes(int gradient, int single);
static inline int fmm_cuda_both_values(const fmm_gpu_plan *plan) { return plan->gradient ? 4 : 1; }
/* Before the first run, the latter where tiles are too tight for float. */
cudaError_t fmm_cuda_both_prepare(const fmm_gpu_plan *plan);
cudaError_t fmm_cuda_both_prepare_tight(const fmm_gpu_plan *plan);
/* tight_stream: of tiles that are all in double. Sums are whole when their parts were joined, which must wait for both streams. */
cudaError_t fmm_cuda_both_sum(const fmm_gpu_plan *plan, int64_t row_begin, int64_t row_end, cudaStream_t stream, cudaStream_t tight_stream);
cudaError_t fmm_cuda_both_join(const fmm_gpu_plan *plan, int64_t row_begin, int64_t row_end, cudaStream_t stream);
/* The runs of a surface, at most FMM_LATTICE_MOST_RUNS; returns how many. */
enum { FMM_LATTICE_MOST_RUNS = 96 };
int fmm_cuda_lattice_runs(const fmm_gpu_plan *plan, const int16_t *grid_surface, fmm_cuda_run *runs);

/* Where entry (i, j) of a matrix lies: tiles of 16 x 16, row of tiles by row of tiles; in each, four parts of 64: lane 4 g + t has (g, 4 t + part) and (g + 8, 4 t + part). */
static inline int64_t fmm_cuda_tile_place(int i, int j, int k_pad) {
  return (int64_t)(i / 16) * 16 * k_pad + j / 16 * 256 + j % 4 * 64 + 2 * (4 * (i % 8) + j % 16 / 4) + i % 16 / 8;
}

/* Batched product, kernels/product_cuda.cu: out[column] (+)= out_scale * sum over segments s of matrix[s] * in[index[column][s]]. */
typedef struct fmm_cuda_product {
  int carveout, early;                 /* fmm_cuda_launch_when */
  int n, m_pad, k_pad, n_segments, columns, add; /* columns: density columns a box; add: to what is in out */
  int64_t n_boxes;                     /* columns of the batch, before density columns */
  const double *d_matrix;              /* of segment 0 */
  int64_t matrix_stride;               /* doubles to the next segment's or tile's */
  const int32_t *d_tile_matrix;        /* which matrix for each 64 boxes of the batch; NULL: by segment only */
  const double *d_in;                  /* [box][column][n] */
  const int32_t *d_index;              /* box of each column and segment, -1: zero; NULL: the column itself */
  double *d_out;                       /* [box][column][n] */
  const int32_t *d_out_index;          /* box of a column, -1: nowhere; NULL: the column itself */
  const double *d_out_scale;           /* by box of d_out, or NULL */
} fmm_cuda_product;
/* The product of a batch's columns with what a batch has in common; its matrix and arrays are the caller's to name. */
static inline fmm_cuda_product fmm_cuda_product_of(const fmm_gpu_plan *p, const fmm_cuda_batch *batch) {
  fmm_cuda_product m = {};
  m.n = p->n, m.m_pad = p->m_pad, m.k_pad = p->k_pad, m.columns = p->columns;
  m.n_segments = 1;
  m.carveout = p->carveout, m.early = p->early;
  m.matrix_stride = (int64_t)p->m_pad * p->k_pad;
  m.n_boxes = batch->end - batch->begin;
  return m;
}
static inline int64_t fmm_cuda_child_rows(const fmm_gpu_plan *p) { return p->n_up_columns + (p->block ? p->n_down_columns : 0); }
static inline const fmm_cuda_operators *fmm_cuda_operators_at(const fmm_gpu_plan *p, int level) { return &p->op[p->n_operator_levels == 1 ? 0 : level]; }

/* Once a device, before the first run; *early: short products may be launched so. */
cudaError_t fmm_cuda_product_prepare(int *early);
cudaError_t fmm_cuda_product_run(const fmm_cuda_product *product, cudaStream_t stream);
/* d_shell of boxes [d_box, d_box + n) from their d_coefficient. */
cudaError_t fmm_cuda_shells(const fmm_gpu_plan *plan, const fmm_cuda_operators *o, const int32_t *d_box, int64_t n, cudaStream_t stream);

/* Up and down's products with parity, kernels/parity_cuda.cu, of a batch's boxes. Values by box and column: natural ones n, regrouped ones 8 block long. */
typedef enum fmm_cuda_parity_step { FMM_PARITY_INVERT, FMM_PARITY_MERGE, FMM_PARITY_SPLIT, FMM_PARITY_SPREAD /* what is kept, natural */, FMM_PARITY_N_STEPS } fmm_cuda_parity_step;
typedef struct fmm_cuda_parity {
  int carveout, early, sms;            /* fmm_cuda_launch_when; multiprocessors */
  int n, n_items, block, columns;      /* n_items: orbits of all components */
  int odd_order;                       /* of one component, whose blocks are of several lengths; else 0 */
  unsigned items_inverse;              /* times less than 2^12, shifted right by 22 bits: over n_items */
  int in_by_slot;                      /* d_in is by the batch's columns, not by box */
  int64_t n_boxes;                     /* the batch's */
  const int16_t *d_orbit_point;        /* 8 an item (component, orbit): natural values that the mirrors make of its first (fmm_surface.orbit) */
  const int16_t *d_orbit_place;        /* 8 an item: place of what a transform over the mirrors puts at psi, -1: it is zero */
  const int16_t *d_pad;                /* the n_pads places that are always zero */
  int n_pads;
  double *d_shell;                     /* (invert of leaves) receives what is at shell_place, of n_shells components; NULL: nothing does */
  int n_shells, shell_place[FMM_CUDA_MOST_SHELLS];
  const int32_t *d_box;                /* of the batch's columns */
  const int32_t *d_child;              /* 8 a column (merge, split) */
  const double *d_first, *d_second, *d_move; /* d_move: M2M or L2L */
  const double *d_in;                  /* natural (invert, split) */
  const double *d_inherited;           /* regrouped, added to it; NULL: none */
  const double *d_scale;               /* of the output, by box; NULL: 1 */
  double *d_out;                       /* natural (invert, merge) */
  double *d_kept;                      /* regrouped output as well (invert: NULL: none; merge, of which children's is the input), or children's (split); input of spread */
} fmm_cuda_parity;
static inline fmm_cuda_parity fmm_cuda_parity_of(const fmm_gpu_plan *p, const fmm_cuda_batch *batch) {
  fmm_cuda_parity m = {};
  m.carveout = p->carveout, m.early = p->early, m.sms = p->sms;
  m.n = p->n, m.n_items = p->n_orbits * p->equivalents, m.items_inverse = ((1u << 22) + (unsigned)m.n_items - 1) / (unsigned)m.n_items, m.block = p->block, m.columns = p->columns;
  m.n_boxes = batch->end - batch->begin;
  m.odd_order = p->equivalents == 1 && p->order % 2 ? p->order : 0;
  m.d_orbit_point = p->d_orbit_point, m.d_orbit_place = p->d_orbit_place;
  m.d_pad = p->d_pad, m.n_pads = FMM_MIRRORS * p->block - p->n;
  m.n_shells = p->equivalents;
  for (int k = 0; k < FMM_CUDA_MOST_SHELLS; k++) m.shell_place[k] = p->shell_place[k];
  m.d_box = p->d_column_box + batch->begin;
  return m;
}
/* Doubles of a block's matrix. */
static inline int64_t fmm_cuda_parity_matrix(int block) { return (int64_t)(block + 7) / 8 * 8 * block; }
/* Where entry (row, k) of a block's matrix lies: tiles of eight rows, each by sixteen columns, of which lane 4 (row % 8) + t has 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t, then by four, of which it has the t-th. */
static inline int64_t fmm_cuda_parity_place(int row, int k, int block) {
  const int lane = 4 * (row % 8), whole = block / 16 * 16;
  const int place = k < whole ? k / 16 * 128 + 4 * (lane + k % 8 / 2) + k % 16 / 8 * 2 + k % 2 : 8 * whole + (k - whole) / 4 * 32 + lane + k % 4;
  return (int64_t)(row / 8) * 8 * block + place;
}
/* Shared memory that they take. */
int fmm_cuda_parity_bytes(int block);
cudaError_t fmm_cuda_parity_prepare(int block, int *early);
/* Whether invert and merge of so many columns put regrouped output alone: d_kept is not NULL, natural output comes by FMM_PARITY_SPREAD, before which other steps may follow. */
int fmm_cuda_parity_is_shared(const fmm_cuda_parity *p);
cudaError_t fmm_cuda_parity_run(fmm_cuda_parity_step step, const fmm_cuda_parity *p, cudaStream_t stream);

/* P2M and the leaves' products upward, and the latter downward and L2P, in one launch each (kernels/up/up_moments_cuda.cu, kernels/down/down_leaves_cuda.cu): whether it serves, when the tables are there;
 * a thread block's shared memory; once a device, before the first run. Upward it is by moments: terms of a parity block, padded, 0: none of this order; places of what a warp sums in double or (single) float, and which each is among
 * the padded terms. */
int fmm_cuda_up_moments_serve(const fmm_gpu_plan *plan);
int fmm_cuda_up_moments_bytes(int order, int single);
int fmm_cuda_up_moments_terms(int order);
int fmm_cuda_up_moments_places(int order, int single);
void fmm_cuda_up_moments_fill(int order, int single, const fmm_harmonics *h, int16_t *place);
cudaError_t fmm_cuda_up_moments_prepare(int order, int single);
cudaError_t fmm_cuda_up_moments_run(const fmm_gpu_plan *plan, const fmm_cuda_operators *o, const fmm_cuda_parity *p, cudaStream_t stream);
static inline int64_t fmm_cuda_up_moments_block(const fmm_gpu_plan *p) { return (int64_t)(p->block + 7) / 8 * 8 * fmm_cuda_up_moments_terms(p->order); }
int fmm_cuda_down_leaves_serve(const fmm_gpu_plan *plan);
int fmm_cuda_down_leaves_bytes(int order);
cudaError_t fmm_cuda_down_leaves_prepare(const fmm_gpu_plan *plan);
cudaError_t fmm_cuda_down_leaves_run(const fmm_gpu_plan *plan, const fmm_cuda_operators *o, const fmm_cuda_parity *p, cudaStream_t stream);
/* Leaves downward go by solid harmonics there, but with gradients in double. Rows of each of the eight blocks of what makes them (d_down_moments), with those that fill tiles; whether a plan may need them, known before its tables are. */
int fmm_cuda_down_moments_rows(int order);
static inline int fmm_cuda_may_take_harmonics(const fmm_gpu_plan *p) {
  return p->block && fmm_has_harmonics(p->info) && p->columns == 1 && p->n_leaves >= FMM_LEAVES_MANY && fmm_cuda_has(p, FMM_PHASE_DOWN) && (!p->gradient || p->precision[FMM_PHASE_DOWN] != FMM_PRECISION_DOUBLE) && fmm_cuda_down_moments_rows(p->order) > 0;
}

static inline int fmm_cuda_may_take_moments(const fmm_gpu_plan *p) {
  return p->block && fmm_has_harmonics(p->info) && p->columns == 1 && p->n_leaves >= FMM_MOMENTS_MANY && fmm_cuda_has(p, FMM_PHASE_UP) && fmm_cuda_up_moments_terms(p->order) > 0;
}
static inline int fmm_cuda_up_in_single(const fmm_gpu_plan *p) { return p->precision[FMM_PHASE_UP] != FMM_PRECISION_DOUBLE; }

/* Tiles of the U list that are too tight for float get their mark (kernels/pair/pair_tight_cuda.cu); d_tight: so many doubles a tile and one more. */
static inline int fmm_cuda_measures(const fmm_gpu_plan *plan) { return plan->gradient && plan->sums[FMM_SUM_U].both ? 8 : 4; }
fmm_status fmm_cuda_mark_tight(fmm_gpu_plan *plan);
/* What it may take beside the arena for parts in double. */
size_t fmm_cuda_wide_bytes(const fmm_gpu_plan *plan);

fmm_status fmm_up_cuda(fmm_gpu_plan *plan, cudaStream_t stream);
fmm_status fmm_down_cuda(fmm_gpu_plan *plan, cudaStream_t stream);
fmm_status fmm_vlist_cuda(fmm_gpu_plan *plan, int64_t row_begin, int64_t row_end, cudaStream_t stream);
/* Shared memory of V's transforms for `children` boxes a block; the largest of 8, 4, 2, 1 that fits is taken. */
size_t fmm_vlist_cuda_forward_bytes(int order, int n_surface, int children);
size_t fmm_vlist_cuda_inverse_bytes(int order, int n_surface, int children);
fmm_status fmm_vlist_cuda_prepare(fmm_gpu_plan *plan, size_t most_bytes);
/* Whether V in single is worth sources' spectra in halves, for which its rows, columns and components times the order's cube must be `from` at least (0: as measured), and there are kernels. */
int fmm_cuda_v_halves(const fmm_gpu_plan *plan, int64_t from);
static inline int64_t fmm_cuda_v_lines(const fmm_gpu_plan *plan) { return plan->v_positions / FMM_V_A_WARP * FMM_V_LINES; }

/* Input order <-> sorted planes, zeroing and adding (runtime/gpu/gpu_order.cu). */
cudaError_t fmm_cuda_gather(const fmm_gpu_plan *plan, const double *d_input, cudaStream_t stream);
/* The same by rows [begin, end) of d_density_input, where it can be. */
int fmm_cuda_can_scatter(const fmm_gpu_plan *plan);
cudaError_t fmm_cuda_scatter(const fmm_gpu_plan *plan, int64_t begin, int64_t end, cudaStream_t stream);
/* Of densities in float, after either. */
cudaError_t fmm_cuda_scale(const fmm_gpu_plan *plan, cudaStream_t stream);
/* The report of all results, before any is delivered. place: potentials are made in d_near, for fmm_cuda_place to sort. */
cudaError_t fmm_cuda_inspect(const fmm_gpu_plan *p, int place, cudaStream_t stream);
/* Fills d_result. */
cudaError_t fmm_cuda_place(const fmm_gpu_plan *p, cudaStream_t stream);
/* Values [begin, end) of all results (potentials, after them gradients) as p->results says, by one launch. inspected: nothing is written when the report is bad; else values
 * are reported on the way. */
cudaError_t fmm_cuda_deliver(const fmm_gpu_plan *p, int64_t begin, int64_t end, int inspected, cudaStream_t stream);
/* p->arrived[piece], when all before it is with the host. */
cudaError_t fmm_cuda_note_arrival(const fmm_gpu_plan *p, int piece, cudaStream_t stream);

/* The host's arrays (runtime/gpu/gpu_stage.cu). Densities to d_density_input, in n_sent pieces that end at sent_rows and piece_sent, several where they can be sorted by
 * scatter; results from the plan's page-locked memory to the caller's arrays, each piece as soon as it has arrived: the report was good, and only a device that fails then
 * leaves some of them written. */
fmm_status fmm_cuda_send_locked(fmm_gpu_plan *plan, const double *densities, size_t bytes, cudaStream_t stream);
fmm_status fmm_cuda_send_pageable(fmm_gpu_plan *plan, const double *densities, size_t bytes, cudaStream_t stream);
static inline int64_t fmm_cuda_potentials(const fmm_gpu_plan *p) { return p->n_input_targets * p->outputs * p->columns; }
int64_t fmm_cuda_values_out(const fmm_gpu_plan *plan); /* of this execution's results, potentials and gradients */
int fmm_cuda_pieces_out(const fmm_gpu_plan *plan);     /* that are worth it, where none is page-locked */
fmm_status fmm_cuda_stage_out(const fmm_gpu_plan *plan);
/* Nonzero when a host array is page-locked as a whole (runtime/gpu/gpu_locked.cu). */
int fmm_cuda_is_locked(const void *host, size_t bytes);
/* The report to the host, written by a kernel: a copy would queue behind those of the results. */
cudaError_t fmm_cuda_publish_report(const fmm_gpu_plan *p, cudaStream_t stream);
/* Fills d_target_position from rows of unique targets, as in fmm_points. */
cudaError_t fmm_cuda_invert_rows(const fmm_gpu_plan *p, const uint32_t *d_row, const int64_t *d_first, cudaStream_t stream);
/* Fills d_tiny. */
cudaError_t fmm_cuda_find_tiny(const fmm_gpu_plan *p, cudaStream_t stream);
/* Adds the parts of joints [begin, end) of a sum onto points to `d_sum`. */
cudaError_t fmm_cuda_join(const fmm_gpu_plan *p, fmm_cuda_sum sum, int64_t begin, int64_t end, double *d_sum, cudaStream_t stream);
cudaError_t fmm_cuda_add(double *d_sum, const double *d_term, int64_t n, cudaStream_t stream);

/* Host tables (runtime/gpu/gpu_tables.cu). */
typedef struct fmm_cuda_tables {
  int32_t *column_box, *child, *parent, *tile_octant;
  int16_t *orbit_point, *orbit_place, *pad;
  int32_t *slot_child, *row_child, *v_row;
  fmm_cuda_v_line *v_line;
  double *half, *degree_in, *degree_out, *degree_parent, *twiddle;
  int16_t *grid_surface;
  fmm_cuda_run run[FMM_LATTICE_MOST_RUNS];
} fmm_cuda_tables;
/* What the jobs of a plan's making work on (runtime/jobs.h); it outlives them. */
typedef struct fmm_cuda_setup { fmm_gpu_plan *plan; fmm_cuda_tables *tables; const fmm_state *state; fmm_gpu_spare *spare; struct fmm_gpu_rows *rows; /* as in the request */ } fmm_cuda_setup;
enum { FMM_CUDA_TABLES_JOBS = 6, FMM_CUDA_UPLOAD_JOBS = 7 };
/* An earlier plan's stage, if it suits; else the upload's jobs make one. */
void fmm_cuda_take_stage(fmm_cuda_setup *setup);
/* Those that fill the tables, the plan's host parts (sums, batches, counts) and nothing on the device. */
void fmm_cuda_tables_jobs(fmm_cuda_setup *setup, fmm_job jobs[FMM_CUDA_TABLES_JOBS]);
/* Those that bring to the device what needs no table, and lock the memory of the stage (runtime/gpu/gpu_upload.cu). */
void fmm_cuda_upload_jobs(fmm_cuda_setup *setup, fmm_job jobs[FMM_CUDA_UPLOAD_JOBS]);
/* The tables, when both are there. All is on the device when it returns, whatever has become of it. */
fmm_status fmm_cuda_upload_tables(fmm_cuda_setup *setup);
void fmm_cuda_tables_free(const fmm_cuda_desk *desk, fmm_cuda_tables *tables);
/* U's host tables anew, for sums in one direction: there is no room for the others'. */
fmm_status fmm_cuda_tables_fall_back(fmm_gpu_plan *plan, const fmm_state *state);
void fmm_cuda_sums_free(const fmm_cuda_desk *desk, fmm_cuda_sums *sums); /* host tables; those that rows are looked up in stay with fmm_cuda_sums_free_offsets */
void fmm_cuda_sums_free_offsets(fmm_cuda_sums *sums);
/* Chunks, mates and joints of U in both directions (runtime/gpu/gpu_both.cu), and `both` set; nothing where entries or chunks are more than `most`, at most INT32_MAX. The same of a tree of one leaf, `direct` set
 * too (runtime/gpu/gpu_direct.cu); nothing where that does not serve. */
fmm_status fmm_cuda_both_build(fmm_gpu_plan *plan, const fmm_tree *tree, const fmm_rows *u, int64_t most);
fmm_status fmm_cuda_direct_build(fmm_gpu_plan *plan, const fmm_tree *tree, const fmm_rows *u, int64_t most);

/* V's tables (runtime/gpu/gpu_vlist.cu); nothing without rows. */
fmm_status fmm_cuda_v_build(fmm_gpu_plan *plan, fmm_cuda_tables *tables, const fmm_tree *tree, const fmm_rows *v);

/* Green contexts (runtime/gpu/gpu_green.cu): streams on `sms` multiprocessors. */
fmm_status fmm_cuda_green_create(int device, int sms, void **green, int *real_sms);
fmm_status fmm_cuda_green_stream(void *green, int priority, cudaStream_t *stream);
void fmm_cuda_green_destroy(void *green);
#endif
