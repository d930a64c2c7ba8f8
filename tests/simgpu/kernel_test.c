/* Kernels carried out: places, parameters, and threads that wait for each other. */
#include "world.h"

static const sim_kernel *find(sim_module *module, const char *name) {
  const sim_kernel *kernel = sim_module_kernel(module, name);
  if (!kernel) fail_msg("there is no kernel %s", name);
  return kernel;
}

#define ALONG_X(count) (const unsigned[3]){count, 1, 1}
#define RUN(module, name, blocks, threads, parameters) \
  sim_kernel_run(find(module, name), ALONG_X(blocks), ALONG_X(threads), parameters)

KERNEL_TEST(places_in_three_dimensions) {
  sim_module *module = load_source(
    "extern \"C\" __global__ void mark(unsigned *x) {\n"
    "  unsigned i = threadIdx.x + blockDim.x * blockIdx.x, j = threadIdx.y + blockDim.y * blockIdx.y;\n"
    "  unsigned k = threadIdx.z + blockDim.z * blockIdx.z, w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;\n"
    "  x[i + w * (j + h * k)] += i + 100 * j + 10000 * k;\n"
    "}\n");
  enum { W = 3 * 4, H = 2 * 5, D = 7 * 2 };
  static unsigned x[W * H * D];
  memset(x, 0, sizeof x);
  sim_kernel_run(find(module, "mark"), (unsigned[3]){3, 2, 7}, (unsigned[3]){4, 5, 2}, &(unsigned *){x});
  for (unsigned k = 0; k < D; ++k)
    for (unsigned j = 0; j < H; ++j)
      for (unsigned i = 0; i < W; ++i) assert_int_equal(x[i + W * (j + H * k)], i + 100 * j + 10000 * k);
}

typedef struct box { double weight; char letter; short numbers[3]; } box;

KERNEL_TEST(parameters_where_cuda_has_them) {
  sim_module *module = load_source(
    "struct box { double weight; char letter; short numbers[3]; };\n"
    "extern \"C\" __global__ void none() {}\n"
    "extern \"C\" __global__ void take(char a, const float4 f, bool b, struct box one, double *to, short s) {\n"
    "  to[0] = a; to[1] = f.x + f.y + f.z + f.w; to[2] = b; to[3] = one.weight; to[4] = one.letter;\n"
    "  to[5] = one.numbers[2]; to[6] = s;\n"
    "}\n");
  static const size_t expected[][2] = {{0, 1}, {16, 16}, {32, 1}, {40, sizeof(box)}, {56, 8}, {64, 2}};
  assert_int_equal(sizeof(box), 16);
  assert_int_equal(sim_kernel_parameter_count(find(module, "take")), 6);
  for (size_t k = 0; k < 6; ++k) {
    size_t offset, bytes;
    sim_kernel_parameter(find(module, "take"), k, &offset, &bytes);
    assert_int_equal(offset, expected[k][0]);
    assert_int_equal(bytes, expected[k][1]);
  }
  double to[7] = {0};
  box one = {.weight = 2.5, .letter = 'q', .numbers = {1, 2, -3}};
  unsigned char parameters[66 + 1]; /* at an odd address, and not a byte more */
  unsigned char *at = parameters + 1;
  float f[4] = {1, 2, 3, 4};
  memset(parameters, 0, sizeof parameters);
  at[0] = 7;
  memcpy(at + 16, f, sizeof f);
  at[32] = 1;
  memcpy(at + 40, &one, sizeof one);
  memcpy(at + 56, &(double *){to}, 8);
  memcpy(at + 64, &(short){-9}, 2);
  RUN(module, "take", 1, 1, at);
  static const double wanted[] = {7, 10, 1, 2.5, 'q', -3, -9};
  assert_memory_equal(to, wanted, sizeof wanted);
  assert_int_equal(sim_kernel_parameter_count(find(module, "none")), 0);
  RUN(module, "none", 2, 32, NULL);
}

