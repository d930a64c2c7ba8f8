/* The problems of a list, reported one by one. */
#ifndef GKI_CHECK_REPORT_H
#define GKI_CHECK_REPORT_H
#include "gk_backend.h"
#include "list/blocks.h"

enum { GKI_TEXT_BYTES = 160, GKI_WHERE_BYTES = 1024 };

typedef struct gki_checker {
  const gki_blocks *blocks;
  const gk_backend *backend;
  gk_report report;
  void *user;
  uint32_t line;                  /* the line being checked; GK_NONE: none */
  uint32_t named;                 /* without a line: the inclusion whose task or table it is; 0: the user's table */
  uint32_t inclusion;             /* slot numbers are those of this inclusion's table */
  size_t problem_count;
  const gk_kernel *passed[64];    /* kernels that passed the check, by a hash of their address */
  uint32_t next_text;
  char texts[8][GKI_TEXT_BYTES];  /* results of gki_format_int and others, in turn */
  char where[GKI_WHERE_BYTES], other[GKI_WHERE_BYTES]; /* the task being checked; the result of gki_format_line */
} gki_checker;

/* Reports a problem or a warning of the line being checked; without a `report`, a warning is logged. The texts for its
 * sentence follow, const char *, then NULL. */
#if defined(__GNUC__)
__attribute__((sentinel))
#endif
void gki_report(gki_checker *c, gki_problem problem, ...);

/* The same with a finished sentence. */
void gki_report_text(gki_checker *c, gki_problem problem, const char *text);

/* True when no more problems are wanted. */
static inline bool gki_check_is_done(const gki_checker *c) { return !c->report && c->problem_count; }

/* Texts for a sentence. A text is valid until seven more were made. */
const char *gki_format_int(gki_checker *c, int64_t number);
const char *gki_format_bits(gki_checker *c, uint32_t bits);                     /* "0x6" */
const char *gki_format_count(gki_checker *c, int64_t number, const char *what); /* "1 slot", "2 slots" */
const char *gki_format_name(gki_checker *c, const char *name);                  /* cut to GKI_TEXT_BYTES */
const char *gki_format_desc(gki_checker *c, const gk_slot_desc *desc);          /* "3 (velocity)" */
const char *gki_format_slot(gki_checker *c, gk_slot slot);                      /* the same, by the current table */
const char *gki_format_type(gki_checker *c, gk_type type);                      /* "GK_PTR" */
const char *gki_format_line(gki_checker *c, uint32_t line); /* "task 3 (scale)"; valid until the next call */

/* The entry of a slot in the current list's table; NULL: it isn't in the table. */
const gk_slot_desc *gki_desc_of(const gki_checker *c, gk_slot slot);
#endif
