/* The runner of benchmarks: its options; what it writes, a file that is whole whenever the program is ended; what the
 * system says of the cores; a variant's process that has ended. */
#define BENCH_ROOT "system"
#include "bench/harness/apart.c"
#include "bench/harness/harness.c"
#include "bench/harness/machine.c"
#include "bench/harness/report.c"
#include "unit/support/set_clock.h"
#include "unit/support/test.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static char folder[] = "/tmp/gk-bench-XXXXXX";

static bool steady(void *with, uint64_t times, bench_took *took) {
  took->all += *(const double *)with * (double)times;
  return true;
}

static void measure_one(const char *what) {
  double one = 1;
  bench_measure(&(bench_table){"T", what, "?", "units", .variants = {{"gk", steady, &one, 1}}});
}

static void begin(const char *json) {
  memset(&bench_run, 0, sizeof bench_run);
  bench_begin(4, (char *[]){"bench", "--quick", "--json", (char *)(uintptr_t)json}, "bench");
}

/* A program with one table, to its end. */
static void run_one(const char *json) {
  begin(json);
  measure_one("the first");
  assert_int_equal(bench_end(), 0);
}

static char *text_of(const char *name) {
  static char text[1 << 16];
  FILE *file = fopen(name, "r");
  assert_non_null(file);
  const size_t read = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[read] = 0;
  return text;
}

static void write_text(const char *name, const char *text) {
  FILE *file = fopen(name, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static struct rlimit unlimited;
/* For what gcov has to write at the end. */
static void lift_limit(void) { (void)setrlimit(RLIMIT_FSIZE, &unlimited); }

typedef void scene(void *with);

/* The child's part; its words are in "said" and "printed". @return What waitpid says. */
static int in_a_child(scene *play, void *with) {
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    if (!freopen("printed", "w", stdout) || !freopen("said", "w", stderr)) _exit(99);
    play(with);
    exit(98);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

/* Two tables, of which the second can't be written to the end: no file may have more than so many bytes, which ends the
 * program where `ends`. */
typedef struct cut { const char *json; bool ends; } cut;

static void write_beyond(void *with) {
  const cut *c = with;
  signal(SIGXFSZ, c->ends ? SIG_DFL : SIG_IGN);
  begin(c->json);
  measure_one("the first");
  struct stat is;
  if (stat(c->json, &is) != 0) _exit(99);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (getrlimit(RLIMIT_FSIZE, &unlimited) != 0 || atexit(lift_limit) != 0) _exit(99);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)is.st_size, unlimited.rlim_max});
  measure_one("the second");
  _exit(99);
}

static int second_is_cut(const char *json, bool ends) { return in_a_child(write_beyond, &(cut){json, ends}); }

static void assert_first_is_whole(const char *json) {
  const char *text = text_of(json);
  assert_non_null(strstr(text, "\"what\": \"the first\""));
  assert_null(strstr(text, "\"what\": \"the second\""));
  assert_string_equal(text + strlen(text) - 4, "}]}\n");
}

TEST(old_file_outlives_a_killed_writer) {
  const int status = second_is_cut("killed.json", true);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  assert_first_is_whole("killed.json");
}

TEST(old_file_outlives_a_full_disk) {
  const int status = second_is_cut("full.json", false);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
  assert_non_null(strstr(text_of("said"), "full.json.part can't be written: File too large\n"));
  assert_first_is_whole("full.json");
  assert_int_equal(access("full.json.part", F_OK), -1);
}

TEST(each_table_is_written_at_once) {
  begin("each.json");
  measure_one("the first");
  assert_first_is_whole("each.json");
  measure_one("the second");
  assert_non_null(strstr(text_of("each.json"), "\"what\": \"the second\""));
  assert_non_null(strstr(text_of("each.json"), "\"failed\""));
  assert_int_equal(bench_end(), 0);
  assert_null(strstr(text_of("each.json"), "\"failed\""));
}

