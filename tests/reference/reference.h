/* What a task list does, straight from docs/contract.md, in the plainest code there is: it walks the list as composed,
 * runs kernels' host functions on ordinary memory, and knows nothing of gk's plans, gates and walkers. It is what
 * backends are held against. Lists given to it must be right (gk_check says GK_OK), slots that a launch touches bound.
 */
#ifndef REFERENCE_H
#define REFERENCE_H
#include "gk.h"

typedef struct reference reference;

/* A slot of the list as composed: those of its own table come first, in the table's order; then what included lists
 * have beyond their arguments, named as gk_find_slot knows them. */
typedef struct reference_slot {
  const gk_slot_desc *desc; /* of the table it stands in */
  const char *name;         /* "contacts.N" */
  gk_value value;           /* numbers; PTR: the memory; BYTES: where the copy is */
  size_t bytes;             /* PTR: of the memory, as far as it is known; else 0 */
  bool owned;               /* PTR: the memory is the reference's own */
} reference_slot;

typedef struct reference_loop {
  int32_t label;
  const char *name;
  uint64_t passes;
  bool hit_bound;
} reference_loop;
typedef struct reference_checkpoint { int32_t label; const char *name; bool ran; } reference_checkpoint;

/* How a launch went; the words are those of gk_status. */
typedef struct reference_status {
  gk_state state;
  int32_t yielded;
  const char *yielded_name;
  const reference_loop *limit;
  size_t loop_count, checkpoint_count;
  const reference_loop *loops;
  const reference_checkpoint *checkpoints;
} reference_status;

/* NULL: no memory is left. The list and all that it points to must live as long. */
reference *reference_open(const gk_list *list);
void reference_close(reference *r);

size_t reference_slot_count(const reference *r);
const reference_slot *reference_slot_at(const reference *r, size_t index);
/* SIZE_MAX: there is none. The first by number of the list's own table; the second by name as composed. */
size_t reference_find(const reference *r, gk_slot slot);
size_t reference_find_name(const reference *r, const char *name);

/* The work of gk_bind and its kin. bytes: the size of the memory, for comparisons. */
void reference_bind(reference *r, size_t index, void *memory, size_t bytes);
void reference_bind_value(reference *r, size_t index, gk_value number);
void reference_bind_bytes(reference *r, size_t index, const void *value);
bool reference_resize(reference *r, size_t index, size_t count); /* false: no memory is left */

/* Runs a launch to its end. false: a library call failed, a task has too many items, or the label is unknown. */
bool reference_launch(reference *r, int32_t label);
const reference_status *reference_last(const reference *r);

/* Why it failed, where that was a count (rule 12); else NULL. */
typedef struct reference_bad {
  size_t line, memory; /* memory: the slot that has too little, or SIZE_MAX: more than a task may have */
  int64_t count;       /* a kernel's: its first extent */
  bool in_section;     /* then a device may come to another one first */
} reference_bad;
const reference_bad *reference_bad_count(const reference *r);

/* How often a task of the list as composed has run, in all launches, over no items, too; lines are numbered with
 * included lists written out in their places (the LIST lines themselves gone). */
uint64_t reference_runs(const reference *r, size_t line);
size_t reference_lines(const reference *r);
const gk_task *reference_task(const reference *r, size_t line);

/* Called before each task that runs, and each pass of a loop; may call reference_cancel, which asks the launch to stop
 * (rule 11). Between launches it concerns the next one, from its beginning, as a launch that was queued when the host
 * asked. */
void reference_watch(reference *r, void (*before)(void *user, reference *r, size_t line), void *user);
void reference_cancel(reference *r);
#endif