static const char SUM[] =
  "extern \"C\" __global__ void sum(const int *x, int n, int *to) {\n"
  "  int all = 0;\n"
  "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) all += x[i];\n"
  "  for (int lanes = 16; lanes > 0; lanes /= 2) all += __shfl_down_sync(0xffffffffu, all, lanes);\n"
  "  if (threadIdx.x % warpSize == 0) atomicAdd(to, all);\n"
  "}\n"
  "extern \"C\" __global__ void tree(const int *x, int n, int *to) {\n"
  "  __shared__ int part[256];\n"
  "  int i = blockIdx.x * 256 + threadIdx.x;\n"
  "  part[threadIdx.x] = i < n ? x[i] : 0;\n"
  "  __syncthreads();\n"
  "  for (unsigned half = 128; half > 0; half /= 2) {\n"
  "    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];\n"
  "    __syncthreads();\n"
  "  }\n"
  "  if (threadIdx.x == 0) to[blockIdx.x] = part[0];\n"
  "}\n"
  "extern \"C\" __global__ void dynamic(int *to) {\n"
  "  extern __shared__ int all[];\n"
  "  all[threadIdx.x] = 3 * threadIdx.x;\n"
  "  int count = __syncthreads_count(threadIdx.x % 2);\n"
  "  int few = __syncthreads_count(threadIdx.x < 3), any = __syncthreads_or(threadIdx.x == 9);\n"
  "  int every = __syncthreads_and(threadIdx.x != 9);\n"
  "  to[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x] + 1000 * count * few * any + every;\n"
  "}\n";

typedef struct sum_parameters { const int *x; int n, gap; int *to; } sum_parameters;

KERNEL_TEST(sums_by_shuffles) {
  sim_module *module = load_source(SUM);
  static int x[1000];
  for (int k = 0; k < 1000; ++k) x[k] = k * k % 101 - 40;
  for (int n = 1; n <= 1000; n += n < 70 ? 1 : 31)
    for (unsigned blocks = 1; blocks <= 3; blocks += 2)
      for (unsigned threads = 32; threads <= 256; threads *= 2) {
        int expected = 0, to = 0;
        for (int k = 0; k < n; ++k) expected += x[k];
        RUN(module, "sum", blocks, threads, (&(sum_parameters){x, n, 0, &to}));
        assert_int_equal(to, expected);
      }
}

KERNEL_TEST(barriers) {
  sim_module *module = load_source(SUM);
  static int x[1000];
  int to[4] = {0};
  for (int k = 0; k < 1000; ++k) x[k] = k;
  RUN(module, "tree", 4, 256, (&(sum_parameters){x, 1000, 0, to}));
  for (int b = 0; b < 4; ++b) {
    int expected = 0;
    for (int k = b * 256; k < (b + 1) * 256 && k < 1000; ++k) expected += k;
    assert_int_equal(to[b], expected);
  }
  static int mirrored[1024];
  RUN(module, "dynamic", 1, 1024, &(int *){mirrored});
  for (int k = 0; k < 1024; ++k) assert_int_equal(mirrored[k], 3 * (1023 - k) + 512 * 3 * 1000);
}

KERNEL_TEST(votes_and_shuffles_of_all_kinds) {
  sim_module *module = load_source(
    "extern \"C\" __global__ void all(unsigned *to) {\n"
    "  unsigned t = threadIdx.x, lane = t % 32, mask = lane < 16 ? 0xffffu : 0xffff0000u;\n"
    "  unsigned *at = to + 8 * t;\n"
    "  at[0] = __ballot_sync(0xffffffffu, lane % 3 == 0);\n"
    "  at[1] = __shfl_sync(0xffffffffu, t, 5);\n"
    "  at[2] = __shfl_up_sync(0xffffffffu, t, 2);\n"
    "  at[3] = __shfl_down_sync(0xffffffffu, t, 2, 8);\n"
    "  at[4] = __shfl_xor_sync(0xffffffffu, t, 3);\n"
    "  if (lane < 16) at[5] = __any_sync(mask, lane == 4); else at[5] = 10 + __all_sync(mask, lane == 17);\n"
    "  __syncwarp();\n"
    "  at[6] = (unsigned) __shfl_sync(0xffffffffu, 1.5 * t, 31);\n"
    "  at[7] = __popc(__activemask());\n"
    "}\n");
  static unsigned to[64][8];
  RUN(module, "all", 1, 64, &(void *){to});
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned lane = t % 32, first = t - lane;
    const unsigned wanted[8] = {0x49249249, first + 5, lane < 2 ? t : t - 2, lane % 8 < 6 ? t + 2 : t, t ^ 3,
                                lane < 16 ? 1 : 10, (first + 31) * 3 / 2, 1};
    for (int k = 0; k < 8; ++k) assert_int_equal(to[t][k], wanted[k]);
  }
}

