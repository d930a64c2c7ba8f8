/* One list that has everything, for the tests of plans and dumps. */
#ifndef SAMPLE_LIST_H
#define SAMPLE_LIST_H
#include "gk.h"

enum { POSITION = 1, FORCE, PAIRS, COUNT_OF_PAIRS, STATE, SIZE, STEP, WIDTH, HEIGHT, PICTURE, SETTINGS, SPARE };
enum { CONTACTS = 10, NEWTON, SOLVE };
enum { INNER_BUFFER = 1, INNER_FLAG, INNER_COUNT, INNER_SCRATCH };
enum { INNER_LABEL = 1, INNER_LOOP };

static const gk_kernel advance = {.name = "advance", .dimensions = 1};
static const gk_kernel search = {.name = "search", .dimensions = 1};
static const gk_kernel paint = {.name = "paint", .dimensions = 2};
static const gk_kernel clear_state = {.name = "clear_state"};
static gk_result library(const gk_value *args, void *native) { (void)args; (void)native; return GK_OK; }

static const gk_slot_desc inner_slots[] = {GK_BUFFER(INNER_BUFFER, float), GK_BUFFER(INNER_FLAG, int),
                                           GK_SCALAR(INNER_COUNT, int), GK_OWN(INNER_SCRATCH, float, 16)};
static const gk_task inner_tasks[] = {
    GK_CHECKPOINT(INNER_LABEL, INNER_FLAG), GK_RUN(search, INNER_COUNT, INNER_BUFFER, INNER_SCRATCH), GK_END,
    GK_DO_WHILE(INNER_FLAG, .label = INNER_LOOP), GK_RUN(search, INNER_COUNT, INNER_SCRATCH, INNER_BUFFER), GK_END};
static const gk_list inner = GK_LIST(inner, inner_tasks, inner_slots);

static const gk_slot_desc sample_slots[] = {
    GK_BUFFER(POSITION, float), GK_BUFFER(FORCE, float), GK_OWN(PAIRS, int, 64), GK_OWN(COUNT_OF_PAIRS, int, 1),
    GK_RAW_BUFFER(STATE), GK_DEFAULT(SIZE, int, 100), GK_SCALAR(STEP, double), GK_SCALAR(WIDTH, uint),
    GK_SCALAR(HEIGHT, int64_t), GK_BUFFER(PICTURE, int), GK_STRUCT_VALUE(SETTINGS, gk_range),
    {.slot = 20, .type = GK_HOST_PTR, .name = "host"}};
static const gk_task sample_tasks[] = {
    GK_RUN_ALWAYS(clear_state, GK_ONE, STATE),
    {.op = GK_OP_FILL, .bits = GK_FLOATS, .name = "FORCE = 0x7f", .items = {SIZE}, .args = {FORCE}, .pattern = 0x7f},
    GK_DO_WHILE(STATE, .offset = 8, .max_iterations = 200, .label = NEWTON), GK_CHECKPOINT_AT(CONTACTS, STATE, 16),
    GK_RUN(search, SIZE, POSITION, PAIRS, COUNT_OF_PAIRS), GK_END, GK_PARALLEL, GK_SECTION,
    GK_RUN(advance, SIZE, FORCE, POSITION), GK_RUN(advance, SIZE, POSITION, FORCE), GK_END, GK_SECTION, GK_END,
    GK_SECTION, GK_COPY(PAIRS, COUNT_OF_PAIRS, SIZE), GK_END, GK_END, GK_PARALLEL, GK_SECTION,
    GK_WHILE(STATE, .max_iterations = 7), GK_RUN(advance, COUNT_OF_PAIRS, FORCE), GK_END, GK_END, GK_SECTION,
    {.op = GK_OP_COPY, .items = {SIZE}, .args = {FORCE, POSITION}, .offset = 4, .from_offset = 12}, GK_END, GK_END,
    GK_IF(STATE, .offset = 4), GK_CALL(library, PICTURE, 20), GK_ELSE,
    GK_RUN_2D(paint, WIDTH, HEIGHT, PICTURE, SETTINGS), GK_END, GK_SWITCH(STATE), GK_CASE,
    {.op = GK_OP_KERNEL, .name = "paint", .kernel = &paint, .items = {WIDTH}, .args = {PICTURE, SETTINGS}},
    GK_END, GK_CASE, GK_END, GK_END, GK_END, GK_TARGET(SOLVE), GK_END,
    GK_INCLUDE(inner, 100, PICTURE, STATE, SIZE), GK_PARALLEL, GK_SECTION,
    GK_RUN_3D(paint, WIDTH, HEIGHT, SIZE, PICTURE, SETTINGS), GK_END, GK_END,
    GK_RUN_ALWAYS(clear_state, GK_ONE, STATE)};
static const gk_list sample = GK_LIST(sample, sample_tasks, sample_slots);
#endif
