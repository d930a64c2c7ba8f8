/* The program gk-info: its options, and in which order it asks. */
#include "info/info.h"
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char usage[] =
    "gk-info [--json] [--backend NAME ...] [--timeout SECONDS]\n"
    "\n"
    "What gk finds on this machine: its backends in the order in which they are tried, why one can't start, devices,\n"
    "how each construct of a list is done there and why, libraries, and the environment that gk looks at.\n"
    "\n"
    "  --json             the same for programs; docs/info.md has the keys\n"
    "  --backend NAME     this one only; may be given several times\n"
    "  --timeout SECONDS  that a driver has for each answer before it counts as hanging; 30 if not given\n"
    "  --help             this\n"
    "\n"
    "Exit code 0: some device can be opened; 1: none; 2: an argument is wrong, or nothing can be printed.\n";

enum { SECONDS = 30, MOST_SECONDS = 3600, PROBLEM_BYTES = 512 };

typedef struct options {
  bool as_json;
  const char **backends;
  size_t backend_count;
  int seconds;
} options;

typedef struct device { int ordinal; bool usable; char *summary, *text; } device; /* unusable: why, in summary */

typedef struct backend {
  char *name, *facts, *why, *problem; /* why: it can't start; "" if it can */
  device *devices;
  size_t count, usable;
  bool is_by_name; /* device 0 is opened only if the backend is named */
} backend;

typedef struct report {
  char *library, *problem;
  backend *backends;
  size_t count;
} report;

/* ---- arguments --------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2), noreturn))
static void refuse(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("gk-info: ", stderr);
  vfprintf(stderr, format, args);
  fputs("\n", stderr);
  va_end(args);
  exit(2);
}

static int read_seconds(const char *text) {
  char *end;
  errno = 0;
  const long seconds = strtol(text, &end, 10);
  if (end == text || *end || errno || seconds < 1 || seconds > MOST_SECONDS)
    refuse("--timeout %s: let it be a number of seconds from 1 to %d", text, MOST_SECONDS);
  return (int)seconds;
}

static options read_options(int argc, char **argv) {
  options o = {.seconds = SECONDS, .backends = info_realloc(NULL, (size_t)argc * sizeof *o.backends)};
  for (int k = 1; k < argc; ++k) {
    const bool takes = strcmp(argv[k], "--backend") == 0 || strcmp(argv[k], "--timeout") == 0;
    if (takes && k + 1 == argc) refuse("%s wants a value; see gk-info --help", argv[k]);
    if (strcmp(argv[k], "--help") == 0) {
      if (fputs(usage, stdout) == EOF || fflush(stdout) != 0) refuse("the help can't be printed: %s", strerror(errno));
      exit(0);
    } else if (strcmp(argv[k], "--json") == 0) o.as_json = true;
    else if (strcmp(argv[k], "--backend") == 0) o.backends[o.backend_count++] = argv[++k];
    else if (strcmp(argv[k], "--timeout") == 0) o.seconds = read_seconds(argv[++k]);
    else refuse("there is no argument %s; see gk-info --help", argv[k]);
  }
  return o;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void start(info_process *process, const char *name, int ordinal, const options *o) {
  if (!info_ask(process, name, ordinal, o->as_json, o->seconds)) refuse("no process can be made: %s", strerror(errno));
}

static void keep(char **place, char *text) {
  free(*place);
  *place = text;
}

/* False: the process failed; `problem` has the reason. */
static bool ask_library(report *r, const options *o) {
  info_process process;
  info_answer answer;
  start(&process, NULL, 0, o);
  while ((answer = info_next(&process)).kind != INFO_END && answer.kind != INFO_GONE) {
    if (answer.kind == INFO_LIBRARY) {
      keep(&r->library, answer.text);
    } else if (answer.kind == INFO_BACKEND) {
      r->backends = info_realloc(r->backends, (r->count + 1) * sizeof *r->backends);
      r->backends[r->count++] = (backend){.name = answer.text, .facts = info_copy(o->as_json ? "[]" : ""),
                                          .why = info_copy(""), .problem = info_copy("")};
    } else free(answer.text);
  }
  char ended[PROBLEM_BYTES];
  info_close(&process, ended, sizeof ended);
  if (answer.kind == INFO_END) {
    free(answer.text);
    keep(&r->problem, info_copy(ended));
    return true;
  }
  keep(&r->problem, answer.text);
  return false;
}

static void add_device(backend *b, device one) {
  b->devices = info_realloc(b->devices, (b->count + 1) * sizeof *b->devices);
  b->devices[b->count++] = one;
  b->usable += one.usable;
}

/* How a process ended, in words. */
typedef struct ending {
  bool started; /* the backend has reported its libraries */
  bool is_all;  /* no more questions are left */
  char *gone;   /* why the process failed; otherwise NULL */
} ending;

