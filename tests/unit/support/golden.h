/* Texts that are compared with files of tests/golden. GK_UPDATE_GOLDEN=1 or --update-golden writes those anew. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include "test.h"

static bool updates_golden;

static inline void read_golden_wish(int count, char **words) {
  const char *wish = getenv("GK_UPDATE_GOLDEN");
  updates_golden = (wish && *wish == '1') || (count > 1 && strcmp(words[1], "--update-golden") == 0);
}

static inline void compare_golden(const char *name, const char *text) {
  enum { MOST = 1 << 20 };
  static char golden[MOST];
  char path[200];
  snprintf(path, sizeof path, "tests/golden/%s", name);
  FILE *file = fopen(path, updates_golden ? "w+b" : "rb");
  if (!file) fail_msg("%s is missing; --update-golden writes it", path);
  if (updates_golden) assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
  rewind(file);
  golden[fread(golden, 1, MOST - 1, file)] = 0;
  fclose(file);
  if (strcmp(text, golden) == 0) return;
  size_t same = 0;
  while (text[same] && text[same] == golden[same]) ++same;
  while (same && text[same - 1] != '\n') --same; /* the first line that differs */
  fail_msg("%s says:\n%.2000s\nbut now it is:\n%.2000s", path, golden + same, text + same);
}
#endif
