/* Arbitrary bytes as a task list, through check, plan, gates, dumps, and launches on the OpenMP backend. Later stages
 * take each list that check finds right; a list that check refuses is refused everywhere, with the same answer. */
#include "gk_gates.h"
#include "host.h"
#include "plan/plan.h"
#include "base/text.h"

static gk_device *devices[2]; /* with one thread and with two */

/* ---- check ------------------------------------------------------------------------------------------------------- */

typedef struct problems { size_t count, last, task_count; } problems;

static void hear(void *user, const gk_problem *problem) {
  problems *all = user;
  REQUIRE(*problem->code && *problem->message);
  REQUIRE(problem->task == SIZE_MAX || problem->task < all->task_count);
  if (problem->is_warning) return;
  if (all->count && all->last != SIZE_MAX) REQUIRE(problem->task >= all->last); /* in the order of the tasks */
  all->last = problem->task;
  ++all->count;
}

static gk_result check(const gk_list *list, const char *backend) {
  problems all = {.task_count = list->task_count};
  gk_result result = gk_check(list, backend, hear, &all);
  REQUIRE(result == (all.count ? GK_ERROR_INVALID : GK_OK));
  REQUIRE(gk_check(list, backend, NULL, NULL) == result);
  return result;
}

/* ---- dumps ------------------------------------------------------------------------------------------------------- */

static const char *over_json(const char *s);

static const char *over_json_string(const char *s) {
  REQUIRE(*s == '"');
  for (++s; *s != '"'; ++s) {
    REQUIRE((unsigned char)*s >= 0x20);
    if (*s != '\\') continue;
    ++s;
    REQUIRE(*s && strchr("\"\\/bfnrtu", *s));
    for (int k = 0; *s == 'u' && k < 4; ++k) REQUIRE(strchr("0123456789abcdefABCDEF", s[k + 1]) && s[k + 1]);
  }
  return s + 1;
}

static const char *over_space(const char *s) { return s + strspn(s, " \n"); }

/* Members of an object or an array, up to behind the closing bracket. */
static const char *over_json_members(const char *s, char close) {
  s = over_space(s + 1);
  while (*s != close) {
    if (close == '}') {
      s = over_space(over_json_string(s));
      REQUIRE(*s++ == ':');
    }
    s = over_space(over_json(s));
    if (*s == ',') {
      s = over_space(s + 1);
      REQUIRE(*s != close);
    } else REQUIRE(*s == close);
  }
  return s + 1;
}

static const char *over_json(const char *s) {
  static const char *const words[] = {"true", "false", "null"};
  s = over_space(s);
  if (*s == '{') return over_json_members(s, '}');
  if (*s == '[') return over_json_members(s, ']');
  if (*s == '"') return over_json_string(s);
  for (size_t k = 0; k < GK_COUNT(words); ++k)
    if (strncmp(s, words[k], strlen(words[k])) == 0) return s + strlen(words[k]);
  char *end;
  strtod(s, &end);
  REQUIRE(end > s);
  return end;
}

/* Every quote closed, every bracket in its place. */
static void check_dot(const char *s) {
  int depth = 0;
  for (; *s; ++s) {
    if (*s == '"')
      for (++s; *s != '"'; ++s) {
        REQUIRE(*s);
        if (*s == '\\') REQUIRE(*++s);
      }
    depth += (*s == '{') - (*s == '}');
    REQUIRE(depth >= 0);
  }
  REQUIRE(depth == 0);
}

static const char *const formats[] = {"text", "dot", "json"};

static void dump(const gk_list *list, const gk_graph *graph, const char *format) {
  char *text = gk_dump(list, graph, format);
  REQUIRE(text && *text);
  if (*format == 'j') REQUIRE(!*over_space(over_json(text)));
  if (*format == 'd') check_dot(text);
  gk_free_text(text);
}

/* ---- plan and gates ---------------------------------------------------------------------------------------------- */

static void check_gates(const gk_gates *g) {
  for (uint32_t k = 0; k < g->node_count; ++k) {
    const gk_gate_node *n = &g->nodes[k];
    REQUIRE(n->end > k && n->end <= g->node_count);
    REQUIRE(n->node == GK_NONE || n->node < g->plan->node_count);
    REQUIRE(n->handle == GK_NONE || n->handle < g->handle_count);
    REQUIRE(n->point == GK_NONE || n->point < g->point_count);
    REQUIRE(n->guard == GK_NONE || n->guard < g->guard_count);
  }
  for (uint32_t k = 0; k < g->point_count; ++k) {
    const gk_gate_point *p = &g->points[k];
    REQUIRE(p->exits <= g->exit_count && p->exit_count <= g->exit_count - p->exits);
    REQUIRE(!p->reenable_count || (p->reenable < g->reenable_count &&
                                   p->reenable_count <= g->reenable_count - p->reenable));
  }
  for (uint32_t k = 0; k < g->exit_count; ++k)
    REQUIRE(g->exits[k].next == GK_NONE || g->exits[k].next < g->point_count);
}

