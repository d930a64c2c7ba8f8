#include "base/error.h"
#include "unit/support/runtime.h"
#include "unit/support/await.h"
#include "unit/support/waits.h"
#include "unit/support/process.h"

TEST(names_every_result) {
  static const struct { gk_result result; const char *name; } cases[] = {
      {GK_OK, "GK_OK"}, {GK_NOT_READY, "GK_NOT_READY"}, {GK_ERROR_MEMORY, "GK_ERROR_MEMORY"},
      {GK_ERROR_DEVICE, "GK_ERROR_DEVICE"}, {(gk_result)(GK_ERROR_DEVICE + 1), "no gk_result"},
      {(gk_result)-1, "no gk_result"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) assert_string_equal(gk_result_name(cases[k].result), cases[k].name);
}

TEST(first_failure_of_a_call_wins) {
  gki_begin();
  assert_int_equal(gki_failure(), GK_OK);
  assert_int_equal(gk_fail(GK_ERROR_DEVICE, "the driver said %d", 7), GK_ERROR_DEVICE);
  assert_int_equal(gk_fail(GK_ERROR_INVALID, "cleaning up failed, too"), GK_ERROR_INVALID);
  assert_string_equal(gk_error(), "the driver said 7");
  gki_begin();
  assert_int_equal(gki_failure(), GK_OK);
  assert_string_equal(gk_error(), "the driver said 7"); /* until the next failing call */
  gk_fail(GK_ERROR_INVALID, "another call");
  assert_int_equal(gki_failure(), GK_ERROR_INVALID);
  assert_string_equal(gk_error(), "another call");
  gk_fail_again();
  gk_fail(GK_ERROR_MEMORY, "again");
  assert_string_equal(gk_error(), "again");
}

TEST(message_may_quote_itself) {
  gki_begin();
  gk_fail(GK_ERROR_INVALID, "cause");
  gki_begin();
  gk_fail(GK_ERROR_INVALID, "effect of: %s", gk_error());
  assert_string_equal(gk_error(), "effect of: cause");
  assert_int_equal(gki_fail_with(GK_ERROR_BUSY, gk_error() + 11), GK_ERROR_BUSY);
  assert_string_equal(gk_error(), "cause");
}

TEST(long_message_says_that_it_is_cut) {
  static char text[3 * GKI_MESSAGE_BYTES];
  memset(text, 'x', sizeof text - 1);
  for (int with = 0; with < 2; ++with) {
    gki_begin();
    if (with) gki_fail_with(GK_ERROR_COMPILE, text);
    else gk_fail(GK_ERROR_COMPILE, "%s", text);
    size_t length = strlen(gk_error());
    assert_int_equal(length, GKI_MESSAGE_BYTES - 1);
    assert_string_equal(gk_error() + length - 10, " ... (cut)");
  }
  text[GKI_MESSAGE_BYTES - 1] = 0; /* the longest that fits */
  gki_begin();
  gk_fail(GK_ERROR_COMPILE, "%s", text);
  assert_string_equal(gk_error(), text);
}

static void *fail_elsewhere(void *at) {
  (void)at;
  bool empty_at_first = gk_error()[0] == 0;
  gki_begin();
  gk_fail(GK_ERROR_INVALID, "of the other thread");
  return (void *)(uintptr_t)empty_at_first;
}

TEST(threads_have_their_own_message) {
  gki_begin();
  gk_fail(GK_ERROR_INVALID, "of this thread");
  assert_non_null(join_thread(start_thread(fail_elsewhere, NULL))); /* its message was empty at first */
  assert_string_equal(gk_error(), "of this thread");
}

typedef struct heard { int lines, level; char last[GKI_MESSAGE_BYTES]; } heard;
static void listen(void *user, gk_log_level level, const char *line) {
  heard *h = user;
  ++h->lines;
  h->level = (int)level;
  snprintf(h->last, sizeof h->last, "%s", line);
}

TEST(log_level_decides) {
  heard h = {0};
  gk_set_log(GK_LOG_WARN, listen, &h);
  gk_log(GK_LOG_INFO, "too much");
  assert_int_equal(h.lines, 0);
  gk_log(GK_LOG_WARN, "%s %d", "number", 3);
  assert_string_equal(h.last, "number 3");
  assert_int_equal(h.level, GK_LOG_WARN);
  gki_begin();
  gk_fail(GK_ERROR_INVALID, "a failure");
  gk_fail(GK_ERROR_INVALID, "that isn't the first");
  assert_int_equal(h.lines, 2);
  assert_string_equal(h.last, "a failure");
  gk_set_log(GK_LOG_NONE, listen, &h);
  gki_begin();
  gk_fail(GK_ERROR_INVALID, "nobody hears");
  gk_log(GK_LOG_NONE, "never");
  assert_int_equal(h.lines, 2);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

/* Which of the five levels are heard on standard error with $GK_LOG: in a process of its own, as it is read once. */
static void heard_with(const char *variable, char *levels) {
  static const char head[] = "gk: level ";
  char said[2000];
  setenv("GK_LOG", variable, 1);
  assert_int_equal(run_self("levels", said, sizeof said), 0);
  unsetenv("GK_LOG");
  levels[0] = 0;
  for (const char *at = said; (at = strstr(at, head)); ++at) strncat(levels, at + strlen(head), 1);
}

TEST(variable_sets_the_level) {
  static const char *const cases[][2] = {{"", ""},       {"0", ""},  {"2", "12"},  {"debug", "1234"}, {"WARN", "12"},
                                         {"99", "1234"}, {"-5", ""}, {"loud", ""}, {"error", "1"}};
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    char levels[200];
    heard_with(cases[k][0], levels);
    assert_string_equal(levels, cases[k][1]);
  }
}

enum { NOT_YET, IN_SINK, WAITED_FOR, SET };
static atomic_int change;

/* Stays until gk_set_log waits for it, or doesn't. */
static void stay(void *user, gk_log_level level, const char *line) {
  (void)level, (void)line;
  atomic_store(&change, IN_SINK);
  await(atomic_load(&change) > IN_SINK);
  *(int *)user = atomic_load(&change);
}

static void *log_once(void *at) {
  gk_log(GK_LOG_ERROR, "a line");
  return at;
}

static void note_wait(void) {
  int in_sink = IN_SINK;
  atomic_compare_exchange_strong(&change, &in_sink, WAITED_FOR);
}

TEST(change_waits_for_the_sink) {
  int *seen = calloc(1, sizeof *seen);
  atomic_store(&change, NOT_YET);
  gk_set_log(GK_LOG_ERROR, stay, seen);
  const pthread_t thread = start_thread(log_once, NULL);
  await(atomic_load(&change) == IN_SINK);
  on_wait = note_wait;
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  on_wait = NULL;
  int waited_for = WAITED_FOR;
  atomic_compare_exchange_strong(&change, &waited_for, SET);
  assert_int_equal(*seen, WAITED_FOR);
  free(seen); /* the sink is through with it */
  join_thread(thread);
}

/* The sink must not call gk, and doesn't hang if it does. */
static void change_log(void *user, gk_log_level level, const char *line) {
  (void)level, (void)line;
  ++*(int *)user;
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

TEST(sink_that_changes_the_log_goes_on) {
  int lines = 0;
  gk_set_log(GK_LOG_ERROR, change_log, &lines);
  gk_log(GK_LOG_ERROR, "one");
  gk_log(GK_LOG_ERROR, "two");
  assert_int_equal(lines, 1);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

static atomic_bool enough;
static void *log_on_and_on(void *at) {
  while (!atomic_load(&enough)) gk_log(GK_LOG_ERROR, "a line");
  return at;
}

static void count_line(void *user, gk_log_level level, const char *line) {
  (void)level, (void)line;
  atomic_fetch_add((atomic_int *)user, 1);
}

/* Each change frees what the sink before had. */
TEST(sinks_change_under_way) {
  pthread_t threads[3];
  atomic_store(&enough, false);
  for (int k = 0; k < 3; ++k) threads[k] = start_thread(log_on_and_on, NULL);
  atomic_int *before = NULL;
  for (int k = 0; k < 3000; ++k) {
    atomic_int *lines = calloc(1, sizeof *lines);
    gk_set_log(GK_LOG_ERROR, count_line, lines);
    free(before);
    before = lines;
  }
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  free(before);
  atomic_store(&enough, true);
  for (int k = 0; k < 3; ++k) join_thread(threads[k]);
}

static int say_all_levels(void) {
  for (int level = GK_LOG_ERROR; level <= GK_LOG_DEBUG; ++level) gk_log((gk_log_level)level, "level %d", level);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "levels") == 0) return say_all_levels();
  return run_all_tests();
}
