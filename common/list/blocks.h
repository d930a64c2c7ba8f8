/* Stage 1: a list with its included lists expanded and its blocks matched. Check, plan and dump start from it, so none
 * of them reads the structure a second time. It accepts any list and leaves errors to the check (parent, mate or
 * otherwise is GK_NONE; an included list that can't be read has no lines). */
#ifndef GKI_LIST_BLOCKS_H
#define GKI_LIST_BLOCKS_H
#include "list/lines.h"

/* Reads a list. Linear in its composed length. Fails with GK_ERROR_MEMORY, and with GK_ERROR_INVALID for a list that
 * can't be read at all (NULL arrays, another ABI, longer than 2^24, lists nested too deeply or in themselves). Then
 * gk_fail has been called, and only the fields that begin with `fault` are set. Wrong structure is no failure. */
gk_result gki_blocks_read(gki_blocks *blocks, const gk_list *list);
void gki_blocks_free(gki_blocks *blocks);

/* The composed slot of a task's slot number; 0: none (0 itself, negative, or not in its table). */
uint32_t gki_slot_of(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot);

/* The same for a number of items, which may be a constant of GK_ITEMS. */
uint32_t gki_items_of(const gki_blocks *blocks, uint32_t inclusion, gk_slot items);

/* Whether a list's table has that number. gki_slot_of may still be 0, if an INCLUDE gives an unknown slot. */
bool gki_slot_is_known(const gki_blocks *blocks, uint32_t inclusion, gk_slot slot);

/* The line of the loop whose label is `label` in this list, or in one that it includes, with that one's labels shifted
 * as always; GK_NONE: there is none, or no table has a GK_PASS. */
uint32_t gki_loop_of(const gki_blocks *blocks, uint32_t inclusion, int32_t label);

/* The composed label of a line, in 64 bits so that nothing can overflow. 0: it has none. */
int64_t gki_label_of(const gki_blocks *blocks, uint32_t line);
#endif