/* A link stays one, and a device or a pipe is written to. */
TEST(only_files_are_replaced) {
  struct stat is;
  write_text("linked.json", "");
  assert_int_equal(symlink("linked.json", "link.json"), 0);
  run_one("link.json");
  assert_true(lstat("link.json", &is) == 0 && S_ISLNK(is.st_mode));
  assert_non_null(strstr(text_of("linked.json"), "the first"));
  assert_int_equal(symlink("nowhere.json", "dangling.json"), 0);
  run_one("dangling.json");
  assert_true(lstat("dangling.json", &is) == 0 && S_ISLNK(is.st_mode));
  assert_non_null(strstr(text_of("nowhere.json"), "the first"));
  int ends[2];
  char name[40], read_back[16] = "";
  assert_int_equal(pipe(ends), 0);
  snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
  run_one(name);
  assert_true(read(ends[0], read_back, 12) == 12);
  assert_string_equal(read_back, "{\"program\": ");
  close(ends[0]);
  close(ends[1]);
}

/* ---- options ----------------------------------------------------------------------------------------------------- */

static void begin_with(void *with) {
  char **words = with;
  int count = 1;
  while (words[count]) ++count;
  memset(&bench_run, 0, sizeof bench_run);
  bench_begin(count, words, "bench");
  measure_one("one more task n=1024");
  measure_one("the second");
  exit(bench_end());
}

static void assert_option(char **words, int code, const char *file, const char *wanted) {
  const int status = in_a_child(begin_with, words);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != code) fail_msg("%s: %d, %s", words[1], status, text_of("said"));
  if (!strstr(text_of(file), wanted)) fail_msg("%s: no \"%s\" in: %s", words[1], wanted, text_of(file));
}

TEST(options_are_said) {
#define WORDS(...) ((char *[]){(char[]){"bench"}, __VA_ARGS__, NULL})
  assert_option(WORDS((char[]){"--help"}), 0, "printed", "the options are --quick, --json FILE, --only TEXT");
  assert_option(WORDS((char[]){"-h"}), 0, "printed", "--json FILE");
  assert_option(WORDS((char[]){"--quik"}), 1, "said", "bench: --quik: unknown; the options are --quick");
  assert_option(WORDS((char[]){"--quick"}, (char[]){"--only"}), 1, "said", "bench: --only: it needs a value");
  assert_option(WORDS((char[]){"--json"}, (char[]){"not/there.json"}), 1, "said",
                "bench: the JSON file not/there.json can't be written: No such file");
  assert_option(WORDS((char[]){"--quick"}), 0, "printed", "The figures mean nothing.");
}

TEST(tables_are_named_by_whole_words) {
  char quick[] = "--quick", only[] = "--only";
  assert_option(WORDS(quick, only, (char[]){"n=1"}), 1, "said",
                "bench: --only n=1: no table has that id, or these words in its name; there are\n"
                "  T, one more task n=1024\n  T, the second\n");
  assert_option(WORDS(quick, only, (char[]){"n=1"}, (char[]){"--json"}, (char[]){"nothing.json"}), 1, "said", "n=1");
  assert_int_equal(access("nothing.json", F_OK), -1); /* not even an empty one */
  assert_option(WORDS(quick, only, (char[]){"n=1024"}), 0, "printed", "T, one more task n=1024: ?");
  assert_null(strstr(text_of("printed"), "the second"));
  assert_option(WORDS(quick, only, (char[]){"second"}), 0, "printed", "T, the second: ?");
  assert_option(WORDS(quick, only, (char[]){"T"}), 0, "printed", "T, the second: ?");
}

/* ---- a variant's process ----------------------------------------------------------------------------------------- */

static bool dies(void *with, uint64_t times, bench_took *took) {
  (void)with, (void)times, (void)took;
  _exit(3);
}

static void call_twice(void *with) {
  (void)with;
  bench_took took = {0};
  begin("apart.json");
  bench_apart apart = bench_start_apart(steady, &(double){2});
  if (!bench_run_apart(&apart, 3, &took) || took.all != 6) exit(97);
  bench_end_apart(&apart);
  apart = bench_start_apart(dies, NULL);
  const uint64_t once = 1;
  if (write(apart.to, &once, sizeof once) != (ssize_t)sizeof once || waitpid(apart.process, NULL, 0) < 0) exit(96);
  bench_run_apart(&apart, 1, &took);
}

