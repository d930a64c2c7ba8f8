/* Memory of the Vulkan backend, mapped for the host or not: blocks, copies, the choice among kinds of memory, failures.
 * The tests have the driver's functions in their hands. Skipped where there is no Vulkan device. */
#include "unit/support/test.h"
#include "base/error.h"
#include "unit/support/chance.h"
#include "unit/support/own_memory.h"
#include "vulkan/memory.h"
#include "gk_kernel.h"
#include <pthread.h>

/* ---- a device whose driver is watched ---------------------------------------------------------------------------- */

#define WATCHED(X) \
  X(CreateBuffer, (VkDevice a, const VkBufferCreateInfo *b, const VkAllocationCallbacks *c, VkBuffer *e), \
    (a, b, c, e)) \
  X(BindBufferMemory, (VkDevice a, VkBuffer b, VkDeviceMemory c, VkDeviceSize e), (a, b, c, e)) \
  X(MapMemory, (VkDevice a, VkDeviceMemory b, VkDeviceSize c, VkDeviceSize e, VkMemoryMapFlags f, void **g), \
    (a, b, c, e, f, g)) \
  X(CreateCommandPool, \
    (VkDevice a, const VkCommandPoolCreateInfo *b, const VkAllocationCallbacks *c, VkCommandPool *e), (a, b, c, e)) \
  X(AllocateCommandBuffers, (VkDevice a, const VkCommandBufferAllocateInfo *b, VkCommandBuffer *c), (a, b, c)) \
  X(BeginCommandBuffer, (VkCommandBuffer a, const VkCommandBufferBeginInfo *b), (a, b)) \
  X(EndCommandBuffer, (VkCommandBuffer a), (a)) \
  X(QueueSubmit, (VkQueue a, uint32_t b, const VkSubmitInfo *c, VkFence e), (a, b, c, e))

static gki_vulkan_device device;
static gki_vulkan_driver real;
static atomic_int calls, fail_at, chunks, all_chunks; /* of the driver; fail_at 0: none fails */
static VkDeviceSize most_bytes;                       /* of a chunk; 0: as many as there are */
static uint32_t last_type;
static uint64_t waited_for; /* the last submit that was waited for */
static bool has_other_types; /* those in device.memory aren't the driver's, which has one */

static bool call_fails(void) { return atomic_fetch_add(&calls, 1) + 1 == atomic_load(&fail_at); }

#define WATCH(name, parameters, arguments) \
  static VkResult watched_##name parameters { \
    return call_fails() ? VK_ERROR_OUT_OF_HOST_MEMORY : real.name arguments; \
  }
WATCHED(WATCH)

static VkResult watched_wait(VkDevice a, const VkSemaphoreWaitInfo *b, uint64_t c) {
  waited_for = b->pValues[0];
  return call_fails() ? VK_ERROR_OUT_OF_HOST_MEMORY : real.WaitSemaphores(a, b, c);
}