KERNEL_TEST(atomics) {
  sim_module *module = load_source(
    "extern \"C\" __global__ void all(int *i, unsigned *u, float *f, double *d, unsigned long long *l) {\n"
    "  int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  atomicAdd(&i[0], t); atomicMin(&i[1], 5 - t); atomicMax(&i[2], t); atomicSub(&i[3], 2);\n"
    "  atomicOr(&u[0], 1u << t % 32); atomicXor(&u[1], 1u); atomicInc(&u[2], 9); atomicAnd(&u[3], ~(1u << t % 5));\n"
    "  atomicAdd(&f[0], 0.5f); atomicAdd(&d[0], 0.25); atomicAdd(&l[0], 1ull << 33);\n"
    "  if (atomicCAS(&i[4], 0, t + 1) == 0) atomicExch(&u[4], __float_as_uint(1.0f));\n"
    "  __threadfence_system();\n"
    "}\n");
  int i[5] = {0};
  unsigned u[5] = {0, 0, 0, 255, 0};
  float f = 0;
  double d = 0;
  unsigned long long l = 0;
  struct { void *i, *u, *f, *d, *l; } parameters = {i, u, &f, &d, &l};
  RUN(module, "all", 3, 35, &parameters);
  enum { N = 105 };
  static const int wanted_i[] = {N * (N - 1) / 2, 5 - (N - 1), N - 1, -2 * N, 1};
  static const unsigned wanted_u[] = {0xffffffff, N % 2, N % 10, 255 & ~31, 0x3f800000};
  for (int k = 0; k < 5; ++k) assert_int_equal(i[k], wanted_i[k]);
  for (int k = 0; k < 5; ++k) assert_int_equal(u[k], wanted_u[k]);
  assert_true(f == 0.5f * N && d == 0.25 * N);
  assert_int_equal(l, (unsigned long long)N << 33);
}

static const char WRONG[] =
  "extern \"C\" __global__ void leaves(int n) { if (threadIdx.x != n) __syncthreads(); }\n"
  "extern \"C\" __global__ void partly(int n) { if (threadIdx.x < n) __shfl_down_sync(0xffffffffu, n, 1); }\n"
  "extern \"C\" __global__ void mixed(int n) {\n"
  "  if (threadIdx.x < n) __shfl_down_sync(0xffffffffu, n, 1); else __syncthreads();\n"
  "}\n"
  "extern \"C\" __global__ void masks(int n) {\n"
  "  if (threadIdx.x < 3) __shfl_sync(threadIdx.x == 0 ? 3u : 7u, n, 0);\n"
  "}\n"
  "extern \"C\" __global__ void outside(int n) { __shfl_sync(0xfeu, n, 1); }\n"
  "extern \"C\" __global__ void reads(int n) { if (threadIdx.x < 2) __shfl_sync(0x3u, n, 7); }\n"
  "extern \"C\" __global__ void traps(int n) { if (threadIdx.x == n) __trap(); }\n"
  "extern \"C\" __global__ void asserts(int n) { assert(threadIdx.x != n); }\n"
  "extern \"C\" __global__ void right(int *to) { __syncthreads(); atomicAdd(to, 1); }\n";

