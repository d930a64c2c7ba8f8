/* gk's own kernels: control kernels, prologue and epilogue of a launch, those in callers' graphs, COPY and FILL, and
 * those of the probe. nvcc and NVRTC compile this file; so does any C compiler, after a preamble that defines CUDA's
 * words.
 *
 * One thread of one block walks a chain of points and writes every handle, because calls that set handles must not run
 * at the same time. Volatile loads read memory that other kernels of the graph or the host write; tables are read
 * through the read-only path. Loads take most of a chain's time, so independent loads are kept together. */
#include "gates.h"
#include "lower/device.h"

#ifdef __CUDACC_RTC__ /* nvcc's headers declare it */
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);
#endif
#ifndef GKI_CONSULT /* all flags are loaded; a test on the host defines this to see which ones decide something */
#define GKI_CONSULT(at, value) (value)
#endif

/* ---- tables and walk --------------------------------------------------------------------------------------------- */

typedef union gki_loaded_tables {
  uint4 parts[(sizeof(gki_cuda_tables) + sizeof(uint4) - 1) / sizeof(uint4)];
  gki_cuda_tables tables;
} gki_loaded_tables;

typedef struct gki_walk {
  const gki_cuda_tables *t;  /* loaded into registers, except in called functions */
  const gki_cuda_tables *at; /* in device memory */
  gki_cuda_control *control;
  uint64_t number, fresh, reopens;
  uint32_t target;
} gki_walk;

#define GKI_TABLE(walk, type, part, index) ((const type *)(walk)->t->part + (index))

GKI_INLINE gki_loaded_tables gki_load_tables(const gki_cuda_tables *at) {
  gki_loaded_tables t;
  for (int k = 0; k < (int)(sizeof t / sizeof(uint4)); ++k) t.parts[k] = __ldg((const uint4 *)at + k);
  return t;
}

GKI_INLINE gki_walk gki_begin_walk(const gki_cuda_tables *t, const gki_cuda_tables *at) {
  gki_cuda_control *const control = (gki_cuda_control *)t->control;
  gki_walk w;
  w.t = t;
  w.at = at;
  w.control = control;
  w.number = GKI_LOOK(uint64_t, &control->number);
  w.fresh = GKI_LOOK(uint64_t, &control->fresh);
  w.reopens = GKI_LOOK(uint64_t, &control->reopens);
  w.target = GKI_LOOK(uint32_t, &control->target);
  return w;
}

/* For called functions: with the tables in device memory, so that they needn't be passed. */
GKI_INLINE gki_walk gki_walk_global(const gki_walk *w) {
  gki_walk global = *w;
  global.t = w->at;
  return global;
}

GKI_INLINE void gki_set_handle(const gki_walk *w, uint32_t handle, uint32_t value) {
  if (handle != GKI_CUDA_NONE) cudaGraphSetConditional(__ldg(GKI_TABLE(w, uint64_t, handles, handle)), value);
}

GKI_INLINE void gki_note(const gki_walk *w, uint32_t checkpoint) { ((uint64_t *)w->t->ran)[checkpoint] = w->number; }

GKI_INLINE int gki_cancelled(const gki_walk *w) {
  if (!(w->t->bits & GKI_CUDA_WITH_CANCEL)) return 0;
  return GKI_LOOK(uint64_t, w->t->cancel) >= (w->t->bits & GKI_CUDA_WITH_ARMING ? w->control->armed : w->number);
}

/* ---- closing and opening ----------------------------------------------------------------------------------------- */

GKI_INLINE void gki_close(const gki_walk *w, uint32_t begin, uint32_t end) {
  GKI_SMALL
  for (uint32_t k = begin; k < end; ++k) {
    const gki_cuda_gate_close *const c = GKI_TABLE(w, gki_cuda_gate_close, closes, k);
    const uint32_t at = __ldg(&c->at);
    if (__ldg(&c->kind) == GKI_CUDA_CLOSES_GUARD) ((uint64_t *)w->t->guards)[at] = w->number;
    else gki_set_handle(w, at, __ldg(&c->value));
  }
}

