/* Errors of orders measured once (known_errors.h), so that a process's first plan need not: as far_field_error.c measures them, the largest of four ways of arithmetic (AVX2 and plain sums, OpenBLAS's kernels for Zen, Sandy
 * Bridge and Prescott), which agree within a hundredth but where charges of one sign err by 1e-10 and less, of which rounding is a part: there within a fifth. tests/exec/test_known_errors.c measures them again, and prints
 * these rows when it is called with an argument: after a change of surfaces, operators or inverses they have to be made anew. */
#include "kernels/known_errors.h"

#include <string.h>

/* A row an order, from FMM_MIN_ORDER on: errors of potentials and gradients, of signed, nonnegative, alone, salt and crystal densities. */
typedef double errors[FMM_DENSITY_KINDS][2];

static const errors laplace[] = {
  {{4.018017e-02, 9.575318e-02}, {1.475556e-02, 2.413455e-01}, {2.775924e-02, 1.683956e-01}, {1.053932e-01, 1.881878e-01}, {1.611988e-02, 4.721251e-01}},
  {{2.341500e-03, 9.667415e-03}, {4.755071e-04, 1.559065e-02}, {2.593191e-03, 2.842547e-02}, {6.753830e-03, 1.982533e-02}, {2.492119e-03, 9.088456e-02}},
  {{1.963549e-04, 1.097579e-03}, {3.161709e-05, 1.406904e-03}, {1.209416e-04, 9.981401e-04}, {7.472295e-04, 3.195916e-03}, {3.417746e-04, 1.266945e-02}},
  {{1.894451e-05, 1.485241e-04}, {9.331583e-07, 3.527524e-05}, {2.666234e-05, 3.541355e-04}, {6.533407e-05, 3.189288e-04}, {3.424416e-05, 1.388385e-03}},
  {{2.451572e-06, 2.262977e-05}, {8.995927e-08, 6.277312e-06}, {3.139489e-06, 5.600602e-05}, {8.528779e-06, 5.799915e-05}, {2.847227e-06, 2.987502e-04}},
  {{2.322097e-07, 2.365050e-06}, {1.013305e-08, 6.458033e-07}, {2.213661e-07, 4.178776e-06}, {1.205903e-06, 1.051130e-05}, {2.902871e-07, 2.516776e-05}},
  {{3.213425e-08, 4.820238e-07}, {1.609587e-09, 5.585285e-08}, {3.201265e-08, 7.560134e-07}, {9.769727e-08, 9.084701e-07}, {7.543307e-08, 5.897152e-06}},
  {{3.987013e-09, 5.663410e-08}, {1.521319e-10, 1.292484e-08}, {1.111523e-08, 1.833175e-07}, {2.628114e-08, 3.156959e-07}, {1.585437e-08, 1.554874e-06}},
  {{6.126596e-10, 1.123528e-08}, {2.896881e-11, 1.595486e-09}, {7.359269e-10, 2.955789e-08}, {2.315837e-09, 2.688519e-08}, {1.606759e-09, 1.682037e-07}},
  {{1.084983e-10, 2.294904e-09}, {5.735677e-12, 3.975589e-10}, {4.103920e-10, 4.890383e-09}, {9.632006e-10, 1.438977e-08}, {2.471460e-10, 5.020348e-08}},
};

static const errors stokes[] = {
  {{4.315435e-01, 6.439458e-01}, {1.426865e-01, 1.420563e+00}, {2.139265e-01, 7.622992e-01}, {1.063404e+00, 1.077644e+00}, {1.953725e-01, 2.128433e+00}},
  {{1.429482e-01, 2.003316e-01}, {5.541509e-03, 6.315595e-02}, {8.365702e-02, 2.552220e-01}, {3.620131e-01, 2.380860e-01}, {1.871985e-01, 1.897951e+00}},
  {{3.193186e-03, 9.239307e-03}, {6.398330e-04, 1.131378e-02}, {2.118117e-03, 1.768153e-02}, {1.039787e-02, 1.767403e-02}, {7.232011e-03, 1.055663e-01}},
  {{2.478652e-04, 6.209356e-04}, {5.608314e-05, 8.474725e-04}, {2.929739e-04, 1.554151e-03}, {6.686360e-04, 9.636323e-04}, {4.338265e-04, 6.553247e-03}},
  {{3.809851e-05, 1.159419e-04}, {8.112934e-06, 1.530377e-04}, {5.002160e-05, 3.396141e-04}, {1.192168e-04, 1.743380e-04}, {7.010741e-05, 1.225484e-03}},
  {{6.314470e-06, 2.197227e-05}, {1.094929e-06, 2.824860e-05}, {7.920371e-06, 6.184172e-05}, {1.997538e-05, 3.206327e-05}, {1.075190e-05, 2.182532e-04}},
  {{1.028978e-06, 3.776728e-06}, {2.302466e-07, 5.417881e-06}, {2.748476e-06, 2.136987e-05}, {3.620739e-06, 6.449287e-06}, {1.937274e-06, 4.113612e-05}},
  {{9.849352e-08, 4.463109e-07}, {1.415191e-08, 3.722233e-07}, {2.624942e-07, 2.683681e-06}, {3.350949e-07, 7.866024e-07}, {2.660181e-07, 5.273122e-06}},
};

static const struct { const char *name; int n; const errors *of; } known[] = {{"laplace", sizeof laplace / sizeof *laplace, laplace}, {"stokes", sizeof stokes / sizeof *stokes, stokes}};

static int is_of_a_degree(const fmm_pair_info *info) {
  for (int i = 0; i < info->n_params; i++)
    if (!info->params[i].divides) return 0;
  return info->has_degree;
}

int fmm_known_errors(const fmm_pair_info *info, int order, double error[FMM_DENSITY_KINDS][2]) {
  const int row = order - FMM_MIN_ORDER;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    if (!strcmp(known[k].name, info->name) && is_of_a_degree(info) && row >= 0 && row < known[k].n) return memcpy(error, known[k].of[row], sizeof(errors)), 1;
  return 0;
}