/* The next kernel runs undisturbed. */
KERNEL_TEST(broken_rules_are_said) {
  static const struct { const char *name; int n; unsigned threads; const char *words; } cases[] = {
    {"leaves", 7, 64, "barrier: kernel leaves, block (0, 0, 0): thread (0, 0, 0) waits at __syncthreads, where 63 of "
                      "64 threads have come; 1 have left"},
    {"partly", 20, 32, "lanes: kernel partly, block (0, 0, 0): thread (0, 0, 0) waits at a shuffle of mask 0xffffffff, "
                       "to which these lanes don't come: 0xfff00000"},
    {"partly", 99, 40, "thread (32, 0, 0) waits at a shuffle of mask 0xffffffff, to which these lanes don't come: "
                       "0xffffff00"},
    {"mixed", 20, 32, "don't come: 0xfff00000"},
    {"masks", 0, 32, "waits at a shuffle of mask 0x00000003, to which these lanes don't come: 0x00000002"},
    {"outside", 0, 32, "kernel: kernel outside, block (0, 0, 0), thread (0, 0, 0): a lane comes with a mask that it "
                       "isn't in"},
    {"reads", 0, 32, "a shuffle reads a lane that isn't in its mask"},
    {"traps", 3, 32, "block (0, 0, 0), thread (3, 0, 0): __trap()"},
    {"asserts", 4, 32, "thread (4, 0, 0): assert(threadIdx.x != n)"},
    {"traps", 3, 1025, "a block of 1025 threads"}};
  sim_module *module = load_source(WRONG);
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    int to = 0;
    broken[0] = 0;
    RUN(module, cases[k].name, 2, cases[k].threads, &cases[k].n);
    assert_broken(cases[k].words);
    RUN(module, "right", 2, 96, &(int *){&to});
    assert_int_equal(to, 192);
    assert_string_equal(broken, "");
  }
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif
static jmp_buf out;
static void jump(void) { longjmp(out, 1); }

/* What the driver does when a kernel touches memory that it must not. */
KERNEL_TEST(a_kernel_may_be_left_by_a_jump) {
  if (__has_feature(thread_sanitizer)) {
    print_message("ThreadSanitizer can't follow a jump from one stack to another\n");
    skip();
  }
  sim_module *module = load_source(
    "extern \"C\" __global__ void jumps(void (*jump)(), int n) {\n"
    "  volatile int here[100];\n"
    "  for (int k = 0; k < 100; ++k) here[k] = k;\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x == n) jump();\n"
    "  __syncthreads();\n"
    "  if (here[50] != 50) __trap();\n"
    "}\n");
  for (volatile int round = 0; round < 20; ++round) {
    struct { void (*jump)(void); int n; } parameters = {jump, round};
    if (setjmp(out) == 0) {
      RUN(module, "jumps", 1, 64, &parameters);
      fail_msg("it came back");
    }
    if (round % 2 == 0) sim_kernel_left();
    volatile char stack[5000];
    memset((char *)stack, round, sizeof stack);
    parameters.n = -1;
    RUN(module, "jumps", 2, 64, &parameters);
    assert_string_equal(broken, "");
  }
}

KERNEL_TEST(conditions) {
  sim_module *module = load_source(
    "extern \"C\" __device__ void cudaGraphSetConditional(unsigned long long, unsigned);\n"
    "extern \"C\" __global__ void sets(cudaGraphConditionalHandle h, unsigned thread) {\n"
    "  if (blockIdx.x == 2 && threadIdx.x == 3 && threadIdx.y == thread) cudaGraphSetConditional(h, 42);\n"
    "}\n");
  struct { unsigned long long handle; unsigned thread; } parameters = {0x123456789abcull, 1};
  last_set.count = 0;
  sim_kernel_run(find(module, "sets"), (unsigned[3]){4, 1, 1}, (unsigned[3]){8, 2, 1}, &parameters);
  assert_int_equal(last_set.count, 1);
  assert_true(last_set.handle == parameters.handle && last_set.value == 42);
  assert_int_equal(last_set.thread, 2 * 16 + 8 + 3);
}

/* Two loads of one image have their own variables; names of C++ are the linker's. */
static const char TURNS[] =
  "extern \"C\" __global__ void turns(unsigned *x, unsigned who, unsigned *sizes) {\n"
  "  for (unsigned k = 0; k < 5; ++k) {\n"
  "    if (threadIdx.x == 1) {\n"
  "      while (atomicAdd(x, 0u) != 2 * (5 * blockIdx.x + k) + who) {}\n"
  "      sizes[blockIdx.x] += 1000 * threadIdx.x + blockDim.x;\n"
  "      atomicAdd(x, 1u);\n"
  "    }\n"
  "    __syncthreads();\n"
  "  }\n"
  "}\n";

