#include "runtime/memory.h"
#include "runtime/device.h"
#include "unit/support/runtime.h"

TEST(opens_the_backend_that_was_asked_for) {
  for (int mode = 0; mode < FAKE_MODES; ++mode) {
    gk_device *device = open_fake((fake_mode)mode);
    const gk_device_info *info = gk_device_describe(device);
    assert_string_equal(info->backend, fake_names[mode]);
    assert_string_equal(info->name, "first fake");
    assert_int_equal(info->threads, 1);
    assert_int_equal(info->capability_count, 3);
    close_fake(device);
  }
}

TEST(bad_desc_is_refused) {
  gk_device *device = (gk_device *)state;
  assert_invalid("nowhere", gk_device_open(NULL, NULL));
  assert_invalid("reserved[2]", gk_device_open(&(gk_device_desc){.reserved = {0, 0, 1}}, &device));
  assert_null(device);
  assert_invalid("ordinal -1", gk_device_open(&(gk_device_desc){.ordinal = -1}, &device));
  assert_invalid("-3 threads", gk_device_open(&(gk_device_desc){.threads = -3}, &device));
  assert_gives_null("gk_device_describe", gk_device_describe(NULL));
  gk_device_close(NULL);
}

typedef struct heard { int errors; char all[4000]; } heard;
static void listen(void *user, gk_log_level level, const char *line) {
  heard *h = user;
  h->errors += level == GK_LOG_ERROR;
  const size_t used = strlen(h->all);
  snprintf(h->all + used, sizeof h->all - used, "%s\n", line);
}

TEST(failing_open_is_closed_and_explained) {
  fake_register();
  gk_device *device;
  for (int silent = 0; silent < 2; ++silent) {
    fake_reset();
    fake_fail(FAKE_OPEN, 1, GK_ERROR_DEVICE, silent);
    assert_fails(GK_ERROR_DEVICE, silent ? "backend fake_native failed to open" : "fake: open failed",
                 gk_device_open(&(gk_device_desc){.backend = "fake_native"}, &device));
    assert_null(device);
    assert_int_equal(fake_calls(FAKE_CLOSE), 1);
    assert_int_equal(fake_leaks(), 0);
  }
  assert_fails(GK_ERROR_NO_DEVICE, "there are 2",
               gk_device_open(&(gk_device_desc){.backend = "fake_native", .ordinal = 2}, &device));
}

typedef struct visited { int usable, refused; char all[4000]; } visited;
static void visit(void *user, const gk_device_entry *entry) {
  visited *v = user;
  size_t used = strlen(v->all);
  snprintf(v->all + used, sizeof v->all - used, "%s %d %d %s %s\n", entry->backend, entry->ordinal, entry->usable,
           entry->name, entry->why);
  if (entry->usable) ++v->usable;
  else ++v->refused;
}

static visited listed(void) {
  visited v = {0};
  assert_ok(gk_device_list(visit, &v));
  return v;
}

TEST(list_visits_every_device) {
  fake_register();
  fake_reset();
  visited v = listed();
  for (int mode = 0; mode < FAKE_MODES; ++mode) {
    char line[200];
    snprintf(line, sizeof line, "%s 0 1 first fake \n%s 1 1 second fake \n", fake_names[mode], fake_names[mode]);
    if (!strstr(v.all, line)) fail_msg("no \"%s\" in \"%s\"", line, v.all);
    snprintf(line, sizeof line, "%s 2 ", fake_names[mode]);
    assert_null(strstr(v.all, line)); /* a failed open isn't about a device */
  }
  assert_int_equal(fake_leaks(), 0);
  fake_fail(FAKE_OPEN, 1, GK_ERROR_UNSUPPORTED, false);
  v = listed();
  if (!strstr(v.all, "fake_batched 0 0  fake: open failed on request\n")) fail_msg("%s", v.all);
  assert_null(strstr(v.all, "fake_batched 1"));
  fake_fail(FAKE_OPEN, 1, GK_ERROR_NO_DEVICE, false); /* the backend can't use the first one */
  v = listed();
  if (!strstr(v.all, "fake_batched 0 0  fake: open failed on request\nfake_batched 1 1 second fake \n"))
    fail_msg("%s", v.all);
  fake_fail(FAKE_OPEN, 1, GK_ERROR_DEVICE, false); /* about that device, which exists: others may work */
  v = listed();
  if (!strstr(v.all, "fake_batched 0 0  fake: open failed on request\nfake_batched 1 1 second fake \n"))
    fail_msg("%s", v.all);
  fake_fail(FAKE_OPEN, 2, GK_ERROR_DEVICE, false);
  v = listed();
  if (!strstr(v.all, "fake_batched 1 0  fake: open failed on request\n")) fail_msg("%s", v.all);
  assert_int_equal(fake_leaks(), 0);
  assert_invalid("`visit` is NULL", gk_device_list(NULL, NULL));
}