static ending listen(info_process *process, backend *b, int ordinal) {
  ending e = {.is_all = true};
  char *summary = NULL;
  info_answer answer;
  while ((answer = info_next(process)).kind != INFO_END && answer.kind != INFO_GONE) {
    switch (answer.kind) {
    case INFO_FACTS:
      e.started = true;
      keep(&b->facts, answer.text);
      break;
    case INFO_DEVICE:
      add_device(b, (device){ordinal++, true, summary, answer.text});
      summary = NULL;
      break;
    case INFO_REFUSED:
      e.is_all = false;
      add_device(b, (device){ordinal++, false, answer.text, NULL});
      break;
    case INFO_BY_NAME:
      b->is_by_name = true;
      free(answer.text);
      break;
    case INFO_NONE: keep(&b->why, answer.text); break;
    default: keep(&summary, answer.text);
    }
  }
  free(summary);
  e.gone = answer.kind == INFO_GONE ? answer.text : NULL;
  if (!e.gone) free(answer.text);
  return e;
}

/* A device without an answer costs time, so only a few of them are allowed. */
enum { HANG = 4, REFUSAL = 1, PATIENCE = 16 };

/* The next device. */
static ending ask_device(backend *b, const options *o) {
  info_process process;
  char ended[PROBLEM_BYTES];
  start(&process, b->name, (int)b->count, o);
  const ending e = listen(&process, b, (int)b->count);
  info_close(&process, ended, sizeof ended);
  if (ended[0]) keep(&b->problem, info_copy(ended));
  return e;
}

