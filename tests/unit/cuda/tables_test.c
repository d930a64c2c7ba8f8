/* The tables that control kernels read: their places, their content, and how large they can become. gates_test.c checks
 * what they mean. */
#include "unit/support/gates_bench.h"
#include "unit/support/planned.h"
#include "cuda/tables.h"

static const gk_slot_desc slots[] = {GK_BUFFER(FLAG, int)};

static void check_layout(const gk_gates *g, const gki_cuda_layout *l) {
  const struct { size_t at, count, bytes, alignment; } parts[] = {
    {l->points, g->point_count, sizeof(gki_cuda_point), 64}, {l->exits, g->exit_count + 1, sizeof(gki_cuda_exit), 4},
    {l->reenables, g->reenable_count, 4, 4}, {l->closes, g->close_count, sizeof(gki_cuda_gate_close), 4},
    {l->blocks, g->block_count, sizeof(gki_cuda_block), 4}, {l->targets, g->target_count, sizeof(gki_cuda_target), 4},
    {l->handles, g->handle_count, 8, 8}, {l->guards, g->guard_count, 8, 128},
  };
  size_t end = sizeof(gki_cuda_tables);
  assert_int_equal(l->points, GKI_CUDA_POINTS_AT);
  for (size_t k = 0; k < GK_COUNT(parts); ++k) {
    assert_true(parts[k].at >= end && parts[k].at % parts[k].alignment == 0);
    end = parts[k].at + parts[k].count * parts[k].bytes;
  }
  assert_true(l->bytes >= end && l->bytes < end + 128);
}

static void check_shared(const gk_plan *plan, const gki_cuda_shared *s) {
  assert_true(s->loops >= sizeof(gki_cuda_control) && s->loops % 32 == 0);
  assert_true(s->ran >= s->loops + plan->loop_count * sizeof(gki_cuda_loop) && s->ran % 8 == 0);
  assert_true(s->slots >= s->ran + plan->checkpoint_count * 8 && s->slots % 128 == 0);
  assert_true(s->bytes >= s->slots + plan->slot_count * 8);
  const size_t needed = sizeof(gki_cuda_status) + plan->loop_count * 9 + plan->checkpoint_count;
  assert_true(s->status_bytes >= (needed + 7) / 8 * 8 && s->status_bytes < needed + 64 && s->status_bytes % 64 == 0);
}

static void check_points(const gk_gates *g, const gki_cuda_point *points) {
  for (uint32_t k = 0; k < g->point_count; ++k) {
    const gk_gate_point *p = &g->points[k];
    const gk_node *node = &g->plan->nodes[p->node];
    const bool adds = p->kind == GK_POINT_PASSES, ends = adds || p->kind == GK_POINT_LOOP_END;
    const bool loops = ends || p->kind == GK_POINT_HEAD;
    const uint32_t bound = adds ? p->passes < node->count : loops ? node->max_iterations : 0;
    const bool repeats = node->op == GK_OP_REPEAT;
    const bool reads = p->kind < GK_POINT_ENTER && !(repeats && p->kind == GK_POINT_LOOP_END);
    const uint32_t flag = !reads ? 0 /* no kernel reads it there */
                          : node->op == GK_OP_YIELD ? g->plan->slot_count : node->flag;
    const gki_cuda_point wanted = {p->kind, flag, node->offset, p->node, repeats || node->op == GK_OP_SWITCH,
                                   bound, loops ? node->loop : GK_NONE, p->checkpoint,
                                   p->exits, ends ? p->passes : p->exit_count, p->handle, p->reenable,
                                   p->reenable_count,
                                   p->block, p->close,
                                   repeats ? node->count : p->kind == GK_POINT_LOOP_END ? node->every : 0};
    assert_memory_equal(&points[k], &wanted, sizeof wanted);
  }
}

static void check_rest(const gk_gates *g, const gki_cuda_layout *l, const char *memory) {
  const gki_cuda_exit *exits = (const gki_cuda_exit *)(memory + l->exits);
  const gki_cuda_gate_close *closes = (const gki_cuda_gate_close *)(memory + l->closes);
  const gki_cuda_block *blocks = (const gki_cuda_block *)(memory + l->blocks);
  const gki_cuda_target *targets = (const gki_cuda_target *)(memory + l->targets);
  const uint64_t *handles = (const uint64_t *)(memory + l->handles), *guards = (const uint64_t *)(memory + l->guards);
  for (uint32_t k = 0; k < g->exit_count; ++k) {
    assert_int_equal(exits[k].next, g->exits[k].next);
    assert_int_equal(exits[k].handle, g->exits[k].handle);
    assert_int_equal(exits[k].value, g->exits[k].value);
  }
  for (uint32_t k = 0; k < g->close_count; ++k) {
    const gki_cuda_gate_close wanted = {g->closes[k].kind, g->closes[k].at, g->closes[k].value};
    assert_memory_equal(&closes[k], &wanted, sizeof wanted);
  }
  for (uint32_t k = 0; k < g->block_count; ++k) {
    const gk_gate_block *b = &g->blocks[k];
    const gki_cuda_block wanted = {b->begin, b->end, b->around, b->before, b->after, b->loop, b->handle, b->value,
                                   b->in_loop, b->head};
    assert_memory_equal(&blocks[k], &wanted, sizeof wanted);
  }
  for (uint32_t k = 0; k < g->target_count; ++k) {
    assert_int_equal(targets[k].block, g->targets[k].block);
    assert_int_equal(targets[k].close, g->targets[k].close);
  }
  if (g->reenable_count)
    assert_memory_equal(memory + l->reenables, g->reenables, g->reenable_count * sizeof *g->reenables);
  for (uint32_t k = 0; k < g->handle_count; ++k) assert_int_equal(handles[k], 1000 + k);
  for (uint32_t k = 0; k < g->guard_count; ++k) assert_int_equal(guards[k], 0);
}

