/* Cores this process may use (cores.h). Every source is read each time and the tightest wins. */
#include "cores.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/number.h"

enum { PATH_CHARS = 4096, MOST_CPUS = 1 << 20, MOST_THREADS = 1 << 16 };

/* Reads up to n doubles from one line of a file; "max" reads as infinity. Returns how many. */
static int read_numbers(const char *path, int n, double *values) {
  FILE *f = fopen(path, "re");
  if (!f) return 0;
  char line[256], *at = line;
  int got = 0;
  if (fgets(line, sizeof line, f))
    for (char *word; got < n && (word = strtok_r(at, " \t\n", &at));) {
      char *end;
      values[got] = !strcmp(word, "max") ? (double)INFINITY : strtod(word, &end);
      if (strcmp(word, "max") && (end == word || *end)) break;
      got++;
    }
  fclose(f);
  return got;
}

/* Quota of one cgroup directory in cores, by either interface; INFINITY when it has none. */
static double quota_of(const char *directory) {
  char path[PATH_CHARS + 32];
  double v2[2], quota, period;
  snprintf(path, sizeof path, "%s/cpu.max", directory);
  if (read_numbers(path, 2, v2) == 2) return v2[0] > 0 && v2[1] > 0 ? v2[0] / v2[1] : (double)INFINITY;
  snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
  if (read_numbers(path, 1, &quota) != 1 || !(quota > 0)) return (double)INFINITY; /* -1: no limit */
  snprintf(path, sizeof path, "%s/cpu.cfs_period_us", directory);
  return read_numbers(path, 1, &period) == 1 && period > 0 ? quota / period : (double)INFINITY;
}

/* Tightest quota from mount/group up to the mount itself. In a container the group may name a path of the host that is not mounted;
 * its directories are then missing and the mount, which is the container's own group, decides. */
static double tightest_quota(const char *mount, const char *group) {
  char path[PATH_CHARS];
  size_t base = strlen(mount);
  int length = snprintf(path, sizeof path, "%s%s", mount, group);
  if (length < 0 || (size_t)length >= sizeof path) return quota_of(mount);
  double least = (double)INFINITY;
  for (;;) {
    least = fmin(least, quota_of(path));
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) < base) return least;
    *slash = 0;
  }
}

static int names_controller(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); at += n)
    if ((at == list || at[-1] == ',') && (at[n] == 0 || at[n] == ',')) return 1;
  return 0;
}

double fmm_cgroup_quota(const char *root) {
  static const char *const v1_mounts[] = {"cpu,cpuacct", "cpu", "cpuacct,cpu"}, *const v2_mounts[] = {"", "/unified"};
  char path[PATH_CHARS], line[PATH_CHARS];
  double least = (double)INFINITY;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f)) { /* hierarchy:controllers:group; version 2 is hierarchy 0 without controllers */
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    controllers++;
    *group++ = 0;
    int v2 = !*controllers;
    if (!v2 && !names_controller(controllers, "cpu")) continue;
    for (int i = 0; i < (v2 ? 2 : 3); i++) {
      int n = v2 ? snprintf(path, sizeof path, "%s/sys/fs/cgroup%s", root, v2_mounts[i])
                 : snprintf(path, sizeof path, "%s/sys/fs/cgroup/%s", root, v1_mounts[i]);
      if (n > 0 && (size_t)n < sizeof path) least = fmin(least, tightest_quota(path, group));
    }
  }
  if (f) fclose(f);
  return least;
}

/* A positive count from a variable, 0 when unset or not a plain number. */
static int variable_count(fmm_get_variable *get, const char *name) {
  const char *text = get(name);
  if (!text || !*text) return 0;
  char *end;
  long value = strtol(text, &end, 10);
  return *end || value < 1 || value > MOST_THREADS ? 0 : (int)value;
}

static void limit(fmm_cores *cores, int most, const char *source) {
  if (most >= cores->allowed) return;
  cores->allowed = most < 1 ? 1 : most;
  snprintf(cores->why, sizeof cores->why, "%s", source);
}

void fmm_cores_from(const char *root, fmm_get_variable *get, int affinity, fmm_cores *cores) {
  static const char *const batch[] = {"SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "PBS_NCPUS"};
  char text[160];
  memset(cores, 0, sizeof *cores);
  cores->affinity = cores->allowed = affinity < 1 ? 1 : affinity;
  snprintf(cores->why, sizeof cores->why, "affinity mask of %d core%s", cores->allowed, cores->allowed == 1 ? "" : "s");
  cores->quota = fmm_cgroup_quota(root);
  fmm_format(text, sizeof text, "cgroup CPU quota of %.3g cores", cores->quota);
  if (cores->quota < MOST_CPUS) limit(cores, (int)(cores->quota + 1e-9), text);
  for (int i = 0; i < 3 && !cores->batch; i++)
    if ((cores->batch = variable_count(get, batch[i]))) {
      snprintf(text, sizeof text, "%s=%d", batch[i], cores->batch);
      limit(cores, cores->batch, text);
    }
  if ((cores->openmp_limit = variable_count(get, "OMP_THREAD_LIMIT"))) {
    snprintf(text, sizeof text, "OMP_THREAD_LIMIT=%d", cores->openmp_limit);
    limit(cores, cores->openmp_limit, text);
  }
}

/* Cores in this thread's mask. With OMP_PROC_BIND the OpenMP runtime has pinned the first thread to one place; it alone still knows the
 * mask the process came with. */
static int affinity_count(void) {
  if (omp_get_proc_bind() != omp_proc_bind_false) return omp_get_num_procs();
  for (int cpus = 1024; cpus <= MOST_CPUS; cpus *= 4) {
    cpu_set_t *set = CPU_ALLOC(cpus);
    if (!set) break;
    size_t bytes = CPU_ALLOC_SIZE(cpus);
    int n = sched_getaffinity(0, bytes, set) ? 0 : CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (n) return n;
  }
  return omp_get_num_procs();
}

static const char *environment(const char *name) { return getenv(name); }

void fmm_cores_read(fmm_cores *cores) { fmm_cores_from("", environment, affinity_count(), cores); }

int fmm_cores_allowed(void) {
  fmm_cores cores;
  fmm_cores_read(&cores);
  return cores.allowed;
}

fmm_status fmm_cores_grant_from(const fmm_cores *cores, int asked, int oversubscribe, int *threads) {
  if (asked < 0 || asked > MOST_THREADS)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "threads %d is not between 1 and %d (0: every core this process may use)", asked, (int)MOST_THREADS);
  if (asked > cores->allowed && !oversubscribe)
    return FMM_FAIL(FMM_ERR_ARGUMENT, "%d threads asked, but this process may use %d core%s (%s): ask for at most %d, or allow more threads than cores (oversubscribe, of commands --oversubscribe)",
                    asked, cores->allowed, cores->allowed == 1 ? "" : "s", cores->why, cores->allowed);
  *threads = asked ? asked : cores->allowed;
  return FMM_OK;
}

fmm_status fmm_cores_grant(int asked, int oversubscribe, int *threads) {
  fmm_cores cores;
  int granted = 1;
  fmm_cores_read(&cores);
  FMM_TRY(fmm_cores_grant_from(&cores, asked, oversubscribe, &granted));
  FMM_TRY(fmm_threads_can_start(granted));
  *threads = granted;
  return FMM_OK;
}
