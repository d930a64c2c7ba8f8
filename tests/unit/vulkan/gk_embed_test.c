/* gk-embed for Vulkan: what it makes and what it refuses. Skipped where there is no compiler of GLSL. */
#include "unit/support/test.h"
#include "unit/support/process.h"
#include "gk.h"
#include <limits.h>
#include <stdlib.h>

#define KERNELS "tests/unit/vulkan/embedded_kernels.h"
#define SHARED "tests/unit/cuda/embedded_shared.h"
#define TO_VULKAN "--name", "images", "--for", "vulkan"

static char base[] = "/tmp/gk-embed-XXXXXX", tool[PATH_MAX];

/* Each word that begins with @ is a file of the test's own. */
static const struct { const char *name, *text; } files[] = {
    {"wrong.c", "\nGK_SOURCE(it)\nGK_KERNEL(one, (inout(int, x))) {\n  x[i] = nobody;\n}\n"},
    {"pointer.c", "GK_SOURCE(it)\nGK_KERNEL(one, (inout(int, x))) {\n  int *p = x;\n  p[i] = 1;\n}\n"},
    {"macro.c", "GK_SOURCE(it)\n#define LIST (inout(int, x))\nGK_KERNEL(one, LIST) { x[i] = 1; }\n"},
    {"none.c", "GK_SOURCE(it)\nGK_FN int one(void) { return 1; }\n"},
    {"odd.c", "GK_SOURCE(it)\nGK_KERNEL(one, (in(int, x) out(int, y))) { y[i] = x[i]; }\n"},
    {"elsewhere.c", "GK_SOURCE(it)\n#ifndef GK_GLSL\nGK_KERNEL(one, (inout(int, x))) { *x = 1; }\n#endif\n"
                    "GK_KERNEL(two, (inout(int, x))) { x[i] = 1; }\n"},
    {"sums.c", "GK_SOURCE(it)\nGK_KERNEL(one, (sum(double, x))) { x[0] += 1.0; }\n"},
};

typedef struct call { const char *words[8]; int code; const char *said, *setting; } call;

static const call all[] = {
    {{TO_VULKAN, KERNELS, SHARED}, 0, "{\"embedded_kernels.h\", {0x", NULL},
    {{TO_VULKAN, "@elsewhere.c"}, 0, ", 0, GK_IMAGE_SPIRV, ", NULL},
    {{TO_VULKAN, "@elsewhere.c"}, 0, "gk-embed: left out, as it stands within #if: ", NULL},
    {{TO_VULKAN, "@sums.c"}, 0, ", 1, GK_IMAGE_SPIRV, ", NULL},
    {{TO_VULKAN, "@sums.c"}, 0, ", 2, GK_IMAGE_SPIRV, ", NULL},
    {{TO_VULKAN, "@wrong.c"}, 1, "wrong.c:4: ", NULL},
    {{TO_VULKAN, "@wrong.c"}, 1, "kernel one of /tmp/", NULL},
    {{TO_VULKAN, "@pointer.c"}, 1, "pointer.c:3: kernel one for Vulkan: `int`: GLSL has no pointers", NULL},
    {{TO_VULKAN, "@macro.c"}, 1, "macro.c:3: the parameters of this kernel can't be read", NULL},
    {{TO_VULKAN, "@odd.c"}, 1, "odd.c:2: the parameters of this kernel can't be read", NULL},
    {{TO_VULKAN, "@none.c"}, 1, "or there is no kernel", NULL},
    {{TO_VULKAN, KERNELS}, 1, "uses embedded_shared, but GK_SHARED(embedded_shared) stands in none of the files", NULL},
    {{TO_VULKAN, KERNELS, SHARED}, 1, "neither glslangValidator nor glslc is in PATH", "PATH=/nowhere"},
    {{TO_VULKAN, "--arch", "90", KERNELS}, 2, "--arch: no such option", NULL},
    {{TO_VULKAN}, 2, "no file is named", NULL},
    {{"--name", "images", KERNELS, "--for"}, 2, "--for: no such option, or it lacks what is to follow", NULL},
    {{"--name", "images", "--for", "red", KERNELS}, 2, "--for is followed by backends", NULL},
    {{"--name", "images", "--for", "vulkan,", KERNELS}, 2, "--for is followed by backends", NULL},
    {{"--name", "images", "--for", "vulkan,openmp", KERNELS}, 2, "--for is followed by backends", NULL},
};

static int begin_call(const void *data) {
  const call *asked = data;
  char *words[GK_COUNT(asked->words) + 2] = {tool}, paths[GK_COUNT(asked->words)][128];
  for (size_t k = 0; k < GK_COUNT(asked->words) && asked->words[k]; ++k) {
    const bool own = asked->words[k][0] == '@';
    snprintf(paths[k], sizeof paths[k], "%s%s%s", own ? base : "", own ? "/" : "", asked->words[k] + own);
    words[k + 1] = paths[k];
  }
  if (asked->setting) putenv(strdup(asked->setting));
  execv(tool, words);
  return 99;
}

TEST(each_call_answers) {
  static char text[4 << 20];
  if (system("command -v glslangValidator glslc > /dev/null") != 0) skip();
  for (size_t k = 0; k < GK_COUNT(all); ++k) {
    const int code = code_of_child(begin_call, &all[k], text, sizeof text);
    if (code != all[k].code || !strstr(text, all[k].said))
      fail_msg("call %zu: exit code %d, and it says %.2000s", k, code, text);
  }
}

static int make_files(UNUSED void **state) {
  if (!mkdtemp(base)) return -1;
  for (size_t k = 0; k < GK_COUNT(files); ++k) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", base, files[k].name);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    const bool written = fputs(files[k].text, file) >= 0;
    if (fclose(file) != 0 || !written) return -1;
  }
  return 0;
}

static int remove_files(UNUSED void **state) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", base);
  return system(command);
}

int main(void) {
  if (readlink("/proc/self/exe", tool, sizeof tool - 64) < 0) return 1;
  char *build = strstr(tool, "/build/tests/unit/");
  if (!build) return 1;
  snprintf(build, 64, "/%s/gk-embed", CHECKED_TREE);
  return run_all_tests_with(make_files, remove_files);
}