GKI_INLINE void gki_open(const gki_walk *w, uint32_t begin, uint32_t end) {
  GKI_SMALL
  for (uint32_t k = begin; k < end; ++k) {
    const gki_cuda_gate_close *const c = GKI_TABLE(w, gki_cuda_gate_close, closes, k);
    const uint32_t kind = __ldg(&c->kind), at = __ldg(&c->at);
    if (kind == GKI_CUDA_CLOSES_GUARD) ((uint64_t *)w->t->guards)[at] = 0;
    if (kind == GKI_CUDA_CLOSES_GATE) gki_set_handle(w, at, 1);
  }
}

/* Goes from the target outwards. In each block it closes everything before the target, and enters the block. With
 * `again` it opens what was closed, in blocks inside loops. */
GKI_CALLED void gki_aim(const gki_walk walk, uint32_t target, int again) {
  const gki_walk *const w = &walk;
  const gki_cuda_target *const to = GKI_TABLE(w, gki_cuda_target, targets, target);
  uint32_t place = __ldg(&to->close);
  GKI_SMALL
  for (uint32_t at = __ldg(&to->block); at != GKI_CUDA_NONE;) {
    const gki_cuda_block *const b = GKI_TABLE(w, gki_cuda_block, blocks, at);
    if (!again) {
      gki_close(w, __ldg(&b->begin), place);
      if (!(w->t->bits & GKI_CUDA_WITH_PLAIN)) gki_set_handle(w, __ldg(&b->handle), __ldg(&b->value));
    } else if (__ldg(&b->in_loop)) {
      gki_open(w, __ldg(&b->begin), place);
    }
    place = __ldg(&b->before);
    at = __ldg(&b->around);
  }
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

GKI_CALLED int gki_leads_to_target(const gki_walk walk, uint32_t loop) {
  const gki_walk *const w = &walk;
  uint32_t at = __ldg(&GKI_TABLE(w, gki_cuda_target, targets, w->target)->block);
  GKI_SMALL
  while (at != GKI_CUDA_NONE) {
    const gki_cuda_block *const b = GKI_TABLE(w, gki_cuda_block, blocks, at);
    if (__ldg(&b->loop) == loop) return 1;
    at = __ldg(&b->around);
  }
  return 0;
}

/* Brings a loop's record up to date: see gki_cuda_loop. */
GKI_INLINE gki_cuda_loop *gki_touch(const gki_walk *w, uint32_t loop) {
  gki_cuda_loop *const r = (gki_cuda_loop *)w->t->loops + loop;
  const uint64_t launch = r->launch;
  if (launch == w->number) return r;
  r->launch = w->number;
  r->passes = 0;
  if (w->target == GKI_CUDA_NONE || launch < w->fresh || !gki_leads_to_target(gki_walk_global(w), loop)) r->entry = 0;
  return r;
}

/* The innermost loop body around a block, which may be the block itself. */
GKI_INLINE uint32_t gki_body(const gki_walk *w, uint32_t at) {
  GKI_SMALL
  while (at != GKI_CUDA_NONE && __ldg(&GKI_TABLE(w, gki_cuda_block, blocks, at)->loop) == GKI_CUDA_NONE)
    at = __ldg(&GKI_TABLE(w, gki_cuda_block, blocks, at)->around);
  return at;
}
GKI_INLINE uint32_t gki_body_around(const gki_walk *w, uint32_t at) {
  return gki_body(w, __ldg(&GKI_TABLE(w, gki_cuda_block, blocks, at)->around));
}
GKI_INLINE uint64_t gki_passes(const gki_walk *w, uint32_t body) {
  const uint32_t loop = __ldg(&GKI_TABLE(w, gki_cuda_block, blocks, body)->loop);
  const gki_cuda_loop *const r = (const gki_cuda_loop *)w->t->loops + loop;
  return r->launch == w->number ? r->passes : 0;
}

/* Whether the innermost loop around both this loop and the first one that hit its bound is still in the same pass. If
 * so, the two may be in sections side by side, and the list's order decides which is the first. */
GKI_CALLED int gki_same_pass(const gki_walk walk, uint32_t block) {
  const gki_walk *const w = &walk;
  uint32_t x = gki_body_around(w, GKI_LOOK(uint32_t, &w->control->limit_block));
  GKI_SMALL
  for (uint32_t k = 0; x != GKI_CUDA_NONE && k < GKI_CUDA_DEPTH; x = gki_body_around(w, x), ++k) {
    uint32_t y = block; /* this loop may be around that one */
    GKI_SMALL
    while (y != GKI_CUDA_NONE && y != x) y = gki_body_around(w, y);
    if (y == x) return GKI_LOOK(uint64_t, &w->control->limit_passes[k]) == gki_passes(w, x);
  }
  return 1;
}

GKI_CALLED void gki_hit_bound(const gki_walk walk, uint32_t node, uint32_t block) {
  const gki_walk *const w = &walk;
  gki_cuda_control *const c = w->control;
  GKI_SMALL
  while (atomicCAS(&c->limit_lock, 0, 1) != 0) {}
  __threadfence();
  if (GKI_LOOK(uint64_t, &c->limited) != w->number ||
      (node < GKI_LOOK(uint32_t, &c->limit) && gki_same_pass(walk, block))) {
    uint32_t body = gki_body_around(w, block);
    GKI_SMALL
    for (uint32_t k = 0; body != GKI_CUDA_NONE && k < GKI_CUDA_DEPTH; body = gki_body_around(w, body), ++k)
      c->limit_passes[k] = gki_passes(w, body);
    c->limit_block = block;
    c->limit = node;
    c->limited = w->number;
  }
  __threadfence();
  atomicExch(&c->limit_lock, 0);
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

/* Stops the launch. Goes outwards from the point: closes the rest of each block, and ends each loop. Stops are rare, so
 * only a stop pays for this. */
GKI_CALLED uint32_t gki_stop_at(const gki_walk walk, uint32_t checkpoint, uint32_t ran, uint32_t block,
                                uint32_t place) {
  const gki_walk *const w = &walk;
  if (w->control->stopped != w->number) {
    w->control->stopped_at = checkpoint;
    w->control->stopped = w->number;
  }
  if (ran != GKI_CUDA_NONE) gki_note(w, ran);
  GKI_SMALL
  for (uint32_t at = block; at != GKI_CUDA_NONE;) {
    const gki_cuda_block *const b = GKI_TABLE(w, gki_cuda_block, blocks, at);
    const uint32_t loop = __ldg(&b->loop);
    gki_close(w, place, __ldg(&b->end));
    if (loop != GKI_CUDA_NONE) {
      gki_touch(w, loop); /* a resume goes on with this entry, not with an older one */
      if (!(w->t->bits & GKI_CUDA_WITH_PLAIN)) gki_set_handle(w, __ldg(&b->handle), 0);
    }
    place = __ldg(&b->after);
    at = __ldg(&b->around);
  }
  return GKI_CUDA_NONE;
}

GKI_INLINE uint32_t gki_stop(const gki_walk *w, const gki_cuda_point *p, uint32_t checkpoint) {
  return gki_stop_at(gki_walk_global(w), checkpoint, p->checkpoint, p->block, p->close);
}

/* A point's flag, handle and first two exits, loaded before they are needed. */
typedef struct gki_early {
  const char *at; /* the flag */
  int32_t flag;
  uint64_t handle;
  uint32_t first, second;
} gki_early;

GKI_INLINE gki_early gki_ask(const gki_walk *w, const gki_cuda_point *p) {
  gki_early e;
  /* Reads slot 0 for a point without a flag, and one exit behind the last, for which the tables have room. */
  e.at = (const char *)((const uint64_t *)w->t->slots)[p->flag] + p->offset;
  e.first = __ldg(&GKI_TABLE(w, gki_cuda_exit, exits, p->exits)->next);
  e.second = __ldg(&GKI_TABLE(w, gki_cuda_exit, exits, p->exits + 1)->next);
  e.handle = p->handle == GKI_CUDA_NONE ? 0 : __ldg(GKI_TABLE(w, uint64_t, handles, p->handle));
  e.flag = p->flag ? GKI_LOOK(int32_t, e.at) : 0;
  return e;
}

GKI_INLINE void gki_set_own(const gki_cuda_point *p, const gki_early *e, uint32_t value) {
  if (p->handle != GKI_CUDA_NONE) cudaGraphSetConditional(e->handle, value);
}

GKI_INLINE uint32_t gki_yield(const gki_walk *w, const gki_cuda_point *p, const gki_early *e) {
  const int cancelled = gki_cancelled(w), yields = GKI_CONSULT(e->at, e->flag) != 0;
  gki_note(w, p->checkpoint);
  return yields || cancelled ? gki_stop(w, p, yields ? p->node : GKI_CUDA_NONE) : e->first;
}

GKI_INLINE uint32_t gki_head(const gki_walk *w, const gki_cuda_point *p, const gki_early *e) {
  const int enters = GKI_CONSULT(e->at, e->flag) != 0;
  gki_touch(w, p->loop);
  gki_set_own(p, e, (uint32_t)enters);
  return enters ? e->first : e->second;
}

GKI_INLINE uint32_t gki_branch(const gki_walk *w, const gki_cuda_point *p, const gki_early *e) {
  const gki_cuda_exit *const exits = GKI_TABLE(w, gki_cuda_exit, exits, p->exits);
  const int32_t flag = GKI_CONSULT(e->at, e->flag);
  const uint32_t index = p->by_value ? (uint32_t)flag : flag == 0, last = p->exit_count - 1;
  const uint32_t taken = index < last ? index : last;
  if (p->handle != GKI_CUDA_NONE) gki_set_own(p, e, __ldg(&exits[taken].value));
  else {
    GKI_SMALL
    for (uint32_t k = 0; k <= last; ++k) gki_set_handle(w, __ldg(&exits[k].handle), k == taken);
  }
  return __ldg(&exits[taken].next);
}

/* Returns the passes of the entry. */
GKI_INLINE uint64_t gki_count_pass(gki_cuda_loop *r) {
  const uint64_t entry = r->entry + 1;
  r->entry = entry;
  ++r->passes;
  return entry;
}

/* The first loop end after the target opens what the prologue closed on the way to it. In sections side by side two
 * loop ends may try this at once. */
GKI_INLINE void gki_reopen_after_resume(gki_walk *w) {
  if (w->reopens != w->number) return;
  if (atomicExch((unsigned long long *)&w->control->reopens, 0) == w->number) gki_aim(gki_walk_global(w), w->target, 1);
  w->reopens = 0;
}

GKI_INLINE void gki_note_bound(const gki_walk *w, const gki_cuda_point *p, gki_cuda_loop *r) {
  if (r->limited != w->number) gki_hit_bound(gki_walk_global(w), p->node, p->block);
  r->limited = w->number;
}

GKI_INLINE uint32_t gki_loop_end(gki_walk *w, const gki_cuda_point *p, const gki_early *e, int is_plain) {
  const int cancelled = gki_cancelled(w);
  const uint64_t failed = GKI_LOOK(uint64_t, &w->control->failed); /* after a bad count there are no more passes */
  gki_cuda_loop *const r = gki_touch(w, p->loop);
  const uint64_t entry = gki_count_pass(r);
  if (cancelled && is_plain) gki_set_own(p, e, 0);
  if (cancelled) return gki_stop(w, p, GKI_CUDA_NONE);
  gki_reopen_after_resume(w);
  int again = failed != w->number && GKI_CONSULT(e->at, e->flag) != 0;
  if (again && p->bound && entry >= p->bound) {
    again = 0;
    gki_note_bound(w, p, r);
  }
  if (!again) r->entry = 0;
  gki_set_own(p, e, (uint32_t)again);
  GKI_SMALL
  for (uint32_t k = 0; k < p->reenable_count; ++k)
    gki_set_handle(w, __ldg(GKI_TABLE(w, uint32_t, reenables, p->reenable + k)), 1);
  return again ? e->first : e->second;
}

/* Executes a point. Returns the next one. */
GKI_INLINE uint32_t gki_walk_point(gki_walk *w, const gki_cuda_point *p) {
  const gki_early e = gki_ask(w, p);
  switch (p->kind) {
  case GKI_CUDA_YIELD: return gki_yield(w, p, &e);
  case GKI_CUDA_HEAD: return gki_head(w, p, &e);
  case GKI_CUDA_MARK: gki_note(w, p->checkpoint); return e.first;
  case GKI_CUDA_BRANCH: return gki_branch(w, p, &e);
  default: return gki_loop_end(w, p, &e, 0);
  }
}

typedef union gki_loaded {
  uint4 parts[sizeof(gki_cuda_point) / sizeof(uint4)];
  gki_cuda_point point;
} gki_loaded;

GKI_INLINE gki_loaded gki_load_point(const gki_cuda_point *points, uint32_t index) {
  const uint4 *const from = (const uint4 *)(points + index);
  gki_loaded p;
  p.parts[0] = __ldg(&from[0]);
  p.parts[1] = __ldg(&from[1]);
  p.parts[2] = __ldg(&from[2]);
  p.parts[3] = __ldg(&from[3]);
  return p;
}

GKI_INLINE void gki_walk_chain(const gki_cuda_tables *t, uint32_t point, uint32_t guard) {
  const gki_cuda_point *const points = (const gki_cuda_point *)((const char *)t + GKI_CUDA_POINTS_AT);
  gki_loaded p = gki_load_point(points, point); /* doesn't depend on the tables */
  const gki_loaded_tables tables = gki_load_tables(t);
  gki_walk w = gki_begin_walk(&tables.tables, t);
  if (guard != GKI_CUDA_NONE && GKI_LOOK(uint64_t, GKI_TABLE(&w, uint64_t, guards, guard)) == w.number) return;
  for (;;) {
    const uint32_t next = gki_walk_point(&w, &p.point);
    if (next == GKI_CUDA_NONE) return;
    p = gki_load_point(points, next);
  }
}

/* ---- plain gates: a kernel sets only the node right behind it ---------------------------------------------------- */

/* Sets the handles of a point: `handle` to `value`, all others so that their nodes run nothing. */
GKI_INLINE void gki_set_all(const gki_walk *w, const gki_cuda_point *p, uint32_t handle, uint32_t value) {
  /* A SWITCH has at most as many bodies as its point has exits, so the number of exits selects no body. */
  const uint32_t off = p->kind == GKI_CUDA_BRANCH ? p->exit_count : 0;
  if (p->handle != GKI_CUDA_NONE) gki_set_handle(w, p->handle, p->handle == handle ? value : off);
  else if (p->kind == GKI_CUDA_BRANCH) {
    GKI_SMALL
    for (uint32_t k = 0; k < p->exit_count; ++k) {
      const uint32_t one = __ldg(&GKI_TABLE(w, gki_cuda_exit, exits, p->exits + k)->handle);
      gki_set_handle(w, one, one == handle ? value : 0);
    }
  }
}

GKI_INLINE int gki_has_handle(const gki_walk *w, const gki_cuda_point *p, uint32_t handle) {
  if (handle == GKI_CUDA_NONE) return 0;
  if (p->handle != GKI_CUDA_NONE) return p->handle == handle;
  GKI_SMALL
  for (uint32_t k = 0; k < p->exit_count; ++k)
    if (__ldg(&GKI_TABLE(w, gki_cuda_exit, exits, p->exits + k)->handle) == handle) return 1;
  return 0;
}

/* Enters a block behind this point that leads to the target. Returns whether there is one. */
GKI_CALLED int gki_let_in(const gki_walk walk, uint32_t point) {
  const gki_walk *const w = &walk;
  const gki_cuda_point *const p = GKI_TABLE(w, gki_cuda_point, points, point);
  GKI_SMALL
  for (uint32_t at = __ldg(&GKI_TABLE(w, gki_cuda_target, targets, w->target)->block); at != GKI_CUDA_NONE;) {
    const gki_cuda_block *const b = GKI_TABLE(w, gki_cuda_block, blocks, at);
    const uint32_t handle = __ldg(&b->handle);
    if (gki_has_handle(w, p, handle)) {
      gki_set_all(w, p, handle, __ldg(&b->value));
      return 1;
    }
    at = __ldg(&b->around);
  }
  return 0;
}

GKI_INLINE uint32_t gki_plain_point(gki_walk *w, const gki_cuda_point *p, uint32_t point) {
  const gki_early e = gki_ask(w, p);
  const int decides = p->kind == GKI_CUDA_HEAD || p->kind == GKI_CUDA_BRANCH;
  if (decides && w->reopens == w->number && gki_let_in(gki_walk_global(w), point)) return e.first;
  switch (p->kind) {
  case GKI_CUDA_YIELD: return gki_yield(w, p, &e);
  case GKI_CUDA_HEAD: return gki_head(w, p, &e);
  case GKI_CUDA_MARK: gki_note(w, p->checkpoint); return e.first;
  case GKI_CUDA_BRANCH: return gki_branch(w, p, &e);
  case GKI_CUDA_ENTER: gki_set_own(p, &e, 1); return e.first;
  default: return gki_loop_end(w, p, &e, 1);
  }
}

/* If the guard is closed, the node behind the kernel runs nothing. A kernel at the end of a loop's body ends the loop
 * then. */
GKI_INLINE void gki_walk_plainly(const gki_cuda_tables *t, uint32_t point, uint32_t guard) {
  const gki_cuda_point *const points = (const gki_cuda_point *)((const char *)t + GKI_CUDA_POINTS_AT);
  const gki_loaded_tables tables = gki_load_tables(t);
  gki_walk w = gki_begin_walk(&tables.tables, t);
  const int closed =
    guard != GKI_CUDA_NONE && GKI_LOOK(uint64_t, GKI_TABLE(&w, uint64_t, guards, guard)) == w.number;
  GKI_SMALL
  while (point != GKI_CUDA_NONE) {
    const gki_loaded p = gki_load_point(points, point);
    if (closed) gki_set_all(&w, &p.point, GKI_CUDA_NONE, 0);
    point = closed ? __ldg(&GKI_TABLE(&w, gki_cuda_exit, exits, p.point.exits)->next)
                   : gki_plain_point(&w, &p.point, point);
  }
}

GKI_ENTRY gki_control_plain(const gki_cuda_tables *t, uint32_t point, uint32_t guard) {
  if (threadIdx.x == 0) gki_walk_plainly(t, point, guard);
}

/* ---- control, prologue, epilogue --------------------------------------------------------------------------------- */

GKI_ENTRY gki_control(const gki_cuda_tables *t, uint32_t point, uint32_t guard) {
  if (threadIdx.x == 0) gki_walk_chain(t, point, guard);
}

GKI_ENTRY gki_prologue(const gki_cuda_tables *t, uint32_t point, uint32_t target) {
  if (threadIdx.x != 0) return;
  if (target == GKI_CUDA_COPIED) target = GKI_LOOK(uint32_t, &((gki_cuda_control *)t->control)->target_sent);
  if (target == GKI_CUDA_NONE) {
    if (point != GKI_CUDA_NONE) gki_walk_chain(t, point, GKI_CUDA_NONE);
    return;
  }
  const gki_walk w = gki_begin_walk(t, t);
  w.control->target = target;
  w.control->reopens = w.number;
  gki_aim(w, target, 0);
}

/* 8 bytes of 1 or 0. For loops: it hit its bound. For checkpoints, which follow: it ran. */
GKI_INLINE uint64_t gki_eight_bytes(const gki_cuda_tables *t, uint64_t number, uint32_t first) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < 8; ++k) {
    const uint32_t at = first + k;
    uint64_t last = 0;
    if (at < t->loop_count) last = ((const gki_cuda_loop *)t->loops)[at].limited;
    else if (at - t->loop_count < t->checkpoint_count) last = ((const uint64_t *)t->ran)[at - t->loop_count];
    bytes |= (uint64_t)(last == number) << 8 * k;
  }
  return bytes;
}