static VkResult watched_allocate(VkDevice a, const VkMemoryAllocateInfo *b, const VkAllocationCallbacks *c,
                                 VkDeviceMemory *e) {
  VkMemoryAllocateInfo info = *b;
  last_type = b->memoryTypeIndex;
  if (has_other_types) info.memoryTypeIndex = 0;
  if (call_fails() || (most_bytes && info.allocationSize > most_bytes)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkResult result = real.AllocateMemory(a, &info, c, e);
  if (result != VK_SUCCESS) return result;
  ++chunks;
  ++all_chunks;
  return result;
}

static void watched_free(VkDevice a, VkDeviceMemory b, const VkAllocationCallbacks *c) {
  --chunks;
  real.FreeMemory(a, b, c);
}

static void watched_requirements(VkDevice a, VkBuffer b, VkMemoryRequirements *c) {
  real.GetBufferMemoryRequirements(a, b, c);
  if (has_other_types) c->memoryTypeBits = UINT32_MAX;
}

/* word: "mapped" or "unmapped" */
static int begin_device(void **state) {
  if (begin_counted(state) != 0) return -1;
  setenv("GK_VULKAN_UNMAPPED", strcmp(*state, "unmapped") == 0 ? "1" : "0", 1);
  memset(&device, 0, sizeof device);
  has_other_types = false;
  most_bytes = 0;
  calls = fail_at = all_chunks = 0;
  gki_begin();
  const gk_result result = gki_vulkan_open(&device, 0, NULL);
  if (result == GK_ERROR_NO_DEVICE) return 0;
  if (result != GK_OK) return -1;
  real = device.driver;
#define PUT(name, parameters, arguments) device.driver.name = watched_##name;
  WATCHED(PUT)
  device.driver.WaitSemaphores = watched_wait;
  device.driver.AllocateMemory = watched_allocate;
  device.driver.FreeMemory = watched_free;
  device.driver.GetBufferMemoryRequirements = watched_requirements;
  return 0;
}

static int end_device(void **state) {
  gki_vulkan_drop_memory(&device);
  gki_vulkan_close(&device);
  if (chunks) fprintf(stderr, "%d chunks of device memory are left\n", chunks);
  return chunks || end_counted(state) != 0 ? -1 : 0;
}

#define ON_BOTH(name) \
  static void name##_here(void); \
  TEST_ON_EACH("mapped unmapped", name, begin_device, end_device) { \
    if (!device.device) skip(); \
    name##_here(); \
  } \
  static void name##_here(void)

static gki_vulkan_block *block_of(size_t bytes, gk_memory kind) {
  gki_vulkan_block *block;
  gki_begin();
  assert_ok(gki_vulkan_alloc(&device, bytes, kind, &block));
  assert_true(block->address % 256 == 0);
  assert_true(kind == GK_HOST_MEMORY ? block->host != NULL : (block->host == NULL) == device.unmapped);
  return block;
}

static void *address(const gki_vulkan_block *block, size_t offset) {
  void *memory;
  const uintptr_t at = (uintptr_t)block->address + offset;
  memcpy(&memory, &at, sizeof memory);
  return memory;
}

static void copy(gk_direction direction, void *to, const void *from, size_t bytes) {
  gki_begin();
  assert_ok(gki_vulkan_copy_memory(&device, direction, to, from, bytes));
}

#define assert_refuses(code, words, call) assert_fails(code, words, (gki_begin(), call))

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

enum { SMALL = 250 /* blocks at a time */, STEPS = 2500, MARK = 32 /* bytes at both ends */ };
typedef struct owned { gki_vulkan_block *block; size_t bytes; uint8_t mark[MARK]; } owned;

static void write_marks(owned *it, uint64_t *random) {
  for (size_t k = 0; k < MARK; ++k) it->mark[k] = (uint8_t)pick(random, 256);
  copy(GK_TO_DEVICE, address(it->block, 0), it->mark, MARK);
  copy(GK_TO_DEVICE, address(it->block, it->bytes - MARK), it->mark, MARK);
}

/* The last write wins if the block is short. */
static void read_marks(const owned *it) {
  uint8_t found[MARK];
  copy(GK_TO_HOST, found, address(it->block, it->bytes - MARK), MARK);
  assert_memory_equal(found, it->mark, MARK);
  copy(GK_TO_HOST, found, address(it->block, 0), MARK);
  if (it->bytes >= 2 * MARK) assert_memory_equal(found, it->mark, MARK);
}

static void lies_alone(const owned *all, size_t count, const owned *it) {
  for (size_t k = 0; k < count; ++k) {
    const gki_vulkan_block *other = all[k].block;
    if (&all[k] != it)
      assert_true(other->address + all[k].bytes <= it->block->address ||
                  it->block->address + it->bytes <= other->address);
  }
  assert_ptr_equal(gki_vulkan_block_of(&device, address(it->block, 0), it->bytes), it->block);
  assert_ptr_equal(gki_vulkan_block_of(&device, address(it->block, it->bytes - 1), 1), it->block);
  assert_null(gki_vulkan_block_of(&device, address(it->block, 0), it->bytes + 1));
}

ON_BOTH(blocks_keep_their_bytes) {
  uint64_t random = first_seed();
  owned all[SMALL];
  size_t count = 0;
  for (uint64_t step = 0; step < scaled(STEPS) || count; ++step) {
    const bool ends = step >= scaled(STEPS);
    if (!ends && count < SMALL && pick(&random, 5) < 3) {
      owned *it = &all[count++];
      it->bytes = MARK + pick(&random, pick(&random, 20) ? 5000 : 3 << 20);
      it->block = block_of(it->bytes, pick(&random, 2) ? GK_DEVICE_MEMORY : GK_HOST_MEMORY);
      lies_alone(all, count, it);
      write_marks(it, &random);
    } else if (count) {
      owned *it = &all[pick(&random, (uint32_t)count)];
      read_marks(it);
      gki_vulkan_free(&device, it->block);
      *it = all[--count];
    }
  }
  assert_int_equal(chunks, device.staging ? 1 : 0);
}

enum { MANY = 3000, THREADS = 2 };
static gki_vulkan_block *many[THREADS][MANY];

static void *allocate_many(void *at) {
  gki_vulkan_block **mine = at;
  for (size_t k = 0; k < MANY; ++k)
    if (gki_vulkan_alloc(&device, 1 + k % 700, k % 2 ? GK_DEVICE_MEMORY : GK_HOST_MEMORY, &mine[k]) != GK_OK) return at;
  for (size_t k = 0; k < MANY; k += 3) { /* frees some and allocates again */
    gki_vulkan_free(&device, mine[k]);
    if (gki_vulkan_alloc(&device, 100, GK_DEVICE_MEMORY, &mine[k]) != GK_OK) return at;
  }
  return NULL;
}

static int by_address(const void *a, const void *b) {
  const uint64_t x = (*(gki_vulkan_block *const *)a)->address, y = (*(gki_vulkan_block *const *)b)->address;
  return x < y ? -1 : x > y;
}

ON_BOTH(thousands_of_blocks_take_few_chunks) {
  pthread_t threads[THREADS];
  for (size_t k = 0; k < THREADS; ++k) assert_int_equal(pthread_create(&threads[k], NULL, allocate_many, many[k]), 0);
  for (size_t k = 0; k < THREADS; ++k) {
    void *failed;
    pthread_join(threads[k], &failed);
    assert_null(failed);
  }
  assert_true(chunks <= 16 && all_chunks <= 16);
  gki_vulkan_block **all = many[0];
  qsort(all, (size_t)THREADS * MANY, sizeof *all, by_address);
  for (size_t k = 1; k < (size_t)THREADS * MANY; ++k)
    assert_true(all[k - 1]->address + all[k - 1]->bytes <= all[k]->address);
  for (size_t k = 0; k < (size_t)THREADS * MANY; k += 2) gki_vulkan_free(&device, all[k]);
  for (size_t k = 1; k < (size_t)THREADS * MANY; k += 2) gki_vulkan_free(&device, all[k]);
  assert_int_equal(chunks, 0);
}

ON_BOTH(large_blocks_have_chunks_of_their_own) {
  gki_vulkan_block *small = block_of(100, GK_DEVICE_MEMORY), *large = block_of(3 << 20, GK_DEVICE_MEMORY);
  assert_int_equal(chunks, 2);
  gki_vulkan_free(&device, large);
  assert_int_equal(chunks, 1);
  gki_vulkan_free(&device, small);
  assert_int_equal(chunks, 0);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

enum { BYTES = (9 << 20) + 77, COPIES = 40 };
static uint8_t model[2][BYTES], program[BYTES], found[BYTES];

/* A place in one of the blocks, and a size: few bytes or several pieces. */
static size_t place_of(uint64_t *random, size_t *bytes) {
  const size_t at = pick(random, 5000);
  *bytes = 1 + pick(random, pick(random, 3) ? BYTES - 10000 : 9);
  return at;
}

/* Each copy is made by the host in a model, too. */
ON_BOTH(copies_are_like_those_of_the_host) {
  uint64_t random = first_seed() + 1;
  gki_vulkan_block *blocks[] = {block_of(BYTES, GK_DEVICE_MEMORY), block_of(BYTES, GK_HOST_MEMORY)};
  for (size_t k = 0; k < 2; ++k) {
    copy(GK_ZERO, address(blocks[k], 0), NULL, BYTES);
    memset(model[k], 0, BYTES);
  }
  for (size_t k = 0; k < BYTES; ++k) program[k] = (uint8_t)mix(k);
  for (uint64_t step = 0; step < scaled(COPIES); ++step) {
    size_t bytes;
    const size_t at = place_of(&random, &bytes), from = pick(&random, 5000), to = pick(&random, 3) ? 0 : 1;
    const size_t source = pick(&random, 4) ? to : 1 - to;
    switch (pick(&random, 3)) {
    case 0:
      copy(GK_TO_DEVICE, address(blocks[to], at), program + from, bytes);
      memcpy(model[to] + at, program + from, bytes);
      break;
    case 1:
      copy(GK_ZERO, address(blocks[to], at), NULL, bytes);
      memset(model[to] + at, 0, bytes);
      break;
    default:
      copy(GK_ON_DEVICE, address(blocks[to], at), address(blocks[source], from), bytes);
      memmove(model[to] + at, model[source] + from, bytes);
    }
    for (size_t k = 0; k < 2; ++k) {
      memset(found, 0x33, BYTES);
      copy(GK_TO_HOST, found + 1, address(blocks[k], 1), BYTES - 1);
      assert_int_equal(found[0], 0x33);
      assert_true(memcmp(found + 1, model[k] + 1, BYTES - 1) == 0);
    }
  }
  for (size_t k = 0; k < 2; ++k) gki_vulkan_free(&device, blocks[k]);
}

ON_BOTH(copies_beyond_a_block) {
  gki_vulkan_block *block = block_of(1000, GK_DEVICE_MEMORY);
  char mine[2000] = {0};
  assert_refuses(GK_ERROR_INVALID, "leave their block, which has 900 there; copy no more than those",
                 gki_vulkan_copy_memory(&device, GK_TO_HOST, mine, address(block, 100), 901));
  assert_refuses(GK_ERROR_INVALID, "isn't memory of this device; use memory of gk_alloc",
                 gki_vulkan_copy_memory(&device, GK_ON_DEVICE, address(block, 0), mine, 1));
  gki_vulkan_free(&device, block);
}

/* ---- other devices ----------------------------------------------------------------------------------------------- */

enum { LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
       SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT };

/* A discrete GPU with `all` MiB, and a window through which the host sees `window` MiB of it. */
static void be_discrete(VkDeviceSize all, VkDeviceSize window) {
  has_other_types = true;
  device.memory = (VkPhysicalDeviceMemoryProperties){
      .memoryTypeCount = 5,
      .memoryTypes = {{0, 1}, {LOCAL, 0}, {SEEN, 1}, {SEEN | CACHED, 1}, {LOCAL | SEEN, 2}},
      .memoryHeapCount = 3,
      .memoryHeaps = {{all << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}, {(VkDeviceSize)4096 << 20, 0},
                      {window << 20, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT}}};
}

static gki_vulkan_block *block_of_type(uint32_t type, size_t bytes, gk_memory kind) {
  gki_vulkan_block *block;
  gki_begin();
  assert_ok(gki_vulkan_alloc(&device, bytes, kind, &block));
  assert_int_equal(last_type, type);
  return block;
}

ON_BOTH(a_small_window_is_not_used) {
  be_discrete(8192, 256);
  gki_vulkan_block *block = block_of_type(1, BYTES, GK_DEVICE_MEMORY), *host = block_of_type(3, 100, GK_HOST_MEMORY);
  assert_null(block->host);
  assert_non_null(host->host);
  assert_null(gki_vulkan_block_of(&device, address(block, 0), 1)->host);
  copy(GK_TO_DEVICE, address(block, 0), program, BYTES);
  copy(GK_TO_HOST, found, address(block, 0), BYTES);
  assert_memory_equal(found, program, BYTES);
  gki_vulkan_free(&device, block);
  gki_vulkan_free(&device, host);
}

/* Such memory isn't cached when the host reads it: the device copies large parts. */
ON_BOTH(a_window_on_all_memory_is_used) {
  be_discrete(8192, 8192);
  if (device.unmapped) return;
  gki_vulkan_block *block = block_of_type(4, BYTES, GK_DEVICE_MEMORY);
  assert_non_null(block->host);
  copy(GK_TO_DEVICE, address(block, 0), program, BYTES);
  copy(GK_TO_HOST, found, address(block, 5), 4);
  assert_int_equal(device.submitted, 0);
  copy(GK_TO_HOST, found, address(block, 0), BYTES);
  assert_true(device.submitted > 1);
  assert_memory_equal(found, program, BYTES);
  waited_for = 0;
  copy(GK_TO_DEVICE, address(block, 0), program, 4); /* by the host, behind the device's work */
  assert_int_equal(waited_for, device.submitted);
  gki_vulkan_free(&device, block);
}

ON_BOTH(more_than_there_is) {
  gki_vulkan_block *block;
  be_discrete(8192, 256);
  assert_refuses(GK_ERROR_MEMORY, "has 8589934592 in all, so use less",
                 gki_vulkan_alloc(&device, (size_t)8192 << 20, GK_DEVICE_MEMORY, &block));
  assert_refuses(GK_ERROR_MEMORY, "out of device memory: 18446744073709551615 bytes",
                 gki_vulkan_alloc(&device, SIZE_MAX, GK_HOST_MEMORY, &block));
  be_discrete((VkDeviceSize)1 << 40, 256);
  assert_refuses(GK_ERROR_MEMORY, "at once (maxMemoryAllocationSize), so use several blocks",
                 gki_vulkan_alloc(&device, (size_t)1 << 59, GK_DEVICE_MEMORY, &block));
  device.memory.memoryTypeCount = 1; /* the one that has neither property */
  assert_refuses(GK_ERROR_UNSUPPORTED, "has no memory for buffers that the host sees",
                 gki_vulkan_alloc(&device, 1, GK_HOST_MEMORY, &block));
  assert_int_equal(all_chunks, 0);
}

ON_BOTH(too_little_left_for_a_whole_chunk) {
  gki_vulkan_block *small, *large;
  most_bytes = 100000;
  gki_begin();
  assert_ok(gki_vulkan_alloc(&device, 50000, GK_DEVICE_MEMORY, &small));
  assert_fails(GK_ERROR_MEMORY, "vkAllocateMemory of 200000 bytes: out of device memory; free some and call again",
               gki_vulkan_alloc(&device, 200000, GK_DEVICE_MEMORY, &large));
  gki_vulkan_free(&device, small);
}

/* ---- memory of the program --------------------------------------------------------------------------------------- */

ON_BOTH(a_buffer_of_the_program) {
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 10000,
                                   .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                            VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                            VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  VkBuffer buffer;
  VkDeviceMemory memory;
  VkMemoryRequirements needs;
  assert_int_equal(real.CreateBuffer(device.device, &info, NULL, &buffer), VK_SUCCESS);
  real.GetBufferMemoryRequirements(device.device, buffer, &needs);
  const VkMemoryAllocateInfo size = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
                                     .allocationSize = needs.size};
  assert_int_equal(real.AllocateMemory(device.device, &size, NULL, &memory), VK_SUCCESS);
  assert_int_equal(real.BindBufferMemory(device.device, buffer, memory, 0), VK_SUCCESS);
  const uint64_t at = real.GetBufferDeviceAddress(
      device.device, &(VkBufferDeviceAddressInfo){VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, NULL, buffer});
  gki_vulkan_block *block, *again;
  gki_begin();
  assert_ok(gki_vulkan_add_block(&device, buffer, 0, at, 10000, NULL, &block));
  assert_fails(GK_ERROR_INVALID, "are known to gk already; give each buffer once",
               gki_vulkan_add_block(&device, buffer, 0, at - 10, 11, NULL, &again));
  assert_refuses(GK_ERROR_INVALID, "are known to gk already",
                 gki_vulkan_add_block(&device, buffer, 0, at + 9999, 5, NULL, &again));
  copy(GK_TO_DEVICE, address(block, 1), program, 9999);
  copy(GK_TO_HOST, found, address(block, 1), 9999);
  assert_memory_equal(found, program, 9999);
  assert_ptr_equal(gki_vulkan_block_of(&device, address(block, 9999), 1), block);
  gki_vulkan_free(&device, block);
  gki_begin();
  assert_ok(gki_vulkan_add_block(&device, buffer, 8, at + 8, 9992, NULL, &block)); /* it is still there */
  copy(GK_TO_HOST, found, address(block, 0), 9992);
  assert_memory_equal(found, program + 7, 9992);
  gki_vulkan_free(&device, block);
  real.DestroyBuffer(device.device, buffer, NULL);
  real.FreeMemory(device.device, memory, NULL);
}

/* An address and where the host sees it are enough, since all copies go through the host then. */
ON_BOTH(memory_of_the_program_without_a_buffer) {
  static unsigned char mine[9000];
  enum { COPIED = 8000 };
  gki_vulkan_block *block, *a;
  gki_begin();
  assert_ok(gki_vulkan_add_block(&device, VK_NULL_HANDLE, 0, (uint64_t)1 << 20, sizeof mine, mine, &block));
  assert_ok(gki_vulkan_alloc(&device, COPIED, GK_DEVICE_MEMORY, &a));
  copy(GK_TO_DEVICE, address(a, 0), program, COPIED);
  copy(GK_ON_DEVICE, address(block, 1), address(a, 0), COPIED);
  assert_memory_equal(mine + 1, program, COPIED);
  copy(GK_ZERO, address(a, 0), NULL, COPIED);
  copy(GK_ON_DEVICE, address(a, 0), address(block, 1), COPIED);
  copy(GK_TO_HOST, found, address(a, 0), COPIED);
  assert_memory_equal(found, program, COPIED);
  gki_vulkan_free(&device, a);
  gki_vulkan_free(&device, block);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Allocates, copies in all ways, frees. Whether all of it went well. */
static bool use_memory(void) {
  enum { LARGE = (3 << 20) + 3 };
  gki_vulkan_block *a = NULL, *b = NULL;
  gki_begin();
  const bool is_done =
      gki_vulkan_alloc(&device, LARGE, GK_DEVICE_MEMORY, &a) == GK_OK &&
      gki_vulkan_alloc(&device, 100, GK_HOST_MEMORY, &b) == GK_OK &&
      gki_vulkan_copy_memory(&device, GK_TO_DEVICE, address(a, 0), program, LARGE) == GK_OK &&
      gki_vulkan_copy_memory(&device, GK_ZERO, address(a, 1), NULL, 10) == GK_OK &&
      gki_vulkan_copy_memory(&device, GK_ON_DEVICE, address(b, 1), address(a, 3), 99) == GK_OK &&
      gki_vulkan_copy_memory(&device, GK_ON_DEVICE, address(a, 100), address(a, 0), LARGE - 100) == GK_OK &&
      gki_vulkan_copy_memory(&device, GK_TO_HOST, found, address(a, 0), LARGE) == GK_OK;
  if (!is_done) assert_true(strlen(gk_error()) > 0);
  gki_vulkan_free(&device, a);
  gki_vulkan_free(&device, b);
  if (!is_done) return false;
  assert_memory_equal(found + 111, program + 11, LARGE - 111);
  return true;
}

/* So that the next copy makes its state again. */
static void forget_memory(void) {
  gki_vulkan_drop_memory(&device);
  device.staging = NULL;
  device.blocks = NULL;
  device.block_count = device.block_capacity = 0;
}

ON_BOTH(each_call_of_the_driver_fails_once) {
  int k = 0;
  do {
    calls = 0;
    fail_at = ++k;
    (void)use_memory();
    const bool was_reached = calls >= k;
    fail_at = 0;
    assert_true(use_memory());
    if (!was_reached) break;
    forget_memory();
  } while (k < 1000);
  assert_in_range(k, device.unmapped ? 40 : 8, 999);
}

ON_BOTH(each_allocation_fails_once) {
  int k = 0;
  bool has_failed;
  do {
    fail_own_memory(++k);
    const bool is_done = use_memory();
    has_failed = own_memory_failed();
    assert_true(is_done || has_failed);
    assert_true(use_memory());
    forget_memory();
  } while (has_failed);
  assert_in_range(k, 6, 99);
}

int main(void) { return run_all_tests(); }
