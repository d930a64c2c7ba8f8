/* Sections that touch the same memory, by the list and by what is bound: against cases, and against a comparison of all
 * pairs. */
#include "check/overlap.h"
#include "problems.h"
#include "plan/plan.h"
#include "unit/support/chance.h"

enum { A = 1, B, C, D, E, N, S, SLOTS = S };
static const gk_slot_desc table[] = {GK_BUFFER(A, int), GK_BUFFER(B, int), GK_BUFFER(C, int),      GK_BUFFER(D, int),
                                     GK_BUFFER(E, int), GK_SCALAR(N, int), GK_STRUCT_VALUE(S, int)};

static void nothing(const gk_value *args, gk_range items) { (void)args, (void)items; }
static gk_result library(const gk_value *args, void *native) { return (void)args, (void)native, GK_OK; }

#define PARAM(name, access) {name, "int", 4, 4, GK_PTR, GK_ACCESS_##access}
#define KERNEL(id, ...) \
  static const gk_param id##_params[] = {__VA_ARGS__}; \
  static const gk_kernel id = { \
      .name = #id, .params = id##_params, .param_count = GK_COUNT(id##_params), .dimensions = 3, .host = nothing}
KERNEL(reads, PARAM("r", IN));
KERNEL(writes, PARAM("w", OUT));
KERNEL(updates, PARAM("u", INOUT));
KERNEL(sums, PARAM("s", SUM));
KERNEL(atomics, PARAM("a", ATOMIC));
KERNEL(copies, PARAM("w", OUT), PARAM("r", IN));
KERNEL(counts, PARAM("a", ATOMIC), PARAM("b", ATOMIC));
KERNEL(mixes, PARAM("w", OUT), PARAM("a", ATOMIC));
KERNEL(twice, PARAM("w", OUT), PARAM("v", OUT));

#define DO(k, ...) {.op = GK_OP_KERNEL, .name = #k, .kernel = &(k), .items = {N}, .args = {__VA_ARGS__}}
#define SIDES(a, b) GK_PARALLEL, GK_SECTION, a, GK_END, GK_SECTION, b, GK_END, GK_END

static gk_list list_of(const gk_task *tasks, size_t count) {
  return (gk_list){GK_ABI, "list", tasks, count, table, GK_COUNT(table)};
}

/* An included list whose two slots may get the same memory. */
enum { TO = 1, FROM };
static const gk_slot_desc move_table[] = {GK_BUFFER(TO, int), GK_BUFFER(FROM, int), GK_SCALAR(N, int)};
LIST_OVER(move_table, move, {.op = GK_OP_KERNEL, .name = "move", .kernel = &copies, .args = {TO, FROM}});
static const gk_slot_desc own_table[] = {GK_BUFFER(TO, int)};
LIST_OVER(own_table, own, {.op = GK_OP_KERNEL, .name = "own", .kernel = &writes, .args = {TO}});

typedef struct sides {
  size_t task; /* SIZE_MAX: no race */
  const char *words;
  const gk_task *tasks;
  size_t count;
} sides;
#define FINE(...) RACE(SIZE_MAX, "", __VA_ARGS__)
#define RACE(task, words, ...) \
  {task, words, (const gk_task[]){__VA_ARGS__}, sizeof((const gk_task[]){__VA_ARGS__}) / sizeof(gk_task)}

static const sides cases[] = {
    FINE(SIDES(DO(reads, A), DO(reads, A))),
    FINE(SIDES(DO(writes, A), DO(writes, B))),
    FINE(SIDES(DO(sums, A), DO(sums, A))),
    FINE(SIDES(DO(atomics, A), DO(atomics, A))),
    FINE(GK_PARALLEL, GK_SECTION, DO(writes, A), DO(reads, A), DO(sums, A), GK_FILL(A, N, 0), GK_END, GK_END),
    FINE(SIDES(DO(writes, A), DO(writes, B)), SIDES(DO(reads, B), DO(reads, A))),
    FINE(DO(writes, A), SIDES(DO(reads, A), DO(reads, A)), DO(writes, A)),
    FINE(SIDES(GK_CALL(library, A, N, S), GK_CALL(library, B, N, S))),
    FINE(SIDES(GK_COPY(A, S, GK_ONE), GK_COPY(B, S, GK_ONE))),
    FINE(GK_PARALLEL, GK_SECTION, SIDES(DO(writes, A), DO(writes, B)), DO(copies, A, B), GK_END, GK_SECTION,
         DO(writes, C), GK_END, GK_END),
    FINE(SIDES(GK_INCLUDE(own, 0, 0), GK_INCLUDE(own, 0, 0))),
    FINE(SIDES(GK_INCLUDE(move, 0, A, B), GK_INCLUDE(move, 0, C, B))),
    RACE(5, "it writes slot 1 (A), which task 2 (writes) writes", SIDES(DO(writes, A), DO(writes, A))),
    RACE(5, "it reads slot 1 (A), which task 2 (updates) writes", SIDES(DO(updates, A), DO(reads, A))),
    RACE(5, "it writes slot 1 (A), which task 2 (reads) reads", SIDES(DO(reads, A), DO(updates, A))),
    RACE(5, "it sums into slot 1 (A), which task 2 (atomics) changes atomically", SIDES(DO(atomics, A), DO(sums, A))),
    RACE(5, "it reads slot 1 (A), which task 2 (sums) sums into", SIDES(DO(sums, A), DO(reads, A))),
    RACE(5, "it changes atomically slot 1 (A), which task 2 (reads)", SIDES(DO(reads, A), DO(atomics, A))),
    RACE(5, "it writes slot 2 (B), which task 2 (copies) reads", SIDES(DO(copies, A, B), DO(copies, B, C))),
    /* mixed within a section, whichever side it is on */
    RACE(6, "task 3 (atomics)", GK_PARALLEL, GK_SECTION, DO(reads, A), DO(atomics, A), GK_END,
         GK_SECTION, DO(reads, A), GK_END, GK_END),
    RACE(8, "task 2 (reads)", GK_PARALLEL, GK_SECTION, DO(reads, A), GK_END, GK_SECTION, DO(reads, A), GK_END,
         GK_SECTION, DO(sums, A), GK_END, GK_END),
    /* flags, items, copies, fills, calls */
    RACE(6, "it writes slot 3 (C), which task 2 (WHILE C) reads",
         GK_PARALLEL, GK_SECTION, GK_WHILE(C), GK_END, GK_END, GK_SECTION, DO(writes, C), GK_END, GK_END),
    RACE(5, "it reads slot 4 (D), which task 2 (writes) writes", SIDES(DO(writes, D), GK_RUN_3D(reads, N, D, N, A))),
    RACE(5, "task 5 (B = A): it reads slot 1 (A), which task 2 (writes)", SIDES(DO(writes, A), GK_COPY(B, A, N))),
    RACE(5, "it writes slot 1 (A), which task 2 (reads)", SIDES(DO(reads, A), GK_COPY(A, B, N))),
    RACE(5, "it writes slot 1 (A), which task 2 (A = 0) writes", SIDES(GK_FILL(A, N, 0), GK_FILL(A, N, 0))),
    RACE(5, "it writes slot 2 (B), which task 2 (reads)", SIDES(DO(reads, B), GK_CALL(library, A, B, S))),
    RACE(5, "task 5 (library): it writes slot 1 (A), which task 2 (library) writes",
         SIDES(GK_CALL(library, A), GK_CALL(library, A))),
    /* deeper, and through included lists */
    RACE(8, "which task 3 (writes) writes in another section of task 0 (PARALLEL)", GK_PARALLEL, GK_SECTION, GK_IF(E),
         DO(writes, A), GK_END, GK_END, GK_SECTION, GK_WHILE(E), DO(reads, A), GK_END, GK_END, GK_END),
    RACE(7, "section of task 2 (PARALLEL)", GK_PARALLEL, GK_SECTION, SIDES(DO(writes, A), DO(reads, A)), GK_END,
         GK_END),
    RACE(9, "section of task 0 (PARALLEL)", GK_PARALLEL, GK_SECTION, GK_PARALLEL, GK_SECTION, DO(writes, A), GK_END,
         GK_END, GK_END, GK_SECTION, DO(reads, A), GK_END, GK_END),
    RACE(5, "task 5 (move), there task 0 (move): it reads slot 1 (A), which task 2 (move), there task 0 (move) writes",
         SIDES(GK_INCLUDE(move, 0, A, B), GK_INCLUDE(move, 0, C, A))),
};

TEST(each_race_is_told) {
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    gk_list list = list_of(cases[k].tasks, cases[k].count);
    if (cases[k].task == SIZE_MAX) assert_fine(&list);
    else assert_only(&list, "race", cases[k].task, cases[k].words);
  }
}

