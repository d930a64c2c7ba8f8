/* A story on a backend and on the reference, deed by deed. The reference goes first: it knows whether a launch ends in
 * time, and whether it comes to the place where the host is to cancel. */
#include "world.h"

enum { MAX_PENDING = 6, MAX_YIELDS = 60 };

static bool same_status(world *w, const gk_status *is) {
  char text[400];
  if (status_differs(is, w->wanted, text, sizeof text)) return !differs(w, "%s", text);
  if (is->launch != w->launches) return !differs(w, "its number is %llu", (unsigned long long)is->launch);
  return w->last_bound == (is->applied != GK_UNCHANGED) || !differs(w, "applied is %d", (int)is->applied);
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
  w->t->resumed += label != 0;
  for (size_t k = 0; k < status->loop_count; ++k) {
    w->t->zero_passes += status->loops[k].passes == 0;
    w->made.passes[k] += status->loops[k].passes;
    w->made.bound[k] |= status->loops[k].hit_bound;
  }
  for (size_t k = 0; k < status->checkpoint_count; ++k) w->made.ran[k] |= status->checkpoints[k].ran;
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

/* Any number stands for some checkpoint or YIELD, so that a story stays one while it is shrunk. */
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
    if (c->slot->desc->type == GK_PTR && is_comparable(c)) well = put_all(w, c, w->launches + k);
  }
  return well;
}

static bool do_launch(world *w, const deed *d) {
  int32_t label = w->has_failed ? 0 : label_of(w, d); /* a failed launch isn't resumed */
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
  if (w->retired_count + 1 >= MAX_RETIRED) return true;
  ++w->t->deeds[d->kind];
  if (d->kind == DEED_LAUNCH) return do_launch(w, d);
  if (d->kind == DEED_POKE) return poke(w, d);
  if (d->kind == DEED_NUMBER) return change_number(w, d);
  cell *c = some_cell(w, d->kind == DEED_STRUCT ? "P" : "XFS", d->slot);
  if (!c) return true;
  if (d->kind == DEED_STRUCT) return give_struct(w, c, (uint64_t)d->value);
  if (d->kind == DEED_RESIZE) return resize(w, c, usual_count(c) + d->count);
  return bring(w, c, usual_count(c)) && put_chance(w, c, (uint64_t)d->value + w->s->seed);
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

static bool grow(world *w, uint32_t room, int32_t leave) {
  bool well = true;
  for (size_t k = 0; k < w->cell_count && well; ++k) {
    cell *c = &w->cells[k];
    if (c->kind == 'Y') well = resize(w, c, room);
    if (c->kind == 'Z' && !(c->slot->desc->bits & GK_IS_ROOM)) well = give_number(w, c, (int)room);
    if (c->kind == 'C') well = put(w, c, 0, &leave, 1);
  }
  return well;
}

/* The results of the two runs; both equal the reference's. */
static bool same_ends(world *whole, world *parts) {
  for (size_t k = 0; k < whole->cell_count; ++k) {
    const cell *a = &whole->cells[k], *b = &parts->cells[k];
    size_t bytes = a->slot->bytes < b->slot->bytes ? a->slot->bytes : b->slot->bytes;
    if (a->kind == 'H' && a->hosts[0].trail != b->hosts[0].trail)
      return !differs(parts, "%s got other calls than in one launch", name_of(a));
    if (a->slot->desc->type != GK_PTR || a->kind == 'C' || !is_comparable(a)) continue;
    if (memcmp(a->slot->value.ptr, b->slot->value.ptr, bytes) != 0)
      return !differs(parts, "%s isn't what it is after one launch without interruption", name_of(a));
  }
  return true;
}

static bool run_parts(world *parts) {
  uint64_t random = mix(parts->s->seed + 7);
  uint32_t room = 1 + pick(&random, 12);
  if (!grow(parts, room, (int32_t)pick(&random, 3))) return false;
  for (int yields = 0;; ++yields) {
    deed launch = {.kind = DEED_LAUNCH, .label = RESUME, .waits = true};
    if (!do_launch(parts, &launch)) return false;
    if (parts->wanted->state == GK_FINISHED) return same_memory(parts, true);
    parts->too_long = yields == MAX_YIELDS;
    if (parts->too_long) return false;
    ++parts->t->interruptions;
    room += pick(&random, 6);
    if (room > 32) room = 32;
    if (!grow(parts, room, 1 + (int32_t)pick(&random, 3))) return false;
  }
}

/* The story with a GK_TARGET, which never yields, in place of each YIELD. */
static story *without_yields(const story *s) {
  static story other;
  other = *s;
  for (uint32_t k = 0; k < s->list_count; ++k) {
    listing *l = &other.lists[k];
    size_t count = 0;
    for (size_t line = 0; line < s->lists[k].list.task_count; ++line) {
      gk_task task = s->lists[k].tasks[line];
      const bool yields = task.op == GK_OP_YIELD;
      if (yields) task.op = GK_OP_CHECKPOINT;
      for (uint32_t inner = 0; inner < k; ++inner)
        if (task.list == &s->lists[inner].list) task.list = &other.lists[inner].list;
      l->tasks[count++] = task;
      if (yields) l->tasks[count++] = (gk_task)GK_END;
    }
    l->list.task_count = count;
    l->list.tasks = l->tasks;
    l->list.slots = l->slots;
  }
  return &other;
}

static verdict run_guarantee(story *s, gk_device *device, tally *t, recorder *log) {
  static world whole, parts;
  deed launch = {.kind = DEED_LAUNCH, .waits = true};
  bool well = world_open(&whole, without_yields(s), device, t, NULL) && grow(&whole, 32, 1 << 30) &&
              do_launch(&whole, &launch);
  verdict end = verdict_of(&whole);
  if (well) {
    well = world_open(&parts, s, device, t, log) && run_parts(&parts);
    if (well && whole.wanted->state != GK_FINISHED) well = !differs(&parts, "with room for all it didn't finish");
    well = well && same_ends(&whole, &parts);
    if (well && memcmp(&whole.made, &parts.made, sizeof whole.made) != 0)
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
