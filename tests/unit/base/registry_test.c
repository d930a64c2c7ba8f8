#include "unit/support/runtime.h"
#include "unit/support/spare_backend.h"
#include "base/registry.h"
#include "unit/support/process.h"

/* ---- a backend that can do nothing, to be registered ------------------------------------------------------------- */

static gk_result refuse_open(void *device, const gk_device_desc *desc) {
  (void)device;
  return gk_fail(GK_ERROR_NO_DEVICE, "no %s in this machine", desc->backend);
}
static gk_result load_it(void *device, const gk_kernel *kernel, void **code) {
  return (void)device, (void)kernel, (void)code, GK_OK;
}

static gk_backend backend_named(const char *name) {
  return (gk_backend)SPARE(refuse_open, .name = name, .run = spare_run);
}

static size_t backend_count(void) {
  size_t count = 0;
  while (gk_backend_at(count)) ++count;
  return count;
}

TEST(last_registered_is_tried_first) {
  size_t before = backend_count();
  gk_backend one = backend_named("one"), two = backend_named("two");
  assert_ok(gk_backend_register(&one));
  assert_ok(gk_backend_register(&two));
  assert_int_equal(backend_count(), before + 2);
  assert_string_equal(gk_backend_at(0)->name, "two");
  assert_string_equal(gk_backend_at(1)->name, "one");
  size_t at = 2;
  while (at < before + 1 && strcmp(gk_backend_at(at)->name, "openmp") != 0) ++at;
  assert_string_equal(gk_backend_at(at)->name, "openmp");
  assert_null(gk_backend_at(SIZE_MAX));
  assert_invalid("named one already", gk_backend_register(&one));
  gk_backend openmp = backend_named("openmp");
  assert_invalid("named openmp already", gk_backend_register(&openmp));
  assert_int_equal(backend_count(), before + 2);
}

static int opens;
static gk_result count_open(void *device, const gk_device_desc *desc) {
  ++opens;
  return refuse_open(device, desc);
}
static gk_result refuse_default(const gk_device_desc *desc) {
  return gk_fail(GK_ERROR_NO_DEVICE, "ask for %s by name", desc->backend);
}
static gk_result refuse_silently(const gk_device_desc *desc) { return (void)desc, GK_ERROR_NO_DEVICE; }

TEST(some_are_opened_only_by_name) {
  gk_backend shy = backend_named("shy"), silent = backend_named("silent");
  shy.open = silent.open = count_open;
  shy.by_default = refuse_default;
  silent.by_default = refuse_silently;
  assert_ok(gk_backend_register(&shy));
  assert_ok(gk_backend_register(&silent));
  gk_device *device;
  unsetenv("GK_BACKEND");
  assert_ok(gk_device_open(NULL, &device));
  gk_device_close(device);
  assert_int_equal(opens, 0);
  assert_fails(GK_ERROR_NO_DEVICE, "no shy in this machine",
               gk_device_open(&(gk_device_desc){.backend = "shy"}, &device));
  assert_int_equal(opens, 1);
  /* No backend has that ordinal. */
  assert_fails(GK_ERROR_NO_DEVICE, "backend silent refused its device and didn't say why",
               gk_device_open(&(gk_device_desc){.ordinal = 300}, &device));
  assert_says("backend shy: ask for shy by name");
}

static gk_result own_it(void *graph, const void *from, size_t kept, size_t bytes, void **memory) {
  return (void)graph, (void)from, (void)kept, (void)bytes, (void)memory, GK_ERROR_MEMORY;
}

#define refuse_with(change, words) \
  do { \
    gk_backend b = backend_named("incomplete"); \
    change; \
    assert_invalid(words, gk_backend_register(&b)); \
  } while (0)
#define refuse_without(change, entry) refuse_with(change, "backend incomplete lacks the entry " entry)

TEST(misfits_are_refused) {
  size_t before = backend_count();
  assert_invalid("NULL", gk_backend_register(NULL));
  refuse_with(b.abi = GK_BACKEND_ABI + 1, "was built for ABI 2");
  refuse_with(b.bytes = 0, "set it to sizeof(gk_backend)");
  refuse_with(b.name = NULL, "has no name");
  refuse_with(b.name = "", "has no name");
  assert_int_equal(backend_count(), before);
}

TEST(lacking_entry_is_named) {
  refuse_without(b.open = NULL, "open");
  refuse_without(b.close = NULL, "close");
  refuse_without(b.describe = NULL, "describe");
  refuse_without(b.alloc = NULL, "alloc");
  refuse_without(b.free = NULL, "free");
  refuse_without(b.copy = NULL, "copy");
  refuse_without(b.lower = NULL, "lower");
  refuse_without(b.drop = NULL, "drop");
  refuse_without(b.load = load_it, "unload");
  refuse_without(b.own = own_it, "disown");
  refuse_without(b.run = NULL, "run, or launch");
  refuse_without((b.run = NULL, b.launch = spare_launch), "wait, or submit");
  refuse_without((b.run = NULL, b.launch = spare_launch, b.submit = spare_submit), "read_flag");
}

