/* For tests of what profilers are told: the tool of trace_tool.h, which gk loads as it would a profiler's. */
#ifndef SUPPORT_TRACE_H
#define SUPPORT_TRACE_H
#include "runtime.h"
#include "base/trace.h"
#include "unit/base/trace_tool.h"
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <unistd.h>

static const trace_tool *tool;
static char trace_tool_path[PATH_MAX + 32];

/* Before the first device is opened. The tool lies beside the program. */
static inline void with_trace_tool(void) {
  char program[PATH_MAX] = "";
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0) abort();
  snprintf(trace_tool_path, sizeof trace_tool_path, "%s/../base/trace_tool.so", dirname(program));
  setenv("NVTX_INJECTION64_PATH", trace_tool_path, 1);
  unsetenv("TRACE_TOOL");
}

static inline void find_trace_tool(void) {
  void *library = dlopen(trace_tool_path, RTLD_NOW | RTLD_NOLOAD);
  tool = library ? dlsym(library, "trace_tool_control") : NULL;
  if (library) dlclose(library);
  if (!tool) fail_msg("gk didn't load %s", trace_tool_path);
}

/* No range is open, and all was as a tool expects it. */
static inline void assert_balanced(void) {
  assert_string_equal(tool->wrong(), "");
  assert_int_equal(tool->open(), 0);
}

#define assert_said(thread, wanted) assert_string_equal(tool->said(thread), (wanted))

/* Some thread said these words, in this order. */
static inline bool some_said(const char *words) {
  for (unsigned k = 0; k < TRACE_TOOL_THREADS; ++k)
    if (strstr(tool->said(k), words)) return true;
  return false;
}

static inline void assert_some_said(const char *words) {
  if (some_said(words)) return;
  for (unsigned k = 0; k < TRACE_TOOL_THREADS && tool->said(k)[0]; ++k) print_error("%u: %s\n", k, tool->said(k));
  fail_msg("no thread said \"%s\"", words);
}

#ifndef GK_NVTX
TEST(skip_ranges) {
  print_message("NVTX's headers weren't there when gk was built\n");
  skip();
}
#endif
#endif
