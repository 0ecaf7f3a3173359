/* Topology by hwloc (topology.h). */
#include "calib/topology.h"

#include <hwloc.h>
#include <stdio.h>
#include <string.h>

#include "runtime/cores.h"

static int count(hwloc_topology_t t, hwloc_obj_type_t type) {
  int n = hwloc_get_nbobjs_by_type(t, type);
  return n > 0 ? n : 0;
}

static int64_t cache_bytes(hwloc_topology_t t, hwloc_obj_type_t type) {
  hwloc_obj_t cache = hwloc_get_obj_by_type(t, type, 0);
  return cache ? (int64_t)cache->attr->cache.size : 0;
}

static int64_t first_number(const char *path, const char *key) {
  char line[256];
  long long value = -1;
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f))
    if (!strncmp(line, key, strlen(key)) && sscanf(line + strlen(key), "%lld", &value) == 1) break;
  if (f) fclose(f);
  return value;
}

/* All caches of the outermost level that exists. */
static int64_t last_level_bytes(hwloc_topology_t t) {
  static const hwloc_obj_type_t types[] = {HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};
  for (int i = 0; i < 3; i++)
    if (count(t, types[i])) return cache_bytes(t, types[i]) * count(t, types[i]);
  return 0;
}

/* What the system offers, or less when a container's memory limit is tighter. */
static int64_t available_memory(void) {
  int64_t kib = first_number("/proc/meminfo", "MemAvailable:"), bytes = kib > 0 ? kib * 1024 : 0;
  int64_t limit = first_number("/sys/fs/cgroup/memory.max", ""), used = first_number("/sys/fs/cgroup/memory.current", "");
  if (limit < 0) {
    limit = first_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
    used = first_number("/sys/fs/cgroup/memory/memory.usage_in_bytes", "");
  }
  if (limit > 0 && used >= 0 && limit - used < bytes) bytes = limit > used ? limit - used : 0;
  return bytes;
}

static void fill(hwloc_topology_t t, fmm_topology *topology) {
  topology->packages = count(t, HWLOC_OBJ_PACKAGE);
  topology->numa_nodes = count(t, HWLOC_OBJ_NUMANODE);
  topology->cores = count(t, HWLOC_OBJ_CORE);
  topology->hardware_threads = count(t, HWLOC_OBJ_PU);
  topology->l1_bytes = cache_bytes(t, HWLOC_OBJ_L1CACHE);
  topology->l2_bytes = cache_bytes(t, HWLOC_OBJ_L2CACHE);
  topology->l3_bytes = cache_bytes(t, HWLOC_OBJ_L3CACHE);
  topology->last_level_bytes = last_level_bytes(t);
  topology->memory_bytes = (int64_t)hwloc_get_root_obj(t)->total_memory;
  int64_t kib = first_number("/proc/meminfo", "MemTotal:");
  if (kib * 1024 > topology->memory_bytes) topology->memory_bytes = kib * 1024; /* sandboxes misreport the NUMA nodes' sizes */
}

fmm_status fmm_topology_read(fmm_topology *topology) {
  hwloc_topology_t t;
  fmm_cores cores;
  memset(topology, 0, sizeof *topology);
  fmm_identity_read(&topology->identity);
  fmm_cores_read(&cores);
  snprintf(topology->why_cores, sizeof topology->why_cores, "%s", cores.why);
  topology->available_bytes = available_memory();
  if (hwloc_topology_init(&t)) return FMM_FAIL(FMM_ERR_MEMORY, "hwloc could not start: no memory for the topology");
  fmm_status status = FMM_OK;
  if (hwloc_topology_load(t))
    status = FMM_FAIL(FMM_ERR_INTERNAL, "hwloc could not read this machine's topology; run lstopo to see what it says");
  else
    fill(t, topology);
  hwloc_topology_destroy(t);
  return status;
}

void fmm_topology_text(const fmm_topology *t, char *text, size_t capacity) {
  const double mib = 1024.0 * 1024.0;
  snprintf(text, capacity,
           "CPU        %s\n"
           "cores      %d usable here (%s); node: %d package%s, %d cores, %d hardware threads, %d NUMA node%s\n"
           "caches     L1 %.0f KiB and L2 %.0f KiB a core, L3 %.1f MiB; all last-level caches %.1f MiB\n"
           "memory     %.1f GiB, %.1f GiB available\n"
           "GPU        %s%s%s\n"
           "build      %s\n",
           t->identity.cpu_model, t->identity.cores, t->why_cores, t->packages, t->packages == 1 ? "" : "s", t->cores, t->hardware_threads, t->numa_nodes,
           t->numa_nodes == 1 ? "" : "s", (double)t->l1_bytes / 1024, (double)t->l2_bytes / 1024, (double)t->l3_bytes / mib, (double)t->last_level_bytes / mib,
           (double)t->memory_bytes / mib / 1024, (double)t->available_bytes / mib / 1024, *t->identity.gpu_uuid ? t->identity.gpu_uuid : "none",
           *t->identity.gpu_driver ? ", driver " : "", t->identity.gpu_driver, t->identity.build);
}
