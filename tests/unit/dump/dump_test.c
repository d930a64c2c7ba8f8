/* Plans in writing: golden files (GK_UPDATE_GOLDEN=1 or --update-golden writes them anew), and that JSON and DOT are
 * what they say, whatever the names. */
#include "dump/dump.h"
#include "base/error.h"
#include "base/text.h"
#include <unistd.h>
#include "unit/support/own_memory.h"
#include "unit/support/planned.h"
#include "unit/support/sample_list.h"

static bool update;

static char *dump_of(const gk_list *list, uint32_t bits, const char *format) {
  gki_blocks blocks;
  gki_planned planned;
  assert_ok(gki_blocks_read(&blocks, list));
  assert_ok(gki_plan_make(&planned, &blocks, NULL, bits));
  gki_blocks_free(&blocks);
  char *text = gki_plan_dump(&planned.plan, format);
  gki_plan_free(&planned);
  return text;
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  char *text = calloc(1, 1 << 20);
  size_t bytes = fread(text, 1, (1 << 20) - 1, file);
  fclose(file);
  text[bytes] = 0;
  return text;
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  assert_int_equal(fclose(file), 0);
}

static void compare_golden(const char *name, const char *text) {
  char path[200];
  snprintf(path, sizeof path, "tests/golden/%s", name);
  if (update) {
    write_file(path, text);
    return;
  }
  char *golden = read_file(path);
  if (!golden) fail_msg("%s is missing; --update-golden writes it", path);
  if (strcmp(golden, text) != 0) {
    print_message("%s says:\n%s\nbut now it is:\n%s\n", path, golden, text);
    fail_msg("%s differs; if that is meant, --update-golden writes it anew", path);
  }
  free(golden);
}

TEST(test_golden) {
  static const char *const formats[][2] = {{"text", "plan.txt"}, {"dot", "plan.dot"}, {"json", "plan.json"}};
  for (size_t k = 0; k < GK_COUNT(formats); ++k) {
    char *text = dump_of(&sample, GK_CANCELLABLE, formats[k][0]);
    assert_non_null(text);
    compare_golden(formats[k][1], text);
    gk_host_free(text);
  }
  char *text = dump_of(&sample, GK_ISOLATE | GK_HOST_GATED, "text");
  compare_golden("plan_isolated.txt", text);
  gk_host_free(text);
}

/* Gives a text to a command; its output is shown if it fails. */
static void expect_valid(const char *text, const char *command) {
  char path[] = "/tmp/gk_dump_XXXXXX", line[300];
  int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(write(file, text, strlen(text)), strlen(text));
  close(file);
  snprintf(line, sizeof line, "cat %s | %s", path, command);
  int status = system(line);
  unlink(path);
  if (status) fail_msg("%s: not valid:\n%s", command, text);
}

static bool have(const char *command) {
  char line[200];
  snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", command);
  return system(line) == 0;
}

#define JSON_CHECK "python3 -c 'import json, sys; json.loads(sys.stdin.buffer.read().decode(\"utf-8\"))'"
#define DOT_CHECK "dot -Tsvg 2>&1 >/dev/null | (! grep .)"

static void expect_valid_dumps(const gk_list *list) {
  char *json = dump_of(list, 0, "json"), *dot = dump_of(list, 0, "dot"), *text = dump_of(list, 0, "text");
  assert_non_null(json);
  assert_non_null(dot);
  assert_non_null(text);
  if (have("python3")) expect_valid(json, JSON_CHECK);
  if (have("dot")) expect_valid(dot, DOT_CHECK);
  for (const char *at = text; *at; ++at) assert_true(*at == '\n' || (unsigned char)*at >= 0x20);
  gk_host_free(json);
  gk_host_free(dot);
  gk_host_free(text);
}

static const gk_kernel odd = {.name = "\"odd\"\\N \n\r\t\x01\x7f {|}<b>&amp; \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"};
enum { ONLY = 1 };
static const gk_slot_desc odd_slots[] = {
    {.slot = ONLY, .type = GK_PTR, .name = "sl\"ot\\\n\xff\xc0\xaf\xed\xa0\x80\xf5", .element = "str\"uct\n"}};

