/* gk-info: asks each backend in a separate process, which writes its results in printed form. So a driver that hangs or
 * crashes affects only the device that was asked about. */
#ifndef GKI_INFO_H
#define GKI_INFO_H
#include "gk_backend.h"
#include <stdio.h>
#include <sys/types.h>

/* ---- facts.c ----------------------------------------------------------------------------------------------------- */

void *info_realloc(void *old, size_t bytes); /* ends the program if out of memory */
char *info_copy(const char *text);          /* NULL of NULL */

typedef struct info_facts {
  struct info_fact { char *group, *name, *value, *why; } *all;
  size_t count, capacity;
} info_facts;
void info_note(void *facts, const gk_fact *fact); /* a gk_fact_visit */
void info_free(info_facts *facts);

/* ---- print.c: facts and devices as text or JSON ------------------------------------------------------------------ */

/* In text, the column where the last column of a row begins: text that doesn't fit continues there. */
enum { INFO_COLUMN = '\v' };

/* A JSON string with its quotes; NULL: null. */
void info_json_string(FILE *file, const char *text);
/* Any text as one line. */
void info_plain(FILE *file, const char *text);

void info_print_facts(FILE *file, bool as_json, const info_facts *facts);

void info_print_device(FILE *file, bool as_json, const gk_device_info *device, const info_facts *facts);
void info_print_lost(FILE *file, bool as_json, const char *backend, int ordinal, const char *why);

/* A text of rows, with lines of at most `width` columns if possible; 0: lines of any length. */
void info_print_wrapped(FILE *file, const char *text, size_t width);

/* ---- ask.c: the processes ---------------------------------------------------------------------------------------- */

enum { INFO_MOST_DEVICES = 256 /* a limit for a backend, in case it opens every device */ };

typedef enum info_kind {
  INFO_LIBRARY = 'L', /* facts of the library, printed */
  INFO_BACKEND = 'N', /* a backend's name; they come in order */
  INFO_FACTS = 'F',   /* of the backend being asked, printed; comes before its devices */
  INFO_BY_NAME = 'B', /* device 0 is opened only if the backend is named */
  INFO_SUMMARY = 'S', /* the next device in a few words */
  INFO_DEVICE = 'D',  /* an opened device, printed */
  INFO_REFUSED = 'X', /* why the next device can't be opened; later devices must be asked about again */
  INFO_NONE = 'O',    /* why there is no device */
  INFO_END = '.',     /* everything was sent */
  INFO_GONE = 0,      /* the process has ended; `text` has the reason */
} info_kind;

typedef struct info_answer { info_kind kind; char *text; /* to be freed */ } info_answer;

typedef struct info_process { pid_t pid; int from; int seconds; } info_process;

/* Asks for the backends (backend NULL), or for the devices of a backend. `seconds`: for each answer. False: errno. */
bool info_ask(info_process *process, const char *backend, int first_ordinal, bool as_json, int seconds);
info_answer info_next(info_process *process);
/* Ends the process. "" or the problem at its end. */
void info_close(info_process *process, char *problem, size_t bytes);
#endif