/* ---- many sections: time is linear, and each pair of a PARALLEL and a slot is told once -------------------------- */

TEST(many_sections_are_searched_in_linear_time) {
  enum { SECTIONS = 33000 };
  gk_task *tasks = calloc(3 * SECTIONS + 2, sizeof *tasks);
  size_t count = 0;
  tasks[count++] = (gk_task)GK_PARALLEL;
  for (int k = 0; k < SECTIONS; ++k) {
    tasks[count++] = (gk_task)GK_SECTION;
    tasks[count++] = (gk_task)DO(counts, A, B);
    tasks[count++] = (gk_task)GK_END;
  }
  tasks[count++] = (gk_task)GK_END;
  gk_list list = list_of(tasks, count);
  assert_fine(&list);
  for (int k = 1; k < SECTIONS; k += 2) tasks[3 * k + 2] = (gk_task)DO(mixes, A, B);
  problems all = check_list(&list);
  assert_int_equal(all.count, 1);
  assert_problem(&all, 0, "race", 5, "slot 1 (A), which task 2 (counts) changes atomically");
  free(tasks);
}

/* Up to 31 PARALLELs in each other, and in the innermost many tasks. */
TEST(deep_sections_are_searched_in_linear_time) {
  enum { DEEP = 31, TASKS = 100000 };
  gk_task *tasks = calloc(4 * DEEP + TASKS, sizeof *tasks);
  size_t count = 0;
  for (int k = 0; k < DEEP; ++k) {
    tasks[count++] = (gk_task)GK_PARALLEL;
    tasks[count++] = (gk_task)GK_SECTION;
  }
  for (int k = 0; k < TASKS; ++k) tasks[count++] = (gk_task)DO(twice, A + k % 5, A + (k + 1) % 5);
  for (int k = 0; k < 2 * DEEP; ++k) tasks[count++] = (gk_task)GK_END;
  gk_list list = list_of(tasks, count);
  assert_fine(&list);
  free(tasks);
}

