/* What one process compiles serves the next one, which prints and does the same. On the simulated driver, each process
 * by itself, with a folder of the test's own. */
#include "world.h"
#include "kernel/cache.h"
#include "cuda/compile.h"
#include "gk_kernel.h"
#include "simgpu/simnvrtc.h"
#include "unit/support/elsewhere.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

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
static const gk_slot_desc slots[] = {GK_BUFFER(LEFT, int), GK_BUFFER(SUM, int), GK_OWN(AGAIN, int, 1),
                                     GK_BUFFER(STOP, int)};

/* ---- in a process of its own ------------------------------------------------------------------------------------- */

static const char *const libraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};

static const simnvrtc_control *control_of(const char *library) {
  const simnvrtc_control *control = dlsym(dlopen(library, RTLD_NOW | RTLD_LOCAL), "simnvrtc_control");
  assert_non_null(control);
  return control;
}

static unsigned long long compiled(void) {
  unsigned long long sum = 0;
  for (size_t k = 0; k < GK_COUNT(libraries); ++k) {
    const simnvrtc_counts counts = control_of(libraries[k])->counts();
    sum += counts.compiled + counts.kept;
  }
  return sum;
}

static void print_warning(UNUSED void *user, gk_log_level level, const char *line) {
  if (level == GK_LOG_WARN) printf("warning: %s\n", line);
}

static void print_status(const gk_status *status) {
  printf("state %d, yielded %d (%s)\n", (int)status->state, (int)status->yielded, status->yielded_name);
  for (uint32_t k = 0; k < status->loop_count; ++k)
    printf("loop %s: %llu passes\n", status->loops[k].name, (unsigned long long)status->loops[k].passes);
  for (uint32_t k = 0; k < status->checkpoint_count; ++k)
    printf("checkpoint %s\n", status->checkpoints[k].name);
}

static void run_list(gk_device *device) {
  LIST(countdown, GK_DO_WHILE(AGAIN, .label = COUNTING), GK_CHECKPOINT(PAUSE, STOP), GK_RUN(twice, GK_ONE, SUM), GK_END,
       GK_RUN(count_down, GK_ONE, LEFT, SUM, AGAIN), GK_END, GK_RUN(twice, GK_ONE, SUM));
  int *sum = int_on(device, 0), *stop = int_on(device, 1);
  gk_graph *graph = NEW_GRAPH(device, &countdown, 0, {LEFT, int_on(device, 4)}, {SUM, sum}, {STOP, stop});
  const gk_status *status = run_to_end(graph, 0);
  print_status(status);
  set_int(device, stop, 0);
  print_status(run_to_end(graph, status->yielded));
  char *text = gk_dump(NULL, graph, "text");
  assert_non_null(text);
  printf("sum %d\n%s\n", int_at(device, sum), text);
  gk_free_text(text);
}

/* Two kernels that can't be made: one isn't in its text, the other's text is wrong. */
static void print_errors(gk_device *device) {
  static const char text[] = "\nGK_KERNEL(wrong, (inout(int, sum))) {\n  sum[i] = nobody;\n}\n";
  static const char shared_text[] = "// above\nGK_SHARED(shared)\n\nGK_FN int half(int v) { return none; }\n";
  static const gk_source shared = {"elsewhere/shared.h", shared_text, 2, NULL, 0, NULL, NULL};
  static const gk_source *const uses[] = {&shared};
  static const gk_source wrong = {"somewhere/wrong.c", text, 0, uses, 1, NULL, NULL};
  gk_kernel bad[] = {twice, {.name = "wrong", .params = twice.params, .param_count = 1, .source = &wrong}};
  bad[0].name = "thrice";
  for (size_t k = 0; k < GK_COUNT(bad); ++k) {
    const gk_task tasks[] = {GK_RUN(bad[k], GK_ONE, SUM)};
    const gk_list list = GK_LIST(list, tasks, slots);
    gk_graph *graph = NULL;
    const gk_result result = gk_graph_create(device, &list, 0, &graph);
    printf("%s: %s\n", gk_result_name(result), gk_error());
  }
}

/* As if another compiler were installed there. */
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

