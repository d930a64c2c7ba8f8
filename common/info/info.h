/* gk-info: each backend is asked in a process of its own, which writes what it finds as it shall be printed; so a
 * driver that hangs or crashes costs the device that it was asked for, and no other. */
#ifndef GKI_INFO_H
#define GKI_INFO_H
#include "gk_backend.h"
#include <stdio.h>
#include <sys/types.h>

/* ---- facts.c ----------------------------------------------------------------------------------------------------- */

void *info_obtain(void *old, size_t bytes); /* ends the program if there is no memory */
char *info_copy(const char *text);          /* NULL of NULL */

typedef struct info_facts {
  struct info_fact { char *group, *name, *value, *why; } *all;
  size_t count, capacity;
} info_facts;
void info_note(void *facts, const gk_fact *fact); /* a gk_fact_visit */
void info_forget(info_facts *facts);

/* ---- print.c: facts and devices as text or JSON ------------------------------------------------------------------ */

/* In text, where the last column of a row begins: what doesn't fit is continued there. */
enum { INFO_COLUMN = '\v' };

/* In the quotes of a JSON string, and those, too; NULL: null. */
void info_json_string(FILE *file, const char *text);
/* On one line, whatever is in it. */
void info_plain(FILE *file, const char *text);

void info_print_facts(FILE *file, bool as_json, const info_facts *facts);

void info_print_device(FILE *file, bool as_json, const gk_device_info *device, const info_facts *facts);
void info_print_lost(FILE *file, bool as_json, const char *backend, int ordinal, const char *why);

/* A text of rows, with lines of at most `width` columns if that can be; 0: as long as they are. */
void info_print_wrapped(FILE *file, const char *text, size_t width);

/* ---- ask.c: the processes ---------------------------------------------------------------------------------------- */

enum { INFO_MOST_DEVICES = 256 /* of a backend, should one open whatever it is asked for */ };

typedef enum info_kind {
  INFO_LIBRARY = 'L', /* facts of the library, printed */
  INFO_BACKEND = 'N', /* a backend's name; they come in order */
  INFO_FACTS = 'F',   /* of the backend that was asked for, printed; comes before its devices */
  INFO_SUMMARY = 'S', /* what the next device is, in a few words */
  INFO_DEVICE = 'D',  /* one that was opened, printed */
  INFO_REFUSED = 'X', /* why the next one can't be; those after it are to be asked for anew */
  INFO_NONE = 'O',    /* why there is no device at all */
  INFO_END = '.',     /* all was said */
  INFO_GONE = 0,      /* nothing more comes, and `text` says why */
} info_kind;

typedef struct info_answer { info_kind kind; char *text; /* to be freed */ } info_answer;

typedef struct info_process { pid_t pid; int from; int seconds; } info_process;

/* Asks what there is (backend NULL), or about devices of a backend. `seconds`: for each answer. False: errno. */
bool info_ask(info_process *process, const char *backend, int first_ordinal, bool as_json, int seconds);
info_answer info_next(info_process *process);
/* Ends it. "" or what was wrong at its end. */
void info_close(info_process *process, char *trouble, size_t bytes);
#endif