/* ---- against a comparison of all pairs --------------------------------------------------------------------------- */

enum { MAX_LINES = 60 };
typedef struct random_list {
  uint64_t random;
  gk_task tasks[MAX_LINES];
  uint32_t parents[MAX_LINES]; /* the block around, from 1; 0: none */
  uint32_t count;
} random_list;

static uint32_t add(random_list *r, gk_task task, uint32_t parent) {
  r->parents[r->count] = parent;
  r->tasks[r->count] = task;
  return ++r->count;
}

static void add_block(random_list *r, uint32_t parent, uint32_t depth) {
  static const gk_kernel *const kernels[] = {&reads, &writes, &sums, &atomics, &reads, &sums, &atomics};
  for (uint32_t k = pick(&r->random, 4); k > 0 && r->count + 16 < MAX_LINES; --k) {
    uint32_t what = pick(&r->random, 10);
    if (what < 2 && depth < 4) {
      uint32_t fork = add(r, (gk_task)GK_PARALLEL, parent);
      for (uint32_t j = pick(&r->random, 4); j > 0 && r->count + 8 < MAX_LINES; --j) {
        uint32_t section = add(r, (gk_task)GK_SECTION, fork);
        add_block(r, section, depth + 1);
        add(r, (gk_task)GK_END, fork);
      }
      add(r, (gk_task)GK_END, parent);
    } else if (what == 2 && depth < 4) {
      gk_slot flag = (gk_slot)(A + pick(&r->random, 4));
      uint32_t loop = add(r, (gk_task){.op = GK_OP_WHILE, .flag = flag}, parent);
      add_block(r, loop, depth + 1);
      add(r, (gk_task)GK_END, parent);
    } else {
      gk_task task = {.op = GK_OP_KERNEL, .kernel = kernels[pick(&r->random, GK_COUNT(kernels))]};
      task.args[0] = (gk_slot)(A + pick(&r->random, 4));
      add(r, task, parent);
    }
  }
}

