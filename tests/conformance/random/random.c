/* Runs stories, in a child process: if it crashes or hangs, the parent knows at which seed. The parent itself opens no
 * device, so that it may fork as often as shrinking wants. */
#include "random.h"
#include "story.h"
#include "conformance/stay.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 300, SECONDS_AGAIN = 60 }; /* of a story at most; of one that is tried again and again, to shrink it */
enum { DIFFERS = 1, NO_DEVICE = 77, CLOSED }; /* what a child exits with; CLOSED: it can't be opened otherwise */

static story tale;
static const char *(*audit)(void);
static void (*prepare)(uint64_t seed), (*begin)(uint64_t seed);

void random_watch(void (*before_open)(uint64_t seed), void (*before_list)(uint64_t seed), const char *(*broken)(void)) {
  prepare = before_open;
  begin = before_list;
  audit = broken;
}

static gk_result open_device(const char *backend, uint64_t seed, gk_device **device) {
  if (prepare) prepare(seed);
  int threads = strcmp(backend, "openmp") == 0 ? 1 + (int)(seed / RANDOM_DEVICE_LISTS % 4) : 0;
  return gk_device_open(&(gk_device_desc){.backend = backend, .threads = threads}, device);
}

/* Vulkan's drivers compile all shaders for each device. */
static uint64_t lists_per_device(const char *backend) {
  return RANDOM_DEVICE_LISTS * (strcmp(backend, "vulkan") == 0 ? 20u : 1u);
}

static verdict run_and_audit(story *s, gk_device *device, tally *t, recorder *log) {
  if (begin) begin(s->seed);
  verdict end = story_run(s, device, t, log);
  if (end == DIFFERENT || !audit || !*audit()) return end;
  snprintf(t->why, sizeof t->why, "%s", audit());
  return DIFFERENT;
}

/* ---- how a backend has CALLs ------------------------------------------------------------------------------------- */

static bool recorded;
static gk_result see_whether(const gk_value *args, void *native) {
  (void)args;
  recorded = is_recorded(native);
  return GK_OK;
}

/* What can be recorded is so as the graph is made. */
static story_calls calls_of(gk_device *device) {
  static const gk_task tasks[] = {GK_CALL(see_whether, 0)};
  static const gk_list list = {GK_ABI, "list", tasks, GK_COUNT(tasks), NULL, 0};
  gk_graph *graph = NULL;
  (void)gk_graph_create(device, &list, 0, &graph);
  gk_graph_destroy(graph);
  if (!recorded) return CALLS_RUN;
  void *door = gk_alloc(device, sizeof(stay_door), GK_HOST_MEMORY);
  gk_free(device, door);
  return door ? CALLS_RECORDED : CALLS_UNSTOPPABLE;
}

static int look(const char *backend, uint64_t seed, tally *t) {
  gk_device *device = NULL;
  alarm(SECONDS);
  const gk_result result = open_device(backend, seed, &device);
  if (result != GK_OK) {
    snprintf(t->why, sizeof t->why, "%s", gk_error());
    return result == GK_ERROR_NO_DEVICE ? NO_DEVICE : CLOSED;
  }
  t->calls = calls_of(device);
  gk_device_close(device);
  return 0;
}

/* ---- what is in a list ------------------------------------------------------------------------------------------- */

static void count_list(const gk_list *list, tally *t, uint32_t depth, uint32_t lists, uint32_t sections) {
  uint32_t open = 0;
  for (size_t k = 0; k < list->slot_count; ++k) t->rooms += (list->slots[k].bits & GK_IS_ROOM) != 0;
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_task *task = &list->tasks[k];
    ++t->ops[task->op];
    if (task->op == GK_OP_END) --open;
    if (opens(task->op)) ++open;
    if (depth + open > t->deepest) t->deepest = depth + open;
    if (depth + open >= 10) ++t->ten_deep;
    if (task->op == GK_OP_LIST) {
      if (lists) ++t->two_deep_includes;
      count_list(task->list, t, depth + open, lists + 1, sections);
    }
    for (size_t j = 0; j < list->slot_count; ++j)
      if (list->slots[j].bits & GK_IS_PASS)
        t->passes += task->flag == list->slots[j].slot || task->items[0] == list->slots[j].slot ||
                     task->args[1] == list->slots[j].slot;
    bool does = task->op == GK_OP_KERNEL || task->op == GK_OP_COPY || task->op == GK_OP_FILL;
    if (task->bits & GK_ALWAYS) ++t->always;
    const char count = does && task->items[0] > 0 ? kind_of(list->slots[task->items[0] - 1].name) : ' ';
    t->counts_in_memory += count == 'F';
    t->counts_of_any_size += strchr("EOL", count) != NULL;
    t->constants += task->items[0] < 0 || task->items[1] < 0 || task->items[2] < 0;
    t->every += task->every > 1;
    t->constants_given += task->op == GK_OP_LIST && task->args[GK_MAX_ARGS - 1] < 0;
    if (task->op == GK_OP_KERNEL && task->kernel->params[0].access == GK_ACCESS_SUM) ++t->sums;
    if (task->items[2]) ++t->three_dimensions;
    else if (task->items[1]) ++t->two_dimensions;
    if (task->flag && task->offset) ++t->offsets;
    for (size_t j = 0; task->flag && j < k; ++j)
      if (list->tasks[j].flag == task->flag && list->tasks[j].offset == task->offset) {
        ++t->shared_flags;
        break;
      }
  }
}

