/* Stands for the libcuda.so.1 of a driver of CUDA 9.0: older than any that the CUDA runtime in the library can use. */
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuInit(unsigned flags) { return (void)flags, 0; }
int cuDriverGetVersion(int *version) { return *version = 9000, 0; }
