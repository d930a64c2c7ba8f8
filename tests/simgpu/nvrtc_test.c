/* The simulated NVRTC: it behaves like the real one for all calls of gk's, and keeps what it compiled on disk. */
#include "world.h"
#include "compile.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char KERNEL[] = "extern \"C\" __global__ void f(int *x) { x[0] = 1; }\n";

static nvrtcProgram create(const char *source) {
  nvrtcProgram program;
  RTC(nvrtcCreateProgram(&program, source, "some.cu", 0, NULL, NULL));
  return program;
}

static nvrtcResult compile(nvrtcProgram program, const char *option) {
  return rtc.nvrtcCompileProgram(program, option ? 1 : 0, &option);
}

/* The program's log has these words; without words it is empty. */
static void expect_log(nvrtcProgram program, const char *words) {
  char *log = log_of(program);
  if (!strstr(log, words) || (!*words && *log)) fail_msg("\"%s\" isn't in:\n%s", words, log);
  free(log);
}

TEST(versions_and_architectures) {
  static const struct { const char *list; int major, minor, count, last; } cases[] = {
    {"12.4", 12, 4, 14, 90}, {"13.0,12.8,11.4", 12, 8, 17, 120}, {"12.8", 12, 8, 17, 120}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    int major, minor, count, all[32];
    rtc.control->set_versions(cases[k].list);
    RTC(nvrtcVersion(&major, &minor));
    assert_int_equal(major, cases[k].major);
    assert_int_equal(minor, cases[k].minor);
    RTC(nvrtcGetNumSupportedArchs(&count));
    assert_int_equal(count, cases[k].count);
    RTC(nvrtcGetSupportedArchs(all));
    assert_int_equal(all[count - 1], cases[k].last);
    for (int a = 1; a < count; ++a) assert_true(all[a - 1] < all[a]);
  }
  int major, minor;
  rtc.control->set_versions("13.0");
  assert_string_equal(rtc.nvrtcGetErrorString(rtc.nvrtcVersion(&major, &minor)), "NVRTC_ERROR_INTERNAL_ERROR");
  rtc.control->set_versions("none");
  assert_int_not_equal(rtc.nvrtcVersion(&major, &minor), NVRTC_SUCCESS);
  rtc.control->set_versions("12.8");
}

/* Each name is a library with its own version. */
TEST(names_are_libraries_of_their_own) {
  static const struct { const char *name; int major; } cases[] = {
    {"build/simgpu/libnvrtc.so.13", 13}, {"build/simgpu/libnvrtc.so.12", 12}, {"build/simgpu/libnvrtc.so.11.2", 11},
    {"build/simgpu/libnvrtc.so", 0}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    void *library = dlopen(cases[k].name, RTLD_NOW | RTLD_LOCAL);
    nvrtcResult (*ask)(int *, int *);
    int major = 0, minor = 0;
    assert_non_null(library);
    *(void **)(void *)&ask = dlsym(library, "nvrtcVersion");
    assert_int_equal(ask(&major, &minor) == NVRTC_SUCCESS, cases[k].major != 0);
    assert_int_equal(major, cases[k].major);
    dlclose(library);
  }
}

