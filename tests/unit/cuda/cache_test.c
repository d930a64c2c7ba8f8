/* What is compiled in one process serves the next one, which is the same in everything that it says and does: on the
 * simulated driver, each process by itself, with a folder of the test's own. */
#include "world.h"
#include "kernel/cache.h"
#include "cuda/compile.h"
#include "gk_kernel.h"
#include "simgpu/simnvrtc.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

GK_SOURCE(cuda_cache)
GK_KERNEL(count_down, (inout(int, left), inout(int, sum), out(int, again))) {
  sum[i] += left[i];
  left[i] -= 1;
  again[i] = left[i] > 0 ? 1 : 0;
}
GK_KERNEL(twice, (inout(int, sum))) { sum[i] *= 2; }
GK_SOURCE_END

enum { LEFT = 1, SUM, AGAIN, STOP };
enum { COUNTING = 10, PAUSE };
enum { NEVER = 70 /* what a child of mine ends with after a failure; a broken rule has the same */ };

/* ---- in a process of its own ------------------------------------------------------------------------------------- */

static const char *const libraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

static unsigned long long compiled(void) {
  unsigned long long sum = 0;
  for (size_t k = 0; k < GK_COUNT(libraries); ++k) {
    const simnvrtc_control *control = dlsym(dlopen(libraries[k], RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
    if (!control) exit(NEVER);
    const simnvrtc_counts counts = control->counts();
    sum += counts.compiled + counts.kept;
  }
  return sum;
}

static size_t programs_alive(void) {
  size_t sum = 0;
  for (size_t k = 0; k < GK_COUNT(libraries); ++k) {
    const simnvrtc_control *control = dlsym(dlopen(libraries[k], RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
    sum += control ? control->alive() : 0;
  }
  return sum;
}

static void expect(gk_result result) {
  if (result == GK_OK) return;
  printf("%s: %s\n", gk_result_name(result), gk_error());
  exit(NEVER);
}

static void print_warning(void *user, gk_log_level level, const char *line) {
  (void)user;
  if (level == GK_LOG_WARN) printf("warning: %s\n", line);
}

static void print_status(const gk_status *status) {
  printf("state %d, yielded %d (%s)\n", (int)status->state, (int)status->yielded, status->yielded_name);
  for (uint32_t k = 0; k < status->loop_count; ++k)
    printf("loop %s: %llu passes\n", status->loops[k].name, (unsigned long long)status->loops[k].passes);
  for (uint32_t k = 0; k < status->checkpoint_count; ++k)
    printf("checkpoint %s\n", status->checkpoints[k].name);
}

static void print_dump(const gk_list *list, const gk_graph *graph) {
  char *text = gk_dump(list, graph, "text");
  if (!text) expect(GK_ERROR_MEMORY);
  printf("%s\n", text);
  gk_free_text(text);
}

static void run_list(gk_device *device) {
  static const gk_slot_desc slots[] = {GK_BUFFER(LEFT, int), GK_BUFFER(SUM, int), GK_OWN(AGAIN, int, 1),
                                       GK_BUFFER(STOP, int)};
  static const gk_task tasks[] = {
      GK_DO_WHILE(AGAIN, .label = COUNTING), GK_CHECKPOINT(PAUSE, STOP), GK_RUN(twice, GK_ONE, SUM), GK_END,
      GK_RUN(count_down, GK_ONE, LEFT, SUM, AGAIN), GK_END, GK_RUN(twice, GK_ONE, SUM)};
  static const gk_list countdown = GK_LIST(countdown, tasks, slots);
  int left = 4, sum = 0, stop = 1;
  void *at[3];
  for (int k = 0; k < 3; ++k)
    if (!(at[k] = gk_alloc(device, sizeof(int), GK_DEVICE_MEMORY))) expect(GK_ERROR_MEMORY);
  expect(gk_upload(device, at[0], &left, sizeof left));
  expect(gk_upload(device, at[1], &sum, sizeof sum));
  expect(gk_upload(device, at[2], &stop, sizeof stop));
  gk_graph *graph;
  const gk_status *status;
  expect(gk_graph_create(device, &countdown, 0, &graph));
  expect(gk_bind(graph, LEFT, at[0]));
  expect(gk_bind(graph, SUM, at[1]));
  expect(gk_bind(graph, STOP, at[2]));
  expect(gk_launch(graph, 0));
  expect(gk_wait(graph, &status));
  print_status(status);
  stop = 0;
  expect(gk_upload(device, at[2], &stop, sizeof stop));
  expect(gk_launch(graph, status->yielded));
  expect(gk_wait(graph, &status));
  print_status(status);
  expect(gk_download(device, &sum, at[1], sizeof sum));
  printf("sum %d\n", sum);
  print_dump(NULL, graph);
  gk_graph_destroy(graph);
  for (int k = 0; k < 3; ++k) gk_free(device, at[k]);
}

static const gk_param params[] = {{.name = "sum", .element = "int", .element_bytes = sizeof(int),
                                   .element_alignment = _Alignof(int), .type = GK_PTR, .access = GK_ACCESS_INOUT}};

/* Two that can't be had: one isn't in its text, the other's text isn't right. */
static void print_errors(gk_device *device) {
  static const char text[] = "\nGK_KERNEL(wrong, (inout(int, sum))) {\n  sum[i] = nobody;\n}\n";
  static const char shared_text[] = "// above\nGK_SHARED(shared)\n\nGK_FN int half(int v) { return none; }\n";
  static const gk_source shared = {"elsewhere/shared.h", shared_text, 2, NULL, 0, NULL, NULL};
  static const gk_source *const uses[] = {&shared};
  static const gk_source wrong = {"somewhere/wrong.c", text, 0, uses, 1, NULL, NULL};
  static gk_kernel bad[2];
  bad[0] = twice;
  bad[0].name = "thrice";
  bad[1] = (gk_kernel){.name = "wrong", .params = params, .param_count = 1, .source = &wrong};
  for (size_t k = 0; k < GK_COUNT(bad); ++k) {
    static const gk_slot_desc slots[] = {GK_BUFFER(SUM, int)};
    const gk_task tasks[] = {GK_RUN(bad[k], GK_ONE, SUM)};
    const gk_list list = GK_LIST(list, tasks, slots);
    gk_graph *graph = NULL;
    const gk_result result = gk_graph_create(device, &list, 0, &graph);
    printf("%s: %s\n", gk_result_name(result), gk_error());
  }
}

/* As if another compiler lay there. */
static void change_compilers(const char *what) {
  const char *name;
  const gki_nvrtc *found;
  char why[512];
  for (size_t k = 0; gki_nvrtc_at(k, &name, &found, why, sizeof why); ++k) {
    gki_nvrtc *nvrtc = (gki_nvrtc *)found; /* the library's own, which isn't const */
    if (!nvrtc) continue;
    nvrtc->version += strcmp(what, "version") == 0;
    nvrtc->file.bytes += strcmp(what, "bytes") == 0;
    nvrtc->file.seconds += strcmp(what, "seconds") == 0;
    nvrtc->file.nanoseconds += strcmp(what, "nanoseconds") == 0;
  }
}

/* A kernel whose text, and the file that this is said to be, are in the environment; or, with options, by hand. */
static void compile_text(gk_device *device) {
  const char *options = getenv("CACHE_TEST_OPTIONS"), *changed = getenv("CACHE_TEST_CHANGED");
  const gk_source source = {getenv("CACHE_TEST_FILE"), getenv("CACHE_TEST_TEXT"), 0, NULL, 0, NULL, NULL};
  const gk_code code = {.text = source.text, .options = options};
  const gk_kernel kernel = {.name = "one", .params = params, .param_count = 1, .source = options ? NULL : &source,
                            .cuda = options ? &code : NULL};
  if (changed) change_compilers(changed);
  const gk_slot_desc slots[] = {GK_BUFFER(SUM, int)};
  const gk_task tasks[] = {GK_RUN(kernel, GK_ONE, SUM)};
  const gk_list list = GK_LIST(list, tasks, slots);
  gk_graph *graph = NULL;
  expect(gk_graph_create(device, &list, 0, &graph));
  gk_graph_destroy(graph);
}

static int be_child(const char *what) {
  gk_device *device;
  gk_set_log(GK_LOG_WARN, print_warning, NULL);
  expect(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &device));
  if (strcmp(what, "text") == 0) compile_text(device);
  else run_list(device);
  fprintf(stderr, "compiled %llu\n", compiled());
  if (strcmp(what, "errors") == 0) {
    print_errors(device);
    run_list(device); /* goes on all the same */
  }
  gk_device_close(device);
  return sim->broken() || sim->alive(SIMGPU_ALL) || programs_alive() ? NEVER : 0;
}

/* ---- around it --------------------------------------------------------------------------------------------------- */

static char base[] = "/tmp/gk-cuda-cache-XXXXXX", folder[PATH_MAX];

typedef struct story { char told[64 * 1024]; int compiled; } story;

static size_t read_all(int from, char *to, size_t bytes) {
  size_t length = 0;
  for (ssize_t count; length < bytes && (count = read(from, to + length, bytes - length)) != 0;)
    if (count > 0) length += (size_t)count;
    else if (errno != EINTR) break;
  return length;
}

/* What a new process says, and how many sources it compiled. `setting`: for its environment, or NULL. */
static void run(const char *what, const char *setting, story *found) {
  int told[2], counted[2];
  char number[4096] = "";
  memset(found, 0, sizeof *found);
  assert_int_equal(pipe(told), 0);
  assert_int_equal(pipe(counted), 0);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (dup2(told[1], 1) < 0 || dup2(counted[1], 2) < 0) _exit(NEVER);
    for (int k = 0; k < 2; ++k) close(told[k]), close(counted[k]);
    setenv("GK_CACHE", folder, 1);
    if (setting) putenv(strdup(setting));
    execl("/proc/self/exe", "cuda_cache_test", what, (char *)NULL);
    _exit(NEVER);
  }
  close(told[1]);
  close(counted[1]);
  read_all(told[0], found->told, sizeof found->told - 1);
  read_all(counted[0], number, sizeof number - 1);
  close(told[0]);
  close(counted[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  const char *count = strstr(number, "compiled ");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !count) fail_msg("%s%s", found->told, number);
  found->compiled = atoi(count + strlen("compiled "));
}

/* The names of entries in the folder. */
static int list_entries(char names[][NAME_MAX + 1], int most) {
  int count = 0;
  DIR *listing = opendir(folder);
  if (!listing) return 0;
  for (struct dirent *at; (at = readdir(listing)) && count < most;)
    if (at->d_name[0] != '.') snprintf(names[count++], NAME_MAX + 1, "%s", at->d_name);
  closedir(listing);
  return count;
}

static gki_cache_key key_of(const char *name) {
  gki_cache_key key;
  for (size_t k = 0; k < sizeof key.hash; ++k) {
    unsigned byte;
    assert_int_equal(sscanf(name + 2 * k, "%2x", &byte), 1);
    key.hash[k] = (unsigned char)byte;
  }
  return key;
}

static gki_cache_key only_key(void) {
  char names[2][NAME_MAX + 1];
  assert_int_equal(list_entries(names, 2), 1);
  return key_of(names[0]);
}

static int begin(void **state) {
  (void)state;
  static int number;
  snprintf(folder, sizeof folder, "%s/%d", base, number++);
  return 0;
}

static story first, second;

TEST_WITH(second_process_compiles_nothing, begin, NULL) {
  run("list", NULL, &first);
  assert_int_equal(first.compiled, 1); /* both kernels are of one source */
  assert_non_null(strstr(first.told, "yielded 11 (PAUSE)"));
  assert_non_null(strstr(first.told, "loop "));
  assert_non_null(strstr(first.told, "sum 98\n"));
  run("list", NULL, &second);
  assert_int_equal(second.compiled, 0);
  assert_string_equal(first.told, second.told);
}

TEST_WITH(errors_are_the_same_each_time, begin, NULL) {
  char names[4][NAME_MAX + 1];
  char words[200];
  run("errors", NULL, &first);
  snprintf(words, sizeof words, ", behind line %u, has no entry of this name; write GK_KERNEL(thrice, ",
           (unsigned)twice.source->line);
  assert_non_null(strstr(first.told, words));
  assert_non_null(strstr(first.told, "GK_ERROR_COMPILE: "));
  assert_non_null(strstr(first.told, "kernel wrong of somewhere/wrong.c doesn't compile"));
  assert_non_null(strstr(first.told, "somewhere/wrong.c(3): error: "));
  assert_non_null(strstr(first.told, "elsewhere/shared.h(4): error: "));
  assert_int_equal(list_entries(names, 4), 1); /* only what was compiled */
  run("errors", NULL, &second);
  assert_string_equal(first.told, second.told);
}

TEST_WITH(another_driver_compiles_again, begin, NULL) {
  static const struct { const char *setting; int entries; } each[] = {
      {NULL, 1}, {"SIMGPU_VERSION=12.8", 2}, {"SIMGPU_VERSION=12.6", 3}, {"SIMGPU_ARCH=89", 4},
      {"SIMGPU_NVRTC=12.8", 5}};
  char names[8][NAME_MAX + 1];
  for (size_t k = 0; k < GK_COUNT(each); ++k)
    for (int again = 0; again < 2; ++again) {
      run("list", each[k].setting, &first);
      assert_int_equal(first.compiled, again ? 0 : 1);
      assert_int_equal(list_entries(names, 8), each[k].entries);
    }
}

TEST_WITH(cache_may_be_off, begin, NULL) {
  char names[1][NAME_MAX + 1];
  for (int k = 0; k < 2; ++k) {
    run("list", "GK_CACHE=off", &first);
    assert_int_equal(first.compiled, 1);
  }
  assert_int_equal(list_entries(names, 1), 0);
}

/* Before 12.4 drivers take none of gk's images, and COPY and FILL are compiled, too. */
TEST_WITH(copy_and_fill_are_kept, begin, NULL) {
  run("list", "SIMGPU_VERSION=11.4", &first);
  assert_int_equal(first.compiled, 2);
  run("list", "SIMGPU_VERSION=11.4", &second);
  assert_int_equal(second.compiled, 0);
  assert_string_equal(first.told, second.told);
}

TEST_WITH(damaged_entry_is_replaced, begin, NULL) {
  char names[1][NAME_MAX + 1], path[2 * PATH_MAX];
  run("list", NULL, &first);
  assert_int_equal(list_entries(names, 1), 1);
  snprintf(path, sizeof path, "%s/%s", folder, names[0]);
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  for (long at = 0; at < status.st_size; at += status.st_size / 5) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    run("list", NULL, &second);
    assert_int_equal(second.compiled, 1);
    assert_string_equal(first.told, second.told);
    run("list", NULL, &second);
    assert_int_equal(second.compiled, 0);
  }
}

/* As it is on disk: image, 0, warnings, 0, size of the image. */
static void replace(const gki_cache_key *key, const char *image, size_t size, const char *warnings, uint64_t said) {
  char *bytes = calloc(size + strlen(warnings) + 2 + sizeof said, 1);
  assert_non_null(bytes);
  memcpy(bytes, image, size);
  memcpy(bytes + size + 1, warnings, strlen(warnings));
  memcpy(bytes + size + strlen(warnings) + 2, &said, sizeof said);
  gki_cache_keep(key, bytes, size + strlen(warnings) + 2 + sizeof said);
  free(bytes);
}

/* Whole, but not what it should be: the driver says so, or it isn't put together as it ought to be. */
TEST_WITH(refused_entry_is_replaced, begin, NULL) {
  static const struct { const char *image; size_t size; uint64_t said; } wrong[] = {
      {"nonsense", 8, 8}, {"nonsense", 8, 0}, {"nonsense", 8, 9}, {"nonsense", 8, UINT64_MAX}, {"", 0, 1}};
  run("list", NULL, &first);
  const gki_cache_key key = only_key();
  setenv("GK_CACHE", folder, 1);
  for (size_t k = 0; k <= GK_COUNT(wrong); ++k) {
    if (k < GK_COUNT(wrong)) replace(&key, wrong[k].image, wrong[k].size, "", wrong[k].said);
    else gki_cache_keep(&key, "short", 5);
    run("list", NULL, &second);
    assert_int_equal(second.compiled, 1);
    assert_string_equal(first.told, second.told);
    run("list", NULL, &second);
    assert_int_equal(second.compiled, 0);
  }
}

TEST_WITH(warnings_are_said_again, begin, NULL) {
  run("list", NULL, &first);
  const gki_cache_key key = only_key();
  void *bytes;
  size_t size;
  uint64_t image;
  setenv("GK_CACHE", folder, 1);
  assert_true(gki_cache_find(&key, &bytes, &size));
  memcpy(&image, (char *)bytes + size - sizeof image, sizeof image);
  assert_true(image < size);
  replace(&key, bytes, (size_t)image, "a.c(3): warning: odd", image);
  gk_host_free(bytes);
  run("list", NULL, &second);
  assert_int_equal(second.compiled, 0);
  const char *said = strstr(second.told, "warning: kernel ");
  if (!said || !strstr(said, "a.c(3): warning: odd")) fail_msg("%s", second.told);
}

/* Where a source lies is no matter, unless that may get into what is made of it; what it includes may change unseen. */
TEST_WITH(key_is_of_what_matters, begin, NULL) {
  static const struct { const char *file, *text; int compiled, entries; } turns[] = {
      {"a/one.c", "GK_KERNEL(one, (inout(int, sum))) {}\n", 1, 1},
      {"b/c/one.c", "GK_KERNEL(one, (inout(int, sum))) {}\n", 0, 1},
      {"b/c/two.c", "GK_KERNEL(one, (inout(int, sum))) {}\n", 1, 2},
      {"a/one.c", "GK_KERNEL(one, (inout(int, sum))) { sum[i] = 1; }\n", 1, 3},
      {"a/one.c", "GK_KERNEL(one, (inout(int, sum))) { (void)__FILE__; }\n", 1, 4},
      {"b/one.c", "GK_KERNEL(one, (inout(int, sum))) { (void)__FILE__; }\n", 1, 5},
      {"a/one.c", "#if 0\n # /* and */ include \"other.h\"\n#endif\nGK_KERNEL(one, (inout(int, sum))) {}\n", 1, 5},
      {"a/one.c", "#if 0\n # /* and */ include \"other.h\"\n#endif\nGK_KERNEL(one, (inout(int, sum))) {}\n", 1, 5},
      {"a/one.c", "/* #include */ GK_KERNEL(one, (inout(int, sum))) {}\n", 1, 6},
  };
  char names[8][NAME_MAX + 1];
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    setenv("CACHE_TEST_FILE", turns[k].file, 1);
    setenv("CACHE_TEST_TEXT", turns[k].text, 1);
    run("text", NULL, &first);
    if (first.compiled != turns[k].compiled || list_entries(names, 8) != turns[k].entries)
      fail_msg("turn %zu: %d compiled, %d entries", k, first.compiled, list_entries(names, 8));
  }
}

/* Which file a compiler is of is looked at, as another one of the same version may lie there tomorrow. */
TEST(compilers_know_their_files) {
  for (size_t k = 0; k + 1 < GK_COUNT(libraries); ++k) {
    const char *name;
    const gki_nvrtc *found;
    char why[512], path[PATH_MAX];
    struct stat file;
    assert_true(gki_nvrtc_at(k, &name, &found, why, sizeof why));
    assert_non_null(found);
    snprintf(path, sizeof path, "%s/%s", getenv("CUDA_HOME"), name);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(found->file.bytes, file.st_size);
    assert_int_equal(found->file.seconds, file.st_mtim.tv_sec);
    assert_int_equal(found->file.nanoseconds, file.st_mtim.tv_nsec);
  }
}

/* Each of these by itself makes another entry. */
TEST_WITH(key_is_of_the_compiler_and_the_options, begin, NULL) {
  static const struct { const char *setting, *options, *text; } turns[] = {
      {"SIMGPU_ARCH=90", NULL, NULL}, {"SIMGPU_ARCH=100", NULL, NULL}, /* cubin and PTX for the same */
      {"CACHE_TEST_CHANGED=version", NULL, NULL}, {"CACHE_TEST_CHANGED=bytes", NULL, NULL},
      {"CACHE_TEST_CHANGED=seconds", NULL, NULL}, {"CACHE_TEST_CHANGED=nanoseconds", NULL, NULL},
      {"SIMGPU_ARCH=90", "-DSAID=1", "extern \"C\" __global__ void one(int *sum) { sum[0] = SAID; }\n"},
      {"SIMGPU_ARCH=90", "-DSAID=2", "extern \"C\" __global__ void one(int *sum) { sum[0] = SAID; }\n"}};
  char names[16][NAME_MAX + 1];
  setenv("SIMGPU_NVRTC", "12.4", 1);
  setenv("CACHE_TEST_FILE", "a/one.c", 1);
  for (size_t k = 0; k < GK_COUNT(turns); ++k) {
    setenv("CACHE_TEST_TEXT", turns[k].text ? turns[k].text : "GK_KERNEL(one, (inout(int, sum))) {}\n", 1);
    if (turns[k].options) setenv("CACHE_TEST_OPTIONS", turns[k].options, 1);
    for (int again = 0; again < 2; ++again) {
      run("text", turns[k].setting, &first);
      if (first.compiled != !again || list_entries(names, 16) != (int)k + 1)
        fail_msg("turn %zu: %d compiled, %d entries", k, first.compiled, list_entries(names, 16));
    }
  }
  unsetenv("CACHE_TEST_OPTIONS");
  unsetenv("SIMGPU_NVRTC");
}

/* All start at once on an empty folder. */
TEST_WITH(many_processes_at_once, begin, NULL) {
  enum { COUNT = 50 };
  pid_t children[COUNT];
  char names[4][NAME_MAX + 1];
  fflush(NULL);
  for (int k = 0; k < COUNT; ++k) {
    children[k] = fork();
    assert_true(children[k] >= 0);
    if (children[k]) continue;
    setenv("GK_CACHE", folder, 1);
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(NEVER);
    execl("/proc/self/exe", "cuda_cache_test", "list", (char *)NULL);
    _exit(NEVER);
  }
  for (int k = 0; k < COUNT; ++k) {
    int status = 0;
    while (waitpid(children[k], &status, 0) < 0) assert_int_equal(errno, EINTR);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
  assert_int_equal(list_entries(names, 4), 1);
  run("list", NULL, &first);
  assert_int_equal(first.compiled, 0);
}

static int make_base(void **state) {
  (void)state;
  return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", base);
  return system(command);
}

int main(int count, char **words) {
  with_simgpu(words);
  if (count > 1) return be_child(words[1]);
  char at[PATH_MAX], why[512];
  gki_cache_describe(at, sizeof at, why, sizeof why);
  if (strstr(why, "without xxHash")) {
    printf("1..0 # SKIP %s\n", why);
    return 0;
  }
  return run_all_tests_with(make_base, remove_base);
}
