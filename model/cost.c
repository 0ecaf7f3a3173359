/* The cost table: roofline of each phase and level on each device, its two parts times their fitted constants, plus entries and bytes, plus launches. Sums of another accuracy than the fit's multiply the part of
 * them (of U, up, down, W and X) alone, gradients all but launches.
 * Compute time of pairs follows Choi et al. 2014, eq. 6: the profile has the effective peak of the Laplace pair sum (11 flops in 7 + r
 * instructions) and the multiply-add peak (2 flops an instruction), which give r, the cost of the reciprocal square root; another pair
 * interaction then takes (its instructions + r) / (7 + r) of a Laplace pair's time; a point and solid harmonics have no root. The CPU's U list sums pairs of leaves in both directions at once
 * where that wins (kernels/pair/pair_both.h): then each interaction has half of what both share, difference, square and root, its own other
 * instructions, and a load and a store for every two of its values. A GPU keeps the values in registers, and its U list is counted as it is summed, idle lanes and all
 * (kernels/ulist/ulist_gpu_cost.c): a pair of both directions has a multiply-add a value more, and with derivatives a multiplication. What its longest tile, and X's longest row, take alone comes on top. A CPU's core
 * sums a leaf alone, so that of fewer leaves than cores some cores have none. */
#include <math.h>
#include <string.h>

#include "kernels/harmonics_cost.h"
#include "kernels/pair/pair_both.h"
#include "kernels/pair/pair_tiles.h"
#include "model/model.h"

static const double laplace_flops = FMM_LAPLACE_FLOPS, laplace_instructions = 7; /* Choi et al. 2014, section 4.2.2 */

/* Points with solid harmonics: no roots, and in the precision of the phase whatever the order. */
static int by_harmonics(const fmm_pair_info *pair, fmm_device device, fmm_phase phase) {
  return device == FMM_DEVICE_CPU && fmm_has_harmonics(pair) && phase != FMM_PHASE_ULIST && phase != FMM_PHASE_VLIST;
}

/* Leaves upward on a GPU by moments (kernels/up/up_moments_cuda.cu). */
static int by_moments(const fmm_pair_info *pair, const fmm_counts *counts, fmm_device device, fmm_phase phase) {
  return device == FMM_DEVICE_GPU && phase == FMM_PHASE_UP && fmm_moments_on_gpu(pair, counts->order, counts->n_columns, counts->n_leaves);
}

typedef struct instructions { double plain, roots; } instructions;

static double seconds_a_pair(const fmm_device_rates *d, instructions pair, int precision) {
  if (!(pair.roots > 0)) return 2 * pair.plain / d->fma_flops_per_s[precision].value;
  double laplace_s = laplace_flops / d->pair_flops_per_s[precision].value;
  double rsqrt = d->fma_flops_per_s[precision].value / 2 * laplace_s - laplace_instructions;
  if (!(rsqrt > 1)) rsqrt = 1; /* a rate that no root leaves room for */
  return laplace_s * (pair.plain + pair.roots * rsqrt) / (laplace_instructions + rsqrt);
}

/* Along a row of a surface, a lattice, a pair has one addition for the square and one multiply-add for the sum; with gradients three multiplications, two additions and a multiply-add beside the first. */
static instructions instructions_a_pair(const fmm_pair_info *pair, const fmm_counts *counts, fmm_device device, fmm_phase phase, int gradient, int precision, int both) {
  const double shared = 6; /* three differences, a multiplication and two multiply-adds */
  double one = fmm_pair_instructions(pair, gradient, counts->n_columns), values = pair->outputs * (gradient ? 4 : 1);
  if (by_harmonics(pair, device, phase)) return (instructions){fmm_harmonic_instructions(gradient) * counts->n_columns, 0};
  if (by_moments(pair, counts, device, phase)) return (instructions){(double)fmm_harmonic_instructions(0) * fmm_harmonic_pairs(fmm_harmonic_degree(counts->order)) / counts->n_surface, 0};
  if (phase != FMM_PHASE_ULIST && device == FMM_DEVICE_GPU && !precision && fmm_pair_lattice_on_gpu(pair, counts->order, counts->n_columns, counts->third_order))
    return (instructions){gradient ? 7 : 2, 1};
  if (phase != FMM_PHASE_ULIST) return (instructions){one, 1};
  if (device == FMM_DEVICE_GPU) return (instructions){one + (both ? values + gradient : 0), 1};
  if (!counts->same_points || counts->n_leaves < 2) return (instructions){one, 1};
  return fmm_pair_prefers_both(pair, gradient, counts->n_columns) ? (instructions){shared / 2 + (one - shared) + values, 0.5} : (instructions){one, 1};
}

