/* Tests that list themselves: a program is TEST(name) {...} and so on, and a main that ends with run_all_tests(). */
#ifndef TEST_H
#define TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define UNUSED __attribute__((unused))

enum { MOST_TESTS = 256 };
static struct CMUnitTest listed_tests[MOST_TESTS];
static unsigned listed_lines[MOST_TESTS], listed_count;

/* Constructors may run in any order: tests run in the order of their lines. */
static inline void list_test(unsigned at_line, struct CMUnitTest test) {
  unsigned at = listed_count++;
  if (at == MOST_TESTS) abort();
  for (; at > 0 && listed_lines[at - 1] > at_line; --at) {
    listed_tests[at] = listed_tests[at - 1];
    listed_lines[at] = listed_lines[at - 1];
  }
  listed_tests[at] = test;
  listed_lines[at] = at_line;
}

/* A test per word, such as a backend's name: that word is its initial state. */
static inline void list_test_on(unsigned at_line, const char *words, struct CMUnitTest test) {
  const char *const name = test.name;
  for (size_t length; *words; words += length + (words[length] != 0)) {
    char *full;
    length = strcspn(words, " ");
    if (asprintf(&full, "%s on %.*s", name, (int)length, words) < 0) abort();
    test.name = full;
    test.initial_state = full + strlen(name) + 4;
    list_test(at_line, test);
  }
}

#define LISTED_TEST(test, list) \
  static void test(void **state); \
  __attribute__((constructor)) static void list_##test(void) { list; } \
  static void test(UNUSED void **state)

#define TEST_WITH(test, setup, teardown) \
  LISTED_TEST(test, list_test(__LINE__, (struct CMUnitTest){#test, test, setup, teardown, NULL}))
#define TEST(test) TEST_WITH(test, NULL, NULL)
#define TEST_ON_EACH(words, test, setup, teardown) \
  LISTED_TEST(test, list_test_on(__LINE__, words, (struct CMUnitTest){#test, test, setup, teardown, NULL}))

/* A test whose fixture opens a device: `device` is it. A test that closes it sets *state. */
#define DEVICE_TEST_(test, list) \
  static void test##_on(gk_device *device, void **state); \
  LISTED_TEST(test, list) { test##_on(*state, state); } \
  static void test##_on(UNUSED gk_device *device, UNUSED void **state)
#define DEVICE_TEST(test, setup, teardown) \
  DEVICE_TEST_(test, list_test(__LINE__, (struct CMUnitTest){#test, test, setup, teardown, NULL}))
#define DEVICE_TEST_ON(backends, test, setup, teardown) \
  DEVICE_TEST_(test, list_test_on(__LINE__, backends, (struct CMUnitTest){#test, test, setup, teardown, NULL}))

static inline int run_all_tests_with(CMFixtureFunction setup, CMFixtureFunction teardown) {
  return _cmocka_run_group_tests("tests", listed_tests, listed_count, setup, teardown);
}
static inline int run_all_tests(void) { return run_all_tests_with(NULL, NULL); }

/* A list of these tasks over an array of slots, by default `slots`. */
#define LIST_OVER(its_slots, name, ...) \
  static const gk_task name##_tasks[] = {__VA_ARGS__}; \
  static const gk_list name = GK_LIST(name, name##_tasks, its_slots)
#define LIST(name, ...) LIST_OVER(slots, name, __VA_ARGS__)

/* A library call, and a kernel's function on the host. */
#define CALLED(name) \
  static gk_result name(UNUSED const gk_value *args, UNUSED void *stream)
#define HOST_KERNEL(name) \
  static void name(UNUSED const gk_value *args, UNUSED gk_range range)

/* A function that the linker's --wrap puts in place of that one, which is still there by its __real_ name. */
#define WRAPPED(type, name, ...) \
  type __real_##name(__VA_ARGS__); \
  type __wrap_##name(__VA_ARGS__); \
  type __wrap_##name(__VA_ARGS__)

#define assert_ok(call) \
  do { \
    gk_result result_ = (call); \
    if (result_ != GK_OK) fail_msg("%s: %s, %s", #call, gk_result_name(result_), gk_error()); \
  } while (0)

/* The call fails with that code, and its message has these words. */
#define assert_fails(code, words, call) \
  do { \
    gk_result result_ = (call); \
    if (result_ != (code)) fail_msg("%s: %s, not %s; %s", #call, gk_result_name(result_), #code, gk_error()); \
    assert_says(words); \
  } while (0)

#define assert_says(words) \
  do { \
    if (!strstr(gk_error(), (words))) fail_msg("\"%s\" doesn't say \"%s\"", gk_error(), (words)); \
  } while (0)

#define assert_invalid(words, call) assert_fails(GK_ERROR_INVALID, words, call)

/* The call gives nothing, and its message has these words. */
#define assert_gives_null(words, call) \
  do { \
    assert_null(call); \
    assert_says(words); \
  } while (0)
#endif
