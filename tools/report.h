/* What the reports of fmm-run and fmm-predict share: numbers for people, and members of the JSON objects. */
#ifndef FMM_TOOLS_REPORT_H
#define FMM_TOOLS_REPORT_H
#include <jansson.h>

#include "run_case.h"

/* report_text.c: "1.23 ms", "-" when not finite; "12.3 MB", "1.2 kB" (powers of 1000). Return text. */
const char *fmm_text_seconds(double seconds, char text[32]);
const char *fmm_text_bytes(double bytes, char text[32]);
/* The interaction's parameters, given or its own, in the order of its info. */
void fmm_report_parameters(const fmm_case_options *options, const fmm_case *data, double value[FMM_MAX_PARAMS]);
/* To the line of a case on standard output: the interaction with its parameters and a factor that was given; where it is evaluated, if not at the sources. */
void fmm_text_kernel(const fmm_case_options *options, const fmm_case *data);
void fmm_text_targets(const fmm_case_options *options, const fmm_case *data);

/* report_json.c: new references. Numbers that are not finite are null: JSON has no others. */
json_t *fmm_json_number(double value);
json_t *fmm_json_choice(const char *choices, int index);
json_t *fmm_json_text(const char *value); /* file names need not be UTF-8 */
/* The member `case` of both reports. */
json_t *fmm_json_case(const fmm_case_options *options, const fmm_case *data);
/* The member `build` of both. */
json_t *fmm_json_build(void);
/* Writes the object on standard output, whose failure is noticed at the command's end, and releases it. */
fmm_status fmm_json_print(json_t *report);
#endif
