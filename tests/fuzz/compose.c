/* Arbitrary bytes as the text of a kernel, through the composer, for each target. The first bytes say what the kernel's
 * table holds and where the text is cut into sources. It is composed, or refused with a reason; the same each time. */
#include "fuzz.h"

static const gk_param known[] = {
    {"x", "float", 4, 4, GK_PTR, GK_ACCESS_IN},      {"y", "float", 4, 4, GK_PTR, GK_ACCESS_OUT},
    {"r", "double", 8, 8, GK_PTR, GK_ACCESS_SUM},    {"a", "int", 4, 4, GK_PTR, GK_ACCESS_ATOMIC},
    {"n", "int", 4, 4, GK_I32, GK_ACCESS_VALUE},     {"p", "pair", 8, 4, GK_BYTES, GK_ACCESS_VALUE},
    {"sample", "uint", 4, 4, GK_PTR, GK_ACCESS_INOUT}, {"q", "pair", 8, 4, GK_PTR, GK_ACCESS_IN},
};

/* A copy that ends where its memory ends. */
static char *copy_of(const uint8_t *from, size_t size) {
  char *text = malloc(size + 1);
  REQUIRE(text);
  if (size) memcpy(text, from, size);
  text[size] = 0;
  return text;
}

static size_t lines(const char *text) {
  size_t count = 0;
  for (; *text; ++text) count += *text == '\n';
  return count;
}

static void compose(const gk_kernel *kernel, const char *target, uint8_t fail_at) {
  const int live = atomic_load(&fuzz_memory.live);
  char *text = gk_compose(kernel, target);
  REQUIRE(text || *gk_error());
  if (text) {
    size_t least = 0; /* no line end is lost: compilers' messages name lines */
    for (const char *s = kernel->source->text; *s && !strstr(s, "GK_SOURCE_END"); s = s + strlen(s)) least += lines(s);
    if (kernel->source->line <= 1) REQUIRE(lines(text) + kernel->source->line >= least);
    char *again = gk_compose(kernel, target);
    REQUIRE(again && strcmp(text, again) == 0);
    gk_free_text(again);
  }
  memory_fails_at(fail_at);
  char *short_of = gk_compose(kernel, target);
  REQUIRE(short_of ? text && strcmp(short_of, text) == 0 : !text || memory_failed());
  memory_fails_at(0);
  gk_free_text(short_of);
  gk_free_text(text);
  REQUIRE(atomic_load(&fuzz_memory.live) == live);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  count_memory();
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  bytes in = {data, data + size};
  const uint8_t table = take(&in), shape = take(&in), fail_at = take(&in);
  size_t left = (size_t)(in.end - in.at);
  const uint8_t *cut = left ? memchr(in.at, 1, left) : NULL; /* two sources, the first used by the second */
  const size_t first = cut ? (size_t)(cut - in.at) : 0;
  char *used = copy_of(in.at, first), *own = copy_of(in.at + first + !!cut, left - first - !!cut);
  const gk_source shared = {.file = "shared\\\"file.h", .text = used};
  const gk_source *const uses[] = {&shared};
  const gk_source source = {.file = "own.c", .text = own, .line = shape >> 2 & 3, .uses = uses, .use_count = !!cut};
  gk_param params[3];
  for (uint32_t k = 0; k < GK_COUNT(params); ++k) params[k] = known[(table >> 2 * k) % GK_COUNT(known)];
  const gk_kernel kernel = {.name = "k", .params = params, .param_count = table % 4, .dimensions = shape & 3,
                            .source = &source};
  static const char *const targets[] = {"cuda", "glsl", "hip"};
  for (size_t k = 0; k < GK_COUNT(targets) - !(shape & 16); ++k) compose(&kernel, targets[k], fail_at % 32);
  free(used);
  free(own);
  return 0;
}
