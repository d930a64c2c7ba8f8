#include "base/memory.h"
#include "base/error.h"
#include "base/table.h"
#include "unit/support/runtime.h"

COUNTED(arena_gives_aligned_zeroed_memory) {
  gki_arena arena = {0};
  for (size_t bytes = 0; bytes < 40000; bytes = bytes * 2 + 1) {
    unsigned char *memory = gki_arena_alloc(&arena, bytes, 1);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % _Alignof(max_align_t), 0);
    for (size_t k = 0; k < bytes; ++k) assert_int_equal(memory[k], 0);
    memset(memory, 0xFF, bytes); /* must not reach what is given next */
  }
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    unsigned char *memory = gki_arena_alloc_aligned(&arena, 100, alignment);
    assert_int_equal((uintptr_t)memory % alignment, 0);
    for (size_t k = 0; k < 100; ++k) assert_int_equal(memory[k], 0);
    memset(memory, 0xFF, 100);
  }
  assert_null(gki_arena_alloc_aligned(&arena, SIZE_MAX, 64));
  gki_arena_free(&arena);
  assert_null(arena.last);
}

TEST(sizes_that_do_not_fit_are_refused) {
  gki_arena arena = {0};
  assert_null(gki_arena_alloc(&arena, SIZE_MAX, 2));
  assert_null(gki_arena_alloc(&arena, SIZE_MAX, 1));
  assert_null(gki_arena_alloc(&arena, SIZE_MAX - 16, 1));
  gki_begin();
  assert_null(gki_array(SIZE_MAX / 2, 3, "moon maps"));
  assert_says("moon maps");
  void *array = NULL;
  size_t capacity = 0;
  gki_begin();
  assert_false(gki_grow(&array, &capacity, SIZE_MAX / 2, 16, "sun maps"));
  assert_says("sun maps");
  assert_null(array);
  assert_int_equal(capacity, 0);
  gki_arena_free(&arena);
}

COUNTED(array_grows_and_keeps) {
  int *array = NULL;
  size_t capacity = 0;
  fail_own_memory(0);
  for (int k = 0; k < 1000; ++k) {
    assert_true(gki_grow((void **)&array, &capacity, (size_t)k + 1, sizeof *array, "numbers"));
    array[k] = k;
  }
  for (int k = 0; k < 1000; ++k) assert_int_equal(array[k], k);
  assert_true(atomic_load(&own_memory.calls) < 20); /* geometrically */
  size_t before = capacity;
  fail_own_memory(1);
  gki_begin();
  assert_false(gki_grow((void **)&array, &capacity, capacity + 1, sizeof *array, "numbers"));
  assert_says("numbers");
  assert_int_equal(capacity, before);
  assert_int_equal(array[999], 999);
  gk_host_free(array);
}

COUNTED(obtained_memory_is_zeroed) { /* gives dirty memory */
  unsigned char *memory = gk_host_alloc(100), *nothing = gk_host_alloc(0);
  for (int k = 0; k < 100; ++k) assert_int_equal(memory[k], 0);
  assert_non_null(nothing); /* so that NULL always means that none is left */
  gk_host_free(memory);
  gk_host_free(nothing);
  gk_host_free(NULL);
}

TEST(incomplete_allocator_is_refused) {
  counting c = {0};
  for (int missing = 0; missing < 3; ++missing) {
    gk_allocator allocator = counting_allocator(&c);
    if (missing == 0) allocator.alloc = NULL;
    if (missing == 1) allocator.resize = NULL;
    if (missing == 2) allocator.free = NULL;
    assert_invalid("all needed", gk_set_allocator(&allocator));
  }
  gk_host_free(gk_host_alloc(1));
  assert_int_equal(atomic_load(&c.calls), 0);
}

TEST(allocator_stays_while_held) {
  gki_memory_hold();
  gki_memory_hold();
  gki_memory_drop();
  assert_fails(GK_ERROR_BUSY, "device is open", gk_set_allocator(NULL));
  gki_memory_drop();
  assert_ok(gk_set_allocator(NULL));
}

/* Keys whose first place is the table's last one, so that finding them goes on at its beginning. */
COUNTED(keys_of_a_table_share_places) {
  gki_table table = {0};
  uint64_t keys[40] = {0}, last = 0;
  for (size_t k = 0; k < GK_COUNT(keys); keys[k++] = last)
    do ++last;
    while ((gki_hash(last) & 15) != 15);
  for (size_t k = 0; k < GK_COUNT(keys); ++k) {
    assert_true(gki_table_grow(&table, 1, "a table"));
    assert_true(table.size >= 2 * (k + 1));
    assert_int_equal(gki_table_find(&table, keys[k])->key, 0);
    gki_table_add(&table, keys[k], k);
    for (size_t n = 0; n <= k; ++n) assert_int_equal(gki_table_find(&table, keys[n])->value, n);
  }
  fail_own_memory(1);
  gki_begin();
  assert_false(gki_table_grow(&table, 1000, "a large table"));
  assert_true(own_memory_failed());
  assert_says("a large table");
  for (size_t k = 0; k < GK_COUNT(keys); ++k) assert_int_equal(gki_table_find(&table, keys[k])->value, k);
  gk_host_free(table.entries);
}

int main(void) { return run_all_tests(); }
