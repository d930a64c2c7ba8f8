/* Which images a driver takes for which device, and what is damaged. */
#include "world.h"
#include "load.h"
#include "image.h"
#include <elf.h>
#include <unistd.h>

static char log_text[512];

static CUresult load(const void *image, int driver, int arch) {
  sim_module *module;
  CUresult result = sim_module_load(image, driver, arch, &module, log_text, sizeof log_text);
  assert_int_equal(result == CUDA_SUCCESS, module != NULL);
  assert_int_equal(result == CUDA_SUCCESS, log_text[0] == 0);
  sim_module_unload(module);
  return result;
}

static void expect_load(CUresult wanted, const void *image, int driver, int arch) {
  CUresult result = load(image, driver, arch);
  if (result != wanted)
    fail_msg("on %d, sm_%d: %d, not %d (%s)", driver, arch, (int)result, (int)wanted, log_text);
}

typedef struct taken { int driver, arch; CUresult result; } taken;
#define CHECK_ALL(image, cases) \
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) \
    expect_load((cases)[k].result, image, (cases)[k].driver, (cases)[k].arch);

TEST(ptx_by_version_and_target) {
  static const struct { const char *head; int driver, arch; CUresult result; } cases[] = {
    {".version 8.4\n.target sm_75\n", 12040, 75, CUDA_SUCCESS},
    {".version 8.4\n.target sm_75\n", 13000, 121, CUDA_SUCCESS},
    {".version 8.4\n.target sm_75\n", 12030, 90, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 8.4\n.target sm_75\n", 11040, 75, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 7.4\n.target sm_75\n", 11040, 75, CUDA_SUCCESS},
    {".version 8.5\n.target sm_75\n", 12060, 75, CUDA_SUCCESS},
    {".version 8.5\n.target sm_75\n", 12040, 75, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 9.0\n.target sm_75\n", 12080, 75, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 9.0\n.target sm_75\n", 13000, 75, CUDA_SUCCESS},
    {".version 9.1\n.target sm_75\n", 13000, 75, CUDA_ERROR_UNSUPPORTED_PTX_VERSION},
    {".version 8.4\n.target sm_80\n", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {".version 8.4\n.target sm_90a\n", 12080, 90, CUDA_SUCCESS},
    {".version 8.4\n.target sm_90a\n", 12080, 100, CUDA_ERROR_INVALID_PTX},
    {".version 8.8\n.target sm_100f\n", 13000, 103, CUDA_SUCCESS},
    {".version 8.8\n.target sm_100f\n", 13000, 120, CUDA_ERROR_INVALID_PTX},
    {"// words\n\n/* more */ .version 8.4\n\n.target sm_75, debug\n", 12040, 75, CUDA_SUCCESS},
    {".target sm_75\n.version 8.4\n", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {".version 8\n.target sm_75\n", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {".version 8.4\n.target compute_75\n", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {".version 8.4\n", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {"hello\n", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {" ", 12040, 75, CUDA_ERROR_INVALID_PTX},
    {"", 12040, 75, CUDA_ERROR_INVALID_IMAGE},
    {"\001", 12040, 75, CUDA_ERROR_INVALID_IMAGE}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    char *image = strdup(cases[k].head); /* so that AddressSanitizer sees what is read behind its end */
    expect_load(cases[k].result, image, cases[k].driver, cases[k].arch);
    free(image);
  }
}

static const char PTX[] =
  ".version 8.4\n.target sm_75\n.address_size 64\n// .entry gki_epilogue(\n"
  ".visible .entry gki_control(\n .param .u64 a\n)\n{\n ret;\n}\n/* .entry gki_fill() */\n"
  ".entry gki_copy()\n{\n { }\n ret;\n}\n.visible .entry unknown(){ret;}\n"
  ".const .align 1 .b8 text[3] = {1, 2, 3};\n";

TEST(gates_are_found_by_the_names_in_the_ptx) {
  static const char *const names[] = {"gki_control", "gki_copy", "gki_cop", "gki_epilogue", "gki_fill", "unknown"};
  sim_module *module;
  assert_int_equal(sim_module_load(PTX, 12040, 80, &module, NULL, 0), CUDA_SUCCESS);
  for (int k = 0; k < 6; ++k) assert_int_equal(sim_module_kernel(module, names[k]) != NULL, k < 2);
  sim_module_unload(module);
  for (size_t end = 0; end < sizeof PTX - 1; ++end) { /* cut off anywhere: never a crash, and no brace may be open */
    char *image = strndup(PTX, end);
    long depth = 0;
    for (const char *s = image; *s; ++s) depth += (*s == '{') - (*s == '}');
    CUresult result = load(image, 12040, 80);
    if (depth != 0 || end < strlen(".version 8.4\n.target sm_7")) assert_int_not_equal(result, CUDA_SUCCESS);
    free(image);
  }
}

/* ---- images of the simulated NVRTC ------------------------------------------------------------------------------- */

static const char KERNEL[] = "extern \"C\" __global__ void f(int *x) { x[threadIdx.x] = 7; }\n";

TEST(own_cubins) {
  size_t bytes;
  char *image = compile_for(KERNEL, "-arch=sm_80", &bytes);
  static const taken cases[] = {
    {12080, 80, CUDA_SUCCESS}, {12040, 86, CUDA_SUCCESS}, {13000, 89, CUDA_SUCCESS},
    {12080, 75, CUDA_ERROR_NO_BINARY_FOR_GPU}, {12080, 90, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {11040, 80, CUDA_ERROR_INVALID_IMAGE}};
  CHECK_ALL(image, cases);
  for (size_t at = 0; at < 60; ++at) {
    image[at] ^= 4;
    assert_int_not_equal(load(image, 12080, 80), CUDA_SUCCESS);
    image[at] ^= 4;
  }
  image[bytes / 2] ^= 1;
  expect_load(CUDA_ERROR_INVALID_IMAGE, image, 12080, 80);
  image[bytes / 2] ^= 1;
  expect_load(CUDA_SUCCESS, image, 12080, 80);
  free(image);
}

TEST(own_ptx) {
  size_t bytes;
  char *image = compile_for(KERNEL, "-arch=compute_75", &bytes);
  assert_int_equal(strlen(image) + 1, bytes);
  static const taken cases[] = {
    {12080, 75, CUDA_SUCCESS}, {13000, 120, CUDA_SUCCESS}, {12080, 70, CUDA_ERROR_INVALID_PTX},
    {12060, 80, CUDA_ERROR_UNSUPPORTED_PTX_VERSION}};
  CHECK_ALL(image, cases);
  sim_module *module = load_image(image, 12080, 90);
  int x[2] = {0};
  sim_kernel_run(sim_module_kernel(module, "f"), (unsigned[3]){1, 1, 1}, (unsigned[3]){2, 1, 1}, &(int *){x});
  assert_int_equal(x[1], 7);
  sim_module_unload(module);
  size_t head = (size_t)(strchr(strstr(image, "// simgpu "), '\n') - image); /* before it, PTX without kernels */
  for (size_t end = bytes - 4; end > head; end -= end > 300 ? end / 7 : 1) {
    char *cut = strndup(image, end);
    assert_int_not_equal(load(cut, 12080, 90), CUDA_SUCCESS);
    free(cut);
  }
  image[bytes / 2] = image[bytes / 2] == 'A' ? 'B' : 'A';
  expect_load(CUDA_ERROR_INVALID_PTX, image, 12080, 90);
  free(image);
}

/* A shared object that isn't one, in an image that is whole. */
TEST(code_that_cannot_be_loaded) {
  size_t bytes;
  void *image = sim_image_cubin(12080, (sim_arch){80, 0}, "no object", 9, &bytes);
  expect_load(CUDA_ERROR_INVALID_IMAGE, image, 12080, 80);
  free(image);
}

/* ---- fatbins, put together here as NVIDIA's compilers do --------------------------------------------------------- */

typedef struct part { unsigned kind, arch, major, minor; uint64_t flags; const char *payload; } part;
enum { PTX_PART = 1, CUBIN_PART = 2, COMPRESSED = 0x8000, ONLY = 0x100000, FAMILY = 0x200000 };

static size_t put(unsigned char *to, const part *parts, size_t count) {
  size_t at = 16;
  for (size_t k = 0; k < count; ++k) {
    const char *payload = parts[k].payload ? parts[k].payload : "packed";
    struct { uint16_t kind, attributes; uint32_t head; uint64_t bytes; uint32_t packed, zero; uint16_t minor, major;
             uint32_t arch, name, name_bytes; uint64_t flags, zeroes[2]; } head = {
      .kind = (uint16_t)parts[k].kind, .attributes = 0x101, .head = sizeof head, .bytes = (strlen(payload) + 8) / 8 * 8,
      .minor = (uint16_t)parts[k].minor, .major = (uint16_t)parts[k].major, .arch = parts[k].arch,
      .flags = 0x11 | parts[k].flags | (parts[k].payload ? 0 : COMPRESSED)};
    assert_int_equal(sizeof head, 64);
    memcpy(to + at, &head, sizeof head);
    memset(to + at + sizeof head, 0, head.bytes);
    memcpy(to + at + sizeof head, payload, strlen(payload));
    at += sizeof head + head.bytes;
  }
  struct { uint32_t magic; uint16_t version, head; uint64_t bytes; } head = {0xBA55ED50, 1, 16, at - 16};
  memcpy(to, &head, sizeof head);
  return at;
}

TEST(fatbins_by_their_parts) {
  static unsigned char image[4096];
  static const part cubins[] = {{CUBIN_PART, 75, 1, 7, 0, NULL}, {CUBIN_PART, 90, 1, 7, 0, NULL},
                                {CUBIN_PART, 120, 1, 8, 0, NULL}, {CUBIN_PART, 100, 1, 8, ONLY, NULL}};
  put(image, cubins, 4);
  static const taken without_ptx[] = {
    {12040, 75, CUDA_SUCCESS}, {12040, 90, CUDA_SUCCESS}, {13000, 121, CUDA_SUCCESS}, {13000, 100, CUDA_SUCCESS},
    {12040, 80, CUDA_ERROR_NO_BINARY_FOR_GPU}, {12080, 120, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {13000, 103, CUDA_ERROR_NO_BINARY_FOR_GPU}, {12040, 70, CUDA_ERROR_NO_BINARY_FOR_GPU}};
  CHECK_ALL(image, without_ptx);
  static const part ptx[] = {{PTX_PART, 80, 9, 0, 0, NULL}, {CUBIN_PART, 75, 1, 7, 0, NULL}};
  put(image, ptx, 2);
  static const taken with_ptx[] = {
    {13000, 80, CUDA_SUCCESS}, {13000, 120, CUDA_SUCCESS}, {12040, 75, CUDA_SUCCESS}, {13000, 75, CUDA_SUCCESS},
    {12080, 80, CUDA_ERROR_UNSUPPORTED_PTX_VERSION}, {13000, 70, CUDA_ERROR_NO_BINARY_FOR_GPU}};
  CHECK_ALL(image, with_ptx);
  put(image, NULL, 0);
  expect_load(CUDA_ERROR_NO_BINARY_FOR_GPU, image, 13000, 80);
}

TEST(the_best_part_is_taken) {
  static unsigned char image[8192];
  static const char other[] = ".version 8.4\n.target sm_80\n.entry gki_fill(){}\n";
  const part parts[] = {{PTX_PART, 75, 8, 4, 0, PTX}, {PTX_PART, 80, 8, 4, 0, other}, {CUBIN_PART, 86, 1, 7, 0, NULL}};
  static const struct { int arch; bool control, fill; } cases[] = {
    {75, true, false}, {80, false, true}, {90, false, true}, {86, true, true}};
  put(image, parts, 3);
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
    sim_module *module = load_image(image, 12040, cases[k].arch);
    assert_int_equal(sim_module_kernel(module, "gki_control") != NULL, cases[k].control);
    assert_int_equal(sim_module_kernel(module, "gki_fill") != NULL, cases[k].fill);
    sim_module_unload(module);
  }
}

TEST(damaged_fatbins) {
  static unsigned char image[8192];
  const part parts[] = {{CUBIN_PART, 75, 1, 7, 0, NULL}, {PTX_PART, 75, 8, 4, 0, PTX}};
  size_t bytes = put(image, parts, 2);
  for (size_t less = 1; less < bytes; ++less) { /* the header says that it ends early */
    uint64_t claimed = bytes - 16 - less;
    unsigned char *cut = malloc(bytes - less < 16 ? 16 : bytes - less);
    memcpy(cut, image, bytes - less < 16 ? 16 : bytes - less);
    if (less > bytes - 16) claimed = 0;
    memcpy(cut + 8, &claimed, sizeof claimed);
    CUresult result = load(cut, 12040, 75);
    bool is_between = claimed == 64 + 8; /* the two parts */
    assert_int_equal(result, claimed == 0 ? CUDA_ERROR_NO_BINARY_FOR_GPU :
                     is_between ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE);
    free(cut);
  }
  for (size_t at = 0; at < 16 + 64; ++at) /* any byte of the headers: refused or not, but never a crash */
    for (int bit = 0; bit < 8; ++bit) {
      if (at >= 8 && at < 16) continue; /* its size */
      image[at] = (unsigned char)(image[at] ^ 1 << bit);
      CUresult result = load(image, 12040, 75);
      if (at < 8) assert_int_not_equal(result, CUDA_SUCCESS);
      image[at] = (unsigned char)(image[at] ^ 1 << bit);
    }
}

/* ---- what NVIDIA's compiler makes -------------------------------------------------------------------------------- */

static const char NVCC[] = "/usr/local/cuda/bin/nvcc";
static char folder[] = "build/simgpu/image-XXXXXX";

static unsigned char *nvcc(const char *flags, size_t *bytes) {
  char command[600], path[100];
  snprintf(command, sizeof command, "%s %s %s/k.cu -o %s/out >/dev/null 2>&1", NVCC, flags, folder, folder);
  if (system(command) != 0) return NULL;
  snprintf(path, sizeof path, "%s/out", folder);
  FILE *file = fopen(path, "rb");
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  unsigned char *image = calloc(1, *bytes + 1);
  assert_int_equal(fread(image, 1, *bytes, file), *bytes);
  fclose(file);
  image[*bytes] = 0; /* PTX */
  return image;
}

static bool has_both(const void *image, int driver, int arch) {
  sim_module *module = load_image(image, driver, arch);
  bool both = sim_module_kernel(module, "gki_copy") && sim_module_kernel(module, "gki_fill");
  assert_null(sim_module_kernel(module, "gki_control")); /* the simulated GPU has it, but not this image */
  assert_null(sim_module_kernel(module, "mine"));
  sim_module_unload(module);
  return both;
}

TEST(real_images) {
  if (access(NVCC, X_OK) != 0) {
    print_message("there is no %s\n", NVCC);
    skip();
  }
  char path[100];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/k.cu", folder);
  FILE *source = fopen(path, "w");
  fputs("extern \"C\" __global__ void gki_copy(int *x) { x[0] = 1; }\n"
        "extern \"C\" __global__ void gki_fill(int *x) { x[1] = 1; }\n"
        "extern \"C\" __global__ void mine() {}\n", source);
  fclose(source);
  size_t bytes;
  unsigned char *image = nvcc("-fatbin --compress-mode=none -gencode arch=compute_80,code=sm_80 "
                              "-gencode arch=compute_90a,code=sm_90a -gencode arch=compute_75,code=compute_75", &bytes);
  if (!image) { /* an older toolkit, perhaps */
    print_message("nvcc doesn't take these flags\n");
    skip();
  }
  bool is_13 = load(image, 12080, 80) != CUDA_SUCCESS; /* its cubins are too new, and its PTX */
  if (is_13) expect_load(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, image, 12080, 80);
  assert_true(has_both(image, 13000, 80));  /* from the cubin, */
  assert_true(has_both(image, 13000, 120)); /* and from the PTX */
  expect_load(CUDA_ERROR_NO_BINARY_FOR_GPU, image, 13000, 70);
  free(image);
  image = nvcc("-cubin -arch=sm_86", &bytes);
  assert_true(has_both(image, 13000, 89));
  expect_load(CUDA_ERROR_NO_BINARY_FOR_GPU, image, 13000, 80);
  expect_load(CUDA_ERROR_NO_BINARY_FOR_GPU, image, 13000, 90);
  if (is_13) expect_load(CUDA_ERROR_INVALID_IMAGE, image, 12080, 86);
  ((Elf64_Ehdr *)(void *)image)->e_machine = EM_X86_64;
  expect_load(CUDA_ERROR_INVALID_IMAGE, image, 13000, 86);
  free(image);
  image = nvcc("-ptx -arch=compute_80", &bytes);
  assert_true(has_both(image, 13000, 90));
  expect_load(CUDA_ERROR_INVALID_PTX, image, 13000, 75);
  free(image);
  snprintf(path, sizeof path, "rm -r %s", folder);
  assert_int_equal(system(path), 0);
}

int main(void) { return run_all_tests_with(load_nvrtc, NULL); }
