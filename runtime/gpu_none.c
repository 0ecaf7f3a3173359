/* The GPU interface of a build without nvcc: the device is absent, and every other call says so. */
#include "runtime/gpu.h"
#include "runtime/gpu_rows.h"

#include <stdio.h>
#include <string.h>

static const char absent[] = "this build has no CUDA (nvcc was not found, -Dcuda=disabled or -Dgpu_arch=none)";
static fmm_status none(void) { return FMM_FAIL(FMM_ERR_DEVICE, "%s: build where nvcc is, with -Dcuda=enabled and another gpu_arch, or choose schedule cpu", absent); }

void fmm_gpu_query(int ordinal, fmm_gpu_info *info) {
  memset(info, 0, sizeof *info);
  snprintf(info->reason, sizeof info->reason, "%s", absent);
}
void fmm_gpu_plan_predict(const fmm_gpu_request *request, size_t *least_bytes, size_t *best_bytes) { *least_bytes = *best_bytes = 0; }
fmm_status fmm_gpu_plan_create(fmm_gpu_plan **plan, const fmm_gpu_request *request) { return none(); }
void fmm_gpu_plan_destroy(fmm_gpu_plan **plan) { *plan = NULL; }
void fmm_gpu_plan_give(fmm_gpu_plan *plan, fmm_gpu_spare *spare) {}
void fmm_gpu_spare_free(fmm_gpu_spare *spare) {}
fmm_gpu_taken fmm_gpu_spare_taken(void) { return (fmm_gpu_taken){0}; }
void fmm_gpu_stage_free(fmm_gpu_stage *stage) {}
size_t fmm_gpu_plan_device_bytes(const fmm_gpu_plan *plan) { return 0; }
size_t fmm_gpu_plan_host_bytes(const fmm_gpu_plan *plan) { return 0; }
int fmm_gpu_plan_parts(const fmm_gpu_plan *plan, const fmm_gpu_part **parts) { return *parts = NULL, 0; }
fmm_status fmm_gpu_plan_points(fmm_gpu_plan *plan, int set, double *const at[3]) { return none(); }
int fmm_gpu_plan_sms(const fmm_gpu_plan *plan) { return 0; }
int fmm_gpu_plan_falls_back(const fmm_gpu_plan *plan) { return 0; }
fmm_status fmm_gpu_begin(fmm_gpu_plan *plan, const double *densities, fmm_memory_space space) { return none(); }
fmm_status fmm_gpu_run(fmm_gpu_plan *plan, fmm_phase phase, int64_t row_begin, int64_t row_end) { return none(); }
fmm_status fmm_gpu_send(fmm_gpu_plan *plan, fmm_gpu_array array, const double *host, int64_t box_begin, int64_t box_end) { return none(); }
fmm_status fmm_gpu_fetch(fmm_gpu_plan *plan, fmm_gpu_array array, double *host) { return none(); }
fmm_status fmm_gpu_wait(fmm_gpu_plan *plan, fmm_gpu_array array) { return none(); }
fmm_status fmm_gpu_results(fmm_gpu_plan *plan, double factor, double gradient_factor, double *potential, double *gradient, fmm_memory_space space) { return none(); }
fmm_status fmm_gpu_finish(fmm_gpu_plan *plan) { return none(); }
void fmm_gpu_abandon(fmm_gpu_plan *plan) {}
fmm_status fmm_gpu_phase_span(const fmm_gpu_plan *plan, fmm_phase phase, double *start_s, double *end_s) { return none(); }
fmm_status fmm_gpu_copy_span(const fmm_gpu_plan *plan, fmm_gpu_copy copy, double *start_s, double *end_s) { return none(); }
fmm_status fmm_gpu_register(void *host, size_t bytes) { return none(); }
void fmm_gpu_unregister(void *host) {}
fmm_status fmm_gpu_check_array(int device, const char *name, const void *array, size_t bytes, fmm_memory_space space) { return FMM_OK; }
fmm_status fmm_gpu_allocate(int device, void **d_pointer, size_t bytes) { return none(); }
void fmm_gpu_free(void *d_pointer) {}
fmm_status fmm_gpu_copy_now(int device, void *to, const void *from, size_t bytes, void *stream) { return none(); }
fmm_status fmm_gpu_measure(int device, int sms, fmm_gpu_rate rate, double *value) { return none(); }
void fmm_gpu_fail_at(int64_t nth) {}
void fmm_gpu_fail_for_memory(int yes) {}
int64_t fmm_gpu_call_count(void) { return 0; }
fmm_status fmm_gpu_stage_make(fmm_gpu_stage *stage, int device, int threads, size_t bytes) { return none(); }
size_t fmm_gpu_stage_size(size_t densities_bytes, size_t results_bytes) { return 0; }
void fmm_gpu_plan_lend_stage(fmm_gpu_plan *plan, char **memory, size_t *bytes) { *memory = NULL, *bytes = 0; }
void fmm_gpu_rows_begin(fmm_gpu_rows **rows, const fmm_gpu_rows_request *request) { *rows = NULL; }
void fmm_gpu_rows_ask(fmm_gpu_rows *rows, const fmm_frame *frame, double root_scale) {}
void fmm_gpu_rows_take(fmm_gpu_rows *rows, const fmm_frame *frame, double root_scale, fmm_sorted_rows *sorted) { *sorted = (fmm_sorted_rows){0}; }
void fmm_gpu_rows_settle(fmm_gpu_rows *rows) {}
int fmm_gpu_rows_serve(const fmm_gpu_rows *rows) { return 0; }
void fmm_gpu_rows_give_up(fmm_gpu_rows *rows) {}
void fmm_gpu_rows_end(fmm_gpu_rows **rows) { *rows = NULL; }
int fmm_gpu_rows_allow(int allowed) { return 0; }
int64_t fmm_gpu_rows_count(void) { return 0; }
