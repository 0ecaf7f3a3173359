/* From the caller's rows to sorted planes of scaled coordinates: the steps of tree building that know points but no boxes.
 *
 * Frame: scaled = scale * (input - shift). scale is a power of two and shift is zero or so close to every coordinate of its axis
 * (within a factor of two, Sterbenz) that the difference has no rounding: scaled coordinates are exact but for underflow, which needs
 * coordinates 2^900 times smaller than the extent. Coordinates are then at most a few root sides large, wherever the input lies. */
#ifndef FMM_POINTS_H
#define FMM_POINTS_H
#include "sort.h"
#include "tree.h"

enum { FMM_KEY_LEVEL = FMM_MAX_LEVELS - 1 }; /* finest level: 21 bits a dimension */

typedef struct fmm_frame {
  double scale, shift[3];
  double lo[3], side;    /* root cube in scaled coordinates; both have few enough bits that every box centre is exact */
  double cells_per_unit; /* 2^21 / side */
  int coincident;        /* all points at one place */
} fmm_frame;

/* No address space holds the coordinates of more than 2^42 points: such a count, or a negative one, is a mistake, found before anything is read. */
fmm_status fmm_points_check_counts(int64_t n_sources, int64_t n_targets);
/* A plan's rows, of sources and of targets, are counted by 32 bits, also before anything is read; predictions go on from there. */
fmm_status fmm_points_check_rows(int64_t n_sources, int64_t n_targets);

/* FMM_ERR_INPUT names the first row that is not finite (sources before targets). targets may be NULL. Of no points: zeros. */
fmm_status fmm_bounds_of(fmm_bounds *bounds, int64_t n_sources, const double *sources, int64_t n_targets, const double *targets, int threads);
/* The frame of points within such bounds. */
void fmm_frame_place(fmm_frame *frame, const fmm_bounds *bounds, double root_scale);

/* Points as the caller has them. normals: n x 3, NULL for none. */
typedef struct fmm_input_points { int64_t n; const double *rows, *normals; } fmm_input_points;

/* Sorted Morton keys, in their words: word i, without its lowest row_bits, is key i without its lowest `dropped`. With row_bits no cell of keys that words tell has too many points. Without, keys are whole where a cell that
 * words had told has too many; others may have lost their lowest levels, which no box has. borrowed: somebody else's memory. */
typedef struct fmm_sorted_words { uint64_t *word; int row_bits, dropped, borrowed; } fmm_sorted_words;
void fmm_words_free(fmm_sorted_words *words);
/* Words below this one are those of keys below `key`, a multiple of 2^dropped. */
static inline uint64_t fmm_word_bound(const fmm_sorted_words *keys, uint64_t key) { return key >> keys->dropped << keys->row_bits; }

/* Bits of words of n[0] rows, or of two sets': as many for the highest row as it needs, and of keys as many whole levels as there is room for beside it; the same of both sets' keys, as the boxes are the same. */
void fmm_words_shape(int n_sets, const int64_t *n, int *row_bits, int *dropped);

/* Sorted words of all rows of one set, or of two, for one root scale: what a choice of the tree takes its samples from, and a tree of that root scale its points. n_sets 0: none. */
typedef struct fmm_sorted_rows {
  int n_sets;
  double root_scale;
  int64_t n[2];
  fmm_sorted_words set[2];
  int later; /* nonzero: coordinates of points are not wanted yet, and left out (x NULL) where that is easy, until fmm_points_fill */
} fmm_sorted_rows;
fmm_status fmm_rows_sort(fmm_sorted_rows *sorted, const fmm_bounds *bounds, double root_scale, int n_sets, const fmm_input_points *input, int threads);
void fmm_rows_free(fmm_sorted_rows *sorted);

/* Sorts one set, or the two whose boxes are the same; given: NULL, or the same rows sorted for this frame, whose words are taken; keys: keys[k] has points[k].n sorted Morton keys (release with fmm_words_free, none after a failure), without their lowest bits, all or some, where no cell that the others tell has more than
 * most_in_cell points of either set, so that none is split. Where more than most_in_cell points share a finest cell, exactly coincident ones (with equal normals, where there are normals) become one point. */
fmm_status fmm_points_sort(int n_sets, fmm_points *points, fmm_sorted_words *keys, const fmm_frame *frame, const fmm_input_points *input, int64_t most_in_cell, fmm_sorted_rows *given, int threads);
/* Leaves coordinates out again. */
void fmm_points_drop(fmm_points *points);
/* Coordinates that were left out, from the same rows. */
fmm_status fmm_points_fill(fmm_points *points, const fmm_frame *frame, const double *rows, int threads);
void fmm_points_free(fmm_points *points);

/* Coordinates of a scaled position to a key and back: three interleaved fields of 21 bits, x lowest. */
uint64_t fmm_key_of(uint32_t i, uint32_t j, uint32_t k); /* each below 2^21 */
/* Keys of n rows: of those that `row` names, or, where it is NULL, of the first n. */
void fmm_keys_of_rows(uint64_t *keys, const fmm_frame *frame, int64_t n, const double *rows, const uint64_t *row);
/* The middles of keys' finest cells, in the caller's coordinates. */
void fmm_rows_of_keys(double *rows, const fmm_frame *frame, int64_t n, const uint64_t *keys);
uint64_t fmm_key_compact(uint64_t key); /* the x field; shift the key right by 1 or 2 for y and z */

static inline double fmm_frame_scaled(const fmm_frame *f, double coordinate, int axis) { return (coordinate - f->shift[axis]) * f->scale + 0.0; /* no -0 */ }

/* Cell of the finest level, on one axis, that a scaled coordinate is in. */
static inline uint32_t fmm_key_cell(double scaled, double lo, double cells_per_unit) {
  const double last = (double)((1 << FMM_KEY_LEVEL) - 1), c = (scaled - lo) * cells_per_unit, least = c < last ? c : last;
  return (uint32_t)(int32_t)(least > 0 ? least : 0);
}

/* First index in [begin, end) of sorted keys whose key is at least `key`; end when there is none. */
static inline int64_t fmm_keys_lower_bound(const uint64_t *keys, int64_t begin, int64_t end, uint64_t key) {
  while (begin < end) {
    int64_t middle = begin + (end - begin) / 2;
    if (keys[middle] < key) begin = middle + 1;
    else end = middle;
  }
  return begin;
}
#endif
