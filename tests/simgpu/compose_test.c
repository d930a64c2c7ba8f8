/* Composed kernels on the simulated GPU and their host functions do the same to the same memory. */
#include "world.h"
#include "docs/examples/softbody/softbody.kernel.h"
#include "conformance/kernels.h"
#include "cuda/gates.h"
#include "gk_backend.h"
#include <math.h>

static const gk_kernel *const conformance[] = {
  &count, &decrease, &lower, &set, &add, &assign, &add_to, &append, &note, &below, &total, &total_float, &moments,
  &apply, &apply_in, &scale, &wide, &number, &number_3d, &stamp, &raise_at, &agree, &squares, &meet};
static const gk_kernel *const body[] = {
  &predict, &count_cells, &scan_blocks, &scan_totals, &scan_spread, &place, &sort_cell, &find_contacts, &judge_room,
  &stretching, &turning, &bending, &pushing, &assemble, &add_rows, &translate, &start_solve, &judge_solve, &direct,
  &multiply_hinges, &multiply, &advance, &start_search, &try_step, &add_energy, &add_hinges, &judge_search, &accept,
  &judge_newton, &finish, &measure, &judge_energy, &take_back};

enum { NODE = 3, ROOM = 1024 /* the number of elements of each array */, SIXTEEN = 16 /* of any integer argument */ };

static uint64_t seed;
static double draw(void) { /* between 0.1 and 1 */
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return 0.1 + 0.9 * (double)(seed >> 40) / (double)(1u << 24);
}

/* Integers are small, since they may number elements. */
static void fill_bytes(const char *type, void *at, size_t bytes, int index) {
  int *words = at;
  double *doubles = at;
  float *floats = at;
  if (strcmp(type, "int") == 0 || strcmp(type, "uint") == 0) *words = index;
  else if (strcmp(type, "int64_t") == 0) *(int64_t *)at = index;
  else if (strcmp(type, "line") == 0) *(line *)at = (line){index + 1, 3};
  else if (strcmp(type, "contact") == 0) *(contact *)at = (contact){index, (float)draw()};
  else if (strcmp(type, "float") == 0 || strcmp(type, "bond") == 0)
    for (size_t k = 0; k < bytes / sizeof *floats; ++k) floats[k] = (float)draw();
  else {
    for (size_t k = 0; k < bytes / sizeof *doubles; ++k) doubles[k] = draw();
    if (strcmp(type, "hinge") == 0)
      for (int k = 0; k < 4; ++k) words[k] = (index + 7 * k) % 100;
    if (strcmp(type, "control") == 0) ((control *)at)->trials = ((control *)at)->accepted = (index + 1) % 2;
  }
}

typedef struct arrays { unsigned char *at[GK_MAX_ARGS]; } arrays;

static arrays fill_arrays(const gk_kernel *kernel) {
  arrays all = {{NULL}};
  seed = 1;
  for (uint32_t p = 0; p < kernel->param_count; ++p) {
    const gk_param *param = &kernel->params[p];
    all.at[p] = calloc(ROOM, param->element_bytes);
    for (int k = 0; k < ROOM; ++k) {
      int index = param->type != GK_PTR ? SIXTEEN : strstr(param->name, "first") ? 2 * k :
        param->access == GK_ACCESS_OUT ? 77 : param->access == GK_ACCESS_INOUT ? k * 7 % 97 : k;
      fill_bytes(param->element, all.at[p] + (size_t)k * param->element_bytes, param->element_bytes, index);
    }
  }
  return all;
}

static void drop_arrays(const gk_kernel *kernel, arrays *all) {
  for (uint32_t p = 0; p < kernel->param_count; ++p) free(all->at[p]);
}

static void run_on_host(const gk_kernel *kernel, const arrays *all, const uint32_t extent[3]) {
  gk_value values[GK_MAX_ARGS] = {{0}};
  for (uint32_t p = 0; p < kernel->param_count; ++p) {
    gk_type type = kernel->params[p].type;
    if (type == GK_PTR || type == GK_BYTES) values[p].ptr = all->at[p];
    else memcpy(&values[p], all->at[p], kernel->params[p].element_bytes);
  }
  kernel->host(values, (gk_range){.end = (size_t)extent[0] * extent[1] * extent[2],
                                  .extent = {extent[0], extent[1], extent[2]}});
}

