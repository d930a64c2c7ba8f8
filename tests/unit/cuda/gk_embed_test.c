/* gk-embed on the simulated compiler: what it refuses, why, and that it leaves no file then. */
#include "world.h"
#include "unit/support/process.h"
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define KERNELS "tests/unit/cuda/embedded_kernels.h"
#define SHARED "tests/unit/cuda/embedded_shared.h"
#define NAME "--name", "images"
#define MANY "90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90,90"

enum { SPREAD = 6 }; /* of files */
static char base[] = "/tmp/gk-embed-XXXXXX", tool[PATH_MAX];

/* Files of the test's own: each word that begins with @ is one in the test's folder. */
static const struct { const char *name, *text; size_t bytes; } files[] = {
    {"nothing.c", "int main(void) { return 0; } /* GK_SOURCE(no) */\n#define GK_SOURCE(no)\nint GK_SOURCE;\n", 0},
    {"included.c", "GK_SOURCE(it)\n#ifndef GK_GLSL\n#include \"other.h\"\n#endif\n"
                   "GK_KERNEL(one, (inout(int, x))) { x[i] = 1; }\n", 0},
    {"odd.c", "GK_SOURCE(it)\n\0", 15},
    {"wrong.c", "\nGK_SOURCE(it)\nGK_KERNEL(one, (inout(int, x))) {\n  x[i] = nobody;\n}\n", 0},
    {"two\"?.c", "GK_SOURCE(it)\nGK_KERNEL(one, (inout(int, x))) { x[i] = 1; }\n", 0},
    {"shared.c", "GK_SHARED(half_more)\nGK_FN int none(void);\nGK_SOURCE_END\n"
                 "GK_SOURCE(half)\nGK_KERNEL(two, (inout(int, x))) { x[i] = 2; }\nGK_SOURCE_END\n"
                 "GK_SHARED(half)\nGK_FN int half_of(int x) { return x / 2; }\nGK_SOURCE_END\n"
                 "GK_SOURCE(user, &half)\nGK_KERNEL(one, (inout(int, x))) { x[i] = half_of(x[i]); }\n", 0},
    {"spread.c", "GK_SOURCE(\nit)\nGK_KERNEL(one, (inout(int, x))) { x[i] = 1; }\n", 0},
};

typedef struct call {
  const char *words[10];
  int code;
  const char *said; /* NULL: the content isn't compared */
  const char *setting;
  long limit; /* of a file's size; 0: none */
} call;

