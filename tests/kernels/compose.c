/* compose TARGET KERNEL: the text of a kernel of language.h as a device compiler gets it. compose list: their names. */
#include <stdio.h>
#include <string.h>
#include "gk_backend.h"
#include "language.h"

static const gk_kernel *const kernels[] = {
    &types, &casts, &implicit, &numbers, &statements, &structs, &arrays, &by_value, &preprocessor, &uses_inside,
    &functions, &doubles, &atomics, &sums, &sum_of_doubles, &plane, &box, &names, &our_names,
    &layout};

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "list") == 0) {
    for (size_t k = 0; k < GK_COUNT(kernels); ++k) puts(kernels[k]->name);
    return 0;
  }
  for (size_t k = 0; count == 3 && k < GK_COUNT(kernels); ++k) {
    if (strcmp(kernels[k]->name, words[2]) != 0) continue;
    char *text = gk_compose(kernels[k], words[1]);
    if (text) fputs(text, stdout);
    else fprintf(stderr, "%s\n", gk_error());
    gk_free_text(text);
    return text ? 0 : 1;
  }
  fprintf(stderr, "use: compose TARGET KERNEL, or compose list\n");
  return 2;
}
