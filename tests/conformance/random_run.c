/* A story on a backend and on the reference, deed by deed. The reference goes first: it knows whether a launch ends in
 * time, and whether it comes to the place where the host is to cancel. */
#include "random_kernels.h"
#include "random.h"
#include "random_story.h"
#include "reference/reference.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 4 * 64, MAX_RETIRED = MAX_DEEDS, MAX_PENDING = 6, MAX_YIELDS = 60 };

/* A slot of the list as composed, on both sides. */
typedef struct cell {
  const reference_slot *slot;
  gk_slot gk;
  char kind;
  void *device, *host;      /* memory that the host brought */
  random_host hosts[2];     /* H: the backend's and the reference's */
  unsigned char seen[CELL_BYTES]; /* when it was last compared */
} cell;

typedef struct retired {
  void *device, *host;
  size_t bytes;
} retired;

typedef struct world {
  story *s;
  tally *t;
  recorder *record;
  gk_device *device;
  gk_graph *graph;
  reference *reference;
  const reference_status *wanted;
  cell cells[MAX_COMPOSED];
  size_t cell_count;
  retired retired[MAX_RETIRED];
  size_t retired_count;
  random_stops stops[2];
  stay_door *door; /* where CALLs are recorded and some `stay`; the device's alone */
  uint32_t tasks; /* of the reference's launch */
  bool near;      /* the host can touch the device's memory */
  uint32_t pending;
  uint64_t launches;
  bool too_long, can_yield, failed;
  bool bound, last_bound; /* something was: since the last launch, before it */
  bool fails, has_failed; /* the launch at hand, by a count; the one before */
} world;

static uint32_t asked_for; /* bits of every graph */
void random_ask_for(uint32_t bits) { asked_for = bits; }