/* Sections within sections of one list: a PARALLEL while a SECTION is open. */
static void count_sections(const gk_list *list, tally *t) {
  gk_op open[GK_MAX_DEPTH + 1];
  uint32_t depth = 0;
  for (size_t k = 0; k < list->task_count; ++k) {
    gk_op op = list->tasks[k].op;
    if (op == GK_OP_END) --depth;
    if (op == GK_OP_PARALLEL)
      for (uint32_t d = 0; d < depth; ++d) t->sections_in_sections += open[d] == GK_OP_SECTION;
    if (opens(op)) open[depth++] = op;
  }
}

static void story_count(const story *s, tally *t) {
  count_list(&s->lists[s->list_count - 1].list, t, 0, 0, 0);
  for (uint32_t k = 0; k < s->list_count; ++k) count_sections(&s->lists[k].list, t);
  ++t->lists;
  t->heavy += s->heavy;
  t->swarms += s->without != 0;
}

/* ---- stories ----------------------------------------------------------------------------------------------------- */

static int run_seeds(const char *backend, uint64_t first, long count, tally *t) {
  gk_device *device = NULL;
  for (uint64_t seed = first; seed < first + (uint64_t)count; ++seed) {
    alarm(SECONDS);
    t->seed = seed;
    if (!device && open_device(backend, seed, &device) != GK_OK) {
      snprintf(t->why, sizeof t->why, "%s", gk_error());
      return DIFFERS;
    }
    story_write(&tale, seed);
    story_count(&tale, t);
    verdict end = run_and_audit(&tale, device, t, NULL);
    if (end == DIFFERENT) return DIFFERS; /* as it is: no time for leaks */
    t->too_long += end == TOO_LONG;
    if ((seed + 1) % lists_per_device(backend)) continue;
    gk_device_close(device);
    device = NULL;
  }
  gk_device_close(device);
  return 0;
}

static int run_story(const char *backend, story *s, tally *t, FILE *to) {
  gk_device *device = NULL;
  alarm(SECONDS_AGAIN);
  recorder *log = to ? recorder_open(to, s, backend) : NULL;
  if (open_device(backend, s->seed, &device) != GK_OK) return CLOSED;
  verdict end = run_and_audit(s, device, t, log);
  recorder_close(log);
  t->printed = log != NULL;
  if (end == DIFFERENT) return DIFFERS;
  gk_device_close(device);
  return 0;
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

typedef struct errand {
  const char *backend;
  uint64_t first;
  long count;
  story *s; /* NULL: seeds, */
  bool looks; /* or none at all */
  tally *t;
  FILE *to;
  bool quiet;
  int wanted; /* of a story that is shrunk: it must end as before */
} errand;

static int send(const errand *e) {
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) return -1;
  if (!child) {
    if (e->quiet && !freopen("/dev/null", "w", stderr)) _exit(2);
    int code = e->s       ? run_story(e->backend, e->s, e->t, e->to)
               : e->looks ? look(e->backend, e->first, e->t)
                          : run_seeds(e->backend, e->first, e->count, e->t);
    fflush(NULL);
    if (code) _exit(code);
    exit(0); /* what looks for leaks does it there */
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) continue;
  return status;
}

/* The device is opened, and stories are written from now on for how it has CALLs. */
static int look_at_backend(const char *backend, uint64_t first, tally *t) {
  int status = send(&(errand){.backend = backend, .first = first, .looks = true, .t = t});
  if (status == 0 && story_calls_are != CALLS_NONE) story_calls_are = t->calls;
  return status;
}

static const char *end_of(int status, int seconds, const tally *t, char *text, size_t bytes) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) snprintf(text, bytes, "no end after %d seconds", seconds);
  else if (WIFSIGNALED(status)) snprintf(text, bytes, "killed by %s", strsignal(WTERMSIG(status)));
  else if (WEXITSTATUS(status) == DIFFERS && *t->why) snprintf(text, bytes, "%s", t->why);
  else snprintf(text, bytes, "exit code %d, see above", WEXITSTATUS(status));
  return text;
}

static tally *shared_tally(void) {
  tally *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return t == MAP_FAILED ? NULL : t;
}

static bool story_fails(void *user, story *s) {
  errand e = *(errand *)user;
  memset(e.t->why, 0, sizeof e.t->why);
  e.s = s;
  e.quiet = true;
  return send(&e) == e.wanted;
}

