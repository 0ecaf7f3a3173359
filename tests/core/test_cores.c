/* Cores the process may use: fake cgroup trees of both versions, batch variables, and the refusal of more threads. */
#include "test.h"
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runtime/cores.h"

static char root[64];

/* Writes root/path, making its folders. */
static void put(const char *path, const char *text) {
  char full[512];
  snprintf(full, sizeof full, "%s/%s", root, path);
  for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(full, 0755);
    *slash = '/';
  }
  FILE *f = fopen(full, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
}

static int fresh_root(void **state) {
  snprintf(root, sizeof root, "fmm_cores_XXXXXX");
  return !mkdtemp(root);
}

static int remove_root(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return system(command);
}

static const char *no_variable(const char *name) { return NULL; }
static const char *slurm(const char *name) { return !strcmp(name, "SLURM_CPUS_PER_TASK") ? "3" : !strcmp(name, "SLURM_CPUS_ON_NODE") ? "64" : NULL; }
static const char *slurm_node(const char *name) { return !strcmp(name, "SLURM_CPUS_ON_NODE") ? "6" : NULL; }
static const char *nonsense(const char *name) { return "many"; }
static const char *openmp(const char *name) { return !strcmp(name, "OMP_THREAD_LIMIT") ? "2" : NULL; }

static void without_limits_the_affinity_mask_decides(void **state) {
  fmm_cores cores;
  fmm_cores_from(root, no_variable, 8, &cores);
  assert_int_equal(cores.allowed, 8);
  assert_true(isinf(cores.quota));
  assert_non_null(strstr(cores.why, "affinity mask of 8"));
}

static void version_2_takes_the_tightest_quota_on_the_way_up(void **state) {
  put("proc/self/cgroup", "0::/slice/job/step\n");
  put("sys/fs/cgroup/slice/job/step/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/slice/job/cpu.max", "350000 100000\n");
  put("sys/fs/cgroup/slice/cpu.max", "1600000 100000\n");
  fmm_cores cores;
  fmm_cores_from(root, no_variable, 8, &cores);
  assert_true(cores.quota == 3.5);
  assert_int_equal(cores.allowed, 3); /* a fourth thread would be throttled half of the time */
  assert_non_null(strstr(cores.why, "3.5"));
}

static void a_container_that_sees_the_hosts_group_path_uses_its_mount(void **state) {
  put("proc/self/cgroup", "0::/docker/0123456789\n");
  put("sys/fs/cgroup/cpu.max", "200000 100000\n");
  assert_true(fmm_cgroup_quota(root) == 2);
}

static void version_1_reads_quota_and_period(void **state) {
  put("proc/self/cgroup", "12:cpuset:/a\n4:cpu,cpuacct:/a/b\n1:name=systemd:/x\n");
  put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  assert_true(isinf(fmm_cgroup_quota(root)));
  put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  fmm_cores cores;
  fmm_cores_from(root, no_variable, 8, &cores);
  assert_true(cores.quota == 0.5);
  assert_int_equal(cores.allowed, 1); /* never none */
}

static void damaged_cgroup_files_are_no_limit(void **state) {
  put("proc/self/cgroup", "nonsense\n0::/g\n:\n");
  put("sys/fs/cgroup/g/cpu.max", "soon\n");
  put("sys/fs/cgroup/cpu.max", "0 0\n");
  assert_true(isinf(fmm_cgroup_quota(root)));
}

static void batch_grants_and_openmp_limits_count(void **state) {
  fmm_cores cores;
  fmm_cores_from(root, slurm, 8, &cores);
  assert_int_equal(cores.allowed, 3);
  assert_string_equal(cores.why, "SLURM_CPUS_PER_TASK=3");
  fmm_cores_from(root, slurm, 2, &cores);
  assert_int_equal(cores.allowed, 2); /* the mask is tighter */
  fmm_cores_from(root, slurm_node, 8, &cores);
  assert_int_equal(cores.allowed, 6);
  fmm_cores_from(root, nonsense, 8, &cores);
  assert_int_equal(cores.allowed, 8);
  fmm_cores_from(root, openmp, 8, &cores);
  assert_int_equal(cores.allowed, 2);
}

static void more_threads_than_cores_are_refused_with_reason_and_way_out(void **state) {
  fmm_cores cores;
  int threads = -5;
  fmm_cores_from(root, slurm, 8, &cores);
  assert_int_equal(fmm_cores_grant_from(&cores, 4, 0, &threads), FMM_ERR_ARGUMENT);
  assert_int_equal(threads, -5);
  assert_non_null(strstr(fmm_last_error(), "4 threads"));
  assert_non_null(strstr(fmm_last_error(), "SLURM_CPUS_PER_TASK=3"));
  assert_non_null(strstr(fmm_last_error(), "--oversubscribe"));
  assert_ok(fmm_cores_grant_from(&cores, 4, 1, &threads));
  assert_int_equal(threads, 4);
  assert_ok(fmm_cores_grant_from(&cores, 0, 0, &threads));
  assert_int_equal(threads, 3);
  assert_int_equal(fmm_cores_grant_from(&cores, -1, 1, &threads), FMM_ERR_ARGUMENT);
}

static void this_process_sees_a_narrower_mask_at_once(void **state) {
  cpu_set_t before, one;
  if (sched_getaffinity(0, sizeof before, &before)) skip(); /* more than 1024 CPUs */
  int first = 0;
  while (!CPU_ISSET(first, &before)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  assert_in_range(fmm_cores_allowed(), 1, CPU_COUNT(&before));
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  int allowed = fmm_cores_allowed();
  sched_setaffinity(0, sizeof before, &before);
  assert_int_equal(allowed, 1);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, fresh_root, remove_root)
/* Where a user may have no further process: in a child, which is no superuser, as limits do not bind these. */
static void threads_that_cannot_be_started_are_refused(void **state) {
  int result;
  const pid_t child = fork();
  if (!child) {
    const struct rlimit none = {1, 1};
    int threads = 7;
    if (setrlimit(RLIMIT_NPROC, &none) || (geteuid() == 0 && setuid(54321))) _exit(77);
    if (fmm_cores_grant(2, 1, &threads) != FMM_ERR_MEMORY || threads != 7) _exit(1);
    if (!strstr(fmm_last_error(), "only 1 of 2 threads") || !strstr(fmm_last_error(), "ulimit -u")) _exit(2);
    if (fmm_cores_grant(1, 1, &threads) != FMM_OK || threads != 1) _exit(3);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &result, 0), child);
  if (WEXITSTATUS(result) == 77) skip();
  assert_true(WIFEXITED(result));
  assert_int_equal(WEXITSTATUS(result), 0);
  assert_ok(fmm_threads_can_start(3));
  assert_ok(fmm_threads_can_start(3));
}

int main(void) {
  const struct CMUnitTest tests[] = {WITH_ROOT(without_limits_the_affinity_mask_decides),
                                     WITH_ROOT(version_2_takes_the_tightest_quota_on_the_way_up),
                                     WITH_ROOT(a_container_that_sees_the_hosts_group_path_uses_its_mount),
                                     WITH_ROOT(version_1_reads_quota_and_period),
                                     WITH_ROOT(damaged_cgroup_files_are_no_limit),
                                     WITH_ROOT(batch_grants_and_openmp_limits_count),
                                     WITH_ROOT(more_threads_than_cores_are_refused_with_reason_and_way_out),
                                     cmocka_unit_test(this_process_sees_a_narrower_mask_at_once), cmocka_unit_test(threads_that_cannot_be_started_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
