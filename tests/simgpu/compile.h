/* The host's compiler on a CUDA source, and what it made kept on disk for the next process that asks for the same. */
#ifndef SIM_COMPILE_H
#define SIM_COMPILE_H
#include <stdbool.h>
#include <stddef.h>

typedef struct sim_job {
  const char *source, *name;
  const char *macros;  /* lines that come before all */
  const char *options; /* for the compiler, quoted for a shell; those for directories that don't change what is named */
  int header_count;    /* files that the source includes */
  const char *const *headers, *const *header_names;
} sim_job;

typedef struct sim_made {
  char *log;  /* by malloc, as NVRTC says it: file(line): error: ... */
  void *code; /* by malloc: a shared object; NULL: the source is wrong */
  size_t code_bytes;
  bool was_kept; /* on disk */
} sim_made;

/* The folder is made if need be; several processes may use it at once. False: something other than the source is wrong;
 * the log says what, if there is one. */
bool sim_compile(const char *folder, const sim_job *job, sim_made *made);
#endif