static void check_plan(const gk_list *list, uint32_t bits) {
  gki_blocks blocks;
  gki_planned planned = {0};
  REQUIRE(gki_blocks_read(&blocks, list) == GK_OK);
  REQUIRE(gki_plan_make(&planned, &blocks, NULL, bits) == GK_OK);
  gki_blocks_free(&blocks);
  const gk_plan *plan = &planned.plan;
  for (uint32_t k = 0; k < plan->node_count; ++k)
    REQUIRE(plan->nodes[k].end > k && plan->nodes[k].end <= plan->node_count && plan->nodes[k].name);
  for (uint32_t with = 0; with < 32; ++with) {
    const gk_gates *gates = NULL;
    REQUIRE(gk_gates_make(plan, with, &gates) == GK_OK);
    check_gates(gates);
    gk_gates_free(gates);
  }
  gki_plan_free(&planned);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

/* Memory for all of a list's slots as the graph will ask for it: nothing, a little, or more than there is. */
static bool can_be_had(const gk_list *list, bool *plenty) {
  gki_blocks blocks;
  bool can = true;
  *plenty = true;
  REQUIRE(gki_blocks_read(&blocks, list) == GK_OK);
  for (uint32_t k = 0; k < blocks.slot_count; ++k) {
    const gk_slot_desc *slot = &blocks.slots[k];
    can = can && (!slot->count || is_affordable(slot->count, unit_of(slot)));
    can = can && (slot->type != GK_BYTES || slot->element_bytes < MAX_OWNED);
    *plenty = *plenty && slot->count <= MAX_OWNED / unit_of(slot);
  }
  gki_blocks_free(&blocks);
  return can;
}

static void make_graph(const world *w, const gk_list *list, gk_result wanted) {
  gk_device *device = devices[!!(w->bits & TWO_THREADS)];
  gk_graph *graph = (gk_graph *)(uintptr_t)&devices;
  bool plenty = true;
  if (wanted == GK_OK && !can_be_had(list, &plenty)) return;
  const uint32_t bits = (w->graph_bits & (GK_HOST_GATED | GK_ISOLATE | GK_CANCELLABLE)) |
                        (has_loops(w) ? GK_CANCELLABLE : 0u);
  gk_result result = gk_graph_create(device, list, bits, &graph);
  REQUIRE(result == (plenty ? wanted : GK_ERROR_MEMORY));
  REQUIRE((result == GK_OK) == (graph != NULL));
  if (!graph) return;
  dump(NULL, graph, formats[w->graph_bits % GK_COUNT(formats)]);
  host_run(graph, w);
  gk_graph_destroy(graph);
}

/* The same with an allocation that fails: said, and nothing kept. */
static void run_out(const world *w, const gk_list *list, gk_result wanted) {
  gk_graph *graph = NULL;
  bool plenty = true;
  memory_fails_at(1 + w->fail_at % 8);
  gk_result result = gk_check(list, NULL, NULL, NULL);
  REQUIRE(memory_failed() ? result == GK_ERROR_MEMORY || result == GK_ERROR_INVALID || result == GK_OK
                          : result == GK_OK || result == GK_ERROR_INVALID);
  memory_fails_at(1 + w->fail_at % 16);
  char *text = gk_dump(list, NULL, formats[w->graph_bits % GK_COUNT(formats)]);
  REQUIRE(text || *gk_error());
  gk_free_text(text);
  memory_fails_at(0);
  if (wanted != GK_OK || !can_be_had(list, &plenty)) return;
  memory_fails_at(1 + w->fail_at % 40);
  result = gk_graph_create(devices[0], list, GK_CANCELLABLE, &graph);
  REQUIRE(result == GK_OK || (result == GK_ERROR_MEMORY && !graph && *gk_error()));
  REQUIRE(result == GK_OK || memory_failed() || !plenty);
  if (graph) host_run(graph, w);
  memory_fails_at(0);
  gk_graph_destroy(graph);
}

/* ---- what libFuzzer calls ---------------------------------------------------------------------------------------- */

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  count_memory();
  gk_set_log(GK_LOG_NONE, NULL, NULL);
  for (int k = 0; k < 2; ++k) {
    gk_device_desc desc = {.backend = "openmp", .threads = k + 1};
    REQUIRE(gk_device_open(&desc, &devices[k]) == GK_OK);
    void *many[64]; /* so that the table of blocks has grown before memory is counted */
    for (size_t b = 0; b < GK_COUNT(many); ++b) REQUIRE(many[b] = gk_alloc(devices[k], 1, GK_DEVICE_MEMORY));
    for (size_t b = 0; b < GK_COUNT(many); ++b) gk_free(devices[k], many[b]);
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static world w;
  enum { MANY = 4096, TOO_MANY = 1 << 24 };
  bytes in = {data, data + size};
  world_read(&w, &in);
  const gk_list *list = &w.lists[0];
  const uint64_t lines = composed_lines(list, 0);
  if (lines > MANY && lines <= TOO_MANY) return 0; /* right, perhaps, but it takes long */
  const int live = atomic_load(&fuzz_memory.live);
  gk_result any = check(list, NULL), wanted = check(list, "openmp");
  REQUIRE(any == GK_OK || wanted != GK_OK);
  REQUIRE(check(list, w.bits & RESUMABLE ? "" : "none such") == GK_ERROR_INVALID);
  if (any == GK_OK) {
    for (size_t k = 0; k < GK_COUNT(formats); ++k) dump(list, NULL, formats[k]);
    check_plan(list, w.graph_bits & 7u);
  } else REQUIRE(!gk_dump(list, NULL, "text"));
  make_graph(&w, list, wanted);
  if (w.bits & RUN_OUT) run_out(&w, list, wanted);
  REQUIRE(atomic_load(&fuzz_memory.live) == live);
  return 0;
}
