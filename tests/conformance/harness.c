/* Trials: devices, memory and graphs, each beside what the reference has, and the comparison of the two. */
#include "harness.h"
#include "compare.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
  trial *t;
  size_t ints;
  void *at;    /* the device's */
  int *mirror; /* the reference's */
  buffer *next;
};

struct subject {
  trial *t;
  gk_list list; /* for the reference, which keeps it */
  gk_graph *graph;
  reference *reference;
  uint64_t launches; /* begun by gk_launch and known to the reference, or seen in a status */
  subject *next;
};

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

static _Noreturn void end_case(trial *t, outcome how) {
  t->outcome = how;
  longjmp(t->end, 1);
}

static const char *file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* A failed call may explain an unexpected result: a sweep looks for that. */
void fail_at(trial *t, const char *file, int line, const char *format, ...) {
  if (t->gives_up || (t->injected && t->injected(GK_OK))) end_case(t, GAVE_UP);
  int used = snprintf(t->text, sizeof t->text, "%s:%d: ", file_name(file), line);
  va_list args;
  va_start(args, format);
  vsnprintf(t->text + used, sizeof t->text - (size_t)used, format, args);
  va_end(args);
  end_case(t, FAILED);
}

void skip(trial *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(t->text, sizeof t->text, format, args);
  va_end(args);
  end_case(t, SKIPPED);
}

bool is_sweep(const trial *t) { return t->sweep; }

bool give_up_if_failed(trial *t) {
  const bool failed = t->failed();
  t->gives_up = failed;
  return failed;
}

void expect_int_at(trial *t, const char *file, int line, const char *what, long long is, long long wanted) {
  if (is != wanted) fail_at(t, file, line, "%s is %lld, not %lld", what, is, wanted);
}

/* No failure is without a message. */
static void expect_message(trial *t, const char *file, int line, const char *call, gk_result result) {
  if (gk_error()[0]) return;
  t->injected = NULL;
  fail_at(t, file, line, "%s: %s without a message", call, gk_result_name(result));
}

void must_at(trial *t, const char *file, int line, const char *call, gk_result result) {
  if (result == GK_OK) return;
  expect_message(t, file, line, call, result);
  if (t->injected && t->injected(result)) end_case(t, GAVE_UP);
  t->injected = NULL;
  fail_at(t, file, line, "%s: %s, %s", call, gk_result_name(result), gk_error());
}

/* The first of the words that isn't in the text, its length in *length; NULL: all are. */
static const char *missing_word(const char *text, const char *words, int *length) {
  while (*words) {
    char word[200];
    *length = (int)strcspn(words, "|");
    snprintf(word, sizeof word, "%.*s", *length, words);
    if (!strstr(text, word)) return words;
    words += *length;
    words += *words == '|';
  }
  return NULL;
}

void refuses_at(trial *t, const char *file, int line, const char *call, gk_result code, const char *words,
                gk_result result) {
  int length = 0;
  if (result != GK_OK) expect_message(t, file, line, call, result);
  if (result != code && result != GK_OK && t->injected && t->injected(result)) end_case(t, GAVE_UP);
  if (result != code)
    fail_at(t, file, line, "%s: %s, not %s%s%s", call, gk_result_name(result), gk_result_name(code),
            result == GK_OK ? "" : "; ", result == GK_OK ? "" : gk_error());
  const char *missing = missing_word(gk_error(), words, &length);
  if (missing) fail_at(t, file, line, "%s: \"%s\" doesn't say \"%.*s\"", call, gk_error(), length, missing);
}

/* In the harness itself, where the text says more than the line. */
#define HERE __FILE__, __LINE__

/* ---- the device -------------------------------------------------------------------------------------------------- */

gk_device *device_of(trial *t) { return t->device; }
const char *backend_of(const trial *t) { return t->backend; }

gk_support support_of(trial *t, const char *construct) {
  const gk_device_info *info = gk_device_describe(t->device);
  for (size_t k = 0; k < info->capability_count; ++k)
    if (strcmp(info->capabilities[k].construct, construct) == 0) return info->capabilities[k].how;
  return GK_NATIVE;
}

static void *obtain(trial *t, size_t bytes) {
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) fail_at(t, HERE, "the runner itself has no %zu bytes left", bytes);
  return memory;
}