const unsigned char fmm_phase_makes_results[FMM_N_PHASES] = {[FMM_PHASE_ULIST] = 1, [FMM_PHASE_WLIST] = 1, [FMM_PHASE_DOWN] = 1};

/* Of what X's longest warp makes (fmm_xlist_gpu_cost), in how many multiprocessors' time a pair. On a lattice the warp has one of a multiprocessor's schedulers to itself. Else a row's targets are tiles of a block each, which has a
 * whole multiprocessor: one of them of all sources, of which the warp was given a quarter. Where few rows are waited for tiles are the smallest. */
static double alone(const fmm_pair_info *pair, const fmm_counts *counts, fmm_phase phase, int precision) {
  enum { SCHEDULERS = 4 };
  if (phase != FMM_PHASE_XLIST) return 1;
  if (!precision && fmm_pair_lattice_on_gpu(pair, counts->order, counts->n_columns, counts->third_order)) return SCHEDULERS;
  int64_t tiles = 1;
  int lanes_log2, per_lane;
  fmm_pair_shape_tiles(counts->n_surface, fmm_pair_tile_cap(0), FMM_TILE_TARGETS_A_LANE(pair->outputs, 0), &tiles, &lanes_log2, &per_lane);
  return (double)FMM_X_WARPS / (double)tiles;
}

/* What the rates allow, which constants are fitted to, the part of it that is of the other kind (fmm_work), and what one unit of the device does alone after the others; and what the hardware allows. */
typedef struct bound { double limit_s, other_s, tail_s, allowed_s; } bound;

/* On a GPU products are made by tensor cores, of doubles at most twice as fast as by multiply-adds (compute capability 8.0 and 9.0), of halves 16 times as fast as by multiply-adds in float, and of these a product in single
 * takes three (kernels/vlist/vlist_product_cuda.h). Of others cores have less: then more is said to be allowed than is. */
enum { MOST_ORDER_OF_HALVES = 8 }; /* up to which products in single are of halves there (fmm_cuda_v_halves), and transforms in float */
static double allowed_on_gpu(const fmm_device_rates *d, const fmm_counts *counts, fmm_phase phase, const fmm_work *work, double compute, int precision) {
  const double doubles = 2 * d->fma_flops_per_s[0].value, halves = 16.0 / 3 * d->fma_flops_per_s[1].value, main = work->flops - work->other;
  const int in_halves = precision && counts->order <= MOST_ORDER_OF_HALVES;
  if (phase == FMM_PHASE_VLIST) return main / (in_halves ? halves : doubles) + work->other / d->fma_flops_per_s[in_halves].value;
  return compute - work->other / d->fma_flops_per_s[0].value + work->other / doubles; /* the other part is the products of up and down */
}

