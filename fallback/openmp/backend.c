#include "openmp/backend.h"
#include "openmp/runner.h"
#include <ctype.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS_MAX = 1024 };

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* The first number of OMP_NUM_THREADS, which may be a list for nested teams ("4,2"). 0: not set; -1: not valid for
 * OpenMP's runtimes or gk. */
static int threads_of_environment(void) {
  const char *text = secure_getenv("OMP_NUM_THREADS");
  int first = 0;
  if (!text || !*text) return 0;
  for (char *end;; text = end + 1) {
    const long threads = strtol(text, &end, 10);
    if (end == text || threads < 1 || (first == 0 && threads > THREADS_MAX)) return -1;
    if (first == 0) first = (int)threads;
    while (*end == ' ') ++end;
    if (*end == 0) return first;
    if (*end != ',') return -1;
  }
}

/* Reads OMP_STACKSIZE: a number and a unit, B, K, M or G (K by default). *bytes: 0 if it isn't set. False: not
 * valid. */
static bool stack_of_environment(size_t *bytes) {
  const char *text = secure_getenv("OMP_STACKSIZE");
  *bytes = 0;
  if (!text || !*text) return true;
  char *end, unit = 'K';
  const long size = strtol(text, &end, 10);
  if (end == text || size < 1) return false;
  while (*end == ' ') ++end;
  if (*end) unit = *end++;
  while (*end == ' ') ++end;
  const char *const units = "BKMG", *found = strchr(units, toupper((unsigned char)unit));
  const int shift = found ? 10 * (int)(found - units) : 0;
  *bytes = (size_t)size << shift;
  return found && *end == 0 && *bytes >> shift == (size_t)size;
}

/* Without this, LLVM's runtime loads a library that the environment names, even in a set-user-id program. */
static void load_no_tool(void) {
  const char *const name = "OMP_TOOL_LIBRARIES";
  if (getenv(name) && !secure_getenv(name)) (void)setenv("OMP_TOOL", "disabled", 1);
}

static gk_result choose_threads(const gk_device_desc *desc, uint32_t *threads, size_t *stack_bytes) {
  if (desc->threads < 0 || desc->threads > THREADS_MAX)
    return gk_fail(GK_ERROR_INVALID,
                   "backend openmp: %d threads; give 1 to %d, or 0 for OMP_NUM_THREADS and else all cores",
                   desc->threads, THREADS_MAX);
  int wanted = desc->threads ? desc->threads : threads_of_environment();
  if (wanted < 0)
    return gk_fail(GK_ERROR_INVALID,
                   "backend openmp: OMP_NUM_THREADS is \"%s\"; set it to a number from 1 to %d, or unset it",
                   secure_getenv("OMP_NUM_THREADS"), THREADS_MAX);
  if (!stack_of_environment(stack_bytes))
    return gk_fail(GK_ERROR_INVALID,
                   "backend openmp: OMP_STACKSIZE is \"%s\"; set it to a number and B, K, M or G, or unset it",
                   secure_getenv("OMP_STACKSIZE"));
  if (wanted == 0) wanted = omp_get_num_procs();
  *threads = (uint32_t)(wanted < THREADS_MAX ? wanted : THREADS_MAX);
  return GK_OK;
}

/* /proc/cpuinfo has "model name" on x86, "Model" or only numbers with some ARM kernels. */
static void cpu_name(char *name, size_t bytes) {
  static const char *const keys[] = {"model name", "Model", "Hardware", "CPU part"};
  char line[256], found[128] = "";
  size_t best = GK_COUNT(keys);
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file))
    for (size_t k = 0; k < best; ++k) {
      size_t length = strlen(keys[k]);
      const char *value = strchr(line, ':');
      if (strncmp(line, keys[k], length) != 0 || !value || (size_t)(value - line) > length + 8) continue;
      value += strspn(value, ": \t");
      snprintf(found, sizeof found, "%s%.*s", k == 3 ? "CPU part " : "", (int)strcspn(value, "\n"), value);
      best = k;
      break;
    }
  if (file) fclose(file);
  snprintf(name, bytes, "%s", found[0] ? found : "CPU");
}