/* A kernel whose text and file name are in the environment; with options, it is handwritten code. */
static void compile_text(gk_device *device) {
  const char *options = getenv("CACHE_TEST_OPTIONS"), *changed = getenv("CACHE_TEST_CHANGED");
  const gk_source source = {getenv("CACHE_TEST_FILE"), getenv("CACHE_TEST_TEXT"), 0, NULL, 0, NULL, NULL};
  const gk_code code = {.text = source.text, .options = options};
  const gk_kernel kernel = {.name = "one", .params = twice.params, .param_count = 1,
                            .source = options ? NULL : &source, .cuda = options ? &code : NULL};
  if (changed) change_compilers(changed);
  const gk_task tasks[] = {GK_RUN(kernel, GK_ONE, SUM)};
  new_graph(device, &(const gk_list)GK_LIST(list, tasks, slots), 0);
}

/* Runs one of the functions above; prints the number of sources that it compiled, and what the function prints. */
static int work(void (*first)(gk_device *device), void (*second)(gk_device *device)) {
  gk_set_log(GK_LOG_WARN, print_warning, NULL);
  gk_device *device = new_device("cuda", 0);
  first(device);
  const unsigned long long count = compiled();
  if (second) {
    second(device);
    run_list(device); /* goes on all the same */
  }
  discard_all();
  size_t alive = sim->alive(SIMGPU_ALL);
  for (size_t k = 0; k < GK_COUNT(libraries); ++k) alive += control_of(libraries[k])->alive();
  printf("COMPILED %llu\n", count);
  return sim->broken() || alive;
}
static int be_list(void) { return work(run_list, NULL); }
static int be_errors(void) { return work(run_list, print_errors); }
static int be_text(void) { return work(compile_text, NULL); }

/* ---- around it --------------------------------------------------------------------------------------------------- */

static char base[] = "/tmp/gk-cuda-cache-XXXXXX", folder[64], cache_setting[80];
static char first[64 * 1024], last[64 * 1024]; /* what processes said */
static size_t turn; /* the case of a table; a failure tells it */

/* A new process compiles that many sources. `setting`: for its environment, or NULL. */
static void run(const char *word, const char *setting, int compiles) {
  elsewhere_run(&(elsewhere_case){.settings = {cache_setting, setting}, .word = word}, last, sizeof last);
  char *count = strstr(last, "COMPILED ");
  if (!count || atoi(count + strlen("COMPILED ")) != compiles) fail_msg("turn %zu: not %d in %s", turn, compiles, last);
  *count = 0;
}

static void run_first(const char *word, const char *setting, int compiles) {
  run(word, setting, compiles);
  strcpy(first, last);
}

/* It also prints the same as the first one. */
static void run_same(const char *word, const char *setting, int compiles) {
  run(word, setting, compiles);
  assert_string_equal(first, last);
}

/* The number of entries in the folder, and the path of one. */
static int count_entries(char path[PATH_MAX]) {
  int count = 0;
  DIR *listing = opendir(folder);
  for (struct dirent *at; listing && (at = readdir(listing));)
    if (at->d_name[0] != '.' && ++count) snprintf(path, PATH_MAX, "%s/%s", folder, at->d_name);
  if (listing) closedir(listing);
  return count;
}
static void expect_entries(int wanted) {
  const int count = count_entries((char[PATH_MAX]){0});
  if (count != wanted) fail_msg("turn %zu: %d entries, not %d", turn, count, wanted);
}

static gki_cache_key only_key(void) {
  gki_cache_key key;
  char path[PATH_MAX];
  assert_int_equal(count_entries(path), 1);
  for (size_t k = 0; k < sizeof key.hash; ++k)
    assert_int_equal(sscanf(strrchr(path, '/') + 1 + 2 * k, "%2hhx", &key.hash[k]), 1);
  return key;
}

static int begin(UNUSED void **state) {
  static int number;
  turn = 0;
  snprintf(folder, sizeof folder, "%s/%d", base, number++);
  snprintf(cache_setting, sizeof cache_setting, "GK_CACHE=%s", folder);
  return 0;
}
#define CACHE_TEST(test) TEST_WITH(test, begin, NULL)

CACHE_TEST(second_process_compiles_nothing) {
  run_first("list", NULL, 1); /* both kernels are of one source */
  assert_non_null(strstr(first, "yielded 11 (PAUSE)"));
  assert_non_null(strstr(first, "loop "));
  assert_non_null(strstr(first, "sum 98\n"));
  run_same("list", NULL, 0);
}