/* Word k of the status, behind its number. Threads side by side write words side by side. */
GKI_INLINE uint64_t gki_status_word(const gki_cuda_tables *t, const gki_cuda_control *control, uint64_t number,
                                    uint32_t k) {
  if (k == 0) {
    if (control->stopped != number) return GKI_CUDA_FINISHED;
    const uint64_t at = control->stopped_at;
    return at == GKI_CUDA_NONE ? GKI_CUDA_CANCELLED : GKI_CUDA_YIELDED | at << 32;
  }
  if (k == 1) return control->limited == number ? control->limit : 0;
  if (k - 2 < t->loop_count) {
    const gki_cuda_loop *const r = (const gki_cuda_loop *)t->loops + (k - 2);
    return r->launch == number ? r->passes : 0;
  }
  return gki_eight_bytes(t, number, (k - 2 - t->loop_count) * 8);
}

GKI_ENTRY gki_epilogue(const gki_cuda_tables *t) {
  gki_cuda_control *const control = (gki_cuda_control *)t->control;
  const uint64_t number = GKI_LOOK(uint64_t, &control->number);
  const uint64_t told = t->bits & GKI_CUDA_WITH_ARMING ? GKI_LOOK(uint64_t, &control->told) : number;
  uint64_t *const status = (uint64_t *)(t->status + (told - 1) % GKI_LAUNCH_RING * t->status_bytes);
  const uint32_t count = told ? 2 + t->loop_count + (t->loop_count + t->checkpoint_count + 7) / 8 : 0;
  GKI_SMALL
  for (uint32_t k = threadIdx.x; k < count; k += blockDim.x) status[1 + k] = gki_status_word(t, control, number, k);
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system(); /* for the writes of all threads before the barrier */
  if (told) *(volatile uint64_t *)status = told;
  if (control->target == GKI_CUDA_NONE) control->fresh = number;
  control->target = GKI_CUDA_NONE;
  control->number = number + 1;
}