TEST(test_odd_names) {
  static const gk_task tasks[] = {
      {.op = GK_OP_KERNEL, .kernel = &odd, .args = {ONLY}},
      {.op = GK_OP_DO_WHILE, .name = "\xe4\"\\, .label = \"\\\x1f\xe2\x82", .flag = ONLY, .label = INT32_MIN},
      {.op = GK_OP_KERNEL, .kernel = &odd, .name = "\x02", .items = {ONLY}, .offset = UINT32_MAX, .args = {ONLY}},
      GK_END, {.op = GK_OP_CHECKPOINT, .name = "a]}\"]};//<!--", .flag = ONLY, .offset = 12, .label = -5}, GK_END,
      {.op = GK_OP_IF, .flag = ONLY}, GK_END, {.op = GK_OP_SWITCH, .flag = ONLY}, GK_END};
  gk_list list = {GK_ABI, "list \"\xff\"\\\n", tasks, GK_COUNT(tasks), odd_slots, 1};
  expect_valid_dumps(&list);
  char *json = dump_of(&list, 0, "json");
  assert_non_null(strstr(json, "\\\"odd\\\"\\\\N \\u000a\\u000d\\u0009\\u0001\\u007f"));
  assert_non_null(strstr(json, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80")); /* UTF-8 passes through */
  assert_null(strstr(json, "\xff"));
  assert_non_null(strstr(json, "\"label\": -2147483648"));
  gk_host_free(json);
}

TEST(test_valid) {
  expect_valid_dumps(&sample);
  gk_list empty = {GK_ABI, NULL, NULL, 0, NULL, 0};
  expect_valid_dumps(&empty);
  static const gk_slot_desc slot[] = {{.slot = ONLY, .type = GK_PTR}};
  static const gk_task empty_blocks[] = {
      GK_DO_WHILE(ONLY), GK_END, GK_WHILE(ONLY), GK_IF(ONLY), GK_ELSE, GK_END, GK_SWITCH(ONLY), GK_CASE, GK_END,
      GK_END, GK_END, GK_CHECKPOINT(ONLY, ONLY), GK_END};
  gk_list blocks = {GK_ABI, "", empty_blocks, GK_COUNT(empty_blocks), slot, 1};
  expect_valid_dumps(&blocks);
}

TEST(test_host) {
  static const gk_slot_desc slot[] = {{.slot = ONLY, .type = GK_PTR, .name = "X"}};
  static const gk_task calls[] = {{.op = GK_OP_CALL_HOST, .name = "f", .args = {ONLY}}};
  static const gk_list list = {GK_ABI, "list", calls, GK_COUNT(calls), slot, 1};
  static const char *const formats[] = {"text", "dot", "json"},
                           *const says[] = {"CALL_HOST f (X), run 0", "\\n (X)\\non the host", "\"op\": \"CALL_HOST\""};
  expect_valid_dumps(&list);
  for (int k = 0; k < 3; ++k) {
    char *text = dump_of(&list, 0, formats[k]);
    assert_non_null(strstr(text, says[k]));
    gk_host_free(text);
  }
}

TEST(test_long_names) {
  char name[5000];
  memset(name, 'x', sizeof name - 1);
  name[sizeof name - 1] = 0;
  gk_task tasks[] = {{.op = GK_OP_KERNEL, .kernel = &odd, .name = name, .args = {ONLY}}};
  gk_list list = {GK_ABI, name, tasks, 1, odd_slots, 1};
  char *text = dump_of(&list, 0, "text");
  assert_true(strlen(text) > 2 * sizeof name - 2);
  assert_non_null(strstr(text, name));
  gk_host_free(text);
}

TEST(test_text) {
  static const char *const pairs[][2] = { /* the edges of well-formed UTF-8; one U+FFFD per byte that is wrong */
      {"\xc2\x80 \xdf\xbf", "\xc2\x80 \xdf\xbf"}, {"\xe0\xa0\x80", "\xe0\xa0\x80"}, {"\xed\x9f\xbf", "\xed\x9f\xbf"},
      {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80"}, {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, {"\x80", "\xef\xbf\xbd"},
      {"\xc3", "\xef\xbf\xbd"}, {"\xc3(", "\xef\xbf\xbd("}, {"\xc1\xbf", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"}, {"\xe2\x82x", "\xef\xbf\xbd\xef\xbf\xbdx"},
      {"\xf0\x9f\x98", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, {"\xe0\x9f", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xf0\x8f", "\xef\xbf\xbd\xef\xbf\xbd"}, {"\xf4\x90", "\xef\xbf\xbd\xef\xbf\xbd"}, {"a\"\\", "a\"\\"}};
  for (size_t k = 0; k < GK_COUNT(pairs); ++k) {
    gki_text text = {0};
    gki_text_quote(&text, pairs[k][0], GKI_PLAIN);
    char *result = gki_text_finish(&text);
    assert_string_equal(result, pairs[k][1]);
    gk_host_free(result);
  }
  char words[1000];
  memset(words, 'w', sizeof words - 1);
  words[sizeof words - 1] = 0;
  for (size_t length = 200; length < sizeof words; ++length) { /* around the size of a buffer on the stack */
    gki_text text = {0};
    gki_text_add(&text, "<%s>", words + sizeof words - 1 - length);
    gki_text_add(&text, "%d", 7);
    char *result = gki_text_finish(&text);
    assert_int_equal(strlen(result), length + 3);
    assert_string_equal(result + length, "w>7");
    gk_host_free(result);
  }
}

/* Constants stand where their tasks are, rooms with their buffers, and pass numbers with their loops. */
TEST(test_constants_rooms_and_passes) {
  enum { DATA = 1, LENGTH, PASS, STEPPING = 7 };
  static const gk_slot_desc slots[] = {GK_OWN(DATA, int, 4), GK_ROOM(LENGTH, DATA), GK_PASS(PASS, STEPPING)};
  LIST_OVER(slots, list, GK_FILL(DATA, GK_ITEMS(3), 0), GK_REPEAT(LENGTH, .label = STEPPING), GK_FILL(DATA, PASS, 0),
            GK_END);
  static const char *const words[][4] = {
      {"text", "over GK_ITEMS(3) (DATA)", "slot 2  i32 LENGTH, the room of DATA\n",
       "slot 3  ptr PASS, int, the passes of STEPPING\n"},
      {"json", "{\"slot\": 4, \"name\": \"GK_ITEMS(3)\", \"type\": \"i32\"}", "\"room_of\": 1", "\"pass_of\": 2"}};
  for (size_t k = 0; k < GK_COUNT(words); ++k) {
    char *text = dump_of(&list, 0, words[k][0]);
    assert_non_null(text);
    for (int w = 1; w < 4; ++w)
      if (!strstr(text, words[k][w])) fail_msg("%s isn't in\n%s", words[k][w], text);
    if (k == 0) assert_null(strstr(text, "slot 4"));
    gk_host_free(text);
  }
}

/* A count, where other loops have a flag. */
TEST(test_repeat) {
  enum { N = 1 };
  static const gk_slot_desc slots[] = {GK_SCALAR(N, int)};
  static const gk_task tasks[] = {GK_REPEAT(GK_ITEMS(8)), GK_REPEAT(N), GK_END, GK_END};
  static const char *const wanted[][3] = {{"text", "REPEAT GK_ITEMS(8), count 8\n", "REPEAT N, count N\n"},
                                          {"json", "\"count\": 8}", "\"flag\": 1"},
                                          {"dot", "[shape=diamond, label=\"8 times\"]", "label=\"N times\""}};
  for (size_t k = 0; k < GK_COUNT(wanted); ++k) {
    char *text = dump_of(&(gk_list){GK_ABI, "list", tasks, GK_COUNT(tasks), slots, GK_COUNT(slots)}, 0, wanted[k][0]);
    assert_non_null(text);
    if (!strstr(text, wanted[k][1]) || !strstr(text, wanted[k][2])) fail_msg("%s", text);
    gk_host_free(text);
  }
}

TEST(test_every) {
  enum { F = 1 };
  static const gk_slot_desc slots[] = {GK_BUFFER(F, int)};
  static const gk_task tasks[] = {GK_DO_WHILE(F, .max_iterations = 9, .every = 4), GK_WHILE(F, .every = 1), GK_END,
                                  GK_END};
  static const char *const wanted[][2] = {{"text", "flag F, read every 4 passes, at most 9 passes\n"},
                                          {"json", "\"max_iterations\": 9, \"every\": 4}"},
                                          {"dot", "label=\"DO_WHILE F, flag read every 4 passes, at most 9 passes"}};
  for (size_t k = 0; k < GK_COUNT(wanted); ++k) {
    char *text = dump_of(&(gk_list){GK_ABI, "list", tasks, GK_COUNT(tasks), slots, GK_COUNT(slots)}, 0, wanted[k][0]);
    assert_non_null(text);
    if (!strstr(text, wanted[k][1]) || strstr(text, "every 1")) fail_msg("%s", text);
    gk_host_free(text);
  }
}

TEST(test_unknown_format) {
  gki_begin();
  assert_null(dump_of(&sample, 0, "yaml"));
  assert_non_null(strstr(gk_error(), "yaml"));
  assert_non_null(strstr(gk_error(), "json"));
  assert_null(dump_of(&sample, 0, NULL));
}

TEST(test_out_of_memory) {
  static const char *const formats[] = {"text", "dot", "json"};
  planned_list planned;
  const gk_plan *plan = plan_list(&planned, &sample);
  assert_int_equal(begin_counted(NULL), 0);
  for (size_t k = 0; k < GK_COUNT(formats); ++k) {
    char *text = NULL;
    int at = 1;
    for (; !text; ++at) {
      fail_own_memory(at);
      gki_begin();
      text = gki_plan_dump(plan, formats[k]);
      if (!text) assert_says("out of host memory");
    }
    assert_true(at > 2);
    gk_host_free(text);
  }
  assert_int_equal(end_counted(NULL), 0);
  free_planned(&planned);
}

int main(int count, char **words) {
  const char *wish = getenv("GK_UPDATE_GOLDEN");
  update = (wish && *wish == '1') || (count > 1 && strcmp(words[1], "--update-golden") == 0);
  return run_all_tests();
}
