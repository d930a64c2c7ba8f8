/* Whether all threads but the one that asks sleep. */
#ifndef OTHERS_SLEEP_H
#define OTHERS_SLEEP_H
#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "unit/support/test.h"

static inline bool others_sleep(void) {
  bool all = true;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[300], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
    FILE *file = entry->d_name[0] != '.' && atoi(entry->d_name) != (int)syscall(SYS_gettid) ? fopen(path, "r") : NULL;
    if (!file) continue; /* this thread, or one that has ended */
    all &= fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state != 'R';
    fclose(file);
  }
  closedir(folder);
  return all;
}
#endif