CACHE_TEST(errors_are_the_same_each_time) {
  char words[200];
  snprintf(words, sizeof words, ", behind line %u, has no entry of this name; write GK_KERNEL(thrice, ",
           (unsigned)twice.source->line);
  const char *const said[] = {words, "GK_ERROR_COMPILE: ", "kernel wrong of somewhere/wrong.c doesn't compile",
                              "somewhere/wrong.c(3): error: ", "elsewhere/shared.h(4): error: "};
  run_first("errors", NULL, 1);
  for (size_t k = 0; k < GK_COUNT(said); ++k)
    if (!strstr(first, said[k])) fail_msg("no %s in %s", said[k], first);
  expect_entries(1); /* only what was compiled */
  run_same("errors", NULL, 0);
}

CACHE_TEST(another_driver_compiles_again) {
  static const char *const settings[] = {NULL, "SIMGPU_VERSION=12.8", "SIMGPU_VERSION=12.6", "SIMGPU_ARCH=89",
                                         "SIMGPU_NVRTC=12.8"};
  for (turn = 0; turn < GK_COUNT(settings); ++turn)
    for (int again = 0; again < 2; ++again) {
      run("list", settings[turn], !again);
      expect_entries((int)turn + 1);
    }
}

CACHE_TEST(cache_may_be_off) {
  for (int k = 0; k < 2; ++k) run("list", "GK_CACHE=off", 1);
  expect_entries(0);
}

/* Drivers before 12.4 take none of gk's images, so COPY and FILL are compiled, too. */
CACHE_TEST(copy_and_fill_are_kept) {
  run_first("list", "SIMGPU_VERSION=11.4", 2);
  run_same("list", "SIMGPU_VERSION=11.4", 0);
}

/* It is compiled once more, and kept. */
static void expect_replaced(void) {
  run_same("list", NULL, 1);
  run("list", NULL, 0);
}

CACHE_TEST(damaged_entry_is_replaced) {
  char path[PATH_MAX];
  struct stat status;
  run_first("list", NULL, 1);
  assert_int_equal(count_entries(path), 1);
  assert_int_equal(stat(path, &status), 0);
  for (long at = 0; at < status.st_size; at += status.st_size / 5) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, at, SEEK_SET);
    fputc(byte ^ 1, file);
    fclose(file);
    expect_replaced();
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

/* Whole files with wrong content: the driver refuses the image, or the parts don't fit each other. */
CACHE_TEST(refused_entry_is_replaced) {
  static const struct { const char *image; size_t size; uint64_t said; } wrong[] = {
      {"nonsense", 8, 8}, {"nonsense", 8, 0}, {"nonsense", 8, 9}, {"nonsense", 8, UINT64_MAX}, {"", 0, 1}};
  run_first("list", NULL, 1);
  const gki_cache_key key = only_key();
  setenv("GK_CACHE", folder, 1);
  for (size_t k = 0; k <= GK_COUNT(wrong); ++k) {
    if (k < GK_COUNT(wrong)) replace(&key, wrong[k].image, wrong[k].size, "", wrong[k].said);
    else gki_cache_keep(&key, "short", 5);
    expect_replaced();
  }
}

CACHE_TEST(warnings_are_said_again) {
  void *bytes;
  size_t size;
  uint64_t image;
  run("list", NULL, 1);
  const gki_cache_key key = only_key();
  setenv("GK_CACHE", folder, 1);
  assert_true(gki_cache_find(&key, &bytes, &size));
  memcpy(&image, (char *)bytes + size - sizeof image, sizeof image);
  assert_true(image < size);
  replace(&key, bytes, (size_t)image, "a.c(3): warning: odd", image);
  gk_host_free(bytes);
  run("list", NULL, 0);
  const char *said = strstr(last, "warning: kernel ");
  if (!said || !strstr(said, "a.c(3): warning: odd")) fail_msg("%s", last);
}

