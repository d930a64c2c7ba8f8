/* The thread's last message, and the log. gk_fail and gk_log themselves are in gk_backend.h. */
#ifndef GKI_BASE_ERROR_H
#define GKI_BASE_ERROR_H
#include "gk_backend.h"

enum { GKI_MESSAGE_BYTES = 8192 };

/* Begins a public call: the next gk_fail of this thread sets the message, later ones don't. */
void gki_begin(void);

/* Copies the thread's last message, cut to `bytes` - 1 characters. */
void gki_error_save(char *to, size_t bytes);

/* The code of the first failure since then, for calls that return a pointer; GK_OK: no failure. */
gk_result gki_failure(void);

/* Replaces the message in any case: for failures that were collected elsewhere (another thread, several backends). */
gk_result gki_fail_with(gk_result code, const char *message);

/* The same with the thread's message behind a prefix and ": ". */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
gk_result gki_fail_with_prefix(gk_result code, const char *format, ...);

/* Between the two calls, failures of this thread aren't logged: the caller has another way to continue, or logs them
 * itself. */
void gki_attempt_begin(void);
void gki_attempt_end(void);

/* Forgets the failures since `message` was the thread's message. */
void gki_forget(const char *message);

/* The result of a backend or a library call: GK_OK or an error. */
static inline bool gki_is_answer(gk_result result) {
  return result == GK_OK || ((unsigned)result > GK_NOT_READY && (unsigned)result <= GK_ERROR_DEVICE);
}

/* "out of memory for <what>": the only sentence for a NULL from the allocator. */
gk_result gki_fail_memory(const char *what, size_t bytes);

/* Whether lines of that level are logged: for lines that take long to make. */
bool gki_log_enabled(gk_log_level level);

/* Called in a forked child, in which no thread is in a sink. */
void gki_log_forked(void);
#endif
