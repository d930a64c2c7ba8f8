/* Devices on CUDA: opening, contexts, memory of both kinds, copies. */
#include "cuda_world.h"

static void test_report(void **state) {
  const gk_device_info *info = gk_device_describe(*state);
  assert_string_equal(info->backend, "cuda");
  assert_non_null(strstr(info->driver, "CUDA 13.0"));
  for (size_t k = 0; k < info->capability_count; ++k) {
    assert_true(strlen(info->capabilities[k].why) > 10);
    assert_int_equal(info->capabilities[k].how, GK_NATIVE);
  }
}

static void test_no_such_device(void **state) {
  (void)state;
  gk_device *device = NULL;
  assert_fails(GK_ERROR_NO_DEVICE, "there is 1 device, counted from 0; 7 was asked for",
               gk_device_open(&(gk_device_desc){.backend = "cuda", .ordinal = 7}, &device));
  gk_extension extension = {.id = 5, .bytes = sizeof extension};
  assert_fails(GK_ERROR_INVALID, "no extension",
               gk_device_open(&(gk_device_desc){.backend = "cuda", .next = &extension}, &device));
  assert_null(device);
}

/* What is current to the caller stays so, whatever is called. */
static void test_context_is_left_alone(void **state) {
  gk_device *device = *state;
  CUresult (*get)(CUcontext *context);
  CUresult (*find)(const char *name, void **entry, int version, cuuint64_t flags);
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL;
  *(void **)&find = dlsym(library, "cuGetProcAddress");
  assert_int_equal(find("cuCtxGetCurrent", &entry, 4000, 0), CUDA_SUCCESS);
  *(void **)&get = entry;
  int *memory = int_on(device, 3);
  assert_int_equal(int_at(device, memory), 3);
  gk_free(device, memory);
  void *page = gk_alloc(device, 10, GK_HOST_MEMORY);
  gk_free(device, page);
  assert_null(gk_alloc(device, SIZE_MAX / 2, GK_DEVICE_MEMORY));
  assert_says("cuMemAlloc");
  CUcontext now = (CUcontext)(uintptr_t)1;
  assert_int_equal(get(&now), CUDA_SUCCESS);
  assert_null(now);
}

static void test_host_memory(void **state) {
  gk_device *device = *state;
  int *page = gk_alloc(device, 4 * sizeof *page, GK_HOST_MEMORY), *far = int_on(device, 7);
  assert_non_null(page);
  assert_ptr_equal(gk_host_address(device, page + 1), page + 1);
  assert_null(gk_host_address(device, far));
  assert_int_equal(page[3], 0);
  page[1] = 11;
  assert_ok(gk_copy(device, far, page + 1, sizeof *far)); /* to the device, back, within */
  assert_int_equal(int_at(device, far), 11);
  set_int(device, far, 12);
  assert_ok(gk_copy(device, page, far, sizeof *far));
  assert_int_equal(page[0], 12);
  assert_ok(gk_copy(device, page + 1, page, 3 * sizeof *page));
  assert_int_equal(page[2], 11);
  set_int(device, page + 3, 5);
  assert_int_equal(page[3], 5);
  assert_int_equal(int_at(device, page + 3), 5);
  gk_free(device, page);
  gk_free(device, far);
}

static void test_overlapping_copies(void **state) {
  gk_device *device = *state;
  int values[8], out[8];
  for (int k = 0; k < 8; ++k) values[k] = k;
  int *memory = ints_on(device, values, 8);
  assert_ok(gk_copy(device, memory + 1, memory, 6 * sizeof *memory));
  assert_ok(gk_download(device, out, memory, sizeof out));
  assert_memory_equal(out, ((int[]){0, 0, 1, 2, 3, 4, 5, 7}), sizeof out);
  assert_ok(gk_copy(device, memory, memory + 2, 6 * sizeof *memory));
  assert_ok(gk_copy(device, memory, memory, 6 * sizeof *memory));
  assert_ok(gk_download(device, out, memory, sizeof out));
  assert_memory_equal(out, ((int[]){1, 2, 3, 4, 5, 7, 5, 7}), sizeof out);
  gk_free(device, memory);
}

static void test_listed(void **state) {
  (void)state;
  gk_device *first = NULL, *again = NULL;
  assert_ok(gk_device_open(NULL, &first)); /* it comes before OpenMP */
  assert_string_equal(gk_device_describe(first)->backend, "cuda");
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda"}, &again));
  gk_device_close(first);
  int *memory = int_on(again, 4);
  assert_int_equal(int_at(again, memory), 4);
  gk_device_close(again); /* and all its memory */
}

int main(int count, char **words) {
  (void)count;
  with_simgpu(words);
  const struct CMUnitTest tests[] = {ON_CUDA(test_report),      ON_CUDA(test_no_such_device),
                                     ON_CUDA(test_host_memory), ON_CUDA(test_overlapping_copies),
                                     ON_CUDA(test_context_is_left_alone), ON_CUDA(test_listed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