static void tell_failure(const char *backend, int status, const tally *t, bool shrink) {
  char text[1100];
  tally *spare = shared_tally();
  if (!spare) return;
  uint64_t seed = t->seed;
  printf("# seed %llu on %s: %s\n# again: random_lists --backend %s --seed %llu --random 1\n", (unsigned long long)seed,
         backend, end_of(status, SECONDS, t, text, sizeof text), backend, (unsigned long long)seed);
  errand again = {.backend = backend, .s = &tale, .t = spare, .wanted = status};
  story_write(&tale, seed);
  if (shrink && story_fails(&again, &tale)) {
    story_shrink(&tale, story_fails, &again);
    again.quiet = true;
    int shrunk = (memset(spare->why, 0, sizeof spare->why), send(&again));
    printf("# as small as it could be made: %s\n", end_of(shrunk, SECONDS_AGAIN, spare, text, sizeof text));
  } else if (shrink) {
    printf("# when it is run by itself, it doesn't fail\n");
  }
  again.to = stdout;
  send(&again);
  if (!spare->printed) recorder_finish(stdout); /* it crashed, or hung */
  fflush(stdout);
  munmap(spare, sizeof *spare);
}

/* ---- what came up ------------------------------------------------------------------------------------------------ */

static int tell(const char *what, uint64_t count, bool demanded, int missing) {
  printf("#   %-28s %llu\n", what, (unsigned long long)count);
  if (count || !demanded) return missing;
  printf("#   ^ never came up\n");
  return missing + 1;
}

static int tell_tally(const tally *t, const char *backend, bool demanded) {
  static const char *const ops[] = {"none", "kernel", "copy", "fill", "call", "call_host", "yield", "include",
                                    "do_while", "while", "repeat", "if", "else", "switch", "case", "checkpoint",
                                    "parallel", "section"};
  static const char *const deeds[] = {"launches", "pokes", "binds", "resizes", "numbers", "structs"};
  int m = 0;
  printf("# %llu lists on %s, %llu of them left out since they take too long\n", (unsigned long long)t->lists, backend,
         (unsigned long long)t->too_long);
  const bool cancels = demanded && story_cancels();
#define TELL(member) m = tell(#member, t->member, demanded, m)
  for (size_t k = GK_OP_KERNEL; k <= GK_OP_SECTION; ++k)
    m = tell(ops[k], t->ops[k],
             demanded && !((k == GK_OP_CALL || k == GK_OP_CALL_HOST) && story_calls_are == CALLS_NONE), m);
  TELL(launches); TELL(finished); TELL(yielded); TELL(resumed); TELL(elsewhere); TELL(queued); TELL(bounded);
  TELL(polled); TELL(zero_passes); TELL(ten_deep); TELL(heavy);
  TELL(two_deep_includes); TELL(always); TELL(sections_in_sections); TELL(counts_in_memory); TELL(two_dimensions);
  TELL(three_dimensions); TELL(sums); TELL(offsets); TELL(shared_flags); TELL(guarantees); TELL(interruptions);
  TELL(counts_of_any_size); TELL(constants); TELL(constants_given); TELL(every); TELL(rooms); TELL(passes);
  TELL(bad_counts);
  TELL(swarms);
  m = tell("cancelled", t->cancelled, cancels, m);
  m = tell("queued_cancelled", t->queued_cancelled, cancels, m);
  for (size_t k = 1; k < DEED_KINDS; ++k) m = tell(deeds[k], t->deeds[k], demanded, m);
  m = tell("deepest", t->deepest, demanded, m);
  return m;
}

void random_leave_out_calls(void) { story_calls_are = CALLS_NONE; }

/* ---- for all ----------------------------------------------------------------------------------------------------- */

int random_lists(const char *backend, uint64_t first_seed, long count, bool shrink) {
  enum { FAILURES = 3, ENOUGH = 1000 };
  tally *t = shared_tally();
  if (!t) return 1;
  int failures = 0;
  uint64_t end = first_seed + (uint64_t)count;
  int looked = look_at_backend(backend, first_seed, t);
  if (looked) {
    char text[1100];
    const bool none = WIFEXITED(looked) && WEXITSTATUS(looked) == NO_DEVICE;
    printf("# %s\n", *t->why ? t->why : end_of(looked, SECONDS, t, text, sizeof text));
    munmap(t, sizeof *t);
    return none ? -1 : 1;
  }
  for (uint64_t seed = first_seed; seed < end && failures < FAILURES; seed = t->seed + 1) {
    t->seed = seed;
    int status = send(&(errand){.backend = backend, .first = seed, .count = (long)(end - seed), .t = t});
    if (!status) break;
    tell_failure(backend, status, t, shrink);
    ++failures;
    memset(t->why, 0, sizeof t->why);
  }
  int missing = tell_tally(t, backend, count >= ENOUGH && !failures);
  munmap(t, sizeof *t);
  return failures + missing;
}

bool random_print(const char *backend, uint64_t seed, FILE *to) {
  tally *t = shared_tally();
  if (!t) return false;
  (void)look_at_backend(backend, seed, t);
  story_write(&tale, seed);
  int status = send(&(errand){.backend = backend, .s = &tale, .t = t, .to = to});
  munmap(t, sizeof *t);
  return status == 0;
}