/* A module that was built when the struct was shorter: members that it lacks are NULL, not the bytes behind. */
TEST(shorter_struct_is_completed) {
  struct { gk_backend backend; void *behind; } module = {.backend = backend_named("older")};
  module.backend.bytes = offsetof(gk_backend, dump);
  module.backend.dump = (char *(*)(void *, const char *))(uintptr_t)1;
  module.backend.query = (const void *(*)(const char *))(uintptr_t)1;
  assert_ok(gk_backend_register(&module.backend));
  const gk_backend *known = gki_backend_named("older");
  assert_non_null(known);
  assert_null(known->dump);
  assert_null(known->query);
  assert_ptr_equal(known->run, spare_run);
  gk_backend older_yet = backend_named("older yet");
  older_yet.bytes = offsetof(gk_backend, lower);
  assert_invalid("lacks the entry lower", gk_backend_register(&older_yet));
  struct { gk_backend backend; void *later[4]; } newer = {.backend = backend_named("newer"), .later = {&newer}};
  newer.backend.bytes = sizeof newer;
  assert_ok(gk_backend_register(&newer.backend));
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

TEST(unknown_name_lists_the_known) {
  fake_register();
  gk_device *device;
  assert_invalid("no backend named \"quantum\"; there are: ",
               gk_device_open(&(gk_device_desc){.backend = "quantum"}, &device));
  assert_says("fake_native");
  assert_says("openmp");
  if (!gki_backend_named("hip"))
    assert_invalid("gk_device_open: the backend \"hip\" is not in this build; there are: ",
                   gk_device_open(&(gk_device_desc){.backend = "hip"}, &device));
  setenv("GK_BACKEND", "steam", 1);
  assert_invalid("no backend named \"steam\" (from $GK_BACKEND)", gk_device_open(NULL, &device));
  unsetenv("GK_BACKEND");
}

TEST(variable_chooses) {
  fake_register();
  fake_reset();
  gk_device *device;
  setenv("GK_BACKEND", "fake_batched", 1);
  assert_ok(gk_device_open(NULL, &device));
  assert_true(is_of(device, "fake_batched"));
  close_fake(device);
  device = open_named("fake_native"); /* the caller knows better */
  assert_true(is_of(device, "fake_native"));
  close_fake(device);
  setenv("GK_BACKEND", "", 1);
  assert_ok(gk_device_open(NULL, &device));
  close_fake(device);
  unsetenv("GK_BACKEND");
}

typedef struct logged { int errors, warnings; char error[200]; } logged;
static void log_line(void *user, gk_log_level level, const char *line) {
  logged *l = user;
  l->warnings += level == GK_LOG_WARN;
  if (level != GK_LOG_ERROR) return;
  ++l->errors;
  snprintf(l->error, sizeof l->error, "%s", line);
}

/* The first backend that can open wins; if none can, every reason is told. Ordinal 9 is none of the fakes'. */
TEST(refusals_are_collected) {
  fake_register();
  gk_backend broken = backend_named("broken");
  assert_ok(gk_backend_register(&broken));
  gk_device *device;
  logged l = {0};
  gk_set_log(GK_LOG_WARN, log_line, &l);
  assert_ok(gk_device_open(NULL, &device)); /* broken is tried first, and passed over: no error, a warning */
  assert_string_equal(gk_device_describe(device)->backend, "fake_batched");
  assert_int_equal(l.errors, 0);
  assert_int_equal(l.warnings, 1);
  close_fake(device);
  assert_fails(GK_ERROR_NO_DEVICE, "no broken in this machine", gk_device_open(&(gk_device_desc){.backend = "broken"},
                                                                               &device));
  assert_int_equal(l.errors, 1);
  fake_fail(FAKE_OPEN, 1, GK_ERROR_MEMORY, false); /* after which no other is tried */
  assert_fails(GK_ERROR_MEMORY, "fake: open failed", gk_device_open(NULL, &device));
  assert_int_equal(l.errors, 2);
  assert_non_null(strstr(l.error, "fake: open failed"));
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  assert_fails(GK_ERROR_NO_DEVICE,
               "; backend broken: no broken in this machine; backend fake_batched: fake: there are 2 devices; "
               "backend fake_native: ",
               gk_device_open(&(gk_device_desc){.ordinal = 9}, &device));
  assert_null(device);
  assert_says("; backend openmp: ");
}

/* ---- modules ----------------------------------------------------------------------------------------------------- */

TEST(modules_are_loaded) {
  assert_invalid("/nowhere/gk_none.so can't be loaded", gk_backend_load("/nowhere/gk_none.so"));
  assert_invalid("no path", gk_backend_load(""));
  assert_invalid("no path", gk_backend_load(NULL));
  assert_invalid("no function gk_backend_export", gk_backend_load("libm.so.6"));
  assert_ok(gk_set_allocator(NULL));
  assert_ok(gk_backend_load(beside("module.so")));
  assert_string_equal(gk_backend_at(0)->name, "module");
  assert_fails(GK_ERROR_BUSY, "module is loaded", gk_set_allocator(NULL)); /* it may hold what the allocator gave */
  assert_invalid("named module already", gk_backend_load(beside("module.so")));
  gk_device *device;
  assert_fails(GK_ERROR_NO_DEVICE, "backend module failed to open its device and didn't say why",
               gk_device_open(&(gk_device_desc){.backend = "module"}, &device));
}

/* It put itself in place as it was loaded, so its second registration is refused, and it stays loaded all the same. */
TEST(module_that_registers_itself_stays) {
  gk_device *device;
  assert_invalid("named module that registers already", gk_backend_load(beside("module_that_registers.so")));
  assert_string_equal(gk_backend_at(0)->name, "module that registers");
  assert_fails(GK_ERROR_NO_DEVICE, "backend module that registers failed to open",
               gk_device_open(&(gk_device_desc){.backend = "module that registers"}, &device));
}

/* Run in a process of its own: $GK_MODULES is read once. */
static int list_modules(void) {
  alarm(600); /* what hangs is ended */
  gk_device *device;
  gk_result result = gk_device_open(&(gk_device_desc){.backend = "none"}, &device);
  printf("%s\nnames %s\n", gk_error(), gk_backend_at(0)->name);
  return result == GK_ERROR_INVALID ? 0 : 1;
}

static void assert_modules(const char *modules, const char *words) {
  char said[9000];
  setenv("GK_MODULES", modules, 1);
  assert_int_equal(run_self("modules", said, sizeof said), 0);
  unsetenv("GK_MODULES");
  if (!strstr(said, words)) fail_msg("%s", said);
}

TEST(variable_lists_modules) {
  char list[9000];
  snprintf(list, sizeof list, "::/nowhere/gk_none.so:%s:", beside("module.so"));
  assert_modules(list, "names module");
  assert_modules(list, "$GK_MODULES: gk_backend_load: /nowhere/gk_none.so can't be loaded");
  assert_modules(beside("module_that_opens.so"), "names module that opens");
  memset(list, 'x', 5000); /* a path that is too long must still be reported */
  strcpy(list + 5000, ".so");
  assert_modules(list, "$GK_MODULES: ");
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 8, NAMES = 6 };
static char names[NAMES][32];
static gk_backend racing[NAMES];
static atomic_int registered, ready[NAMES];

static void count_devices(void *user, const gk_device_entry *entry) {
  if (strcmp(entry->backend, "everywhere") == 0) ++*(int *)user;
}

/* A backend that ignores the ordinal has any number of devices. */
TEST(list_ends) {
  static gk_backend everywhere;
  everywhere = backend_named("everywhere");
  everywhere.open = spare_open;
  assert_ok(gk_backend_register(&everywhere));
  int devices = 0;
  assert_ok(gk_device_list(count_devices, &devices));
  assert_in_range(devices, 1, 1024);
}

static void *register_all(void *at) {
  (void)at;
  for (int k = 0; k < NAMES; ++k) {
    atomic_fetch_add(&ready[k], 1);
    while (atomic_load(&ready[k]) < THREADS) {} /* all at once */
    if (gk_backend_register(&racing[k]) == GK_OK) atomic_fetch_add(&registered, 1);
  }
  return NULL;
}

TEST(name_is_taken_once_by_many_threads) {
  size_t before = backend_count();
  for (int k = 0; k < NAMES; ++k) {
    snprintf(names[k], sizeof names[k], "racing %d", k);
    racing[k] = backend_named(names[k]);
  }
  run_threads(register_all, NULL, THREADS, 0);
  assert_int_equal(atomic_load(&registered), NAMES);
  assert_int_equal(backend_count(), before + NAMES);
}

TEST(no_more_fit) {
  static char many[64][32];
  gk_result result = GK_OK;
  for (int k = 0; k < 64 && result == GK_OK; ++k) {
    snprintf(many[k], sizeof many[k], "many %d", k);
    gk_backend b = backend_named(many[k]);
    result = gk_backend_register(&b);
  }
  assert_int_equal(result, GK_ERROR_INVALID);
  assert_says("no more fit");
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "modules") == 0) return list_modules();
  return run_all_tests();
}
