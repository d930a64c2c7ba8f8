/* What the files of check share: the judge, who collects problems, and the search for races. */
#ifndef GKI_CHECK_PARTS_H
#define GKI_CHECK_PARTS_H
#include "check/check.h"

enum { GKI_WORD_BYTES = 160, GKI_WHERE_BYTES = 1024 };

typedef struct gki_judge {
  const gki_blocks *blocks;
  const gk_backend *backend;
  gk_report report;
  void *user;
  uint32_t line;                  /* which is judged; GKI_NONE: none, but ... */
  uint32_t named;                 /* ... this inclusion's LIST task or table; 0: the user's table */
  uint32_t inclusion;             /* whose table its slot numbers are of */
  size_t problem_count;
  const gk_kernel *sound[64];     /* kernels that were found right, by a hash of their address */
  uint32_t next_word;
  char words[8][GKI_WORD_BYTES];  /* what gki_number and others return; used in turn */
  char where[GKI_WHERE_BYTES], other[GKI_WHERE_BYTES]; /* the task that is judged; what gki_line_word returns */
} gki_judge;

/* Reports a problem of what is being judged; the words of its sentence follow, const char *, then NULL. */
#if defined(__GNUC__)
__attribute__((sentinel))
#endif
void gki_say(gki_judge *judge, gki_problem problem, ...);

/* The same with the sentence made already. */
void gki_say_text(gki_judge *judge, gki_problem problem, const char *text);

/* True once nobody wants to hear of any more problems. */
static inline bool gki_heard_enough(const gki_judge *judge) { return !judge->report && judge->problem_count; }

/* Words for a sentence; they last until seven more were made. */
const char *gki_number(gki_judge *judge, int64_t number);
const char *gki_bits(gki_judge *judge, uint32_t bits);                    /* "0x6" */
const char *gki_many(gki_judge *judge, int64_t number, const char *what); /* "1 slot", "2 slots" */
const char *gki_word(gki_judge *judge, const char *text);                 /* cut to what a message can bear */
const char *gki_desc_word(gki_judge *judge, const gk_slot_desc *desc);    /* "3 (velocity)" */
const char *gki_slot_word(gki_judge *judge, gk_slot slot);                /* the same, by the table at hand */
const char *gki_type_word(gki_judge *judge, gk_type type);                /* "GK_PTR" */
const char *gki_line_word(gki_judge *judge, uint32_t line);               /* "task 3 (scale)"; until the next one */

/* The table of an inclusion's list. */
gk_result gki_check_slots(gki_judge *judge, uint32_t inclusion);

/* The entry of a slot in the table of the list at hand; NULL: it isn't there. */
const gk_slot_desc *gki_desc_of(const gki_judge *judge, gk_slot slot);

/* A kernel by itself, and whether it has code for the backend at hand. */
void gki_check_kernel(gki_judge *judge, const gk_kernel *kernel);

/* What the backend at hand runs of a kernel in place of portable text; NULL: nothing, or no backend is at hand. */
const gk_code *gki_check_code_by_hand(const gki_judge *judge, const gk_kernel *kernel);

/* What a line of any kind takes: kernel, arguments, items, flag, and nothing else. */
void gki_check_task(gki_judge *judge, const gk_task *task);

/* ---- races ------------------------------------------------------------------------------------------------------- */

typedef enum gki_touch_kind { GKI_READS, GKI_WRITES, GKI_SUMS, GKI_ATOMIC } gki_touch_kind;

/* One way in which a task touches memory. */
typedef struct gki_touch {
  uint32_t slot; /* composed */
  gki_touch_kind kind;
} gki_touch;
enum { GKI_MAX_TOUCHES = GK_MAX_ARGS + 4 };

/* "reads" */
const char *gki_touch_word(gki_touch_kind kind);

/* The touches of a line, or of a node: first those of its arguments (of a node so many in *args), then its items and
 * flag. Slots that aren't memory, or are unknown, don't appear. @return how many. */
uint32_t gki_touches_of_line(const gki_blocks *blocks, uint32_t line, gki_touch *touches);
uint32_t gki_touches_of_node(const gk_plan *plan, uint32_t node, uint32_t *args, gki_touch *touches);

/* Follows a list in its order and finds what two sections of one PARALLEL touch. There is one state per PARALLEL that
 * is open and slot that was touched in it; they hang on each other per slot, the innermost PARALLEL's first, and per
 * PARALLEL, to be dropped with it. So a touch costs as much as there are PARALLELs around it, a repeated one less. */
typedef struct gki_race_state {
  uint32_t below; /* the same slot's state of the PARALLEL around, from 1 */
  uint32_t next;  /* in its level's list, or among the unused, from 1 */
  uint32_t slot;
  uint32_t first, first_section; /* who touched it first, and where */
  uint32_t mixed;                /* in that section, the first who touched it in another way; GKI_NONE: nobody */
  uint32_t other;                /* the first of another section; GKI_NONE: nobody */
  uint32_t section;              /* the last */
  uint8_t kinds;                 /* in the last section, as bits */
  uint8_t first_kind, mixed_kind;
  bool told;
} gki_race_state;
typedef struct gki_races {
  uint32_t *tops; /* per slot its innermost state, from 1 */
  gki_race_state *states;
  size_t capacity, count;
  uint32_t unused; /* states to be used again, from 1 */
  uint32_t depth;  /* PARALLELs that are open; those beyond GK_MAX_DEPTH aren't followed */
  struct { uint32_t states, section, line; } levels[GK_MAX_DEPTH];
} gki_races;

/* A clash: the earlier task, and the PARALLEL in whose sections both are. */
typedef struct gki_clash {
  uint32_t who, parallel;
  gki_touch_kind kind;
} gki_clash;

void gki_races_enter(gki_races *races, uint32_t parallel);
void gki_races_section(gki_races *races, uint32_t section);
void gki_races_leave(gki_races *races);

/* Task `who` touches a slot. Each PARALLEL's clash over a slot is told once. false: out of memory, gk_fail has been
 * called. */
bool gki_races_touch(gki_races *races, gki_touch touch, uint32_t who, gki_clash *clashes, uint32_t *clash_count);
void gki_races_free(gki_races *races);
#endif