/* form: in which precision the work is counted, as a GPU's form of U may differ. */
static bound roofline(const fmm_machine *machine, fmm_device device, const fmm_pair_info *pair, const fmm_counts *counts, fmm_phase phase, const fmm_work *work, int precision, int form) {
  const fmm_device_rates *d = &machine->device[device];
  int gradient = counts->gradient && fmm_phase_makes_results[phase], cheap = phase == FMM_PHASE_ULIST || by_harmonics(pair, device, phase) || by_moments(pair, counts, device, phase) || counts->order <= FMM_MOST_ORDER_OF_CHEAP_SUMS;
  int pairs_in = cheap ? precision : 0, products_in = phase == FMM_PHASE_VLIST && device == FMM_DEVICE_CPU ? precision : 0;
  const double apart = phase == FMM_PHASE_VLIST && device == FMM_DEVICE_CPU ? 0 : work->other; /* short sweeps took V's transforms for what its entries are */
  double other = apart / d->fma_flops_per_s[products_in].value, compute = (work->flops - apart) / d->fma_flops_per_s[products_in].value + other, tail = 0;
  if (phase != FMM_PHASE_VLIST) { /* V's pairs are pairs of boxes */
    instructions each = instructions_a_pair(pair, counts, device, phase, gradient, pairs_in, counts->both_on_gpu[form]);
    compute = work->pairs * seconds_a_pair(d, each, pairs_in) + other;
    tail = work->longest * alone(pair, counts, phase, pairs_in) * d->units * seconds_a_pair(d, each, pairs_in);
    if (phase == FMM_PHASE_ULIST && device == FMM_DEVICE_CPU && counts->n_leaves > 0 && counts->n_leaves < d->units)
      tail = work->pairs * (d->units / (double)counts->n_leaves - 1) * seconds_a_pair(d, each, pairs_in); /* one core a leaf at most */
  }
  const double memory = work->bytes / (precision + 1) / d->memory_bytes_per_s.value, limit = fmax(compute, memory);
  return (bound){limit, compute > 0 ? limit * other / compute : 0, tail, fmax(memory, device == FMM_DEVICE_GPU ? allowed_on_gpu(d, counts, phase, work, compute, precision) : compute)};
}

fmm_roofline fmm_phase_roofline(const fmm_machine *machine, fmm_device device, const fmm_pair_info *pair, const fmm_counts *counts, fmm_phase phase, int precision) {
  fmm_roofline all = {0};
  for (int level = 0; level < FMM_MAX_LEVELS; level++) {
    const bound b = roofline(machine, device, pair, counts, phase, &counts->level[fmm_work_on(counts, phase, device, precision)][level], precision, precision);
    all.seconds += b.limit_s + b.tail_s, all.other_s += b.other_s;
  }
  return all;
}

double fmm_phase_unknowns(const fmm_counts *counts, const fmm_pair_info *pair, fmm_phase phase) {
  return phase == FMM_PHASE_ULIST ? 0 : (double)pair->equivalent_components * counts->n_surface;
}

int fmm_phase_launches(const fmm_counts *counts, fmm_phase phase) {
  int levels = 0;
  for (int level = 0; level < FMM_MAX_LEVELS; level++) levels += counts->level[phase][level].entries > 0;
  return phase == FMM_PHASE_UP || phase == FMM_PHASE_DOWN ? levels : levels > 0;
}

/* Of sums with gradients, what those without take of their time: of what other roots change, so much less is seen. */
static double part_without_gradients(const fmm_device_rates *d, const fmm_pair_info *pair, const fmm_counts *counts, fmm_device device, fmm_phase phase, int precision) {
  const int both = counts->both_on_gpu[precision];
  return seconds_a_pair(d, instructions_a_pair(pair, counts, device, phase, 0, precision, both), precision) / seconds_a_pair(d, instructions_a_pair(pair, counts, device, phase, 1, precision, both), precision);
}

/* What sums of the accuracy that is asked for take, of the fit's. With gradients: in single what was measured of such; in double, of which none are, as many seconds more or less as without. */
static double sums_factor(const fmm_constant *c, const fmm_device_rates *d, const fmm_pair_info *pair, const fmm_counts *counts, fmm_device device, fmm_phase phase, int precision, double gradient) {
  const int gradients = counts->gradient && fmm_phase_makes_results[phase];
  const double factor = fmm_constant_at(c, precision, counts->tolerance, gradients);
  return gradients && !precision ? 1 + (factor - 1) * part_without_gradients(d, pair, counts, device, phase, precision) / gradient : factor;
}

/* A phase that calibration did not meet is priced by the device's worst constant, so that nothing unknown looks cheap. */
static fmm_constant usable_constant(const fmm_device_rates *d, int phase, int precision) {
  fmm_constant c = d->constant[phase][precision];
  if (c.value > 0) return c;
  c = (fmm_constant){.value = 0};
  for (int other = 0; other < FMM_N_PHASES; other++) c.value = fmax(c.value, fmax(d->constant[other][precision].value, d->constant[other][precision].other));
  if (!(c.value > 0)) c.value = 1;
  return c;
}