/* ---- in graphs of callers ---------------------------------------------------------------------------------------- */

/* The first node of a list. A launch without its own arming repeats the launch before, and posts no status. */
GKI_ENTRY gki_arm(const gki_cuda_arming a) {
  gki_cuda_control *const control = (gki_cuda_control *)a.control;
  const int is_new = GKI_LOOK(uint64_t, &control->armed) != a.number;
  __syncthreads(); /* every thread has read `armed` */
  const uint32_t lines = is_new ? a.bytes / 16 : 0;
  GKI_SMALL
  for (uint32_t k = threadIdx.x; k < lines; k += blockDim.x) ((uint4 *)a.to)[k] = ((const uint4 *)a.from)[k];
  if (threadIdx.x != 0) return;
  control->armed = a.number;
  control->told = is_new ? a.number : 0;
  control->target_sent = a.target;
}

GKI_ENTRY gki_enter(const int32_t *flag, uint32_t *count, uint64_t handle, uint64_t other, uint32_t has_other) {
  if (threadIdx.x != 0) return;
  const uint32_t enters = !flag || GKI_LOOK(int32_t, flag) != 0;
  if (count) *count = 0;
  cudaGraphSetConditional(handle, enters);
  if (has_other) cudaGraphSetConditional(other, !enters);
}