static void runtime_name(char *name, size_t bytes) {
  const char *const version = _OPENMP >= 202011 ? "5.1" : _OPENMP >= 201811 ? "5.0" : "4.5"; /* by month */
#if defined(__clang__)
  snprintf(name, bytes, "LLVM OpenMP (libomp), OpenMP %s, clang %d.%d.%d", version, __clang_major__, __clang_minor__,
           __clang_patchlevel__);
#else
  snprintf(name, bytes, "GNU OpenMP (libgomp), OpenMP %s, gcc %d.%d.%d", version, __GNUC__, __GNUC_MINOR__,
           __GNUC_PATCHLEVEL__);
#endif
}

/* What reading the clock adds to a measured time: the median of a few readings. */
static float clock_overhead(void) {
  enum { TIMES = 31 };
  uint64_t seen[TIMES];
  for (int k = 0; k < TIMES; ++k) {
    uint64_t begun = gki_now_ns(), took = gki_now_ns() - begun;
    int at = k;
    for (; at > 0 && seen[at - 1] > took; --at) seen[at] = seen[at - 1];
    seen[at] = took;
  }
  const uint64_t median = seen[TIMES / 2];
  return (float)median;
}

static gk_result open_device(void *at, const gk_device_desc *desc) {
  gki_openmp_device *device = at;
  if (desc->next)
    return gk_fail(GK_ERROR_INVALID, "backend openmp: it knows no extension (0x%x was given); leave `next` NULL",
                   (unsigned)desc->next->id);
  if (desc->ordinal != 0)
    return gk_fail(GK_ERROR_NO_DEVICE,
                   "backend openmp: there is one device, this machine's CPU, with ordinal 0; %d was asked for",
                   desc->ordinal);
  uint32_t threads = 1;
  size_t stack_bytes = 0;
  load_no_tool(); /* before the first call of OpenMP's runtime */
  gk_result result = choose_threads(desc, &threads, &stack_bytes);
  if (result != GK_OK) return result;
  if (!gki_team_make(&device->team, threads, stack_bytes))
    return gk_fail(GK_ERROR_MEMORY, "backend openmp: out of host memory for %u threads; ask for fewer",
                   (unsigned)threads);
  /* Initial values. The first start of the team measures dispatch_ns, the first wake-up wake_ns. */
  device->dispatch_ns = device->dispatch_floor_ns = GKI_DISPATCH_NS;
  device->clock_ns = clock_overhead();
  device->wake_ns = GKI_WAKE_NS;
  device->memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  char cpu[sizeof device->name - 32];
  cpu_name(cpu, sizeof cpu);
  snprintf(device->name, sizeof device->name, "%s, %u thread%s", cpu, (unsigned)device->team.limit,
           device->team.limit > 1 ? "s" : "");
  runtime_name(device->driver, sizeof device->driver);
  return GK_OK;
}

static void close_device(void *at) { gki_team_free(&((gki_openmp_device *)at)->team); }