/* Seconds of a level's work besides launches, and what the hardware allows. */
typedef struct level_time { double seconds, limit_s; } level_time;

/* What work of another kind than the fit's takes of an ideal run's: all but launches, where there are gradients; the sums, where they are of another accuracy. */
typedef struct factors { double all, sums; } factors;

static level_time time_of(const fmm_constant *c, const fmm_work *work, bound b, factors factor, int precision) {
  const double roofline_s = factor.sums * c->value * (b.limit_s - b.other_s + b.tail_s) + fmm_constant_other(c) * b.other_s;
  return (level_time){factor.all * (roofline_s + c->entry_s * work->entries + c->byte_s * work->bytes / (precision + 1)), b.allowed_s};
}

/* U on a GPU in single: of tiles that are too tight for float all is summed in double; where both directions are, mostly what a leaf has with itself alone, where nearly all near pairs are. A leaf that is the whole tree has
 * tiles for mates. */
static double share_in_double(const fmm_counts *c) {
  const double all = c->total[FMM_WORK_ULIST_GPU_BOTH].pairs;
  return c->tight_share * (c->both_on_gpu[1] && c->n_leaves > 1 && c->own_pairs < all ? c->own_pairs / all : 1);
}

static double gradient_factor(const fmm_constant *c, const fmm_counts *counts, int phase) { return counts->gradient && fmm_phase_makes_results[phase] && c->gradient > 0 ? c->gradient : 1; }

static level_time with_tight_tiles(level_time all, const fmm_machine *machine, const fmm_counts *counts, const fmm_pair_info *pair, const fmm_work *work) {
  const fmm_constant c = usable_constant(&machine->device[FMM_DEVICE_GPU], FMM_PHASE_ULIST, 0);
  const bound b = roofline(machine, FMM_DEVICE_GPU, pair, counts, FMM_PHASE_ULIST, work, 0, 1);
  const double share = share_in_double(counts);
  const level_time tight = time_of(&c, work, b, (factors){gradient_factor(&c, counts, FMM_PHASE_ULIST), 1}, 0);
  return (level_time){(1 - share) * all.seconds + share * tight.seconds, (1 - share) * all.limit_s + share * tight.limit_s};
}

static void learn(fmm_constant *c, double ratio) { c->value *= ratio, c->other *= ratio, c->entry_s *= ratio, c->byte_s *= ratio, c->launch_s *= ratio, c->chain_s *= ratio; }

void fmm_cost_learn(fmm_machine *machine, const fmm_counts *counts, fmm_phase phase, fmm_device device, int precision, double ratio) {
  fmm_constant *c = machine->device[device].constant[phase];
  learn(&c[precision], ratio);
  if (phase == FMM_PHASE_ULIST && device == FMM_DEVICE_GPU && precision && counts->tight_share > 0) learn(&c[0], ratio);
}

static void fill_cell(fmm_cost_table *table, const fmm_machine *machine, const fmm_counts *counts, const fmm_pair_info *pair, int phase, int device,
                      int precision) {
  const fmm_device_rates *d = &machine->device[device];
  fmm_constant c = usable_constant(d, phase, precision);
  fmm_cost cost = {.feasible = 1, .p90_error = c.n_held_out ? c.p90_error : 0};
  int launches = fmm_phase_launches(counts, (fmm_phase)phase), a_level = phase == FMM_PHASE_UP || phase == FMM_PHASE_DOWN;
  double launch_s = d->launch_s.value + c.launch_s + c.chain_s * fmm_phase_unknowns(counts, pair, (fmm_phase)phase);
  const double gradient = gradient_factor(&c, counts, phase);
  const factors factor = {gradient, sums_factor(&c, d, pair, counts, (fmm_device)device, (fmm_phase)phase, precision, gradient)};
  for (int level = 0; level < FMM_MAX_LEVELS; level++) {
    const fmm_work *work = &counts->level[fmm_work_on(counts, (fmm_phase)phase, (fmm_device)device, precision)][level];
    level_time t = time_of(&c, work, roofline(machine, (fmm_device)device, pair, counts, (fmm_phase)phase, work, precision, precision), factor, precision);
    if (phase == FMM_PHASE_ULIST && device == FMM_DEVICE_GPU && precision && counts->tight_share > 0) t = with_tight_tiles(t, machine, counts, pair, work);
    if (a_level && work->entries > 0) t.seconds += launch_s;
    table->level_s[phase][level][device][precision] = t.seconds;
    cost.limit_s += t.limit_s;
    cost.seconds += t.seconds;
  }
  if (!a_level) cost.seconds += launches * launch_s;
  table->total[phase][device][precision] = cost;
}