/* The first backend can't, the second can: that isn't a failure. */
TEST(good_open_leaves_no_message) {
  fake_register();
  fake_reset();
  gk_device *device;
  heard lines = {0};
  assert_invalid("ordinal -1", gk_device_open(&(gk_device_desc){.ordinal = -1}, &device));
  gk_set_log(GK_LOG_DEBUG, listen, &lines);
  fake_fail(FAKE_OPEN, 1, GK_ERROR_DEVICE, false);
  assert_ok(gk_device_open(NULL, &device));
  assert_says("ordinal -1"); /* the last failure is still that one */
  gk_device_close(device);
  fake_fail(FAKE_OPEN, 1, GK_ERROR_DEVICE, false);
  listed();
  assert_says("ordinal -1");
  if (!strstr(lines.all, " can't start: fake: open failed on request\n")) fail_msg("%s", lines.all);
  assert_null(strstr(strstr(lines.all, "open failed") + 1, "open failed")); /* told once */
  lines = (heard){0};
  fake_fail(FAKE_OPEN, 1, GK_ERROR_DEVICE, false);
  assert_fails(GK_ERROR_DEVICE, "backend fake_native: fake: open failed on request",
               gk_device_open(&(gk_device_desc){.backend = "fake_native"}, &device));
  assert_string_equal(lines.all, "backend fake_native: fake: open failed on request\n");
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

TEST_ON(ALL_BACKENDS, memory_is_zeroed_aligned_and_copied) {
  unsigned char bytes[700], back[700];
  for (size_t k = 0; k < sizeof bytes; ++k) bytes[k] = (unsigned char)(k * 7);
  for (int kind = GK_DEVICE_MEMORY; kind <= GK_HOST_MEMORY; ++kind) {
    unsigned char *memory = gk_alloc(device, sizeof bytes, (gk_memory)kind),
                  *other = gk_alloc(device, 1000, (gk_memory)kind);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_ok(gk_download(device, back, memory, sizeof back));
    for (size_t k = 0; k < sizeof back; ++k) assert_int_equal(back[k], 0);
    assert_ok(gk_upload(device, memory, bytes, sizeof bytes));
    assert_ok(gk_copy(device, other + 17, memory + 3, 600)); /* any address inside is accepted */
    assert_ok(gk_download(device, back, other + 18, 599));
    assert_memory_equal(back, bytes + 4, 599);
    assert_ok(gk_copy(device, memory + 1, memory, 500)); /* overlapping */
    assert_ok(gk_download(device, back, memory + 1, 500));
    assert_memory_equal(back, bytes, 500);
    gk_free(device, memory);
    gk_free(device, other);
  }
}

TEST_ON(ALL_BACKENDS, range_that_leaves_its_block_is_refused) {
  unsigned char host[200] = {0}, *memory = gk_alloc(device, 100, GK_DEVICE_MEMORY),
                *empty = gk_alloc(device, 0, GK_HOST_MEMORY);
  assert_non_null(empty);
  assert_ok(gk_upload(device, memory + 99, host, 1));
  assert_invalid("101 bytes from there leave the block, which has 100", gk_upload(device, memory, host, 101));
  assert_invalid("1 of them from there on", gk_download(device, host, memory + 99, 2));
  assert_invalid("gk_copy (to)", gk_copy(device, memory + 50, memory, 51));
  assert_invalid("gk_copy (from)", gk_copy(device, memory, memory + 50, 51));
  assert_invalid("which has 0 bytes", gk_upload(device, empty, host, 1));
  assert_invalid("leave the block", gk_upload(device, memory + 1, host, SIZE_MAX)); /* no overflow */
  uint64_t number;
  assert_int_equal(gki_device_capacity(device, NULL, memory + 99, &number), 1);
  assert_int_equal(gki_device_capacity(device, NULL, memory + 100, &number), SIZE_MAX);
  assert_int_equal(number, 0);
}

TEST_ON(ALL_BACKENDS, nothing_and_nowhere) {
  int host = 1;
  int *memory = int_on(device, 5);
  assert_ok(gk_upload(device, NULL, NULL, 0));
  assert_ok(gk_download(device, NULL, NULL, 0));
  assert_ok(gk_copy(device, memory, NULL, 0));
  assert_invalid("gk_upload: the address is NULL", gk_upload(device, NULL, &host, 4));
  assert_invalid("nothing to copy from", gk_upload(device, memory, NULL, 4));
  assert_invalid("nowhere to copy to", gk_download(device, NULL, memory, 4));
  assert_invalid("gk_copy (from): the address is NULL", gk_copy(device, memory, NULL, 4));
  assert_invalid("there is no device", gk_upload(NULL, memory, &host, 4));
  assert_gives_null("gk_alloc: there is no device", gk_alloc(NULL, 4, GK_DEVICE_MEMORY));
  assert_gives_null("7 is no kind of memory", gk_alloc(device, 4, (gk_memory)7));
  gk_free(device, NULL);
  assert_null(gk_host_address(device, NULL));
  assert_int_equal(int_at(device, memory), 5);
}

TEST_ON(FAKE_BACKENDS, host_address_is_the_backends_affair) {
  int *memory = int_on(device, 42), *host = gk_host_address(device, memory);
  if (is_of(device, "fake_batched")) assert_null(host);
  else assert_int_equal(*host, 42);
}

TEST_ON(ALL_BACKENDS, foreign_memory_is_taken_at_its_word) {
  int *memory = int_on(device, 42), *reached = gk_host_address(device, memory), foreign = 7;
  if (reached) {
    assert_ok(gk_copy(device, memory, &foreign, sizeof foreign));
    assert_int_equal(int_at(device, memory), 7);
  }
}

TEST_ON(FAKE_BACKENDS, free_of_what_was_not_given_is_logged) {
  heard h = {0};
  gk_set_log(GK_LOG_ERROR, listen, &h);
  char *memory = (char *)int_on(device, 1);
  int foreign;
  gk_free(device, memory + 1);
  gk_free(device, &foreign);
  assert_int_equal(h.errors, 2);
  gk_free(device, memory);
  assert_int_equal(h.errors, 2);
  gk_free(device, memory); /* a second time */
  assert_int_equal(h.errors, 3);
  assert_says("was not given by gk_alloc of this device, or is freed already");
  assert_int_equal(fake_calls(FAKE_FREE), 1);
  gk_set_log(GK_LOG_NONE, NULL, NULL);
}

/* The answer and the message are the backend's; it is logged once, on any thread. */
TEST_ON(FAKE_BACKENDS, failing_backend_is_told) {
  heard h = {0};
  int *memory = int_on(device, 1), host = 0;
  gk_set_log(GK_LOG_ERROR, listen, &h);
  fake_fail(FAKE_COPY, 1, GK_ERROR_DEVICE, false);
  assert_fails(GK_ERROR_DEVICE, "fake: copy failed", gk_upload(device, memory, &host, sizeof host));
  assert_int_equal(h.errors, 1);
  fake_fail(FAKE_COPY, 1, GK_ERROR_DEVICE, true);
  assert_fails(GK_ERROR_DEVICE, "failed to copy 4 bytes", gk_download(device, &host, memory, sizeof host));
  fake_fail(FAKE_ALLOC, 1, GK_ERROR_MEMORY, true);
  assert_gives_null("gk_alloc: out of device memory: 64 bytes", gk_alloc(device, 64, GK_DEVICE_MEMORY));
  fake_fail(FAKE_ALLOC, 1, GK_ERROR_DEVICE, true);
  assert_gives_null("failed to give 64 bytes of memory and didn't say why", gk_alloc(device, 64, GK_DEVICE_MEMORY));
  if (!gk_host_address(device, memory)) { /* else the zeros aren't copied */
    fake_fail(FAKE_COPY, 1, GK_ERROR_DEVICE, false);
    assert_gives_null("fake: copy failed", gk_alloc(device, 64, GK_DEVICE_MEMORY));
  }
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  assert_gives_null("more than this device has", gk_alloc(device, (size_t)1 << 40, GK_DEVICE_MEMORY));
  assert_int_equal(int_at(device, memory), 1);
}

TEST(close_frees_leaked_memory) {
  gk_device *device = open_fake(FAKE_NATIVE);
  for (int k = 0; k < 40; ++k) assert_non_null(gk_alloc(device, (size_t)k * 10, GK_DEVICE_MEMORY));
  assert_int_equal(fake_leaks(), 41);
  close_fake(device);
}

/* Blocks are found by address after any order of allocating and freeing. */
TEST_ON(ALL_BACKENDS, many_blocks) {
  enum { BLOCKS = 200 };
  int *blocks[BLOCKS];
  for (int k = 0; k < BLOCKS; ++k) blocks[k] = int_on(device, k);
  for (int k = 0; k < BLOCKS; k += 2) gk_free(device, blocks[k]);
  for (int k = 0; k < BLOCKS; k += 2) blocks[k] = int_on(device, -k);
  int host[2];
  for (int k = 0; k < BLOCKS; ++k) {
    assert_int_equal(int_at(device, blocks[k]), k % 2 ? k : -k);
    assert_invalid("which has 4 bytes", gk_download(device, host, blocks[k], 5));
  }
  for (int k = BLOCKS; k-- > 0;) gk_free(device, blocks[(k * 7) % BLOCKS]);
}

static void *use(void *at) {
  gk_device *device = at;
  for (int k = 0; k < 200; ++k) {
    int *memory = int_on(device, k), *other = int_on(device, -1);
    assert_ok(gk_copy(device, other, memory, sizeof *other));
    assert_int_equal(int_at(device, other), k);
    gk_free(device, memory);
    gk_free(device, other);
  }
  return NULL;
}

TEST(version_is_that_of_the_build) { assert_string_equal(gk_version(), GK_VERSION); }

TEST_ON(ALL_BACKENDS, many_threads_share_a_device) { run_threads(use, device, 4, 0); }

int main(void) { return run_all_tests(); }