GKI_ENTRY gki_repeat(const int32_t *flag, uint32_t *count, uint64_t handle, uint32_t bound) {
  if (threadIdx.x != 0) return;
  const uint32_t passes = bound ? *count + 1 : 0;
  const uint32_t again = GKI_LOOK(int32_t, flag) != 0 && (!bound || passes < bound);
  if (bound) *count = passes;
  cudaGraphSetConditional(handle, again);
}

#include "lower/transfer.inc"

/* ---- for the probe ----------------------------------------------------------------------------------------------- */

GKI_ENTRY gki_set_list(uint32_t *runs, uint32_t period, const gki_cuda_setting *list, uint32_t count) {
  if (threadIdx.x != 0) return;
  const uint32_t before = GKI_LOOK(uint32_t, runs), run = period ? before % period : before;
  *(volatile uint32_t *)runs = before + 1;
  GKI_SMALL
  for (uint32_t k = 0; k < count; ++k)
    if (list[k].run == run || list[k].run == GKI_CUDA_NONE) cudaGraphSetConditional(list[k].handle, list[k].value);
}

GKI_ENTRY gki_set_beside(uint32_t *at, uint64_t handle, uint32_t value, uint32_t times) {
  if (threadIdx.x != 0) return;
  atomicAdd(&at[0], 1);
  GKI_SMALL
  for (int k = 0; k < 50 && GKI_LOOK(uint32_t, &at[0]) - GKI_LOOK(uint32_t, &at[1]) < 2; ++k) {} /* until two run */
  GKI_SMALL
  for (uint32_t k = times; k-- > 0;) cudaGraphSetConditional(handle, value ^ (k & 1));
  __threadfence();
  if (GKI_LOOK(uint32_t, &at[0]) - GKI_LOOK(uint32_t, &at[1]) > 1) atomicAdd(&at[2], 1);
  atomicAdd(&at[1], 1);
}
