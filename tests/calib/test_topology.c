/* Topology by hwloc: consistent with itself and with what this process may use; its text names what people look for. */
#include "test.h"
#include "calib/topology.h"
#include "runtime/cores.h"

static void topology_is_consistent_and_printable(void **state) {
  fmm_topology t;
  char text[2048];
  assert_ok(fmm_topology_read(&t));
  assert_int_equal(t.identity.cores, fmm_cores_allowed());
  assert_true(t.cores >= 1 && t.hardware_threads >= t.cores);
  assert_true(t.memory_bytes > 0 && t.available_bytes >= 0 && t.available_bytes <= 2 * t.memory_bytes);
  assert_true(t.last_level_bytes >= 0 && t.l1_bytes >= 0);
  fmm_topology_text(&t, text, sizeof text);
  assert_non_null(strstr(text, t.identity.cpu_model));
  assert_non_null(strstr(text, t.identity.build));
  assert_non_null(strstr(text, t.why_cores));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(topology_is_consistent_and_printable)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
