/* Salts and crystals: charges of both signs in turn on a cubic lattice, what cancels most of all that an order has to serve (far_field_error.c).
 * The site of index i is at origin + spacing * (i + displacement), displacement at most FMM_SALT_MOVED an axis and hashed from i, so that any part of one
 * lattice can be made alone; its charge is 1 or -1 by the parity of the sum of i. Fields are of one such charge in every component. */
#ifndef FMM_CHARGE_LATTICE_H
#define FMM_CHARGE_LATTICE_H
#include "kernels/pair/pair.h"

#define FMM_SALT_MOVED 0.2

typedef struct fmm_charge_lattice {
  double origin[3], spacing, moved; /* moved: largest displacement along an axis, in spacings; 0 for a crystal */
} fmm_charge_lattice;

/* The sites in [low, low + edge)^3: at[axis][i] and charge[i], at most `most`; returns how many. */
int fmm_charge_lattice_fill(const fmm_charge_lattice *lattice, const double low[3], double edge, int most, double *const at[3], double *charge);

/* Mean squares over sites and components of the potential (gradient 0) or of its derivatives (1) that all others of an endless lattice cause. The derivatives of a crystal,
 * which has none inside: those of a cube of a million charges, at its surface. */
double fmm_charge_lattice_square(const fmm_charge_lattice *lattice, const fmm_pair *pair, const double *params, int gradient);
#endif