typedef struct record {
  _Alignas(16) gki_record head;
  uint64_t arguments[GK_MAX_ARGS + 4]; /* and the extents */
} record;

/* The extents are read from memory, as kernels may have written them. */
static record record_of(const gk_kernel *kernel, const arrays *all, const int32_t extent[3]) {
  record r = {.head = {.count = GKI_UNCOUNTED | 7, .node = NODE}};
  uint64_t *extents = r.arguments + (kernel->param_count + 1) / 2 * 2;
  for (uint32_t p = 0; p < kernel->param_count; ++p) {
    const gk_type type = kernel->params[p].type;
    if (type == GK_PTR || type == GK_BYTES) r.arguments[p] = (uintptr_t)all->at[p];
    else memcpy(&r.arguments[p], all->at[p], kernel->params[p].element_bytes);
  }
  for (uint32_t axis = 0; axis < 3; ++axis) extents[axis] = (uintptr_t)&extent[axis];
  return r;
}

static void run_on_gpu(sim_module *module, const gk_kernel *kernel, const arrays *all, const uint32_t extent[3]) {
  const int32_t read[3] = {(int32_t)extent[0], (int32_t)extent[1], (int32_t)extent[2]};
  const record written = record_of(kernel, all, read);
  const uint64_t word = 5, launch = 6;
  gki_task task = {.record = (uintptr_t)&written, .guard = (uintptr_t)&word, .number = (uintptr_t)&launch};
  const sim_kernel *there = sim_module_kernel(module, kernel->name);
  size_t offset, bytes;
  if (!there) fail_msg("there is no %s", kernel->name);
  assert_int_equal(sim_kernel_parameter_count(there), 1);
  sim_kernel_parameter(there, 0, &offset, &bytes);
  assert_int_equal(bytes, sizeof task);
  sim_kernel_run(there, (unsigned[3]){2, 1, 1}, (unsigned[3]){64, 1, 1}, &task);
  task.number = task.guard; /* skipped: nothing may happen twice */
  sim_kernel_run(there, (unsigned[3]){2, 1, 1}, (unsigned[3]){64, 1, 1}, &task);
}

/* Sums are added up in another order. */
static bool are_close(const gk_param *param, const void *host, const void *gpu) {
  double a = 0, b = 0;
  const bool is_float = strcmp(param->element, "float") == 0;
  if (is_float) {
    a = (double)*(const float *)host;
    b = (double)*(const float *)gpu;
  } else if (strcmp(param->element, "double") == 0) {
    a = *(const double *)host;
    b = *(const double *)gpu;
  } else return memcmp(host, gpu, param->element_bytes) == 0;
  return fabs(a - b) <= (is_float ? 1e-5 : 1e-12) * (fabs(a) + 100);
}

static bool compare(const gk_kernel *kernel, const arrays *host, const arrays *gpu) {
  bool changed = false;
  arrays before = fill_arrays(kernel);
  for (uint32_t p = 0; p < kernel->param_count; ++p) {
    const gk_param *param = &kernel->params[p];
    changed = changed || memcmp(before.at[p], host->at[p], ROOM * param->element_bytes) != 0;
    for (int k = 0; k < ROOM; ++k) {
      size_t bytes = param->element_bytes;
      const unsigned char *a = host->at[p] + (size_t)k * bytes, *b = gpu->at[p] + (size_t)k * bytes;
      bool same = param->access == GK_ACCESS_SUM && k == 0 ? are_close(param, a, b) : memcmp(a, b, bytes) == 0;
      if (!same) fail_msg("%s: %s[%d] differs", kernel->name, param->name, k);
    }
  }
  drop_arrays(kernel, &before);
  return changed;
}

