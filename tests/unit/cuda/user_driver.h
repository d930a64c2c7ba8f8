/* What a program that uses CUDA beside gk calls: the same driver, by entries of its own. */
#ifndef USER_DRIVER_H
#define USER_DRIVER_H
#include "world.h"
#include "gk_cuda.h"

typedef struct user_driver {
#define MEMBER(name, version, since, parameters) CUresult(*name) parameters;
  GKI_CUDA_ENTRIES(MEMBER) SIMGPU_ENTRIES(MEMBER)
#undef MEMBER
} user_driver;

static user_driver cu;

#define RIGHT(call) assert_int_equal(call, CUDA_SUCCESS)

static inline void find_entry(const char *name, int version, void *into) {
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
  if (find(name, &entry, version, 0) != CUDA_SUCCESS) entry = NULL;
  memcpy(into, &entry, sizeof entry);
}

static inline int find_user_driver(void **state) {
  (void)state;
#define FIND(name, version, since, parameters) find_entry(#name, version, &cu.name);
  GKI_CUDA_ENTRIES(FIND) SIMGPU_ENTRIES(FIND)
#undef FIND
  return cu.cuInit(0) == CUDA_SUCCESS ? 0 : -1;
}

static inline int begin_clean(void **state) {
  (void)state;
  sim->forgive();
  sim->set_seed(1);
  sim->set_passes(100000);
  sim->mark();
  return 0;
}

static inline int end_clean(void **state) {
  (void)state;
  if (sim->broken()) fprintf(stderr, "%s\n", sim->first_broken());
  for (int kind = SIMGPU_ALL + 1; kind < SIMGPU_KINDS; ++kind) {
    const size_t count = sim->alive((simgpu_kind)kind);
    if (count) fprintf(stderr, "alive of kind %d: %zu\n", kind, count);
  }
  return sim->broken() || sim->alive(SIMGPU_ALL) ? -1 : 0;
}

#define CLEAN(test) TEST_WITH(test, begin_clean, end_clean)

static inline int *taken(size_t count) {
  CUdeviceptr memory = 0;
  RIGHT(cu.cuMemAlloc(&memory, count * sizeof(int)));
  return (int *)(uintptr_t)memory;
}

static inline CUdeviceptr at(const void *memory) { return (CUdeviceptr)(uintptr_t)memory; }
static inline void give(const void *memory) { RIGHT(cu.cuMemFree(at(memory))); }

/* Bytes of each int that follow in the stream. */
static inline void fill_on(CUstream stream, const int *memory, int byte) {
  RIGHT(cu.cuMemsetD8Async(at(memory), (unsigned char)byte, sizeof *memory, stream));
}
#endif