/* Two kernels of one module, which wait for each other again and again. */
KERNEL_TEST(kernels_under_way_at_once) {
  enum { BLOCKS = 3 };
  sim_module *module = load_source(TURNS);
  const sim_kernel *turns = find(module, "turns");
  unsigned x = 0, sizes[2][BLOCKS] = {0};
  sim_grid *grids[2];
  for (unsigned who = 0; who < 2; ++who) {
    struct { unsigned *x; unsigned who; unsigned *sizes; } parameters = {&x, who, sizes[who]};
    grids[who] = sim_kernel_begin(turns, ALONG_X(BLOCKS), ALONG_X(who ? 40 : 3), &parameters);
    assert_non_null(grids[who]);
  }
  uint64_t random = 1;
  for (unsigned who = 0; grids[0] || grids[1]; who ^= 1)
    if (grids[who] && sim_kernel_go_on(grids[who], &random)) grids[who] = NULL;
  assert_int_equal(x, 2 * 5 * BLOCKS);
  for (unsigned block = 0; block < BLOCKS; ++block) {
    assert_int_equal(sizes[0][block], 5 * 1003);
    assert_int_equal(sizes[1][block], 5 * 1040);
  }
}

static const char ADDS[] = "extern \"C\" __global__ void adds(int *x) {\n"
                           "  SHARED int y[1];\n"
                           "  for (int k = 0; k < 100; ++k) atomicAdd(x + (y != y), 1);\n"
                           "}\n";

/* Whether a kernel of the source pauses. It is given up then. */
static bool pauses(const char *shared) {
  char source[sizeof ADDS + 40];
  snprintf(source, sizeof source, "#define SHARED %s\n%s", shared, ADDS);
  sim_module *module = load_source(source);
  int x = 0;
  uint64_t random = 1;
  sim_grid *grid = sim_kernel_begin(find(module, "adds"), ALONG_X(1), ALONG_X(1), &(int *){&x});
  const bool over = sim_kernel_go_on(grid, &random);
  assert_int_equal(over, x == 100);
  if (!over) sim_kernel_left();
  return !over;
}

KERNEL_TEST(where_kernels_pause) {
  assert_true(pauses(""));
  assert_false(pauses("__shared__")); /* there is one for all kernels of a module */
  sim_module *module = load_source("extern \"C\" __global__ void f(int *x) { x[0] = 7; }\n");
  int x = 0;
  RUN(module, "f", 1, 1, &(int *){&x}); /* on the stack that the other kernel left */
  assert_int_equal(x, 7);
}

KERNEL_TEST(modules_are_apart) {
  static const char source[] =
    "namespace deep { __device__ int counter = 5;\n"
    "__global__ void count(int *to) { to[0] = ++counter; } }\n"
    "__global__ void taken(float, const int *);\n"
    "#define WARP 32\n"
    "extern \"C\" { __global__ void __launch_bounds__((WARP + 0) * 2, 4) plain(int *to) { to[0] = deep::counter; } }\n"
    "template <typename T> __global__ void never(T) {}\n"
    "__constant__ char text[] = \"__global__ void in_a_string() { }\";\n"
    "__global__ void taken(float f, const int *) { deep::counter = (int)f; }\n";
  sim_module *two = load_source(source), *one = load_source(source);
  int to = 0;
  RUN(one, "_ZN4deep5countEPi", 1, 1, &(int *){&to});
  RUN(one, "_ZN4deep5countEPi", 1, 1, &(int *){&to});
  assert_int_equal(to, 7);
  RUN(two, "plain", 1, 1, &(int *){&to});
  assert_int_equal(to, 5);
  assert_int_equal(sim_kernel_threads(find(two, "plain")), 64);
  assert_int_equal(sim_kernel_threads(find(two, "_ZN4deep5countEPi")), 1024);
  sim_module_unload(modules[--module_count]);
  static const char *const none[] = {"count", "never", "", "in_a_string"};
  for (int k = 0; k < 4; ++k) assert_null(sim_module_kernel(two, none[k]));
  struct { float f; const int *x; } parameters = {9.5f, NULL};
  RUN(two, "_Z5takenfPKi", 1, 1, &parameters);
  RUN(two, "plain", 1, 1, &(int *){&to});
  assert_int_equal(to, 9);
}

int main(void) { return run_all_tests_with(load_nvrtc, NULL); }
