/* What a box's far field has of the field that a far shell makes: Laplace and Stokes a constant in each component, Yukawa sinh(k r)/(k r) around the box's centre.
 *
 * Surfaces of order p give such a field only as well as any other: to a part e of it. That is a part of the *whole* far potential u, and a box of half-width h makes of it a gradient of e u / h: where all
 * charges are at a distance R and no others make a field, it is R / h times as much, relative to the gradient u / R, as was asked for. Charges that are all of one sign have most of their
 * potential in it besides. So it is taken out and goes its own way, exactly:
 *   L2L maps the parent's shell field to the same field at the children's check points: to operators made from surfaces alone, whose product with the field's coefficients e_k of component k is off by some d_k,
 *     d_k e_k^T / (e_k^T e_k) is added. So it is with fields that are linear near the centre, as their errors would add up over the levels: derivatives of the shell field, of several components those without
 *     divergence. (Tracers in a thousandth of the side of 300 charges of both signs, Yukawa at order 4: gradients err by 2.0e-3, else by 1.1e-2.)
 *   down_second takes the coefficients less their part of e_k to equivalent densities, so that these make the rest of the field alone.
 *   L2P adds the shell field itself to potentials and gradients: its strength is fmm_shell_parts of the leaf's coefficients.
 * Nothing is done where the kernel dies away within a box (k h > FMM_SHELL_MOST): gradients are there at least k times the potential.
 * e_k is first applied to the field at the box's own check points, so what singular values were cut of it is neither taken out nor handed on. */
#ifndef FMM_SHELL_FIELD_H
#define FMM_SHELL_FIELD_H
#include "kernels/operators.h"

/* Where component k's coefficients are: [begin, end) of the n. */
void fmm_shell_range(const fmm_operators *o, int component, int *begin, int *end);

/* parts[component] of one vector of n downward coefficients; zeros where set->shell is NULL. */
void fmm_shell_parts(const fmm_operators *o, const fmm_level_operators *set, const double *coefficients, double *parts);

/* Adds a shell field around center to n points' values, potential and (gradient nonzero) gradient: value[k * value_stride + i], k = 0 the potential, 1 .. 3 its derivatives.
 * decay2: o->shell_decay2; points at most two lengths from the centre where it is not zero. */
void fmm_shell_add(double decay2, const double center[3], double part, int gradient, int64_t n, const double *x, const double *y, const double *z, double *value, int64_t value_stride);
#endif
