/* Options as the library uses them inside: copied from the caller's struct (of any known size) and checked. */
#ifndef FMM_OPTIONS_H
#define FMM_OPTIONS_H
#include "status.h"

enum { FMM_MOST_COLUMNS = 1024 };
fmm_status fmm_options_check(const fmm_options *options);
/* Reads a caller's struct of an older or newer size; missing members keep their defaults. Strings stay the caller's. */
fmm_status fmm_options_copy(const fmm_options *from, fmm_options *to);
#endif
