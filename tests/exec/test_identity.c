/* Fingerprint of machine and build: changes with each ingredient, stays otherwise. */
#include "test.h"
#include "kernels/simd.h"
#include "runtime/identity.h"

static fmm_identity sample(void) {
  fmm_identity id = {.cpu_model = "Example CPU", .cores = 16, .gpu_uuid = "GPU-1234", .gpu_driver = "580.1", .build = "0.1.0 avx2"};
  return id;
}

static void assert_differs(const fmm_identity *changed) {
  fmm_identity id = sample();
  char a[FMM_FINGERPRINT_CHARS], b[FMM_FINGERPRINT_CHARS];
  fmm_identity_fingerprint(&id, a);
  fmm_identity_fingerprint(changed, b);
  assert_int_equal(strlen(a), 16);
  assert_string_not_equal(a, b);
}

static void fingerprint_changes_with_each_ingredient(void **state) {
  fmm_identity id = sample();
  strcpy(id.cpu_model, "Example CPU v2"), assert_differs(&id), id = sample();
  id.cores = 15, assert_differs(&id), id = sample();
  strcpy(id.gpu_uuid, "GPU-1235"), assert_differs(&id), id = sample();
  strcpy(id.gpu_driver, "580.2"), assert_differs(&id), id = sample();
  strcpy(id.build, "0.1.0 avx512"), assert_differs(&id), id = sample();
  strcpy(id.gpu_uuid, "GPU-1234580.1"), strcpy(id.gpu_driver, ""), assert_differs(&id); /* same text, split elsewhere */
}

static void fingerprint_ignores_what_is_behind_the_end_of_a_name(void **state) {
  fmm_identity id = sample();
  id.cpu_model[40] = 'x';
  char a[FMM_FINGERPRINT_CHARS], b[FMM_FINGERPRINT_CHARS];
  fmm_identity_fingerprint(&id, a);
  id = sample();
  fmm_identity_fingerprint(&id, b);
  assert_string_equal(a, b);
}

static void build_names_version_and_instruction_set(void **state) {
  char build[FMM_MAX_NAME], plain[FMM_FINGERPRINT_CHARS], best[FMM_FINGERPRINT_CHARS];
  fmm_fingerprint(best);
  fmm_simd level = fmm_simd_level();
  fmm_simd_cap(FMM_SIMD_PLAIN);
  fmm_build_name(build);
  fmm_fingerprint(plain);
  fmm_simd_cap(FMM_N_SIMD - 1);
  assert_non_null(strstr(build, fmm_version()));
  assert_non_null(strstr(build, "plain"));
  assert_int_equal(strcmp(plain, best) != 0, level != FMM_SIMD_PLAIN);
}

static void cpu_model_is_read_from_either_form_of_cpuinfo(void **state) {
  char model[FMM_MAX_NAME];
  const char *path = "test_identity_cpuinfo.txt";
  FILE *f = fopen(path, "w");
  fputs("processor\t: 0\nvendor_id\t: X\nmodel name\t: Some CPU @ 2.0GHz\n\nmodel name\t: other\n", f);
  fclose(f);
  fmm_cpu_model_from(path, model);
  assert_string_equal(model, "Some CPU @ 2.0GHz");
  f = fopen(path, "w");
  fputs("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n", f);
  fclose(f);
  fmm_cpu_model_from(path, model);
  assert_string_equal(model, "implementer 0x41 part 0xd40");
  remove(path);
  fmm_cpu_model_from(path, model);
  assert_true(model[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fingerprint_changes_with_each_ingredient),
                                     cmocka_unit_test(fingerprint_ignores_what_is_behind_the_end_of_a_name),
                                     cmocka_unit_test(build_names_version_and_instruction_set),
                                     cmocka_unit_test(cpu_model_is_read_from_either_form_of_cpuinfo)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