/* What a line touches: one slot, in one way, like the kernels above. */
static gk_slot slot_of(const gk_task *task) { return task->op == GK_OP_KERNEL ? task->args[0] : task->flag; }
static gk_access access_of(const gk_task *task) {
  return task->op == GK_OP_KERNEL ? task->kernel->params[0].access : GK_ACCESS_IN;
}

/* The PARALLEL in whose different sections two lines are, innermost; 0: there is none. */
static uint32_t fork_of(const random_list *r, uint32_t a, uint32_t b) {
  for (uint32_t x = a + 1; x; x = r->parents[x - 1])
    for (uint32_t y = b + 1; y; y = r->parents[y - 1])
      if (x != y && r->parents[x - 1] == r->parents[y - 1] && r->tasks[x - 1].op == GK_OP_SECTION &&
          r->tasks[y - 1].op == GK_OP_SECTION)
        return r->parents[x - 1];
  return 0;
}

static void compare_all_pairs(const random_list *r, bool clash[MAX_LINES + 1][SLOTS + 1]) {
  for (uint32_t b = 0; b < r->count; ++b)
    for (uint32_t a = 0; a < b; ++a) {
      const gk_task *first = &r->tasks[a], *second = &r->tasks[b];
      if (!slot_of(first) || slot_of(first) != slot_of(second)) continue;
      gk_access access = access_of(first);
      if (access == access_of(second) && access != GK_ACCESS_OUT) continue;
      uint32_t fork = fork_of(r, a, b);
      if (fork) clash[fork - 1][slot_of(first)] = true;
    }
}

TEST(races_are_those_of_all_pairs) {
  static random_list r;
  size_t total = 0, without = 0;
  for (uint64_t seed = 0; seed < 5000; ++seed) {
    bool clash[MAX_LINES + 1][SLOTS + 1] = {{false}};
    r = (random_list){.random = mix(seed)};
    while (r.count < 20) add_block(&r, 0, 0);
    gk_list list = list_of(r.tasks, r.count);
    compare_all_pairs(&r, clash);
    size_t wanted = 0;
    for (size_t k = 0; k < MAX_LINES; ++k)
      for (size_t s = 0; s <= SLOTS; ++s) wanted += clash[k][s];
    problems all = check_list(&list);
    for (size_t k = 0; k < all.count; ++k) {
      const char *slot = strstr(all.at[k].message, "slot "), *fork = strstr(all.at[k].message, "section of task ");
      assert_string_equal(all.at[k].code, "race");
      if (!clash[atoi(fork + 16)][atoi(slot + 5)]) fail_msg("seed %d: %s", (int)seed, all.at[k].message);
      clash[atoi(fork + 16)][atoi(slot + 5)] = false; /* once */
      if (k) assert_true(all.at[k - 1].task <= all.at[k].task);
    }
    if (all.count != wanted) fail_msg("seed %d: %zu races, not %zu", (int)seed, all.count, wanted);
    total += wanted;
    without += !wanted;
  }
  assert_true(total > 1000 && without > 500);
}

/* ---- slots that are bound to overlapping memory ------------------------------------------------------------------ */

typedef struct overlap {
  gk_slot a, b;
  const char *words; /* NULL: it is fine */
  const gk_task *tasks;
  size_t count;
} overlap;
#define OVERLAP(a, b, words, ...) \
  {a, b, words, (const gk_task[]){__VA_ARGS__}, sizeof((const gk_task[]){__VA_ARGS__}) / sizeof(gk_task)}

