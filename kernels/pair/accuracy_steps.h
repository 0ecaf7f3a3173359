/* At which tolerances of the whole evaluation the CPU's pair sums change their roots (kernels/pair/pair_sums.h), for those who sum and for the model, which prices each accuracy apart. */
#ifndef FMM_ACCURACY_STEPS_H
#define FMM_ACCURACY_STEPS_H

#define FMM_COARSE_FROM 3e-4     /* in single: the hardware's estimate of the root alone, where allowed */
#define FMM_NEWTON_FROM 1e-7     /* in double: one Newton step where the estimate has 14 bits (AVX-512) and nothing amplifies its error; */
#define FMM_NEWTON_FROM_12 1e-6  /* where it has 12 (AVX2), or exponentials amplify it; below both two terms of the root's series, */
#define FMM_SERIES_FROM 1e-9     /* as far as here; then full roots */
#endif