gk_device *another_device(trial *t) {
  other_device *other = obtain(t, sizeof *other);
  other->next = t->others;
  t->others = other;
  gk_device_desc desc = {.backend = t->backend, .ordinal = 1};
  if (gk_device_open(&desc, &other->device) == GK_OK) return other->device;
  desc.ordinal = 0; /* there is one: twice the same */
  must(t, gk_device_open(&desc, &other->device));
  return other->device;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static buffer *new_buffer(trial *t, size_t ints, gk_memory kind) {
  buffer *b = obtain(t, sizeof *b);
  b->t = t;
  b->next = t->buffers;
  t->buffers = b;
  b->ints = ints;
  b->mirror = obtain(t, ints * sizeof *b->mirror);
  b->at = gk_alloc(t->device, ints * sizeof(int), kind);
  if (!b->at) {
    expect_message(t, HERE, "gk_alloc", GK_ERROR_MEMORY);
    fail_at(t, HERE, "gk_alloc: %s", gk_error());
  }
  return b;
}

buffer *buffer_of(trial *t, size_t ints) { return new_buffer(t, ints, GK_DEVICE_MEMORY); }
buffer *buffer_for_host(trial *t, size_t ints) {
  buffer *b = new_buffer(t, ints, GK_HOST_MEMORY);
  if (!gk_host_address(t->device, b->at)) skip(t, "no memory is the host's and the device's");
  return b;
}

static void write_int(trial *t, void *memory, size_t index, int value) {
  must(t, gk_upload(t->device, (char *)memory + index * sizeof value, &value, sizeof value));
}

static int read_int(trial *t, const void *memory, size_t index) {
  int value = 0;
  must(t, gk_download(t->device, &value, (const char *)memory + index * sizeof value, sizeof value));
  return value;
}

void buffer_put(buffer *b, size_t index, int value) {
  write_int(b->t, b->at, index, value);
  b->mirror[index] = value;
}

int buffer_get(const buffer *b, size_t index) { return read_int(b->t, b->at, index); }
void *buffer_at(const buffer *b) { return b->at; }

void buffer_free(buffer *b) {
  trial *t = b->t;
  for (buffer **at = &t->buffers; *at; at = &(*at)->next)
    if (*at == b) {
      *at = b->next;
      break;
    }
  gk_free(t->device, b->at);
  free(b->mirror);
  free(b);
}

void *page_of(trial *t) {
  enum { BYTES = 64 };
  if (t->page) return t->page;
  t->page = gk_alloc(t->device, BYTES, GK_HOST_MEMORY);
  if (!t->page && is_sweep(t)) fail_at(t, HERE, "gk_alloc: %s", gk_error());
  if (t->page) memset(t->page, 0, BYTES);
  return t->page;
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

trial *trial_of(const subject *s) { return s->t; }
reference *reference_of(subject *s) { return s->reference; }
gk_graph *graph(subject *s) { return s->graph; }

subject *graph_of(trial *t, const gk_list *list, uint32_t bits) { return graph_beside(t, list, list, bits); }

subject *graph_beside(trial *t, const gk_list *list, const gk_list *for_reference, uint32_t bits) {
  subject *s = obtain(t, sizeof *s);
  s->t = t;
  s->next = t->subjects;
  t->subjects = s;
  must(t, gk_graph_create(t->device, list, bits | t->bits, &s->graph));
  s->list = *for_reference;
  s->reference = reference_open(&s->list);
  if (!s->reference) fail_at(t, HERE, "the reference has no memory left");
  return s;
}

void end_graph(subject *s) {
  for (subject **at = &s->t->subjects; *at; at = &(*at)->next)
    if (*at == s) {
      *at = s->next;
      break;
    }
  gk_graph_destroy(s->graph);
  reference_close(s->reference);
  free(s);
}

/* The reference's number of a slot of the list's own table. */
static size_t index_of(const subject *s, gk_slot slot) {
  size_t index = reference_find(s->reference, slot);
  if (index == SIZE_MAX) fail_at(s->t, HERE, "the case names slot %d, and the list has none such", (int)slot);
  return index;
}

void bind_buffer(subject *s, gk_slot slot, buffer *b) {
  must(s->t, gk_bind(s->graph, slot, b ? b->at : NULL));
  reference_bind(s->reference, index_of(s, slot), b ? b->mirror : NULL, b ? b->ints * sizeof(int) : 0);
}

void bind_int(subject *s, gk_slot slot, int64_t value) {
  size_t index = index_of(s, slot);
  must(s->t, gk_bind_int(s->graph, slot, value));
  gk_value number = {.i64 = value};
  gk_type type = reference_slot_at(s->reference, index)->desc->type;
  if (type == GK_I32) number = (gk_value){.i32 = (int32_t)value};
  if (type == GK_U32) number = (gk_value){.u32 = (uint32_t)value};
  reference_bind_value(s->reference, index, number);
}

void bind_float(subject *s, gk_slot slot, double value) {
  size_t index = index_of(s, slot);
  must(s->t, gk_bind_float(s->graph, slot, value));
  gk_value number = {.f64 = value};
  if (reference_slot_at(s->reference, index)->desc->type == GK_F32) number = (gk_value){.f32 = (float)value};
  reference_bind_value(s->reference, index, number);
}

void bind_struct(subject *s, gk_slot slot, const void *value, size_t bytes) {
  must(s->t, gk_bind_bytes(s->graph, slot, value, bytes));
  reference_bind_bytes(s->reference, index_of(s, slot), value);
}

void bind_host(subject *s, gk_slot slot, void *for_device, void *for_reference) {
  must(s->t, gk_bind(s->graph, slot, for_device));
  reference_bind(s->reference, index_of(s, slot), for_reference, 0);
}

void resize(subject *s, gk_slot slot, size_t count) {
  must(s->t, gk_resize(s->graph, slot, count));
  if (!reference_resize(s->reference, index_of(s, slot), count))
    fail_at(s->t, HERE, "the reference has no memory left for %zu elements", count);
}

static void *bound(subject *s, gk_slot slot) {
  void *memory = gk_bound(s->graph, slot);
  if (!memory) fail_at(s->t, HERE, "the case reads or writes slot %d, and nothing is bound to it", (int)slot);
  return memory;
}

void put_at(subject *s, gk_slot slot, size_t index, int value) {
  const reference_slot *r = reference_slot_at(s->reference, index_of(s, slot));
  if ((index + 1) * sizeof value > r->bytes)
    fail_at(s->t, HERE, "the case writes %s[%zu], which has %zu bytes", r->name, index, r->bytes);
  write_int(s->t, bound(s, slot), index, value);
  memcpy((char *)r->value.ptr + index * sizeof value, &value, sizeof value);
}

void put(subject *s, gk_slot slot, int value) { put_at(s, slot, 0, value); }
int get_at(subject *s, gk_slot slot, size_t index) { return read_int(s->t, bound(s, slot), index); }
int get(subject *s, gk_slot slot) { return get_at(s, slot, 0); }

/* ---- comparison with the reference ------------------------------------------------------------------------------- */

static void compare_memory_at(trial *t, uint64_t launch, const char *name, const void *memory, const void *wanted,
                              size_t bytes) {
  char *is = malloc(bytes ? bytes : 1);
  if (!is) fail_at(t, HERE, "the runner itself has no %zu bytes left", bytes);
  gk_result result = gk_download(t->device, is, memory, bytes);
  size_t at = 0;
  int32_t pair[2] = {0, 0};
  bool differs = result == GK_OK && ints_differ(is, wanted, bytes, &at, pair);
  free(is);
  must_at(t, HERE, "gk_download", result);
  if (!differs) return;
  if (t->subjects && !t->subjects->next) t->injected = NULL; /* no graph's launch but this one, and it went well */
  fail_at(t, HERE, "after launch %llu %s[%zu] is %d (0x%x), and the reference has %d (0x%x)",
          (unsigned long long)launch, name, at, pair[0], (unsigned)pair[0], pair[1], (unsigned)pair[1]);
}

/* All buffers of the trial: those that aren't bound any more mustn't change, either. */
static void compare_memory(subject *s) {
  trial *t = s->t;
  for (const buffer *b = t->buffers; b; b = b->next)
    compare_memory_at(t, s->launches, "a buffer", b->at, b->mirror, b->ints * sizeof(int));
  for (size_t k = 0; k < reference_slot_count(s->reference); ++k) {
    const reference_slot *slot = reference_slot_at(s->reference, k);
    if (!slot->owned || slot->bytes == 0) continue;
    if (reference_find_name(s->reference, slot->name) != k) continue; /* gk_find_slot has the first of that name */
    const void *memory = gk_bound(s->graph, gk_find_slot(s->graph, slot->name));
    if (!memory) fail_at(t, HERE, "slot %s has no memory, and the reference has %zu bytes", slot->name, slot->bytes);
    compare_memory_at(t, s->launches, slot->name, memory, slot->value.ptr, slot->bytes);
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static void note_launch(subject *s, int32_t label) {
  ++s->launches;
  if (!reference_launch(s->reference, label))
    fail_at(s->t, HERE, "the reference refuses to launch at %d, and the device doesn't", (int)label);
}

void begin_launch(subject *s, int32_t label) {
  must(s->t, gk_launch(s->graph, label));
  note_launch(s, label);
}

void begin_launch_on_default(subject *s, int32_t label) {
  must(s->t, gk_launch_on(s->graph, label, NULL));
  note_launch(s, label);
}

static const char *after_given(subject *s, const char *file, int line, const char *words) {
  const char *arrow = strstr(words, "-> ");
  if (arrow) given_at(s, file, line, words);
  return arrow ? arrow + strlen("-> ") : words;
}

void launch_fails_at(subject *s, const char *file, int line, int32_t label, const char *words) {
  words = after_given(s, file, line, words);
  must_at(s->t, file, line, "gk_launch", gk_launch(s->graph, label));
  ++s->launches;
  refuses_at(s->t, file, line, "gk_wait", GK_ERROR_INVALID, words, gk_wait(s->graph, NULL));
  if (reference_launch(s->reference, label)) fail_at(s->t, file, line, "the reference launches at %d", (int)label);
}

void launch_refused_at(subject *s, const char *file, int line, int32_t label, const char *words) {
  words = after_given(s, file, line, words);
  refuses_at(s->t, file, line, "gk_launch", GK_ERROR_INVALID, words, gk_launch(s->graph, label));
}

const gk_status *finish_launches(subject *s) {
  const gk_status *status = NULL;
  must(s->t, gk_wait(s->graph, &status));
  expect(s->t, status->launch >= s->launches, "the status is of launch %llu, and this was number %llu",
         (unsigned long long)status->launch, (unsigned long long)s->launches);
  s->launches = status->launch;
  char text[400];
  if (status_differs(status, reference_last(s->reference), text, sizeof text)) {
    s->t->injected = NULL;
    fail_at(s->t, HERE, "status of launch %llu: %s", (unsigned long long)status->launch, text);
  }
  compare_memory(s);
  return status;
}

const gk_status *launch(subject *s, int32_t label) {
  begin_launch(s, label);
  return finish_launches(s);
}

/* ---- lists that are refused -------------------------------------------------------------------------------------- */

typedef struct search {
  const char *code, *words;
  size_t task;
  bool found;
  char others[600]; /* what was reported instead */
} search;

static void look(void *user, const gk_problem *problem) {
  search *s = user;
  int length;
  if (strcmp(problem->code, s->code) == 0 && (s->task == SIZE_MAX || s->task == problem->task) &&
      !missing_word(problem->message, s->words, &length))
    s->found = true;
  size_t used = strlen(s->others);
  snprintf(s->others + used, sizeof s->others - used, "; %s at %zd: %s", problem->code, (ssize_t)problem->task,
           problem->message);
}

void refuses_list(trial *t, const gk_list *list, const char *code, size_t task, const char *words) {
  search found = {.code = code, .words = words, .task = task};
  refuses(t, GK_ERROR_INVALID, "", gk_check(list, t->backend, look, &found));
  expect(t, found.found, "no problem %s with the words \"%s\"%s", code, words, found.others);
  gk_graph *none = NULL;
  refuses(t, GK_ERROR_INVALID, "", gk_graph_create(t->device, list, 0, &none));
  expect(t, !none, "gk_graph_create refused the list and answered a graph");
}

/* ---- a whole trial ----------------------------------------------------------------------------------------------- */

static void end_trial(trial *t) {
  while (t->subjects) end_graph(t->subjects);
  while (t->buffers) buffer_free(t->buffers);
  gk_free(t->device, t->page);
  t->page = NULL;
  while (t->others) {
    other_device *other = t->others;
    t->others = other->next;
    gk_device_close(other->device);
    free(other);
  }
  if (!t->borrowed) gk_device_close(t->device);
}

void run_trial(trial *t, case_body body) {
  t->outcome = PASSED;
  if (setjmp(t->end) == 0) {
    if (!t->borrowed) must(t, gk_device_open(&(gk_device_desc){.backend = t->backend}, &t->device));
    body(t);
  }
  end_trial(t);
}

typedef struct part { trial trial; case_body body; pthread_t thread; } part;

static void *run_part(void *at) {
  run_trial(&((part *)at)->trial, ((part *)at)->body);
  return NULL;
}

void at_once(trial *t, gk_device *first, gk_device *second, case_body body) {
  part *parts = obtain(t, 2 * sizeof *parts);
  gk_device *devices[] = {first, second};
  int begun = 0;
  for (; begun < 2; ++begun) {
    part *p = &parts[begun];
    p->trial = (trial){.backend = t->backend, .bits = t->bits, .device = devices[begun], .injected = t->injected,
                       .sweep = t->sweep, .borrowed = true};
    p->body = body;
    if (pthread_create(&p->thread, NULL, run_part, p) != 0) break;
  }
  for (int k = 0; k < begun; ++k) pthread_join(parts[k].thread, NULL);
  outcome worst = PASSED;
  for (int k = 0; k < begun; ++k)
    if (parts[k].trial.outcome != PASSED && worst != FAILED) {
      worst = parts[k].trial.outcome;
      memcpy(t->text, parts[k].trial.text, sizeof t->text);
    }
  free(parts);
  if (begun < 2) fail_at(t, HERE, "the runner itself can't start a thread");
  if (worst != PASSED) end_case(t, worst);
}
