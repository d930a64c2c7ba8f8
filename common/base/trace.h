/* Work on the host as ranges and marks for profilers that use NVTX, in the domain "gk". Each range ends on the thread
 * on which it began, whatever fails in between. The ranges of a thread are nested. Without a tool, a range costs one
 * read of a pointer, and its words aren't read. Without NVTX's headers in the build, nothing of this file is compiled.
 * Profilers show `number` beside the name (bytes, a launch's number; 0: none), so ranges of one kind have one name. */
#ifndef GKI_BASE_TRACE_H
#define GKI_BASE_TRACE_H
#include "gk_backend.h"

#if defined(__GNUC__)
#define GKI_TRACE_FORMAT __attribute__((format(printf, 2, 3)))
#else
#define GKI_TRACE_FORMAT
#endif

#ifdef GK_NVTX
/* The tool's value for the domain; NULL: no tool listens. Set once, before the first device. */
extern struct nvtxDomainRegistration_st *gki_listener;

/* Loads the tool, if there is one, in the first call. Thread-safe. */
void gki_trace_listen(void);
GKI_TRACE_FORMAT void gki_trace_push(uint64_t number, const char *format, ...);
GKI_TRACE_FORMAT void gki_trace_put(uint64_t number, const char *format, ...);
void gki_trace_pop(void);

#define gki_trace_enabled() (gki_listener != NULL)
#define gki_trace_begin(...) (gki_listener ? gki_trace_push(__VA_ARGS__) : (void)0)
#define gki_trace_end() (gki_listener ? gki_trace_pop() : (void)0)
#define gki_trace_mark(...) (gki_listener ? gki_trace_put(__VA_ARGS__) : (void)0)
#else
GKI_TRACE_FORMAT static inline void gki_trace_push(uint64_t number, const char *format, ...) {
  (void)number;
  (void)format;
}
static inline void gki_trace_listen(void) {}

#define gki_trace_enabled() false
#define gki_trace_begin(...) (false ? gki_trace_push(__VA_ARGS__) : (void)0)
#define gki_trace_end() ((void)0)
#define gki_trace_mark(...) (false ? gki_trace_push(__VA_ARGS__) : (void)0)
#endif

/* As messages name it: "task 3 (scale)", "tasks 3 (scale) to 5 (sum)". For use where gki_trace_enabled(). */
void gki_trace_begin_run(const gk_plan *plan, uint32_t run);

/* Whether gk can write ranges, and which tool listens, as a sentence: for gk_facts. */
bool gki_trace_describe(const char **why);
#endif