/* The place of a source doesn't matter, unless the text can depend on it. Files that it includes may change unseen. */
CACHE_TEST(key_ignores_the_place_of_a_source) {
#define ONE "GK_KERNEL(one, (inout(int, sum))) {"
#define INCLUDING "#if 0\n # /* and */ include \"other.h\"\n#endif\n" ONE "}\n"
  static const struct { const char *file, *text; int compiled, entries; } turns[] = {
      {"a/one.c", ONE "}\n", 1, 1}, {"b/c/one.c", ONE "}\n", 0, 1}, {"b/c/two.c", ONE "}\n", 1, 2},
      {"a/one.c", ONE " sum[i] = 1; }\n", 1, 3}, {"a/one.c", ONE " (void)__FILE__; }\n", 1, 4},
      {"b/one.c", ONE " (void)__FILE__; }\n", 1, 5}, {"a/one.c", INCLUDING, 1, 5}, {"a/one.c", INCLUDING, 1, 5},
      {"a/one.c", "/* #include */ " ONE "}\n", 1, 6}};
  for (turn = 0; turn < GK_COUNT(turns); ++turn) {
    setenv("CACHE_TEST_FILE", turns[turn].file, 1);
    setenv("CACHE_TEST_TEXT", turns[turn].text, 1);
    run("text", NULL, turns[turn].compiled);
    expect_entries(turns[turn].entries);
  }
}

/* The compiler's file is part of the key, as another file of the same version may be installed there later. */
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

/* Each of these alone makes another entry. */
CACHE_TEST(key_is_of_the_compiler_and_the_options) {
  static const struct { const char *setting, *options, *text; } turns[] = {
      {"SIMGPU_ARCH=90", NULL, NULL}, {"SIMGPU_ARCH=100", NULL, NULL}, /* cubin and PTX for the same */
      {"CACHE_TEST_CHANGED=version", NULL, NULL}, {"CACHE_TEST_CHANGED=bytes", NULL, NULL},
      {"CACHE_TEST_CHANGED=seconds", NULL, NULL}, {"CACHE_TEST_CHANGED=nanoseconds", NULL, NULL},
      {"SIMGPU_ARCH=90", "-DSAID=1", "extern \"C\" __global__ void one(int *sum) { sum[0] = SAID; }\n"},
      {"SIMGPU_ARCH=90", "-DSAID=2", "extern \"C\" __global__ void one(int *sum) { sum[0] = SAID; }\n"}};
  setenv("SIMGPU_NVRTC", "12.4", 1);
  setenv("CACHE_TEST_FILE", "a/one.c", 1);
  for (turn = 0; turn < GK_COUNT(turns); ++turn) {
    setenv("CACHE_TEST_TEXT", turns[turn].text ? turns[turn].text : ONE "}\n", 1);
    if (turns[turn].options) setenv("CACHE_TEST_OPTIONS", turns[turn].options, 1);
    for (int again = 0; again < 2; ++again) {
      run("text", turns[turn].setting, !again);
      expect_entries((int)turn + 1);
    }
  }
  unsetenv("CACHE_TEST_OPTIONS");
  unsetenv("SIMGPU_NVRTC");
}

/* All processes start at once on an empty folder. */
CACHE_TEST(many_processes_at_once) {
  enum { COUNT = 50 };
  pid_t children[COUNT];
  fflush(NULL);
  for (int k = 0; k < COUNT; ++k) {
    children[k] = fork();
    assert_true(children[k] >= 0);
    if (children[k]) continue;
    elsewhere_exec(&(elsewhere_case){.settings = {cache_setting}, .word = "list"}, open("/dev/null", O_WRONLY));
    _exit(3);
  }
  for (int k = 0; k < COUNT; ++k) {
    int status = 0;
    assert_int_equal(waitpid(children[k], &status, 0), children[k]);
    assert_int_equal(status, 0);
  }
  expect_entries(1);
  run("list", NULL, 0);
}

static int make_base(UNUSED void **state) { return mkdtemp(base) ? 0 : -1; }

static int remove_base(UNUSED void **state) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", base);
  return system(command);
}

int main(int count, char **words) {
  static const elsewhere_word known[] = {{"list", be_list}, {"errors", be_errors}, {"text", be_text}};
  int code;
  char at[PATH_MAX], why[512];
  with_simgpu(words);
  if (elsewhere_is_here(count, words, known, GK_COUNT(known), &code)) return code;
  gki_cache_describe(at, sizeof at, why, sizeof why);
  if (strstr(why, "without xxHash")) {
    printf("1..0 # SKIP %s\n", why);
    return 0;
  }
  return run_all_tests_with(make_base, remove_base);
}