static const call all[] = {
    {{NAME, "--out", "@x.c", "--arch", "90", KERNELS, SHARED}, 0, NULL, NULL, 0},
    {{NAME, "--arch", "sm_90", "--ptx", "75,90", KERNELS, SHARED}, 0, "GK_IMAGE_PTX, 13000", NULL, 0},
    {{NAME, "--arch", "none", "--ptx", "80", KERNELS, SHARED}, 0, "80, GK_IMAGE_PTX", NULL, 0},
    {{NAME, "--arch", "none", KERNELS, SHARED}, 0, "75, GK_IMAGE_PTX", NULL, 0},
    {{NAME, "--arch", "90", KERNELS, SHARED}, 0, "image_1[] __attribute__((aligned(64))) = {\n", NULL, 0},
    {{NAME, "--moves", "--arch", "90"}, 0, "gk's COPY and FILL", NULL, 0},
    {{NAME, "--arch", "90", "@two\"?.c"}, 0, "{\"two\\042\\077.c\", ", NULL, 0},
    {{NAME, "--arch", "90", "@shared.c"}, 0, "shared.c", NULL, 0}, /* by its whole name, and no GK_SOURCE */
    {{NAME, "--arch", "90,80", KERNELS, SHARED}, 0, "90, GK_IMAGE_PTX", NULL, 0},
    {{NAME, KERNELS, SHARED}, 0, "75, GK_IMAGE_PTX", NULL, 0},
    {{NAME, "--driver", "12.8", "--arch", "90", KERNELS, SHARED}, 0, "90, GK_IMAGE_CODE, 12040",
     "SIMGPU_NVRTC=12.4", 0},
    {{"--help"}, 0, "use: gk-embed", NULL, 0},
    {{"-h"}, 0, "use: gk-embed", NULL, 0},
    /* how it is called */
    {{KERNELS}, 2, "--name NAME is missing", NULL, 0},
    {{"--name", "a-b", KERNELS}, 2, "no name in C", NULL, 0},
    {{"--name", "", KERNELS}, 2, "no name in C", NULL, 0},
    {{"--name", "1a", KERNELS}, 2, "no name in C", NULL, 0},
    {{NAME}, 2, "no file is named", NULL, 0},
    {{NAME, "--colour", "red", KERNELS}, 2, "--colour: no such option", NULL, 0},
    {{NAME, KERNELS, "--arch"}, 2, "--arch: no such option, or it lacks what is to follow", NULL, 0},
    {{NAME, "--arch", "", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--arch", "90,", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--arch", "x", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--arch", "90;80", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--ptx", "9", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--ptx", "12345", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--arch", MANY, KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--arch", "1000", KERNELS}, 2, "numbers with commas between them", NULL, 0},
    {{NAME, "--driver", "10.2", KERNELS}, 2, "followed by its CUDA version", NULL, 0},
    {{NAME, "--driver", "90", KERNELS}, 2, "followed by its CUDA version", NULL, 0},
    {{NAME, "--driver", "12.100", KERNELS}, 2, "followed by its CUDA version", NULL, 0},
    {{NAME, "--driver", "twelve", KERNELS}, 2, "followed by its CUDA version", NULL, 0},
    {{NAME, "--driver", "12.4.1", KERNELS}, 2, "followed by its CUDA version", NULL, 0},
    /* its arguments */
    {{NAME, KERNELS}, 1, KERNELS " uses embedded_shared, but GK_SHARED(embedded_shared) stands in none of the files",
     NULL, 0},
    {{NAME, "@nothing.c"}, 1, "there is no GK_SOURCE in the files", NULL, 0},
    {{NAME, SHARED}, 1, "there is no GK_SOURCE in the files", NULL, 0},
    {{NAME, "@included.c"}, 1, "the text for devices includes files", NULL, 0},
    {{NAME, "@odd.c"}, 1, "there is a zero byte in it", NULL, 0},
    {{NAME, "@none.c"}, 1, "none.c: No such file or directory", NULL, 0},
    {{NAME, "@"}, 1, "it can't be read", NULL, 0},
    {{NAME, "--arch", "90", "@wrong.c"}, 1, "wrong.c(4): error: ", NULL, 0},
    /* what can be made */
    {{NAME, "--arch", "none", "--ptx", "none", KERNELS, SHARED}, 1, "none was asked for", NULL, 0},
    {{NAME, "--arch", "77", KERNELS, SHARED}, 1, "NVRTC 13.0 doesn't know sm_77", NULL, 0},
    {{NAME, "--arch", "999", KERNELS, SHARED}, 1, "doesn't know sm_999", NULL, 0},
    {{NAME, "--driver", "12.4", KERNELS, SHARED}, 1,
     "gk-embed: what NVRTC 13.0 makes for sm_75, drivers for CUDA 12.4 don't take", "SIMGPU_NVRTC=13.0", 0},
    {{NAME, "--arch", "70", KERNELS, SHARED}, 1, "and this GPU is sm_70; install the NVRTC", "SIMGPU_NVRTC=13.0", 0},
    {{NAME, "--ptx", "none", KERNELS, SHARED}, 0, "left out: NVRTC 12.4 doesn't know sm_120", "SIMGPU_NVRTC=12.4", 0},
    {{NAME, "--driver", "12.4", "--arch", "90", KERNELS, SHARED}, 1,
     "what NVRTC 13.0 makes for sm_90, drivers for CUDA 12.4 don't take", "SIMGPU_NVRTC=13.0", 0},
    {{NAME, "--driver", "12.4", "--arch", "none", "--ptx", "90", KERNELS, SHARED}, 1,
     "what NVRTC 12.8 makes for sm_90, drivers for CUDA 12.4 don't take", NULL, 0},
    {{NAME, "--moves", "--arch", "77"}, 1, "doesn't know sm_77", NULL, 0},
    {{NAME, KERNELS, SHARED}, 1, "there is no NVRTC", "SIMGPU_NVRTC=none", 0},
    /* where it goes */
    {{NAME, "--out", "@no/such/place.c", "--arch", "90", KERNELS, SHARED}, 1, "No such file or directory", NULL, 0},
    {{NAME, "--out", "@left.c", "--arch", "90", KERNELS, SHARED}, 1, "left.c: it can't be written", NULL, 4096},
    {{NAME, "--out", "@./spread.c", "--arch", "90", KERNELS, SHARED, "@spread.c"}, 1, "names a file that is read",
     NULL, 0},
    {{NAME, "--out", "/dev/full", "--arch", "90", KERNELS, SHARED}, 1, "/dev/full: it can't be written", NULL, 0},
};

static int begin_call(const void *data) {
  const call *asked = data;
  char *words[GK_COUNT(asked->words) + 2] = {tool}, paths[GK_COUNT(asked->words)][128];
  for (size_t k = 0; k < GK_COUNT(asked->words) && asked->words[k]; ++k) {
    const bool own = asked->words[k][0] == '@';
    snprintf(paths[k], sizeof paths[k], "%s%s%s", own ? base : "", own ? "/" : "", asked->words[k] + own);
    words[k + 1] = paths[k];
  }
  const struct rlimit limit = {(rlim_t)asked->limit, (rlim_t)asked->limit};
  if (asked->limit && setrlimit(RLIMIT_FSIZE, &limit) != 0) return 99;
  if (asked->setting) putenv(strdup(asked->setting));
  execv(tool, words);
  return 99;
}

/* -1: there is none. */
static long bytes_of(const char *name) {
  char path[128];
  struct stat status;
  snprintf(path, sizeof path, "%s/%s", base, name);
  return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

TEST(each_call_answers) {
  static char text[4 << 20];
  for (size_t k = 0; k < GK_COUNT(all); ++k) {
    if (access("/dev/full", F_OK) != 0 && all[k].words[3] && strcmp(all[k].words[3], "/dev/full") == 0) continue;
    const int code = code_of_child(begin_call, &all[k], text, sizeof text);
    if (code != all[k].code || (all[k].said && !strstr(text, all[k].said)))
      fail_msg("call %zu, with %s: exit code %d, and it says %.2000s", k, all[k].words[2], code, text);
  }
  assert_true(bytes_of("x.c") >= 0);
  assert_int_equal(bytes_of("spread.c"), strlen(files[SPREAD].text)); /* a source isn't written over */
  assert_int_equal(bytes_of("left.c"), -1); /* an incomplete file is worse than none */
}

TEST(full_device_is_left_alone) {
  struct stat status;
  if (stat("/dev/full", &status) != 0) skip();
  assert_true(S_ISCHR(status.st_mode));
}

/* The line of a GK_SOURCE over several lines isn't its __LINE__. */
TEST(source_stands_on_one_line) {
  static char text[1 << 16];
  const call spread = {{NAME, "--arch", "90", "@spread.c"}, 1, NULL, NULL, 0};
  const int code = code_of_child(begin_call, &spread, text, sizeof text);
  if (code != 1 || !strstr(text, "spread.c")) fail_msg("exit code %d, and it says %s", code, text);
}

static int make_files(UNUSED void **state) {
  if (!mkdtemp(base)) return -1;
  for (size_t k = 0; k < GK_COUNT(files); ++k) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", base, files[k].name);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    const size_t bytes = files[k].bytes ? files[k].bytes : strlen(files[k].text);
    const bool written = fwrite(files[k].text, 1, bytes, file) == bytes;
    if (fclose(file) != 0 || !written) return -1;
  }
  return 0;
}

static int remove_files(UNUSED void **state) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", base);
  return system(command);
}

int main(UNUSED int count, char **words) {
  with_simgpu(words);
  if (readlink("/proc/self/exe", tool, sizeof tool - 64) < 0) return 1;
  char *build = strstr(tool, "/build/tests/unit/");
  if (!build) return 1;
  snprintf(build, 64, "/%s/gk-embed", CHECKED_TREE);
  return run_all_tests_with(make_files, remove_files);
}
