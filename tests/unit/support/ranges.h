/* For tests of ranges: the tool of range_tool.h, which gk loads as it would a profiler's. */
#ifndef RANGES_H
#define RANGES_H
#include "runtime.h"
#include "base/trace.h"
#include "unit/base/range_tool.h"
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

static const range_tool *tool;
static char range_tool_path[PATH_MAX + 32];

/* Before the first device is opened. The tool lies beside the program. */
static inline void with_range_tool(void) {
  char program[PATH_MAX] = "";
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) abort();
  snprintf(range_tool_path, sizeof range_tool_path, "%s/../base/range_tool.so", dirname(program));
  setenv("NVTX_INJECTION64_PATH", range_tool_path, 1);
  unsetenv("RANGE_TOOL");
}

static inline void find_range_tool(void) {
  void *library = dlopen(range_tool_path, RTLD_NOW | RTLD_NOLOAD);
  tool = library ? dlsym(library, "range_tool_control") : NULL;
  if (library) dlclose(library);
  if (!tool) fail_msg("gk didn't load %s", range_tool_path);
}

/* No range is open, and all was as a tool expects it. */
static inline void assert_balanced(void) {
  assert_string_equal(tool->wrong(), "");
  assert_int_equal(tool->open(), 0);
}

#define assert_said(thread, wanted) assert_string_equal(tool->said(thread), (wanted))

/* Some thread said these words, in this order. */
static inline bool some_said(const char *words) {
  for (unsigned k = 0; k < RANGE_TOOL_THREADS; ++k)
    if (strstr(tool->said(k), words)) return true;
  return false;
}

static inline void assert_some_said(const char *words) {
  if (some_said(words)) return;
  for (unsigned k = 0; k < RANGE_TOOL_THREADS && tool->said(k)[0]; ++k) print_error("%u: %s\n", k, tool->said(k));
  fail_msg("no thread said \"%s\"", words);
}

#ifndef GK_NVTX
TEST(skip_ranges) {
  print_message("NVTX's headers weren't there when gk was built\n");
  skip();
}
#endif
#endif
