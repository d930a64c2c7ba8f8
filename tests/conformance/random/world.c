#include "world.h"
#include "random.h"
#include <stdarg.h>
#include <stdlib.h>

static uint32_t asked_for; /* bits of every graph */
void random_ask_for(uint32_t bits) { asked_for = bits; }

bool differs(world *w, const char *format, ...) {
  va_list args;
  if (w->failed) return true;
  w->failed = true;
  va_start(args, format);
  size_t used = (size_t)snprintf(w->t->why, sizeof w->t->why, "launch %llu: ", (unsigned long long)w->launches);
  vsnprintf(w->t->why + used, sizeof w->t->why - used, format, args);
  va_end(args);
  return true;
}

bool must(world *w, gk_result result, const char *call) {
  return result == GK_OK || !differs(w, "%s answers %s: %s", call, gk_result_name(result), gk_error());
}

static bool bind(world *w, gk_result result, const char *call) {
  w->bound = true;
  return must(w, result, call);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

cell *some_cell(world *w, const char *kinds, uint32_t random) {
  uint32_t count = 0;
  for (size_t k = 0; k < w->cell_count; ++k) count += strchr(kinds, w->cells[k].kind) != NULL;
  if (!count) return NULL;
  uint32_t left = random % count;
  for (size_t k = 0;; ++k)
    if (strchr(kinds, w->cells[k].kind) && left-- == 0) return &w->cells[k];
}

int32_t fitting(char kind, size_t at, uint64_t random) {
  uint32_t h = (uint32_t)(mix(random) >> 16);
  if (kind == 'F' && at < FIRST_SWITCH) return h % 5 < 3 ? 0 : h % 5 == 3 ? 1 : -3;
  if (kind == 'F' && at < FIRST_COUNT) return (int32_t)(h % 6) - 1;
  if (kind == 'F' && at < REFUSED) return (int32_t)(h % 10) - 1;
  if (kind == 'X' || kind == 'S') return (int32_t)h;
  if (kind == 'E') return (int32_t)any_count(random, GK_I32);
  return kind == 'B' ? (int32_t)(h % 100) : 0;
}

bool put(world *w, cell *c, size_t at, const int32_t *ints, size_t count) {
  size_t bytes = count * sizeof *ints;
  memcpy((int32_t *)c->slot->value.ptr + at, ints, bytes);
  record(w->record, "put(\"%s\", %zu,", name_of(c), at);
  record_ints(w->record, ints, bytes);
  return must(w, gk_upload(w->device, (int32_t *)gk_bound(w->graph, c->gk) + at, ints, bytes), "gk_upload");
}

bool put_all(world *w, cell *c, uint64_t random) {
  int32_t ints[CELL_BYTES / 4];
  const size_t count = c->slot->bytes / sizeof *ints;
  for (size_t k = 0; k < count; ++k) ints[k] = fitting(c->kind, k, random + k);
  return put(w, c, 0, ints, count);
}

bool put_chance(world *w, cell *c, uint64_t random) {
  for (size_t k = 0; k < c->slot->bytes / sizeof(int32_t) && !w->s->plain; ++k)
    if (fitting(c->kind, k, random + k)) return put_all(w, c, random);
  return true;
}

size_t usual_count(const cell *c) { return c->kind == 'X' ? DATA : c->kind == 'F' ? FLAGS : 2; }

/* What the host brought stays until the end, when it is compared once more. */
static void retire(world *w, cell *c) {
  if (c->device) w->retired[w->retired_count++] = (retired){c->device, c->host, c->slot->bytes};
  c->device = c->host = NULL;
}

bool bring(world *w, cell *c, size_t count) {
  retire(w, c);
  c->device = gk_alloc(w->device, count * 4, c->kind == 'h' ? GK_HOST_MEMORY : GK_DEVICE_MEMORY);
  c->host = calloc(count, 4);
  if (!c->device || !c->host) return !differs(w, "no memory: %s", gk_error());
  record(w->record, "bring(\"%s\", %zu, %s);", name_of(c), count,
         c->kind == 'h' ? "GK_HOST_MEMORY" : "GK_DEVICE_MEMORY");
  reference_bind(w->reference, (size_t)(c - w->cells), c->host, count * 4);
  return bind(w, gk_bind(w->graph, c->gk, c->device), "gk_bind");
}

bool give_struct(world *w, cell *c, uint64_t random) {
  pair p = {(int)(random % 50), (int)(random / 64 % 50)};
  reference_bind_bytes(w->reference, (size_t)(c - w->cells), &p);
  record(w->record, "give_pair(\"%s\", %d, %d);", name_of(c), p.a, p.b);
  return bind(w, gk_bind_bytes(w->graph, c->gk, &p, sizeof p), "gk_bind_bytes");
}

bool give_number(world *w, cell *c, int64_t value) {
  const gk_type type = c->slot->desc->type;
  reference_bind_value(w->reference, (size_t)(c - w->cells), number_of(type, value));
  if (type == GK_F32 || type == GK_F64) {
    record(w->record, "give_float(\"%s\", %d);", name_of(c), (int)value);
    return bind(w, gk_bind_float(w->graph, c->gk, (double)value), "gk_bind_float");
  }
  record(w->record, "give_int(\"%s\", (int64_t)%lluu);", name_of(c), (unsigned long long)value);
  return bind(w, gk_bind_int(w->graph, c->gk, value), "gk_bind_int");
}

bool resize(world *w, cell *c, size_t count) {
  retire(w, c);
  if (!reference_resize(w->reference, (size_t)(c - w->cells), count)) return !differs(w, "no memory");
  record(w->record, "resize(\"%s\", %zu);", name_of(c), count);
  return bind(w, gk_resize(w->graph, c->gk, count), "gk_resize");
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

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
  record(w->record, "bring_door(\"%s\");", name_of(c));
  return bind(w, gk_bind(w->graph, c->gk, w->door), "gk_bind");
}

static bool open_cell(world *w, size_t index) {
  cell *c = &w->cells[index];
  const reference_slot *slot = reference_slot_at(w->reference, index);
  *c = (cell){.slot = slot, .kind = kind_of(slot->name)};
  uint64_t random = w->s->seed * 1000003;
  for (const char *at = slot->name; *at; ++at) random = mix(random + (unsigned char)*at);
  c->gk = gk_find_slot(w->graph, slot->name);
  if (!c->gk) return !differs(w, "gk_find_slot doesn't know %s", slot->name);
  const gk_type type = slot->desc->type;
  if (c->kind == 'D') return bring_door(w, c);
  if (c->kind == 'p') return true;
  if (type == GK_PTR) return (slot->value.ptr || bring(w, c, usual_count(c))) && put_chance(w, c, random);
  if (type == GK_BYTES) return give_struct(w, c, random);
  if (type != GK_HOST_PTR) return true;
  for (int side = 0; side < 2; ++side)
    c->hosts[side] = (random_host){.near = w->near, .recorded = story_calls_are > CALLS_NONE, .stops = &w->stops[side]};
  reference_bind(w->reference, index, &c->hosts[1], 0);
  record(w->record, "bring_host(\"%s\");", slot->name);
  return must(w, gk_bind(w->graph, c->gk, &c->hosts[0]), "gk_bind");
}

bool world_open(world *w, story *s, gk_device *device, tally *t, recorder *log) {
  memset(w, 0, offsetof(world, cells));
  w->s = s, w->t = t, w->record = log, w->device = device;
  const gk_list *list = &whole_of(s)->list;
  sem_init(&w->stops[0].reached, 0, 0);
  sem_init(&w->stops[0].go, 0, 0);
  w->stops[1] = (random_stops){.here = stop_reference, .user = w};
  w->reference = reference_open(list);
  if (!w->reference) return !differs(w, "no memory");
  w->wanted = reference_last(w->reference);
  bool has_hosts = false;
  reference_watch(w->reference, count_task, w);
  for (size_t k = 0; k < reference_lines(w->reference); ++k) {
    const gk_task *task = reference_task(w->reference, k);
    w->can_yield |= (task->op == GK_OP_CHECKPOINT && task->flag) || task->op == GK_OP_YIELD;
    has_hosts |= task->op == GK_OP_CALL_HOST;
  }
  uint32_t bits = s->bits | asked_for;
  gk_result made = gk_graph_create(device, list, bits, &w->graph);
  if (made == GK_ERROR_UNSUPPORTED && has_hosts && !(bits & GK_HOST_GATED)) /* a device decides without the host */
    made = gk_graph_create(device, list, bits |= GK_HOST_GATED, &w->graph);
  record_begin(w->record, whole_of(s)->name, bits);
  if (!must(w, made, "gk_graph_create")) return false;
  void *memory = gk_alloc(device, 4, GK_DEVICE_MEMORY);
  w->near = memory && gk_host_address(device, memory) == memory;
  gk_free(device, memory);
  const size_t count = reference_slot_count(w->reference);
  w->too_long = count > MAX_COMPOSED;
  w->bound = true;
  bool well = !w->too_long;
  for (; w->cell_count < count && well; ++w->cell_count) well = open_cell(w, w->cell_count);
  return well;
}

void world_close(world *w) {
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
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

bool same_bytes(world *w, const char *name, const void *at, const void *wanted, size_t bytes) {
  int32_t is[CELL_BYTES / 4], both[2];
  size_t k;
  if (!must(w, gk_download(w->device, is, at, bytes), "gk_download")) return false;
  if (!ints_differ(is, wanted, bytes, &k, both)) return true;
  return !differs(w, "%s[%zu] is %d, by the contract %d", name, k, both[0], both[1]);
}

bool same_memory(world *w, bool all) {
  for (size_t k = 0; k < w->cell_count; ++k) {
    cell *c = &w->cells[k];
    if (c->kind == 'H' && (c->hosts[0].calls != c->hosts[1].calls || c->hosts[0].trail != c->hosts[1].trail))
      return !differs(w, "%s got %d calls, by the contract %d", name_of(c), c->hosts[0].calls, c->hosts[1].calls);
    if (c->slot->desc->type != GK_PTR || !is_comparable(c)) continue;
    bool rests = memcmp(c->seen, c->slot->value.ptr, c->slot->bytes) == 0;
    if (rests && !all && !w->near && mix(w->s->seed + w->launches + k) % 8) continue;
    if (!same_bytes(w, name_of(c), gk_bound(w->graph, c->gk), c->slot->value.ptr, c->slot->bytes)) return false;
    if (rests) continue;
    memcpy(c->seen, c->slot->value.ptr, c->slot->bytes);
    record(w->record, "holds(\"%s\",", name_of(c));
    record_ints(w->record, c->slot->value.ptr, c->slot->bytes);
  }
  return true;
}
