/* What the build uses on cuda/gates.cu, as the simulated NVRTC does for the sources that it gets.
 *   translate source FILE          C++ to be preprocessed
 *   translate kernels SYMBOL FILE  that preprocessed, to be compiled; its sim_code is SYMBOL */
#include "translate.h"
#include <stdlib.h>
#include <string.h>

static char *read_text(const char *path) {
  FILE *in = fopen(path, "r");
  char *text = NULL;
  size_t bytes = 0;
  FILE *copy = in ? open_memstream(&text, &bytes) : NULL;
  for (int c; copy && (c = fgetc(in)) != EOF;) fputc(c, copy);
  if (copy) fclose(copy);
  if (in) fclose(in);
  if (!text) perror(path);
  return text;
}

int main(int count, char **words) {
  int is_source = count == 3 && strcmp(words[1], "source") == 0;
  int is_kernels = count == 4 && strcmp(words[1], "kernels") == 0;
  char *text = is_source || is_kernels ? read_text(words[count - 1]) : NULL;
  if (!text) return 2;
  if (is_source) sim_write_source(stdout, "#define SIM_ARCH 750\n", text, words[2]);
  size_t kernels = is_kernels ? sim_translate(stdout, text, words[2]) : 1;
  free(text);
  if (kernels == 0) fprintf(stderr, "%s: there is no kernel in it\n", words[count - 1]);
  return fflush(stdout) == 0 && kernels > 0 ? 0 : 1;
}