TEST(options) {
  static const struct { const char *option; nvrtcResult result; const char *log; bool cubin; } cases[] = {
    {NULL, NVRTC_SUCCESS, "", false},
    {"--gpu-architecture=sm_80", NVRTC_SUCCESS, "", true},
    {"-arch=sm_90a", NVRTC_SUCCESS, "", true},
    {"--gpu-architecture=compute_90", NVRTC_SUCCESS, "", false},
    {"--gpu-architecture=sm_88", NVRTC_ERROR_INVALID_OPTION, "invalid value for --gpu-architecture", false},
    {"--gpu-architecture=sm_80a", NVRTC_ERROR_INVALID_OPTION, "invalid value for --gpu-architecture", false},
    {"--gpu-architecture=foo", NVRTC_ERROR_INVALID_OPTION, "invalid value for --gpu-architecture", false},
    {"-arch", NVRTC_ERROR_INVALID_OPTION, "has no value", false},
    {"--std=c++11", NVRTC_SUCCESS, "", false},
    {"--std=c++99", NVRTC_ERROR_INVALID_OPTION, "invalid value for --std", false},
    {"--nonsense", NVRTC_ERROR_INVALID_OPTION, "nvrtc: error: unrecognized option --nonsense found\n", false},
    {"nonsense", NVRTC_ERROR_INVALID_OPTION, "unrecognized option nonsense", false},
    {"--fmad=false", NVRTC_SUCCESS, "", false},
    {"-lineinfo", NVRTC_SUCCESS, "", false}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    nvrtcProgram program = create(KERNEL);
    size_t bytes;
    nvrtcResult result = compile(program, cases[k].option);
    if (result != cases[k].result) fail_msg("%s: %d", cases[k].option, (int)result);
    expect_log(program, cases[k].log);
    RTC(nvrtcGetCUBINSize(program, &bytes));
    assert_int_equal(bytes > 0, cases[k].cubin);
    RTC(nvrtcGetPTXSize(program, &bytes));
    assert_int_equal(bytes > 1, cases[k].result == NVRTC_SUCCESS);
    char *ptx = malloc(bytes);
    RTC(nvrtcGetPTX(program, ptx));
    assert_int_equal(strlen(ptx) + 1, bytes);
    free(ptx);
    rtc.nvrtcDestroyProgram(&program);
  }
}

TEST(macros_and_headers) {
  static const char source[] =
    "#include \"mine.h\"\n#include <mine.h>\n"
    "#ifdef GONE\n#error it is still there\n#endif\n"
    "static_assert(ONE == 1 && TWO == 2 && THREE == 3 && __CUDA_ARCH__ == 900, \"\");\n"
    "#if !defined(__CUDACC__) || !defined(__CUDACC_RTC__)\n#error\n#endif\n"
    "extern \"C\" __global__ void f(float *x) { x[0] = from_mine(sqrt(x[0])) + max(1, 2) + abs(-2.5f); }\n";
  const char *const names[] = {"mine.h"}, *const headers[] = {
    "#pragma once\n#define THREE 3\n__device__ __forceinline__ float from_mine(float v) { return fminf(v, 2.0f); }\n"};
  const char *const all[] = {"-DONE", "--define-macro=TWO=2", "-D", "GONE", "-UGONE", "-arch", "compute_90"};
  nvrtcProgram program;
  RTC(nvrtcCreateProgram(&program, source, NULL, 1, headers, names));
  nvrtcResult result = rtc.nvrtcCompileProgram(program, 7, all);
  expect_log(program, "");
  assert_int_equal(result, NVRTC_SUCCESS);
  rtc.nvrtcDestroyProgram(&program);
  program = create("#include <stdio.h>\n");
  assert_int_equal(compile(program, NULL), NVRTC_ERROR_COMPILATION);
  expect_log(program, "some.cu(1): fatal error: ");
  expect_log(program, "stdio.h");
  rtc.nvrtcDestroyProgram(&program);
}

TEST(errors_are_where_the_user_wrote_them) {
  static const struct { const char *source, *log; } cases[] = {
    {"extern \"C\" __global__ void f(int *x) {\n  x[0] = y;\n}\n", "some.cu(2): error: "},
    {"#line 77 \"dir/their.c\"\nint f() { return nothing; }\n", "dir/their.c(77): error: "},
    {"\n\n#error not here\n", "some.cu(3): error: "},
    /* NVRTC has the type of its argument, but not this: sources declare it */
    {"extern \"C\" __global__ void f(cudaGraphConditionalHandle h) { cudaGraphSetConditional(h, 1); }\n",
     "some.cu(1): error: "},
    {"extern \"C\" __global__ void f(int *x) { x[0] = x; }\nint q = zz;\n",
     "2 errors detected in the compilation of \"some.cu\"."}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    nvrtcProgram program = create(cases[k].source);
    size_t bytes;
    char byte;
    assert_int_equal(compile(program, "--gpu-architecture=sm_80"), NVRTC_ERROR_COMPILATION);
    expect_log(program, cases[k].log);
    RTC(nvrtcGetCUBINSize(program, &bytes));
    assert_int_equal(bytes, 0);
    assert_int_not_equal(rtc.nvrtcGetCUBIN(program, &byte), NVRTC_SUCCESS);
    rtc.nvrtcDestroyProgram(&program);
  }
}

