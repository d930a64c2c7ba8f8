/* A tool as NVTX loads them, for tests: writes down the ranges and marks that it is told, thread by thread. How a test
 * gets at it, once gk has loaded it from $NVTX_INJECTION64_PATH:
 *   const trace_tool *tool = dlsym(dlopen(path, RTLD_NOW | RTLD_NOLOAD), "trace_tool_control");
 * With $TRACE_TOOL set to "refuses" it answers NVTX that it can't start, with "deaf" it hears nothing. */
#ifndef TRACE_TOOL_H
#define TRACE_TOOL_H

enum { TRACE_TOOL_THREADS = 32 };

typedef struct trace_tool {
  void (*forget)(void); /* what was told so far; ranges that are open stay so */
  /* What a thread told since then: "create list{check and plan{}lower{}}", marks as "!cancel list;", a number as
   * "upload[4]{}"; of what is very long, the end. Threads are counted from 0 in the order in which they first said
   * something; "": there is none. */
  const char *(*said)(unsigned thread);
  unsigned (*open)(void);      /* ranges of all threads that didn't end */
  const char *(*wrong)(void);  /* the first thing that a tool can't understand; "" */
  const char *(*domain)(void); /* the one that was asked for; "" */
} trace_tool;
#endif
