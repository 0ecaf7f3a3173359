/* Errors of orders that need no measuring (known_errors.c). */
#ifndef FMM_KNOWN_ERRORS_H
#define FMM_KNOWN_ERRORS_H
#include "kernels/operators.h"

/* About what fmm_far_field_errors would measure, of all kinds of densities; nonzero where it is known: for Laplace up to order 18 and Stokes up to 11, as higher ones take long to measure and are rarely asked
 * for. Their parameters do not matter, as they only divide. */
int fmm_known_errors(const fmm_pair_info *info, int order, double error[FMM_DENSITY_KINDS][2]);
#endif