static void ask_backend(backend *b, const options *o) {
  for (int impatience = 0; impatience < PATIENCE && b->count < INFO_MOST_DEVICES;) {
    const size_t usable = b->usable;
    const ending e = ask_device(b, o);
    if (e.gone && !e.started) { /* it failed at the libraries, not at a device */
      keep(b->count ? &b->problem : &b->why, e.gone);
      return;
    }
    if (e.gone) add_device(b, (device){(int)b->count, false, e.gone, NULL});
    else if (e.is_all) break;
    impatience = (b->usable > usable ? 0 : impatience) + (e.gone ? HANG : REFUSAL);
    if (impatience >= PATIENCE)
      keep(&b->problem, info_copy("so many one behind the other can't be opened that no more were asked for"));
  }
  if (b->count == 0 && !b->why[0]) keep(&b->why, info_copy("it has no device"));
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

/* The backend that gk_device_open opens if none is named; NULL: none. */
static const backend *chosen(const report *r) {
  const char *wanted = secure_getenv("GK_BACKEND");
  for (size_t k = 0; k < r->count; ++k) {
    const backend *b = &r->backends[k];
    const bool opens = b->count > 0 && b->devices[0].usable;
    if (wanted && wanted[0] ? strcmp(wanted, b->name) == 0 : opens && !b->is_by_name) return opens ? b : NULL;
  }
  return NULL;
}

static void print_json(FILE *file, const report *r, bool is_all) {
  const backend *first = is_all ? chosen(r) : NULL;
  fputs("{\"format\": 1,\n\"version\": ", file);
  info_json_string(file, gk_version());
  fputs(",\n\"default\": ", file);
  info_json_string(file, first ? first->name : NULL);
  fputs(",\n\"trouble\": ", file);
  info_json_string(file, r->problem);
  fprintf(file, ",\n\"facts\": %s,\n\"backends\": [", r->library);
  for (size_t k = 0; k < r->count; ++k) {
    const backend *b = &r->backends[k];
    fputs(k ? ",\n{\"name\": " : "\n{\"name\": ", file);
    info_json_string(file, b->name);
    fprintf(file, ", \"usable\": %s, \"why\": ", b->usable ? "true" : "false");
    info_json_string(file, b->why);
    fputs(", \"trouble\": ", file);
    info_json_string(file, b->problem);
    fprintf(file, ",\n\"facts\": %s,\n\"devices\": [", b->facts);
    for (size_t n = 0; n < b->count; ++n) {
      fputs(n ? ",\n" : "\n", file);
      if (b->devices[n].usable) fputs(b->devices[n].text, file);
      else info_print_lost(file, true, b->name, b->devices[n].ordinal, b->devices[n].summary);
    }
    fputs("]}", file);
  }
  fputs("]}\n", file);
}

static size_t widest(const report *r) {
  size_t width = 0;
  for (size_t k = 0; k < r->count; ++k) {
    const size_t one = strlen(r->backends[k].name);
    if (one > width) width = one;
  }
  return width + sizeof " 000";
}

static void print_line(FILE *file, size_t width, const char *name, int ordinal, const char *how, const char *words) {
  char number[16] = "";
  if (ordinal >= 0) snprintf(number, sizeof number, " %d", ordinal);
  fprintf(file, "  %s%-*s%c%s", name, (int)(width - strlen(name)), number, INFO_COLUMN, how);
  info_plain(file, words);
  fputc('\n', file);
}

static void print_overview(FILE *file, const report *r, bool is_all) {
  const size_t width = widest(r);
  fprintf(file, "gk %s\n\n", gk_version());
  if (r->problem[0]) fprintf(file, "%s\n\n", r->problem);
  for (size_t k = 0; k < r->count; ++k) {
    const backend *b = &r->backends[k];
    for (size_t n = 0; n < b->count; ++n)
      print_line(file, width, b->name, b->devices[n].ordinal, b->devices[n].usable ? "" : "can't be opened: ",
                 b->devices[n].summary);
    if (b->why[0]) print_line(file, width, b->name, -1, "can't start: ", b->why);
    if (b->problem[0]) print_line(file, width, b->name, -1, "", b->problem);
  }
  if (!is_all) return;
  const backend *first = chosen(r);
  if (first) fprintf(file, "\nWhere none is named, gk_device_open takes %s 0.\n", first->name);
  else fputs("\nWhere none is named, gk_device_open fails.\n", file);
}

static void print_text(FILE *file, const report *r, bool is_all) {
  print_overview(file, r, is_all);
  for (size_t k = 0; k < r->count; ++k) {
    const backend *b = &r->backends[k];
    if (b->facts[0]) fprintf(file, "\n%s\n%s", b->name, b->facts);
    for (size_t n = 0; n < b->count; ++n)
      if (b->devices[n].usable) fputs(b->devices[n].text, file);
  }
  fprintf(file, "\nthis process\n%s", r->library);
}

/* Columns of the terminal for the output; 0: no terminal. */
static size_t terminal(void) {
  struct winsize size;
  return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void print(const report *r, const options *o) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *file = open_memstream(&text, &bytes);
  if (!file) refuse("there is no memory left");
  if (o->as_json) print_json(file, r, o->backend_count == 0);
  else print_text(file, r, o->backend_count == 0);
  if (fclose(file) != 0) refuse("there is no memory left");
  if (o->as_json) fputs(text, stdout);
  else info_print_wrapped(stdout, text, terminal());
  free(text);
  if (fflush(stdout) != 0 || ferror(stdout)) refuse("it can't be printed: %s", strerror(errno));
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void free_backend(backend *b) {
  for (size_t k = 0; k < b->count; ++k) {
    free(b->devices[k].summary);
    free(b->devices[k].text);
  }
  free(b->devices);
  free(b->name);
  free(b->facts);
  free(b->why);
  free(b->problem);
}

static void free_backends(report *r) {
  for (size_t k = 0; k < r->count; ++k) free_backend(&r->backends[k]);
  free(r->backends);
  r->backends = NULL;
  r->count = 0;
}

/* A module that prevents gk from starting is left out. */
static void ask_library_without_modules(report *r, const options *o) {
  if (ask_library(r, o)) return;
  const char *modules = secure_getenv("GK_MODULES");
  if (!modules || !modules[0]) refuse("gk's library can't be asked: %s", r->problem);
  char *first = info_copy(r->problem), both[PROBLEM_BYTES];
  free_backends(r);
  unsetenv("GK_MODULES");
  if (!ask_library(r, o)) refuse("gk's library can't be asked: %s", r->problem);
  snprintf(both, sizeof both, "The modules of $GK_MODULES are left out: as they were loaded, %s.", first);
  keep(&r->problem, info_copy(both));
  free(first);
}

static void require(const report *r, const char *name) {
  for (size_t k = 0; k < r->count; ++k)
    if (strcmp(r->backends[k].name, name) == 0) return;
  fprintf(stderr, "gk-info: --backend %s: there is no such backend; there are:", name);
  for (size_t k = 0; k < r->count; ++k) fprintf(stderr, "%s %s", k ? "," : "", r->backends[k].name);
  fputs(r->problem[0] ? "; " : "\n", stderr);
  if (r->problem[0]) fprintf(stderr, "%s\n", r->problem);
  exit(2);
}

static void keep_wanted(report *r, const options *o) {
  for (size_t n = 0; n < o->backend_count; ++n) require(r, o->backends[n]);
  size_t kept = 0;
  for (size_t k = 0; k < r->count; ++k) {
    bool wanted = o->backend_count == 0;
    for (size_t n = 0; n < o->backend_count; ++n)
      wanted = wanted || strcmp(r->backends[k].name, o->backends[n]) == 0;
    if (wanted) r->backends[kept++] = r->backends[k];
    else free_backend(&r->backends[k]);
  }
  r->count = kept;
}

int main(int argc, char **argv) {
  const options o = read_options(argc, argv);
  report r = {.library = NULL};
  ask_library_without_modules(&r, &o);
  keep_wanted(&r, &o);
  bool usable = false;
  for (size_t k = 0; k < r.count; ++k) {
    ask_backend(&r.backends[k], &o);
    usable = usable || r.backends[k].usable;
  }
  print(&r, &o);
  free_backends(&r);
  free(r.library);
  free(r.problem);
  free(o.backends);
  return usable ? 0 : 1;
}
