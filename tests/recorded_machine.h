/* Machine profiles that the tests keep (tests/machines). */
#ifndef FMM_TEST_RECORDED_MACHINE_H
#define FMM_TEST_RECORDED_MACHINE_H
#include "test.h"
#include "model/machine.h"

static inline fmm_machine recorded_machine(const char *name) {
  char path[512];
  fmm_machine m;
  snprintf(path, sizeof path, "%s/%s.json", FMM_TEST_MACHINES, name);
  assert_ok(fmm_profile_load(path, &m));
  return m;
}
#endif
