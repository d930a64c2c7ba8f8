/* Kernels from a header and from this file, in one translation unit; flags.py builds this in many ways. */
#include <stdio.h>
#include "cloth.h"
#undef GK_THIS_SOURCE
#define GK_THIS_SOURCE here
GK_SOURCE(here)
GK_KERNEL(scale, (inout(float, y), value(float, a))) {
  y[i] *= a; /* the text of main.c */
}
GK_SOURCE_END

const gk_kernel *lengths_of_other(void);

static const char *line_of(const gk_source *source, unsigned line) {
  const char *at = source->text;
  while (--line > 0) at = strchr(at, '\n') + 1;
  return at;
}

static int check(int holds, const char *what) {
  if (!holds) fprintf(stderr, "wrong: %s\n", what);
  return !holds;
}

int main(void) {
  v2 x[3] = {{1, 2}, {3, 4}, {5, 6}};
  float y[3];
  gk_range all = {0, 3, {3, 1, 1}};
  const gk_kernel *const kernels[] = {&lengths, lengths_of_other()};
  int wrong = 0;
  for (int k = 0; k < 2; ++k) {
    const gk_source *source = kernels[k]->source;
    kernels[k]->host((gk_value[]){{.ptr = y}, {.ptr = x}}, all);
    scale.host((gk_value[]){{.ptr = y}, {.f32 = 2}}, all);
    wrong += check(y[0] == 10 && y[1] == 50 && y[2] == 122, "the results");
    wrong += check(strncmp(line_of(source, source->line), "GK_SOURCE(cloth, &vec)\n", 23) == 0, "the text of cloth.h");
    wrong += check(strstr(source->file, "cloth.h") != NULL, "its name");
    wrong += check(!source->own || strcmp(source->own, source->text) == 0, "its own text in each unit");
    const gk_source *used = source->uses[0];
    wrong += check(source->use_count == 1 && strncmp(line_of(used, used->line), "GK_SHARED(vec)\n", 15) == 0,
                   "the text of vec.h");
  }
  wrong += check(!scale.source->own || strcmp(scale.source->own, scale.source->text) == 0, "its own text");
  wrong += check(strstr(scale.source->text, "/* the text of main.c */") != NULL, "the text of main.c");
  wrong += check(strncmp(line_of(scale.source, scale.source->line), "GK_SOURCE(here)\n", 16) == 0, "its line");
  return wrong != 0;
}