static bool differs(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool differs(world *w, const char *format, ...) {
  va_list args;
  if (w->failed) return true;
  w->failed = true;
  va_start(args, format);
  size_t used = (size_t)snprintf(w->t->why, sizeof w->t->why, "launch %llu: ", (unsigned long long)w->launches);
  vsnprintf(w->t->why + used, sizeof w->t->why - used, format, args);
  va_end(args);
  return true;
}

static bool must(world *w, gk_result result, const char *call) {
  return result == GK_OK || !differs(w, "%s answers %s: %s", call, gk_result_name(result), gk_error());
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static const char *name_of(const cell *c) { return c->slot->name; }

/* A value that such memory may have at that place. */
static int32_t fitting(char kind, size_t at, uint64_t random) {
  uint32_t h = (uint32_t)(mix(random) >> 16);
  if (kind == 'F' && at < FIRST_SWITCH) return h % 5 < 3 ? 0 : h % 5 == 3 ? 1 : -3;
  if (kind == 'F' && at < FIRST_COUNT) return (int32_t)(h % 6) - 1;
  if (kind == 'F' && at < REFUSED) return (int32_t)(h % 10) - 1;
  if (kind == 'X' || kind == 'S') return (int32_t)h;
  if (kind == 'E') return (int32_t)any_count(random, GK_I32);
  return kind == 'B' ? (int32_t)(h % 100) : 0;
}

static bool put(world *w, cell *c, size_t at, const int32_t *ints, size_t count) {
  size_t bytes = count * sizeof *ints;
  memcpy((int32_t *)c->slot->value.ptr + at, ints, bytes);
  char call[NAME_BYTES + 80];
  snprintf(call, sizeof call, "put(\"%s\", %zu", name_of(c), at);
  record_ints(w->record, call, ints, bytes);
  return must(w, gk_upload(w->device, (int32_t *)gk_bound(w->graph, c->gk) + at, ints, bytes), "gk_upload");
}

static bool put_all(world *w, cell *c, uint64_t random) {
  int32_t ints[CELL_BYTES / 4];
  const size_t count = c->slot->bytes / sizeof *ints;
  for (size_t k = 0; k < count; ++k) ints[k] = fitting(c->kind, k, random + k);
  return put(w, c, 0, ints, count);
}

static bool put_chance(world *w, cell *c, uint64_t random) {
  int32_t ints[CELL_BYTES / 4];
  size_t count = c->slot->bytes / sizeof *ints;
  bool none = true;
  for (size_t k = 0; k < count; ++k) {
    ints[k] = w->s->plain ? 0 : fitting(c->kind, k, random + k);
    none = none && !ints[k];
  }
  return none || put(w, c, 0, ints, count);
}

/* Memory that the host brings. */
static bool bring(world *w, cell *c, size_t count) {
  if (c->device) w->retired[w->retired_count++] = (retired){c->device, c->host, c->slot->bytes};
  c->device = gk_alloc(w->device, count * 4, GK_DEVICE_MEMORY);
  c->host = calloc(count, 4);
  if (!c->device || !c->host) return !differs(w, "no memory: %s", gk_error());
  record(w->record, "bring(\"%s\", %zu);", name_of(c), count);
  reference_bind(w->reference, (size_t)(c - w->cells), c->host, count * 4);
  w->bound = true;
  return must(w, gk_bind(w->graph, c->gk, c->device), "gk_bind");
}

static bool give_struct(world *w, cell *c, uint64_t random) {
  pair p = {(int)(random % 50), (int)(random / 64 % 50)};
  reference_bind_bytes(w->reference, (size_t)(c - w->cells), &p);
  record(w->record, "give_pair(\"%s\", %d, %d);", name_of(c), p.a, p.b);
  w->bound = true;
  return must(w, gk_bind_bytes(w->graph, c->gk, &p, sizeof p), "gk_bind_bytes");
}

static bool give_number(world *w, cell *c, int64_t value) {
  gk_value v = {.i64 = 0};
  v.u32 = (uint32_t)value;
  gk_type type = c->slot->desc->type;
  if (type == GK_I64) v.i64 = value;
  else if (type == GK_F32) v.f32 = (float)value;
  else if (type == GK_F64) v.f64 = (double)value;
  reference_bind_value(w->reference, (size_t)(c - w->cells), v);
  w->bound = true;
  bool real = type == GK_F32 || type == GK_F64;
  if (real) record(w->record, "give_float(\"%s\", %d);", name_of(c), (int)value);
  else record(w->record, "give_int(\"%s\", (int64_t)%lluu);", name_of(c), (unsigned long long)value);
  return real ? must(w, gk_bind_float(w->graph, c->gk, (double)value), "gk_bind_float")
              : must(w, gk_bind_int(w->graph, c->gk, value), "gk_bind_int");
}

static bool resize(world *w, cell *c, size_t count) {
  if (c->device) w->retired[w->retired_count++] = (retired){c->device, c->host, c->slot->bytes};
  if (!reference_resize(w->reference, (size_t)(c - w->cells), count)) return !differs(w, "no memory");
  c->device = c->host = NULL;
  record(w->record, "resize(\"%s\", %zu);", name_of(c), count);
  w->bound = true;
  return must(w, gk_resize(w->graph, c->gk, count), "gk_resize");
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static bool may_yield(const gk_list *list) {
  for (size_t k = 0; k < list->task_count; ++k) {
    const gk_task *task = &list->tasks[k];
    if (task->op == GK_OP_CHECKPOINT && task->flag) return true;
    if (task->op == GK_OP_LIST && may_yield(task->list)) return true;
  }
  return false;
}

static void count_task(void *user, reference *r, size_t line) {
  world *w = user;
  if (is_stay(reference_task(r, line)) && w->stops[1].countdown && --w->stops[1].countdown == 0) reference_cancel(r);
  if (++w->tasks < (w->s->heavy ? HEAVY_LIMIT : TASK_LIMIT)) return;
  w->too_long = true;
  reference_cancel(r);
}

static void stop_reference(void *user) { reference_cancel(((world *)user)->reference); }

/* The reference gets one at which nothing stays: count_task knows when it comes by. */
static bool bring_door(world *w, cell *c) {
  static stay_door none;
  if (!w->door) w->door = gk_alloc(w->device, sizeof *w->door, GK_HOST_MEMORY);
  if (!w->door) return !differs(w, "no memory for the host and the device: %s", gk_error());
  stay_at(w->door, 0);
  reference_bind(w->reference, (size_t)(c - w->cells), &none, 0);
  w->bound = true;
  record(w->record, "bring_door(\"%s\");", name_of(c));
  return must(w, gk_bind(w->graph, c->gk, w->door), "gk_bind");
}

static bool open_cell(world *w, size_t index) {
  cell *c = &w->cells[index];
  const reference_slot *slot = reference_slot_at(w->reference, index);
  *c = (cell){.slot = slot, .kind = kind_of(slot->name)};
  uint64_t random = w->s->seed * 1000003;
  for (const char *at = slot->name; *at; ++at) random = mix(random + (unsigned char)*at);
  c->gk = gk_find_slot(w->graph, slot->name);
  if (!c->gk) return !differs(w, "gk_find_slot doesn't know %s", slot->name);
  switch (slot->desc->type) {
  case GK_PTR:
    if (c->kind == 'D') return bring_door(w, c);
    if (!slot->value.ptr && !bring(w, c, c->kind == 'X' ? DATA : c->kind == 'F' ? FLAGS : 2)) return false;
    return put_chance(w, c, random);
  case GK_HOST_PTR:
    for (int side = 0; side < 2; ++side) c->hosts[side].stops = &w->stops[side];
    reference_bind(w->reference, index, &c->hosts[1], 0);
    record(w->record, "bring_host(\"%s\");", slot->name);
    return must(w, gk_bind(w->graph, c->gk, &c->hosts[0]), "gk_bind");
  case GK_BYTES: return give_struct(w, c, random);
  default: return true;
  }
}

static bool world_open(world *w, story *s, gk_device *device, tally *t, recorder *log) {
  memset(w, 0, offsetof(world, cells));
  w->s = s;
  w->t = t;
  w->record = log;
  w->device = device;
  w->cell_count = w->retired_count = w->pending = 0;
  w->launches = w->tasks = 0;
  w->too_long = w->failed = w->fails = w->has_failed = false;
  const gk_list *list = &whole_of(s)->list;
  w->can_yield = may_yield(list);
  for (int side = 0; side < 2; ++side) {
    w->stops[side] = (random_stops){.user = w};
    sem_init(&w->stops[side].reached, 0, 0);
    sem_init(&w->stops[side].go, 0, 0);
  }
  w->stops[1].here = stop_reference;
  w->reference = reference_open(list);
  if (!w->reference) return !differs(w, "no memory");
  w->wanted = reference_last(w->reference);
  reference_watch(w->reference, count_task, w);
  record_begin(w->record, whole_of(s)->name, s->bits | asked_for);
  if (!must(w, gk_graph_create(device, list, s->bits | asked_for, &w->graph), "gk_graph_create")) return false;
  size_t count = reference_slot_count(w->reference);
  if (count > MAX_COMPOSED) {
    w->too_long = true;
    return false;
  }
  bool well = true;
  for (; w->cell_count < count && well; ++w->cell_count) well = open_cell(w, w->cell_count);
  const cell *x = NULL;
  for (size_t k = 0; k < w->cell_count && !x; ++k)
    if (w->cells[k].kind == 'X') x = &w->cells[k];
  void *memory = x && well ? gk_bound(w->graph, x->gk) : NULL;
  w->near = memory && gk_host_address(device, memory) == memory;
  for (size_t k = 0; k < w->cell_count; ++k)
    for (int side = 0; side < 2; ++side) {
      w->cells[k].hosts[side].near = w->near;
      w->cells[k].hosts[side].recorded = story_calls_are > CALLS_NONE;
    }
  w->bound = true;
  return well;
}

static void world_close(world *w) {
  gk_graph_destroy(w->graph);
  reference_close(w->reference);
  for (size_t k = 0; k < w->cell_count; ++k) {
    gk_free(w->device, w->cells[k].device);
    free(w->cells[k].host);
  }
  for (size_t k = 0; k < w->retired_count; ++k) {
    gk_free(w->device, w->retired[k].device);
    free(w->retired[k].host);
  }
  gk_free(w->device, w->door);
  w->graph = NULL;
  w->reference = NULL;
  w->door = NULL;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static const char *const states[] = {"finished", "yielded", "cancelled"};

static bool same_bytes(world *w, const char *name, const void *at, const void *wanted, size_t bytes) {
  int32_t is[CELL_BYTES / 4];
  if (!must(w, gk_download(w->device, is, at, bytes), "gk_download")) return false;
  if (memcmp(is, wanted, bytes) == 0) return true;
  size_t k = 0;
  const int32_t *should = wanted;
  while (is[k] == should[k]) ++k;
  return !differs(w, "%s[%zu] is %d, by the contract %d", name, k, (int)is[k], (int)should[k]);
}

/* Each look at memory far away takes its time: in between, what the reference left alone is looked at now and then. */
static bool same_memory(world *w, bool all) {
  for (size_t k = 0; k < w->cell_count; ++k) {
    cell *c = &w->cells[k];
    if (c->kind == 'H' && (c->hosts[0].calls != c->hosts[1].calls || c->hosts[0].trail != c->hosts[1].trail))
      return !differs(w, "%s got %d calls, by the contract %d", name_of(c), c->hosts[0].calls, c->hosts[1].calls);
    if (c->slot->desc->type != GK_PTR || c->kind == 'D') continue;
    bool rests = memcmp(c->seen, c->slot->value.ptr, c->slot->bytes) == 0;
    if (rests && !all && !w->near && mix(w->s->seed + w->launches + k) % 8) continue;
    if (!same_bytes(w, name_of(c), gk_bound(w->graph, c->gk), c->slot->value.ptr, c->slot->bytes)) return false;
    if (rests) continue;
    memcpy(c->seen, c->slot->value.ptr, c->slot->bytes);
    char call[NAME_BYTES + 80];
    snprintf(call, sizeof call, "holds(\"%s\"", name_of(c));
    record_ints(w->record, call, c->slot->value.ptr, c->slot->bytes);
  }
  return true;
}

static bool same_status(world *w, const gk_status *is) {
  const reference_status *should = w->wanted;
  if (is->state != should->state)
    return !differs(w, "%s, by the contract %s", states[is->state], states[should->state]);
  if (is->yielded != should->yielded || strcmp(is->yielded_name, should->yielded_name) != 0)
    return !differs(w, "yielded %d (%s), by the contract %d (%s)", (int)is->yielded, is->yielded_name,
                    (int)should->yielded, should->yielded_name);
  if (is->loop_count != should->loop_count || is->checkpoint_count != should->checkpoint_count)
    return !differs(w, "%u loops and %u checkpoints, by the contract %zu and %zu", (unsigned)is->loop_count,
                    (unsigned)is->checkpoint_count, should->loop_count, should->checkpoint_count);
  for (size_t k = 0; k < should->loop_count; ++k) {
    const gk_loop_status *a = &is->loops[k];
    const reference_loop *b = &should->loops[k];
    if (a->passes != b->passes || a->hit_bound != b->hit_bound)
      return !differs(w, "loop %zu (%s): %llu passes, bound %d, by the contract %llu and %d", k, b->name,
                      (unsigned long long)a->passes, a->hit_bound, (unsigned long long)b->passes, b->hit_bound);
    if (a->label != b->label || strcmp(a->name, b->name) != 0)
      return !differs(w, "loop %zu is %d (%s), by the contract %d (%s)", k, (int)a->label, a->name, (int)b->label,
                      b->name);
    if (a->label && gk_passes(is, a->label) != b->passes) return !differs(w, "gk_passes of loop %zu (%s)", k, b->name);
  }
  for (size_t k = 0; k < should->checkpoint_count; ++k) {
    const gk_checkpoint_status *a = &is->checkpoints[k];
    const reference_checkpoint *b = &should->checkpoints[k];
    if (a->ran != b->ran || a->label != b->label || strcmp(a->name, b->name) != 0)
      return !differs(w, "checkpoint %d (%s): ran %d, by the contract %d (%s): %d", (int)a->label, a->name, a->ran,
                      (int)b->label, b->name, b->ran);
  }
  long limit = is->limit ? (long)(is->limit - is->loops) : -1;
  long wanted = should->limit ? (long)(should->limit - should->loops) : -1;
  if (limit != wanted) return !differs(w, "limit is loop %ld, by the contract %ld", limit, wanted);
  if (is->launch != w->launches) return !differs(w, "its number is %llu", (unsigned long long)is->launch);
  if (w->last_bound != (is->applied != GK_UNCHANGED)) return !differs(w, "applied is %d", (int)is->applied);
  return true;
}

static bool wait_for_all(world *w, bool polls) {
  if (!w->pending) return true;
  const gk_status *is = NULL;
  gk_result result = GK_NOT_READY;
  for (int tries = 0; polls && tries < 1000 && result == GK_NOT_READY; ++tries) result = gk_poll(w->graph, &is);
  if (result == GK_NOT_READY) result = gk_wait(w->graph, &is);
  w->pending = 0;
  w->t->polled += polls;
  if (!must(w, result, "gk_wait")) return false;
  static const char *const names[] = {"GK_FINISHED", "GK_YIELDED", "GK_CANCELLED"};
  record(w->record, "ended(%s, %d);", names[w->wanted->state], (int)w->wanted->yielded);
  for (size_t k = 0; k < w->wanted->loop_count; ++k)
    record(w->record, "made(%zu, %llu, %s);", k, (unsigned long long)w->wanted->loops[k].passes,
           w->wanted->loops[k].hit_bound ? "true" : "false");
  return same_status(w, is) && same_memory(w, false);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static void count_launch(world *w, int32_t label) {
  const reference_status *status = w->wanted;
  ++w->launches;
  ++w->t->launches;
  w->t->bad_counts += w->fails;
  w->t->finished += status->state == GK_FINISHED;
  w->t->yielded += status->state == GK_YIELDED;
  w->t->cancelled += status->state == GK_CANCELLED;
  w->t->bounded += status->limit != NULL;
  for (size_t k = 0; k < status->loop_count; ++k) w->t->zero_passes += status->loops[k].passes == 0;
  w->t->resumed += label != 0;
}

/* On the reference. */
static bool launch_reference(world *w, int32_t label) {
  w->tasks = 0;
  w->fails = !reference_launch(w->reference, label);
  if (w->fails && !reference_bad_count(w->reference)) return !differs(w, "the reference refuses it");
  return !w->too_long;
}

static bool launch_backend(world *w, int32_t label) {
  count_launch(w, label);
  ++w->pending;
  w->last_bound = w->bound;
  w->bound = false;
  record(w->record, "launch(%d);", (int)label);
  return must(w, gk_launch(w->graph, label), "gk_launch");
}

/* Any number stands for some checkpoint, so that a story stays one while it is shrunk. */
static int32_t label_of(const world *w, const deed *d) {
  const reference_status *status = w->wanted;
  if (d->label == RESUME) return status->yielded;
  if (!d->label || !status->checkpoint_count) return 0;
  return status->checkpoints[(size_t)d->label % status->checkpoint_count].label;
}

static void stop_at(world *w, uint32_t nth) {
  if (w->door) stay_at(w->door, (int)nth);
  else w->stops[0].countdown = (int)nth;
  if (nth) record(w->record, "stop_at(%u);", (unsigned)nth);
}

/* Once the launch has stopped. */
static void cancel(world *w, bool *well) {
  if (w->door) stay_await(w->door, w->graph);
  else while (sem_wait(&w->stops[0].reached)) continue;
  record(w->record, "cancel();");
  *well = must(w, gk_cancel(w->graph), "gk_cancel") && *well;
  if (w->door) stay_open(w->door);
  else sem_post(&w->stops[0].go);
}

/* The launch and those behind it in the queue are cancelled when `halt` has come so often. */
static bool launch_and_cancel(world *w, const deed *d, int32_t label) {
  if (!wait_for_all(w, false)) return false;
  w->stops[1].countdown = (int)d->cancel;
  if (!launch_reference(w, label)) return false;
  bool reached = w->stops[1].countdown == 0;
  w->stops[1].countdown = 0;
  stop_at(w, reached ? d->cancel : 0);
  if (!launch_backend(w, label)) return false;
  uint32_t queued = reached && !w->can_yield ? d->queued : 0;
  bool well = true;
  for (uint32_t k = 0; k < queued && well; ++k) {
    reference_cancel(w->reference);
    well = launch_reference(w, 0);
    well = launch_backend(w, 0) && well;
    w->t->queued_cancelled += w->wanted->state == GK_CANCELLED;
  }
  if (!reached) return wait_for_all(w, d->polls);
  cancel(w, &well);
  return well && wait_for_all(w, d->polls);
}

/* It says why, and all memory is written anew: what else ran isn't specified. */
static bool see_failure(world *w) {
  const reference_bad *bad = reference_bad_count(w->reference);
  const gk_result result = gk_wait(w->graph, NULL);
  w->pending = 0;
  w->has_failed = w->bound = true;
  record(w->record, "fails();");
  if (result != GK_ERROR_INVALID) return !differs(w, "%s, by the contract a bad count", gk_result_name(result));
  char count[40];
  const char *name = bad->memory == SIZE_MAX ? "" : reference_slot_at(w->reference, bad->memory)->name;
  snprintf(count, sizeof count, ": %s%lld ", bad->memory == SIZE_MAX ? "more than 2147483647 items: " : "",
           (long long)bad->count);
  if (!bad->in_section && (!strstr(gk_error(), count) || !strstr(gk_error(), name)))
    return !differs(w, "\"%s\" doesn't say \"%s\" of %s", gk_error(), count, name);
  bool well = true;
  for (size_t k = 0; k < w->cell_count && well; ++k) {
    cell *c = &w->cells[k];
    for (int side = 0; side < 2; ++side) c->hosts[side].calls = 0, c->hosts[side].trail = 0;
    if (c->slot->desc->type == GK_PTR && c->kind != 'D') well = put_all(w, c, w->launches + k);
  }
  return well;
}

static bool do_launch(world *w, const deed *d) {
  int32_t label = w->has_failed ? 0 : label_of(w, d); /* what a launch that failed leaves behind isn't resumed */
  w->t->elsewhere += label && label != w->wanted->yielded;
  if (d->cancel && w->s->bits & GK_CANCELLABLE) return launch_and_cancel(w, d, label);
  if (w->can_yield || w->pending >= MAX_PENDING || w->s->counts) {
    if (!wait_for_all(w, d->polls)) return false;
  }
  if (!launch_reference(w, label) || !launch_backend(w, label)) return false;
  if (w->fails) return see_failure(w);
  w->has_failed = false;
  w->t->queued += w->pending > 1;
  return !(w->can_yield || d->waits) || wait_for_all(w, d->polls);
}

/* ---- other deeds ------------------------------------------------------------------------------------------------- */

static cell *some_cell(world *w, const char *kinds, uint32_t random) {
  uint32_t count = 0;
  for (size_t k = 0; k < w->cell_count; ++k) count += strchr(kinds, w->cells[k].kind) != NULL;
  if (!count) return NULL;
  uint32_t left = random % count;
  for (size_t k = 0;; ++k)
    if (strchr(kinds, w->cells[k].kind) && left-- == 0) return &w->cells[k];
}

static bool poke(world *w, const deed *d) {
  cell *c = some_cell(w, d->slot % 4 ? "F" : "XSE", d->slot / 4);
  if (!c) return true;
  int32_t ints[FLAGS];
  size_t have = c->slot->bytes / 4, at = d->at % have, count = d->count < have - at ? d->count : have - at;
  for (size_t k = 0; k < count; ++k) ints[k] = d->value % 2 ? 0 : fitting(c->kind, at + k, (uint64_t)d->value + k);
  return put(w, c, at, ints, count);
}

static bool change_number(world *w, const deed *d) {
  cell *c = some_cell(w, "INMGJRQOL", d->slot);
  if (!c) return true;
  int64_t value = d->value % 100;
  const gk_type type = c->slot->desc->type;
  if (c->kind == 'N') value = d->value % 11 - 2;
  else if (c->kind == 'M') value = d->value % 6 - 1;
  else if (c->kind == 'O') value = any_count((uint64_t)d->value, type);
  else if (c->kind == 'L') value = kernel_count((uint64_t)d->value, type);
  else if (c->kind != 'G') value -= 40;
  if (type == GK_U32 && value < 0) value = 0;
  return give_number(w, c, value);
}

static bool do_deed(world *w, const deed *d) {
  cell *c;
  if (w->retired_count + 1 >= MAX_RETIRED) return true;
  ++w->t->deeds[d->kind];
  switch (d->kind) {
  case DEED_LAUNCH: return do_launch(w, d);
  case DEED_POKE: return poke(w, d);
  case DEED_NUMBER: return change_number(w, d);
  case DEED_BIND:
    c = some_cell(w, "XFS", d->slot);
    return !c || (bring(w, c, c->kind == 'X' ? DATA : c->kind == 'F' ? FLAGS : 2) &&
                  put_chance(w, c, (uint64_t)d->value + w->s->seed));
  case DEED_RESIZE:
    c = some_cell(w, "XFS", d->slot);
    return !c || resize(w, c, (c->kind == 'X' ? DATA : c->kind == 'F' ? FLAGS : 2) + d->count);
  case DEED_STRUCT:
    c = some_cell(w, "P", d->slot);
    return !c || give_struct(w, c, (uint64_t)d->value);
  default: return true;
  }
}

/* Old memory is never touched again. */
static bool retired_rest(world *w) {
  for (size_t k = 0; k < w->retired_count; ++k)
    if (!same_bytes(w, "memory bound before", w->retired[k].device, w->retired[k].host, w->retired[k].bytes))
      return false;
  return true;
}

static verdict verdict_of(const world *w) { return w->failed ? DIFFERENT : w->too_long ? TOO_LONG : ALIKE; }

/* ---- the guarantee ----------------------------------------------------------------------------------------------- */

typedef struct made {
  uint64_t passes[MAX_TASKS * 2];
  bool bound[MAX_TASKS * 2], ran[MAX_TASKS * 2];
} made;

static void add_made(const world *w, made *sum) {
  for (size_t k = 0; k < w->wanted->loop_count; ++k) {
    sum->passes[k] += w->wanted->loops[k].passes;
    sum->bound[k] |= w->wanted->loops[k].hit_bound;
  }
  for (size_t k = 0; k < w->wanted->checkpoint_count; ++k) sum->ran[k] |= w->wanted->checkpoints[k].ran;
}

static bool grow(world *w, uint32_t room, int32_t leave) {
  bool well = true;
  for (size_t k = 0; k < w->cell_count && well; ++k) {
    cell *c = &w->cells[k];
    if (c->kind == 'Y') well = resize(w, c, room);
    if (c->kind == 'Z') well = give_number(w, c, (int)room);
    if (c->kind == 'C') well = put(w, c, 0, &leave, 1);
  }
  return well;
}

/* What the two runs leave behind; both are what the reference said. */
static bool same_ends(world *whole, world *parts) {
  for (size_t k = 0; k < whole->cell_count; ++k) {
    const cell *a = &whole->cells[k], *b = &parts->cells[k];
    size_t bytes = a->slot->bytes < b->slot->bytes ? a->slot->bytes : b->slot->bytes;
    if (a->kind == 'H' && a->hosts[0].trail != b->hosts[0].trail)
      return !differs(parts, "%s got other calls than in one launch", name_of(a));
    if (a->slot->desc->type != GK_PTR || a->kind == 'C' || a->kind == 'D') continue;
    if (memcmp(a->slot->value.ptr, b->slot->value.ptr, bytes) != 0)
      return !differs(parts, "%s isn't what it is after one launch without interruption", name_of(a));
  }
  return true;
}

static bool run_parts(world *parts, made *sum) {
  uint64_t random = mix(parts->s->seed + 7);
  uint32_t room = 1 + pick(&random, 12);
  if (!grow(parts, room, (int32_t)pick(&random, 3))) return false;
  for (int yields = 0;; ++yields) {
    deed launch = {.kind = DEED_LAUNCH, .label = RESUME, .waits = true};
    if (!do_launch(parts, &launch)) return false;
    add_made(parts, sum);
    if (parts->wanted->state == GK_FINISHED) return same_memory(parts, true);
    if (yields == MAX_YIELDS) {
      parts->too_long = true;
      return false;
    }
    ++parts->t->interruptions;
    room += pick(&random, 6);
    if (room > 32) room = 32;
    if (!grow(parts, room, 1 + (int32_t)pick(&random, 3))) return false;
  }
}

static verdict run_guarantee(story *s, gk_device *device, tally *t, recorder *log) {
  static world whole, parts;
  static made of_whole, of_parts;
  memset(&of_whole, 0, sizeof of_whole);
  memset(&of_parts, 0, sizeof of_parts);
  deed launch = {.kind = DEED_LAUNCH, .waits = true};
  bool well = world_open(&whole, s, device, t, NULL) && grow(&whole, 32, 1 << 30) && do_launch(&whole, &launch);
  verdict end = verdict_of(&whole);
  if (well) {
    add_made(&whole, &of_whole);
    well = world_open(&parts, s, device, t, log) && run_parts(&parts, &of_parts);
    if (well && whole.wanted->state != GK_FINISHED) well = !differs(&parts, "with room for all it didn't finish");
    well = well && same_ends(&whole, &parts);
    if (well && memcmp(&of_whole, &of_parts, sizeof of_whole) != 0)
      differs(&parts, "passes, bounds or checkpoints of all launches aren't those of one without interruption");
    end = verdict_of(&parts);
    t->guarantees += end == ALIKE;
    world_close(&parts);
  }
  world_close(&whole);
  return end;
}

verdict story_run(story *s, gk_device *device, tally *t, recorder *log) {
  static world w;
  if (s->safe) return run_guarantee(s, device, t, log);
  bool well = world_open(&w, s, device, t, log);
  for (uint32_t k = 0; k < s->deed_count && well; ++k) well = do_deed(&w, &s->deeds[k]);
  (void)(well && wait_for_all(&w, false) && same_memory(&w, true) && retired_rest(&w));
  verdict end = verdict_of(&w);
  world_close(&w);
  return end;
}
