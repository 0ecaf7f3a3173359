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
int fmm_is_density_name(const char *name);

/* points: n x 3, row-major, of the caller. FMM_ERR_ARGUMENT when the distribution is not known. */
fmm_status fmm_generate_points(const char *distribution, int64_t n, uint64_t seed, double *points, int threads);
/* Rows [first, first + n) of the same infinite sequence. */
fmm_status fmm_generate_point_range(const char *distribution, int64_t first, int64_t n, uint64_t seed, double *points, int threads);
/* densities: n_values numbers (rows x components x columns). */
fmm_status fmm_generate_densities(const char *kind, int64_t n_values, uint64_t seed, double *densities, int threads);
/* Number i of SplitMix64's sequence from a key. */
static inline uint64_t fmm_split_mix(uint64_t key, uint64_t i) {
  uint64_t z = key + i * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}
/* Number i of the densities "unit" of a seed, of which the key is made once: in [0, 1), a multiple of 2^-53. */
uint64_t fmm_generate_key(uint64_t seed);
static inline double fmm_generate_fraction(uint64_t key, int64_t i) { return (double)(fmm_split_mix(key, (uint64_t)i + 1) >> 11) * 0x1p-53; }
#endif
