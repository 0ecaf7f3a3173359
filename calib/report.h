/* A profile as a table for people: rates with their spread, constants with their errors on held-out runs. */
#ifndef FMM_CALIBRATION_REPORT_H
#define FMM_CALIBRATION_REPORT_H
#include "model/machine.h"

/* Text into buffer (capacity bytes, always ended); returns the full length without the end, as snprintf does. */
size_t fmm_machine_text(const fmm_machine *machine, char *buffer, size_t capacity);
#endif