TEST(unknown_programs_are_refused) {
  nvrtcProgram program = create(KERNEL), gone = program;
  size_t bytes;
  RTC(nvrtcDestroyProgram(&gone));
  assert_null(gone);
  assert_int_not_equal(compile(program, NULL), NVRTC_SUCCESS);
  assert_int_not_equal(rtc.nvrtcGetCUBINSize(program, &bytes), NVRTC_SUCCESS);
  assert_int_not_equal(rtc.nvrtcGetProgramLogSize(program, &bytes), NVRTC_SUCCESS);
  assert_int_not_equal(rtc.nvrtcDestroyProgram(&program), NVRTC_SUCCESS);
  assert_int_not_equal(rtc.nvrtcCreateProgram(NULL, KERNEL, NULL, 0, NULL, NULL), NVRTC_SUCCESS);
  assert_int_not_equal(rtc.nvrtcCreateProgram(&program, NULL, NULL, 0, NULL, NULL), NVRTC_SUCCESS);
  assert_int_equal(rtc.control->alive(), 0);
}

/* Each call of a program's life fails once; destroying works all the same. */
TEST(every_call_fails) {
  const char *option = "--gpu-architecture=sm_80";
  uint64_t k = 0;
  for (bool has_failed = true; has_failed; rtc.control->mark()) {
    nvrtcProgram program = NULL;
    int major, minor;
    size_t bytes;
    rtc.control->fail_at(++k, NVRTC_ERROR_OUT_OF_MEMORY);
    nvrtcResult result = rtc.nvrtcVersion(&major, &minor);
    if (result == NVRTC_SUCCESS) result = rtc.nvrtcCreateProgram(&program, KERNEL, "a", 0, NULL, NULL);
    if (result == NVRTC_SUCCESS) result = rtc.nvrtcCompileProgram(program, 1, &option);
    if (result == NVRTC_SUCCESS) result = rtc.nvrtcGetCUBINSize(program, &bytes);
    if (program) {
      nvrtcResult end = rtc.nvrtcDestroyProgram(&program);
      if (result == NVRTC_SUCCESS) result = end;
    }
    has_failed = result != NVRTC_SUCCESS;
    if (has_failed) assert_int_equal(result, NVRTC_ERROR_OUT_OF_MEMORY);
    assert_int_equal(has_failed, rtc.control->failed() != NULL);
    assert_int_equal(rtc.control->alive(), 0);
  }
  assert_int_equal(k, 6);
}

static void *compile_one(void *number) {
  char source[200];
  snprintf(source, sizeof source, "extern \"C\" __global__ void f(int *x) { x[0] = %d; }\n", *(int *)number);
  nvrtcProgram program = create(source);
  nvrtcResult result = compile(program, "-arch=sm_80");
  rtc.nvrtcDestroyProgram(&program);
  return result == NVRTC_SUCCESS ? number : NULL;
}

TEST(threads_compile_at_once) {
  pthread_t threads[6];
  int numbers[6];
  for (int k = 0; k < 6; ++k) {
    numbers[k] = k / 2;
    assert_int_equal(pthread_create(&threads[k], NULL, compile_one, &numbers[k]), 0);
  }
  for (int k = 0; k < 6; ++k) {
    void *result;
    pthread_join(threads[k], &result);
    assert_ptr_equal(result, &numbers[k]);
  }
}

/* ---- what is kept on disk ---------------------------------------------------------------------------------------- */

static char folder[64];

