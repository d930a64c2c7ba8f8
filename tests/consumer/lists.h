/* Every macro for lists, in arrays at file level, for C and C++ alike. The kernels are those of c/every_macro.c, where
 * they are static; C++ knows them by reference. */
#include <gk.h>

#ifdef __cplusplus
extern "C" {
#endif
extern const gk_kernel *const every_kernel[];
gk_result library_call(const gk_value *args, void *native);
/* What the other language's file makes of it: the sum that the device computed, or -1. */
int run_from_c(void);
#ifdef __cplusplus
}
static const gk_kernel &add_one = *every_kernel[0], &count_up = *every_kernel[1], &plane = *every_kernel[2],
                       &volume = *every_kernel[3], &halt = *every_kernel[4], &scaled = *every_kernel[5];
#endif

#ifndef OPTIONS_ARE_THERE
typedef struct options {
  float factor;
  int32_t rounds;
} options;
#endif

enum slot { DATA = 1, COPY_OF, FLAG, RAW, COUNT, WIDTH, HEIGHT, WEIGHT, BIG, FINE, OPTIONS, CHOICE, PASS };
enum label { SEARCH = 1, HERE, AT_OFFSET, ROUNDS, INCLUDED = 100 };

static const gk_slot_desc slots[] = {
  GK_OWN(DATA, int, 64),    GK_OWN(COPY_OF, int, 64),       GK_OWN(FLAG, int, 2),        GK_RAW_BUFFER(RAW),
  GK_SCALAR(COUNT, int32_t), GK_DEFAULT(WIDTH, int, 8),     GK_DEFAULT(HEIGHT, uint32_t, 8),
  GK_DEFAULT(WEIGHT, float, 1),
  GK_SCALAR(BIG, int64_t),  GK_DEFAULT(FINE, double, 0.25), GK_STRUCT_VALUE(OPTIONS, options),
  GK_BUFFER(CHOICE, int),   GK_PASS(PASS, ROUNDS),
};

static const gk_task inner_tasks[] = {
  GK_WHILE(FLAG, .max_iterations = 3, .every = 2, .label = ROUNDS),
    GK_RUN(halt, GK_ONE, FLAG),
  GK_END,
};
static const gk_list inner = GK_LIST(inner, inner_tasks, slots);

static const gk_task tasks[] = {
  GK_RUN_ALWAYS(count_up, GK_ONE, COPY_OF),
  GK_FILL(DATA, COUNT, 0),
  GK_RUN(add_one, COUNT, DATA),
  GK_RUN_2D(plane, GK_ITEMS(8), WIDTH, DATA, WIDTH),
  GK_RUN_3D(volume, WIDTH, WIDTH, GK_ONE, DATA),
  GK_RUN(scaled, GK_ONE, DATA, OPTIONS),
  GK_COPY(COPY_OF, DATA, COUNT),
  GK_CALL(library_call, DATA, COUNT),
  GK_REPEAT(COUNT, .max_iterations = 8),
    GK_REPEAT(GK_ITEMS(3), .label = ROUNDS),
      GK_IF(PASS),
        GK_RUN(halt, GK_ONE, FLAG),
      GK_END,
    GK_END,
  GK_END,
  GK_DO_WHILE(FLAG),
    GK_CHECKPOINT(SEARCH, FLAG),
      GK_RUN(halt, GK_ONE, FLAG),
    GK_END,
    GK_CHECKPOINT_AT(AT_OFFSET, FLAG, 4),
      GK_RUN(halt, GK_ONE, FLAG),
    GK_END,
    GK_TARGET(HERE),
      GK_RUN(add_one, COUNT, DATA),
    GK_END,
  GK_END,
  GK_IF(FLAG, .offset = 4),
    GK_RUN(add_one, COUNT, DATA),
  GK_ELSE,
    GK_RUN(halt, GK_ONE, FLAG),
  GK_END,
  GK_SWITCH(FLAG),
    GK_CASE,
      GK_RUN(add_one, COUNT, DATA),
    GK_END,
  GK_END,
  GK_PARALLEL,
    GK_SECTION,
      GK_RUN(add_one, COUNT, DATA),
    GK_END,
    GK_SECTION,
      GK_RUN(count_up, GK_ONE, COPY_OF),
    GK_END,
  GK_END,
  GK_INCLUDE(inner, INCLUDED, DATA, COPY_OF, FLAG),
};
static const gk_list everything = GK_LIST(everything, tasks, slots);