static void check_tables(const gk_gates *g) {
  const gk_plan *plan = g->plan;
  const gki_cuda_layout l = gki_cuda_tables_lay_out(g);
  gki_cuda_shared s;
  assert_int_equal(gki_cuda_shared_lay_out(plan, &s), GK_OK);
  check_layout(g, &l);
  check_shared(plan, &s);
  char *memory = aligned_alloc(256, (l.bytes + 255) / 256 * 256), *shared = malloc(s.bytes);
  CUgraphConditionalHandle *handles = calloc(g->handle_count + 1, sizeof *handles);
  for (uint32_t k = 0; k < g->handle_count; ++k) handles[k] = 1000 + k;
  memset(memory, 0x5a, l.bytes);
  memset(shared, 0x5a, s.bytes);
  const gki_cuda_places places = {.tables = 1 << 20, .control = 2 << 20, .cancel = 5, .status = 6};
  gki_cuda_tables_write(g, &l, &s, &places, handles, memory);
  gki_cuda_shared_write(&s, 7, true, shared);
  const gki_cuda_tables wanted = {
    .points = (1 << 20) + l.points, .exits = (1 << 20) + l.exits, .reenables = (1 << 20) + l.reenables,
    .closes = (1 << 20) + l.closes, .blocks = (1 << 20) + l.blocks, .targets = (1 << 20) + l.targets,
    .handles = (1 << 20) + l.handles, .guards = (1 << 20) + l.guards, .control = 2 << 20, .loops = (2 << 20) + s.loops,
    .ran = (2 << 20) + s.ran, .slots = (2 << 20) + s.slots, .cancel = 5, .status = 6, .status_bytes = s.status_bytes,
    .loop_count = plan->loop_count, .checkpoint_count = plan->checkpoint_count, .bits = g->bits};
  assert_memory_equal(memory, &wanted, sizeof wanted);
  check_points(g, (const gki_cuda_point *)(memory + l.points));
  check_rest(g, &l, memory);
  const gki_cuda_control first = {.number = 1, .failures = 7, .arms = 1, .target = GKI_CUDA_NONE,
                                  .target_sent = GKI_CUDA_NONE};
  assert_memory_equal(shared, &first, sizeof first);
  for (size_t k = sizeof first; k < s.bytes; ++k) assert_int_equal(shared[k], 0);
  free(handles);
  free(shared);
  free(memory);
}

TEST(test_tables) {
  static gk_task tasks[MAX_TASKS];
  for (uint64_t seed = 0; seed < 500; ++seed) {
    generator g = {.random = mix(seed ^ 0x7ab1e), .tasks = tasks, .budget = 40};
    if (seed) put_some(&g);
    else put_deep(&g);
    for (uint32_t k = 0; k < g.count; ++k)
      if (tasks[k].flag) tasks[k].offset = 4 * k;
    planned_list p;
    (void)plan_tasks(&p, tasks, g.count, slots, GK_COUNT(slots));
    check_tables(gates_of_planned(&p, seed % 32));
    free_planned(&p);
  }
}

TEST(test_sizes) {
  const uint32_t most = UINT32_MAX;
  const gk_gates gates = {.point_count = most, .exit_count = most, .reenable_count = most, .close_count = most,
                          .block_count = most, .target_count = most, .handle_count = most, .guard_count = most};
  const gki_cuda_layout l = gki_cuda_tables_lay_out(&gates);
  assert_true(l.bytes > (size_t)most * (64 + 12 + 4 + 12 + 40 + 8 + 8 + 8)); /* nothing wrapped */
  gki_cuda_shared s;
  const gk_plan many = {.slot_count = most, .loop_count = most / 10, .checkpoint_count = most / 100};
  assert_int_equal(gki_cuda_shared_lay_out(&many, &s), GK_OK);
  assert_true(s.status_bytes > most / 10 * 9);
  const gk_plan too_many = {.loop_count = most};
  assert_int_equal(gki_cuda_shared_lay_out(&too_many, &s), GK_ERROR_MEMORY);
  assert_non_null(strstr(gk_error(), "status of a launch"));
}

int main(void) { return run_all_tests(); }