static void describe(void *at, gk_device_info *info) {
  static const gk_capability capabilities[] = {
    {"KERNEL", GK_NATIVE, "Called as a function; cut over the threads when that was measured to be faster."},
    {"COPY", GK_NATIVE, "memmove; large ones are cut over the threads."},
    {"FILL", GK_NATIVE, "By the CPU; large ones are cut over the threads."},
    {"CALL", GK_NATIVE, "Each time the task runs, on the thread that leads the launch or its section."},
    {"CALL_HOST", GK_NATIVE, "As CALL."},
    {"LIST", GK_NATIVE, "Written out when the graph is made."},
    {"DO_WHILE", GK_NATIVE, "The thread that leads the launch reads the flag in its own memory."},
    {"WHILE", GK_NATIVE, "As DO_WHILE."},
    {"REPEAT", GK_NATIVE, "The thread that leads the launch counts."},
    {"IF", GK_NATIVE, "As DO_WHILE."},
    {"SWITCH", GK_NATIVE, "As DO_WHILE."},
    {"CHECKPOINT", GK_NATIVE, "As DO_WHILE."},
    {"YIELD", GK_NATIVE, "The thread that leads the launch stops there."},
    {"PARALLEL", GK_NATIVE, "Sections side by side on parts of the team, or one after the other on all of it: what was "
                            "measured to be faster; if two add floats to one slot, always one after the other."},
    {"SECTION", GK_NATIVE, "With loops and branches too."},
    {"SUM", GK_NATIVE, "Private sums, added in an order fixed by item count and number of threads asked for."},
    {"ALWAYS", GK_NATIVE, "As any task."},
    {"CANCEL", GK_NATIVE, "Seen at the next loop end or checkpoint."},
    {"LAUNCH_ON", GK_REFUSED, "There are no streams on a CPU."},
  };
  const gki_openmp_device *device = at;
  info->name = device->name;
  info->driver = device->driver;
  info->threads = (int)device->team.limit;
  info->capability_count = GK_COUNT(capabilities);
  info->capabilities = capabilities;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Linux grants more memory than the machine has and kills a process that uses it, so this refuses such a size. Memory
 * from 2 MiB on asks for large pages, since kernels stream through it, and virtual machines translate each page's
 * address twice. Its last page is large, too, if at least half of it is used. Smaller memory has its exact size, so
 * that sanitizers and valgrind see its end. */
static gk_result alloc(void *at, size_t bytes, gk_memory kind, void **memory) {
  enum { ALIGNMENT = 256, PAGE = 2 << 20 };
  const size_t physical = ((const gki_openmp_device *)at)->memory;
  (void)kind;
  size_t alignment = bytes >= (size_t)PAGE ? PAGE : ALIGNMENT;
  size_t whole = alignment == PAGE && bytes <= physical ? (bytes + PAGE - 1) / PAGE * PAGE : bytes;
  *memory = NULL;
  if (bytes > physical || posix_memalign(memory, alignment, whole) != 0)
    return gk_fail(GK_ERROR_MEMORY, "backend openmp: %zu bytes can't be had, and this machine has %zu in all; ask for "
                   "less, or free some", bytes, physical);
  if (alignment == PAGE) (void)madvise(*memory, (bytes + PAGE / 2) / PAGE * PAGE, MADV_HUGEPAGE);
  return GK_OK;
}

static void free_memory(void *device, void *memory) {
  (void)device;
  free(memory);
}

static gk_result copy(void *device, gk_direction direction, void *to, const void *from, size_t bytes) {
  (void)device;
  if (direction == GK_ZERO) memset(to, 0, bytes);
  else memmove(to, from, bytes);
  return GK_OK;
}

static void *host_address(void *device, void *memory) {
  (void)device;
  return memory;
}

static bool takes(const gk_kernel *kernel) { return kernel->host != NULL; }

/* The variables that this backend reads, and those that it asks OpenMP's runtime for. */
static void of_environment(gk_fact_visit visit, void *user) {
  static const gk_fact variables[] = {
    {.name = "OMP_NUM_THREADS", .why = "threads of a device of openmp; all cores that the process may use if not set"},
    {.name = "OMP_THREAD_LIMIT", .why = "most threads of a device of openmp"},
    {.name = "OMP_STACKSIZE", .why = "stack of each thread that openmp starts: a number and B, K, M or G"},
    {.name = "OMP_PROC_BIND", .why = "whether threads stay at places: false, true, close, spread, primary"},
    {.name = "OMP_PLACES", .why = "the places of threads; those that OpenMP's runtime chooses if not set"},
  };
  for (size_t k = 0; k < GK_COUNT(variables); ++k)
    visit(user, &(gk_fact){"environment", variables[k].name, secure_getenv(variables[k].name), variables[k].why});
}

static const void *query(const char *name) {
  static const gk_fact_source facts = {.bytes = sizeof facts, .of_environment = of_environment};
  return strcmp(name, GK_FACTS) == 0 ? &facts : NULL;
}

const gk_backend gki_openmp = {
  .abi = GK_BACKEND_ABI,
  .bytes = sizeof(gk_backend),
  .name = "openmp",
  .bits = GK_BACKEND_FORKED,
  .device_bytes = sizeof(gki_openmp_device),
  .graph_bytes = sizeof(gki_program),
  .open = open_device,
  .close = close_device,
  .describe = describe,
  .alloc = alloc,
  .free = free_memory,
  .copy = copy,
  .host_address = host_address,
  .takes = takes,
  .lower = gki_openmp_lower,
  .drop = gki_openmp_drop,
  .run = gki_openmp_run,
  .dump = gki_openmp_dump,
  .query = query,
};
