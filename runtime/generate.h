/* The standard cases: points of four distributions and densities of three kinds, the same on every machine and for any number of threads.
 *
 * Counter-based: number k of row i is a hash of (seed, stream, i, k), the output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014,
 * fig. 16), so any part can be made alone. Sines and roots are computed with IEEE basic operations only, not by a maths library.
 *   uniform    independent uniform in the unit cube
 *   ellipsoid  surface of the ellipsoid of half-axes 1, 1, 4: uniform angles theta, phi (so denser at the two tips)
 *   sphere     uniform on the unit sphere
 *   plummer    Plummer's model, scale radius 1, cut off where it encloses 0.999 of its mass (radius 38.7), as Aarseth, Henon, Wielen,
 *              Astron. Astrophys. 37 (1974) 183 do */
#ifndef FMM_GENERATE_H
#define FMM_GENERATE_H
#include "status.h"

extern const char *const fmm_distribution_names[]; /* NULL-terminated */
extern const char *const fmm_density_names[];      /* "unit": uniform in [0,1); "signed": in [-0.5,0.5); "ones" */

/* points: n x 3, row-major, of the caller. FMM_ERR_ARGUMENT when the distribution is not known. */
fmm_status fmm_generate_points(const char *distribution, int64_t n, uint64_t seed, double *points, int threads);
/* Rows [first, first + n) of the same infinite sequence. */
fmm_status fmm_generate_point_range(const char *distribution, int64_t first, int64_t n, uint64_t seed, double *points, int threads);
/* densities: n_values numbers (rows x components x columns). */
fmm_status fmm_generate_densities(const char *kind, int64_t n_values, uint64_t seed, double *densities, int threads);
/* Number i of the densities "unit". */
double fmm_generate_fraction(int64_t i, uint64_t seed);
#endif