TEST(a_process_that_ended_is_said) {
  const int status = in_a_child(call_twice, NULL);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 1);
  assert_string_equal(text_of("said"), "bench: the process of a variant has ended early\n");
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static void core_runs_at(int core, const char *khz) {
  char name[200];
  static const char *const folders[] = {"", "/devices", "/devices/system", "/devices/system/cpu"};
  for (int k = 0; k < 4; ++k) {
    snprintf(name, sizeof name, "system/sys%s", folders[k]);
    mkdir(name, 0700);
  }
  snprintf(name, sizeof name, "system/sys/devices/system/cpu/cpu%d", core);
  mkdir(name, 0700);
  strcat(name, "/cpufreq");
  mkdir(name, 0700);
  strcat(name, "/scaling_cur_freq");
  write_text(name, khz);
}

static void assert_clocks(const char *wanted) {
  char text[BENCH_TEXT];
  bench_machine_clocks(text, sizeof text);
  assert_string_equal(text, wanted);
}

TEST(clocks_as_the_system_has_them) {
  mkdir("system", 0700);
  mkdir("system/proc", 0700);
  assert_clocks("unknown: neither cpufreq nor /proc/cpuinfo has them");
  write_text("system/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\n"); /* as on aarch64 */
  assert_clocks("unknown: neither cpufreq nor /proc/cpuinfo has them");
  write_text("system/proc/cpuinfo", "processor\t: 0\nmodel name\t: A\ncpu MHz\t\t: 2595.124\n\n"
                                    "processor\t: 1\nmodel name\t: A\ncpu MHz\t\t: 2595.124\n");
  assert_clocks("2 cores at 2595 MHz (/proc/cpuinfo)");
  begin("clocks.json");
  measure_one("the first");
  write_text("system/proc/cpuinfo", "cpu MHz\t\t: 1200.4\ncpu MHz\t\t: 3700.000\ncpu MHz\t\t: 2000.000\n");
  assert_int_equal(bench_end(), 0);
  const char *text = text_of("clocks.json");
  assert_non_null(strstr(text, "\"clocks before\": \"2 cores at 2595 MHz (/proc/cpuinfo)\", "
                               "\"clocks after\": \"3 cores at 1200 to 3700 MHz (/proc/cpuinfo)\""));
  core_runs_at(0, "<unknown>\n");
  assert_clocks("3 cores at 1200 to 3700 MHz (/proc/cpuinfo)");
  core_runs_at(0, "3200000\n");
  assert_clocks("1 core at 3200 MHz (cpufreq)");
}

/* Half of what all cores could do between begin and end; nothing where the system doesn't say. */
TEST(stolen_time_is_written) {
  mkdir("system", 0700);
  mkdir("system/proc", 0700);
  remove("system/proc/stat");
  run_one("stolen.json");
  assert_non_null(strstr(text_of("stolen.json"), "\"stolen\": null"));
  write_text("system/proc/stat", "cpu  10 0 10 100 0 0 0 20 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  begin("stolen.json");
  measure_one("the first");
  write_text("system/proc/stat", "cpu  20 0 20 120 0 5 5 70 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  assert_int_equal(bench_end(), 0);
  assert_non_null(strstr(text_of("stolen.json"), "\"stolen\": 50,"));
}

static int go_to_folder(void **state) {
  (void)state;
  return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **state) {
  (void)state;
  char command[80];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return chdir("/") || system(command);
}

static bool sluggish(void *with, uint64_t times, bench_took *took) {
  (void)with;
  let_pass(400000000);
  took->all += (double)times;
  return true;
}

/* The table's time is over before its fifth turn; it has five all the same. */
TEST(a_table_has_fewer_turns_where_it_says_so) {
  atomic_store(&clock_runs, false);
  begin("turns.json");
  bench_run.quick = false;
  bench_measure(&(bench_table){"T", "long", "?", "units",
    .variants = {{"gk", sluggish, NULL, 1}}, .tries = 1, .turns = 5});
  assert_int_equal(bench_end(), 0);
  atomic_store(&clock_runs, true);
  assert_non_null(strstr(text_of("turns.json"), "\"turns\": 5,"));
}

int main(void) {
  atomic_store(&clock_runs, true);
  return run_all_tests_with(go_to_folder, remove_folder);
}