void fmm_cost_table_forbid(fmm_cost_table *table, fmm_device device, const char *reason) {
  for (int phase = 0; phase < FMM_N_PHASES; phase++)
    for (int precision = 0; precision < FMM_N_PRECISIONS; precision++) {
      fmm_cost *cell = &table->total[phase][device][precision];
      cell->feasible = 0, cell->seconds = INFINITY, cell->reason = reason;
      for (int level = 0; level < FMM_MAX_LEVELS; level++) table->level_s[phase][level][device][precision] = INFINITY;
    }
}

double fmm_frame_bytes(const fmm_cost_table *t, const fmm_counts *counts) {
  double index_bytes = 8.0 * ((double)counts->n_sources + (double)counts->n_targets);
  return 3 * t->density_bytes + 3 * t->potential_bytes + index_bytes + t->down_check_bytes;
}

static void fill_transfers(fmm_cost_table *table, const fmm_machine *machine, const fmm_counts *counts, const fmm_pair_info *pair) {
  const fmm_device_rates *cpu = &machine->device[FMM_DEVICE_CPU], *gpu = &machine->device[FMM_DEVICE_GPU];
  double value_bytes = 8.0 * counts->n_columns, boxes = (double)counts->n_boxes;
  table->density_bytes = value_bytes * pair->components * (double)counts->n_sources;
  table->potential_bytes = value_bytes * pair->outputs * (counts->gradient ? 4 : 1) * (double)counts->n_targets;
  table->up_equivalent_bytes = table->down_check_bytes = value_bytes * pair->equivalent_components * counts->n_surface * boxes;
  table->h2d_bytes_per_s = gpu->h2d_bytes_per_s.value;
  table->d2h_bytes_per_s = gpu->d2h_bytes_per_s.value;
  table->transfer_launch_s = gpu->launch_s.value;
  table->staging_s_per_byte = gpu->staging_bytes_per_s.value > 0 ? 1 / gpu->staging_bytes_per_s.value : 0; /* 0: not measured yet */
  table->staging_s = gpu->staging_s.value, table->team_bytes = FMM_GPU_TEAM_BYTES;
  table->evaluation_s = gpu->evaluation_s.value, table->joint_s = gpu->joint_s.value > 0 ? gpu->joint_s.value : gpu->evaluation_s.value;
  table->driving_slowdown = gpu->present ? gpu->driving_slowdown : 1;
  table->frame_s = cpu->evaluation_s.value + fmm_frame_bytes(table, counts) / (cpu->staging_bytes_per_s.value > 0 ? cpu->staging_bytes_per_s.value : cpu->memory_bytes_per_s.value);
  table->sum_s = 3 * table->potential_bytes / cpu->memory_bytes_per_s.value + cpu->launch_s.value;
}

void fmm_cost_table_make(const fmm_machine *machine, const fmm_counts *counts, const fmm_pair_info *pair, fmm_cost_table *table) {
  memset(table, 0, sizeof *table);
  for (int device = 0; device < FMM_N_DEVICES; device++) {
    if (!machine->device[device].present) {
      fmm_cost_table_forbid(table, (fmm_device)device, device == FMM_DEVICE_GPU ? "the machine has no usable GPU" : "the machine has no CPU rates");
      continue;
    }
    for (int phase = 0; phase < FMM_N_PHASES; phase++)
      for (int precision = 0; precision < FMM_N_PRECISIONS; precision++) fill_cell(table, machine, counts, pair, phase, device, precision);
  }
  fill_transfers(table, machine, counts, pair);
}
