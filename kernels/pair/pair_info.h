/* What is known of a pair interaction K(x, y) without evaluating it: shapes, symmetry, cost, parameters. Pure data, in `core`;
 * the model prices with it. The evaluation is in the pair's own header (kernels/pair/NAME.h), from which the info comes too.
 * The closed set is the Meson list `pair_interactions`, one word each; the registry is generated from it. */
#ifndef FMM_PAIR_INFO_H
#define FMM_PAIR_INFO_H
#include "runtime/status.h"

/* How K behaves when an axis is mirrored: SCALAR: unchanged; VECTOR: component i of densities and outputs changes sign with axis i (then
 * components == outputs == 3); NONE: no such symmetry. Lets check-to-equivalent operators split into eight parity blocks. */
typedef enum fmm_parity { FMM_PARITY_NONE, FMM_PARITY_SCALAR, FMM_PARITY_VECTOR } fmm_parity;

/* length_power: how the value changes with the unit of length (lambda, 1/length: -1; viscosity: 0): in coordinates
 * multiplied by a the value becomes value * a^length_power. divides: all that the parameter does is to divide the results (viscosity): plans do that in double, as of `scale`,
 * and the sums are made with 1, since what it is in other units than the problem's own (1e21 Pa s) no float holds among them. */
typedef struct fmm_pair_param { const char *name; double default_value, minimum, maximum; const char *meaning; int length_power, divides; } fmm_pair_param;

typedef struct fmm_pair_info {
  const char *name;        /* "laplace" */
  const char *formula;     /* "1/r" : as evaluated, without default_scale */
  const char *citation;
  int components;          /* of a source density */
  int equivalent_components; /* of the equivalent densities and of check potentials (FMM surfaces) */
  int outputs;             /* components of the potential; gradient has 3*outputs, ordered [output][axis] */
  int takes_normals;       /* per-source extras */
  int has_degree;          /* homogeneous: K(a r) = a^degree K(r) with the same parameters: one operator set serves all levels */
  double degree;           /* K(a r; params) = a^degree K(r; params * a^length_power): every dimensionally consistent formula has one */
  int symmetric;           /* K(x,y) = K(y,x)^T */
  int radial;              /* the header takes FMM_RSQRT of the squared distance only: the loops may then begin the roots of later pairs early, or make squares their own way */
  int inverse_distance;    /* K is a density times FMM_RSQRT, its derivatives times FMM_RSQRT cubed and the difference: loops may take a multiple of the root, or squares alone */
  int harmonic;            /* K is 1/r: of one component, its fields are harmonic, and leaves' points give them to surfaces and take them from these by kernels/harmonics.h */
  int shell_field;         /* a sphere far away, evenly covered with sources of one component, makes in that component sinh(k r)/(k r) around its middle, k the largest inverse length among
                            * the parameters (none: a constant), and nothing in the others; linear fields (with one inverse length its derivatives; of several components those without divergence) are far fields too.
                            * Operators then keep these exactly (kernels/shell_field.h) */
  fmm_parity parity;
  double default_scale;    /* 1/(4 pi) ... applied once to the results */
  double flops, gradient_flops; /* floating-point operations a pair, potential / potential and gradient, 1/sqrt counted as 1 */
  double instructions, gradient_instructions; /* of the vectorised inner loop besides the reciprocal square root (Choi 2014: 7 for laplace) */
  int n_params;
  fmm_pair_param params[FMM_MAX_PARAMS];
} fmm_pair_info;

/* NULL-terminated; order of the Meson list. */
extern const fmm_pair_info *const fmm_pair_infos[];
/* FMM_ERR_ARGUMENT with the list of known names. */
fmm_status fmm_pair_info_find(const char *name, const fmm_pair_info **info);
/* values[i] for info->params[i], from the caller's n named ones; unknown names and values out of range are errors. */
fmm_status fmm_pair_resolve_params(const fmm_pair_info *info, int n, const fmm_param *named, double values[FMM_MAX_PARAMS]);
/* The product of those that divide, which become 1. */
double fmm_pair_take_divisor(const fmm_pair_info *info, double values[FMM_MAX_PARAMS]);
/* The largest inverse length among them, 0: none is one. */
double fmm_pair_largest_decay(const fmm_pair_info *info, const double values[FMM_MAX_PARAMS]);
#endif