static void check(sim_module *module, const gk_kernel *kernel, uint32_t most) {
  uint32_t dimensions = kernel->dimensions;
  const uint32_t width = dimensions > 1 ? 7 : most, height = dimensions > 1 ? 9 : 1, depth = dimensions > 2 ? 2 : 1;
  const uint32_t extents[][3] = {{1, 1, 1}, {width, height, depth}};
  bool changed = false;
  for (size_t e = 0; e < 2; ++e) {
    arrays host = fill_arrays(kernel), gpu = fill_arrays(kernel);
    run_on_host(kernel, &host, extents[e]);
    run_on_gpu(module, kernel, &gpu, extents[e]);
    changed = compare(kernel, &host, &gpu) || changed;
    drop_arrays(kernel, &host);
    drop_arrays(kernel, &gpu);
  }
  if (!changed) fail_msg("%s changes nothing here", kernel->name);
}

/* The number of kernels in the text: none may be missing in the lists above. */
static size_t kernels_in(const char *text) {
  size_t kernels = 0;
  for (const char *s = text; (s = strstr(s, "\nGK_KERNEL")); ++s) ++kernels;
  return kernels;
}

static void check_all(const gk_kernel *const *kernels, size_t kernel_count) {
  assert_int_equal(kernels_in(kernels[0]->source->text), kernel_count);
  char *text = gk_compose(kernels[0], "cuda");
  if (!text) fail_msg("%s", gk_error());
  sim_module *module = load_source(text);
  for (size_t k = 0; k < kernel_count; ++k) {
    char *again = gk_compose(kernels[k], "cuda"); /* one text for all kernels of a source */
    assert_string_equal(again, text);
    gk_free_text(again);
    check(module, kernels[k], kernels[k] == &place ? 1 : 100);
  }
  gk_free_text(text);
}

KERNEL_TEST(kernels_of_the_conformance_suite) { check_all(conformance, GK_COUNT(conformance)); }
/* Nothing is written; the extents are posted if there are too many items, not if there are none. */
KERNEL_TEST(counts_that_are_read) {
  static const struct { int32_t extent[3]; bool is_posted; } cases[] = {
    {{0, 3, 3}, false}, {{3, -1, 3}, false}, {{3, 3, 0}, false}, {{INT32_MAX, 2, -1}, false}, {{46341, 46341, 1}, true},
    {{1, 65536, 32768}, true}, {{INT32_MAX, INT32_MAX, INT32_MAX}, true}, {{2, 1, 1 << 30}, true}};
  char *text = gk_compose(&number_3d, "cuda");
  const sim_kernel *there = sim_module_kernel(load_source(text), number_3d.name);
  gk_free_text(text);
  for (size_t k = 0; k < GK_COUNT(cases); ++k) {
    gki_bad_count posts[GKI_LAUNCH_RING] = {{0}};
    gki_task_control block = {.number = k + 1, .failures = (uintptr_t)posts};
    arrays all = fill_arrays(&number_3d), before = fill_arrays(&number_3d);
    const record written = record_of(&number_3d, &all, cases[k].extent);
    const gki_task task = {.record = (uintptr_t)&written, .number = (uintptr_t)&block};
    sim_kernel_run(there, (unsigned[3]){2, 1, 1}, (unsigned[3]){64, 1, 1}, &task);
    const gki_bad_count *post = &posts[k % GKI_LAUNCH_RING];
    assert_int_equal(post->number, cases[k].is_posted ? k + 1 : 0);
    for (int axis = 0; axis < 3 && cases[k].is_posted; ++axis)
      assert_int_equal(post->extent[axis], cases[k].extent[axis]);
    assert_int_equal(post->node, cases[k].is_posted ? NODE : 0);
    assert_memory_equal(all.at[0], before.at[0], ROOM * number_3d.params[0].element_bytes);
    drop_arrays(&number_3d, &all);
    drop_arrays(&number_3d, &before);
  }
}

KERNEL_TEST(kernels_of_the_soft_body) { check_all(body, GK_COUNT(body)); }

int main(void) { return run_all_tests_with(load_nvrtc, NULL); }
