/* Images of device code: what is cut off, or says wrong things of itself, is noticed. Nothing behind its end is read,
 * which AddressSanitizer would report. */
#include "unit/support/test.h"
#include "kernel/object.h"
#include <elf.h>

/* Of an image that is cut off or changed, in memory that ends with it. */
static const char *problem_of(const unsigned char *image, size_t bytes, size_t at, uint64_t change) {
  unsigned char *copy = malloc(bytes + (bytes == 0));
  assert_non_null(copy);
  if (bytes) memcpy(copy, image, bytes);
  if (at) memcpy(copy + at, &change, sizeof change);
  const char *problem = gki_bundle_problem(copy, bytes);
  free(copy);
  return problem;
}

/* gk's own kernels, as clang made them: six entries, the first of them the host's, without code. */
TEST(a_bundle_is_whole) {
  static unsigned char image[1 << 18];
  enum { COUNT = 24, SECOND = 0x53 /* its place, bytes, bytes of its name */ };
  FILE *file = fopen("fallback/hip/image/kernels.hipfb", "rb");
  assert_non_null(file);
  const size_t bytes = fread(image, 1, sizeof image, file);
  fclose(file);
  assert_in_range(bytes, 4096, sizeof image - 1);
  assert_null(gki_bundle_problem(image, bytes));
  for (size_t less = 0; less < bytes; less += less < 600 || less > bytes - 600 ? 1 : 997)
    assert_non_null(problem_of(image, less, 0, 0));
  assert_string_equal(problem_of(image, 20, 0, 0), "is too short for a code object");
  assert_string_equal(problem_of(image, bytes, COUNT, 0), "is a bundle without code");
  assert_string_equal(problem_of(image, bytes, COUNT, UINT64_MAX), GKI_OBJECT_SHORT);
  static const uint64_t far[] = {UINT64_MAX, UINT64_MAX - 4096, (uint64_t)1 << 32};
  for (size_t k = 0; k < 3; ++k)
    for (size_t field = 0; field < 3; ++field)
      assert_string_equal(problem_of(image, bytes, SECOND + 8 * field, far[k]), GKI_OBJECT_SHORT);
  assert_non_null(problem_of(image, bytes, 0x1000 + 0x28, bytes)); /* e_shoff of the first code object */
  assert_non_null(problem_of(image, bytes, 0x1000 + 18, EM_CUDA));
}

TEST(a_compressed_bundle_is_whole) {
  static const struct { unsigned version; size_t bytes, says; const char *problem; } all[] = {
    {1, 21, 0, NULL}, {1, 20, 0, GKI_OBJECT_SHORT}, {2, 40, 40, NULL}, {2, 40, 41, GKI_OBJECT_SHORT},
    {2, 24, 24, GKI_OBJECT_SHORT}, {3, 40, 40, NULL}, {3, 40, (size_t)1 << 40, GKI_OBJECT_SHORT},
    {3, 32, 32, GKI_OBJECT_SHORT}, {4, 40, 40, "is compressed in a way that gk doesn't know (-no-offload-compress)"}};
  for (size_t k = 0; k < sizeof all / sizeof *all; ++k) {
    unsigned char image[40] = "CCOB";
    image[4] = (unsigned char)all[k].version;
    memcpy(image + 8, &all[k].says, sizeof all[k].says);
    const char *problem = problem_of(image, all[k].bytes, 0, 0);
    if (all[k].problem) assert_string_equal(problem, all[k].problem);
    else assert_null(problem);
  }
}

TEST(other_images_are_none) {
  static const unsigned char other[64] = "no code object, but as long as a header of one";
  assert_string_equal(problem_of(other, sizeof other, 0, 0), "is neither a code object nor a bundle of them");
}

int main(void) { return run_all_tests(); }
