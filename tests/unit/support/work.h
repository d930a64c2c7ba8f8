/* How much some code does, where that takes no clock: the basic blocks that ran, of files that are compiled with
 * -fsanitize-coverage=trace-pc. It is the same on every machine, and however busy that is. To be included once in a
 * program. */
#ifndef WORK_H
#define WORK_H
#include <stdint.h>

static _Thread_local uint64_t work_done; /* by this thread */

void __sanitizer_cov_trace_pc(void);
__attribute__((visibility("default"))) void __sanitizer_cov_trace_pc(void) { ++work_done; }
#endif