static const overlap overlaps[] = {
    OVERLAP(A, B, NULL, DO(reads, A), DO(writes, B), DO(updates, A)),
    OVERLAP(A, B, NULL, DO(counts, A, B)),
    OVERLAP(A, B, NULL, DO(copies, A, C), DO(copies, C, B)),
    OVERLAP(A, B, NULL, SIDES(DO(reads, A), DO(reads, B))),
    OVERLAP(A, B, NULL, SIDES(DO(sums, A), DO(sums, B))),
    OVERLAP(A, B, NULL, SIDES(DO(atomics, A), DO(atomics, B))),
    OVERLAP(A, B, NULL, SIDES(DO(writes, A), DO(writes, C)), SIDES(DO(writes, B), DO(writes, C))),
    OVERLAP(A, B, NULL, GK_PARALLEL, GK_SECTION, DO(writes, A), DO(reads, B), GK_END, GK_END),
    OVERLAP(A, B, NULL, GK_RUN_3D(writes, A, N, N, B)), /* its items are read before it runs */
    OVERLAP(A, B, "task 1 (copies) writes slot 1 (A) and reads slot 2 (B); bind", DO(reads, A), DO(copies, A, B)),
    OVERLAP(B, A, "task 0 (copies) reads slot 2 (B) and writes slot 1 (A); bind", DO(copies, A, B)),
    OVERLAP(A, B, "task 0 (twice) writes slot 1 (A) and writes slot 2 (B)", DO(twice, A, B)),
    OVERLAP(A, B, "task 0 (mixes) writes slot 1 (A) and changes atomically slot 2 (B)", DO(mixes, A, B)),
    OVERLAP(A, B, "task 0 (A = B) writes slot 1 (A) and reads slot 2 (B)", GK_COPY(A, B, N)),
    OVERLAP(A, B, "task 1 (library) writes slot 1 (A)", DO(reads, A), GK_CALL(library, A, N, B)),
    OVERLAP(A, B, "task 2 (writes) writes there, task 5 (reads) reads there, and they are in two sections of the "
                  "PARALLEL at task 0; bind", SIDES(DO(writes, A), DO(reads, B))),
    OVERLAP(A, B, "task 3 (sums) sums into there, task 6 (atomics) changes atomically there, and they are in two "
                  "sections of the PARALLEL at task 1", DO(reads, C), SIDES(DO(sums, B), DO(atomics, A))),
    OVERLAP(A, B, "task 2 (A) reads there, task 7 (writes) writes there", GK_PARALLEL, GK_SECTION, GK_WHILE(A),
            DO(reads, C), GK_END, GK_END, GK_SECTION, DO(writes, B), GK_END, GK_END),
    OVERLAP(A, B, "PARALLEL at task 0", GK_PARALLEL, GK_SECTION, SIDES(DO(writes, A), DO(writes, C)), GK_END,
            GK_SECTION, DO(writes, B), GK_END, GK_END),
};

TEST(overlapping_memory_is_checked) {
  for (size_t k = 0; k < GK_COUNT(overlaps); ++k) {
    gk_list list = list_of(overlaps[k].tasks, overlaps[k].count);
    gki_blocks blocks;
    gki_planned planned = {0};
    char message[500] = "";
    assert_fine(&list);
    assert_ok(gki_blocks_read(&blocks, &list));
    assert_ok(gki_plan_make(&planned, &blocks, NULL, 0));
    gki_blocks_free(&blocks);
    uint32_t a = (uint32_t)overlaps[k].a, b = (uint32_t)overlaps[k].b;
    bool forbidden = gki_check_overlap(&planned.plan, a, b, message, sizeof message);
    if (forbidden != !!overlaps[k].words || (forbidden && !strstr(message, overlaps[k].words)))
      fail_msg("overlap %zu: \"%s\", not \"%s\"", k, message, overlaps[k].words ? overlaps[k].words : "fine");
    assert_int_equal(gki_check_overlap(&planned.plan, b, a, message, 20), forbidden);
    gki_plan_free(&planned);
  }
}

int main(void) { return run_all_tests(); }
