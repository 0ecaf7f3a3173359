/* What nvcc is tried on at configuration. */
__global__ void probe(double *x) { *x = 1; }