static int make_folder(__attribute__((unused)) void **state) {
  strcpy(folder, "build/simgpu/test-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

/* Calls f for each file whose name doesn't end in .lock. Answers how many there are. */
static int each_file(void (*f)(const char *path)) {
  char path[400];
  int count = 0;
  DIR *all = opendir(folder);
  for (struct dirent *one; (one = readdir(all));) {
    if (one->d_name[0] == '.' || strstr(one->d_name, ".lock")) continue;
    snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
    if (f) f(path);
    ++count;
  }
  closedir(all);
  return count;
}

static int remove_folder(__attribute__((unused)) void **state) {
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", folder);
  return system(command);
}

#define JOB(of, file, with) \
  {.source = of, .name = file, .macros = "#define __CUDACC_RTC__ 1\n#define SIM_ARCH 800\n", .options = with}
static const sim_job a_job = JOB(KERNEL, "a.cu", "");

/* Whether it was found on disk. */
static bool make(const sim_job *job) {
  sim_made made;
  assert_true(sim_compile(folder, job, &made));
  assert_non_null(made.code);
  assert_memory_equal(made.code, "\177ELF", 4);
  assert_string_equal(made.log, "");
  free(made.code);
  free(made.log);
  return made.was_kept;
}

TEST_WITH(results_are_kept, make_folder, remove_folder) {
  static const sim_job wrong = JOB("nonsense\n", "c.cu", ""), jobs[] = {
    JOB(KERNEL, "a.cu", ""), JOB(KERNEL, "b.cu", ""), JOB(KERNEL, "a.cu", "-DX"),
    JOB("__global__ void g() {}", "a.cu", "")};
  for (int k = 0; k < 4; ++k) assert_false(make(&jobs[k]));
  for (int k = 0; k < 4; ++k) assert_true(make(&jobs[k]));
  assert_int_equal(each_file(NULL), 4);
  sim_made made;
  for (int k = 0; k < 2; ++k) { /* each time anew */
    assert_true(sim_compile(folder, &wrong, &made));
    assert_null(made.code);
    assert_false(made.was_kept);
    assert_non_null(strstr(made.log, "c.cu(1): error"));
    free(made.log);
  }
  assert_int_equal(each_file(NULL), 4);
}

static long damage_at;
static void flip(const char *path) {
  FILE *file = fopen(path, "r+b");
  fseek(file, damage_at, damage_at < 0 ? SEEK_END : SEEK_SET);
  int c = fgetc(file);
  fseek(file, -1, SEEK_CUR);
  fputc(c ^ 0x10, file);
  fclose(file);
}
static void cut(const char *path) {
  struct stat now;
  assert_int_equal(stat(path, &now), 0);
  assert_int_equal(truncate(path, damage_at < 0 ? now.st_size + damage_at : damage_at), 0);
}

TEST_WITH(damaged_files_are_made_anew, make_folder, remove_folder) {
  static const long places[] = {0, 7, 8, 15, 16, 24, 31, 32, 100, -1};
  make(&a_job);
  for (size_t k = 0; k < sizeof places / sizeof places[0]; ++k) {
    damage_at = places[k];
    assert_int_equal(each_file(k % 2 == 0 ? flip : cut), 1);
    assert_false(make(&a_job));
    assert_true(make(&a_job));
  }
}

/* One compiles, the others wait for it. */
TEST_WITH(many_processes_ask_at_once, make_folder, remove_folder) {
  enum { PROCESSES = 20 };
  pid_t children[PROCESSES];
  int made = 0, kept = 0;
  for (int k = 0; k < PROCESSES; ++k) {
    children[k] = fork();
    if (children[k] == 0) {
      sim_made one;
      bool right = sim_compile(folder, &a_job, &one) && one.code;
      _exit(!right ? 1 : one.was_kept ? 2 : 3);
    }
    assert_true(children[k] > 0);
  }
  for (int k = 0; k < PROCESSES; ++k) {
    int status;
    assert_int_equal(waitpid(children[k], &status, 0), children[k]);
    assert_true(WIFEXITED(status));
    kept += WEXITSTATUS(status) == 2;
    made += WEXITSTATUS(status) == 3;
  }
  assert_int_equal(made, 1);
  assert_int_equal(kept, PROCESSES - 1);
  assert_int_equal(each_file(NULL), 1);
}

TEST(a_folder_that_cannot_be_made_is_an_error) {
  sim_made made;
  assert_false(sim_compile("/nowhere/at/all", &a_job, &made));
  assert_null(made.code);
  free(made.log);
}

int main(void) { return run_all_tests_with(load_nvrtc, NULL); }
