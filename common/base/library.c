#include "base/library.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

void *gki_library_open(const char *name, const char *toolkit, const char *below) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  char path[1024];
  if (!library && snprintf(path, sizeof path, "%s/%s/%s", toolkit, below, name) < (int)sizeof path)
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library;
}

const char *gki_library_path(void *library) {
  struct link_map *map;
  return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] ? map->l_name : NULL;
}

const char *gki_library_find(void *library, const gki_library_entry *entries, size_t count, int need, void *to) {
  const char *missing = NULL;
  for (size_t k = 0; k < count; ++k) {
    if (entries[k].need != need) continue;
    void *entry = dlsym(library, entries[k].name);
    memcpy((char *)to + entries[k].at, &entry, sizeof entry);
    if (!entry && !missing) missing = entries[k].name;
  }
  return missing;
}
