/* Backends for the tests of common: they run kernels' host functions on this machine, each in one of three
 * modes, watch whether common keeps the rules of gk_backend.h, and fail when asked to. */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H
#include "gk_backend.h"

typedef enum fake_mode {
  FAKE_IN_PROCESS, /* run, by the walker */
  FAKE_NATIVE,     /* a thread of the device's own */
  FAKE_BATCHED,    /* memory that the host can't touch; submits run late, when a flag or a copy asks for it */
  FAKE_MODES
} fake_mode;
extern const char *const fake_names[FAKE_MODES];

typedef enum fake_entry {
  FAKE_OPEN, FAKE_CLOSE, FAKE_ALLOC, FAKE_FREE, FAKE_COPY, FAKE_LOAD, FAKE_UNLOAD, FAKE_LOWER, FAKE_DROP, FAKE_LAUNCH,
  FAKE_WAIT, FAKE_CANCEL, FAKE_RUN, FAKE_SUBMIT, FAKE_READ_FLAG, FAKE_DUMP,
  FAKE_ENTRIES /* any of them */
} fake_entry;

void fake_register(void);            /* all of them; again: nothing */
void fake_reset(void);               /* no calls, no failures to come, nothing held */
unsigned fake_calls(fake_entry entry);

/* The nth call from now fails (1: the next) with that code; `silent`: without saying why. nth 0: none does. Entries
 * that return nothing can't fail and don't count for FAKE_ENTRIES. */
void fake_fail(fake_entry entry, unsigned nth, gk_result code, bool silent);
unsigned fake_failures_left(void); /* 0: it has happened */

/* While held, devices don't begin to run anything. */
void fake_hold(void);
void fake_go(void);

/* The first rule that common broke, ""; what open, alloc, load and lower made and common didn't give back. */
const char *fake_broken(void);
unsigned fake_leaks(void);
#endif
