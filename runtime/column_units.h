/* Columns that are evaluated together may be of any size, each for itself: masses in kilograms beside charges in coulombs differ by more than a float holds. Where some phase is in
 * single precision and there are several, each is brought to between 1 and 2 by a power of two before the phases and back after them; on the GPU by the same (runtime/gpu/gpu_order.cu).
 * One column alone is scaled where it is made float (kernels/phase.h, largest_density). */
#ifndef FMM_COLUMN_UNITS_H
#define FMM_COLUMN_UNITS_H
#include <string.h>

#include "kernels/phase.h"

/* The exponent by whose negative a column is scaled, from the largest of its magnitudes; of numbers that are not, too. */
static inline int fmm_column_exponent(double largest) {
  uint64_t bits;
  memcpy(&bits, &largest, sizeof bits);
  const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  return exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
}

/* Of each column of n_planes planes of n (plane k is of column k % n_columns). */
void fmm_column_exponents(const double *planes, int n_planes, int64_t n, int n_columns, int *exponent, int threads);

/* Each plane times 2^(sign * exponent of its column). */
void fmm_scale_columns(double *planes, int n_planes, int64_t n, int n_columns, const int *exponent, int sign, int threads);
#endif
