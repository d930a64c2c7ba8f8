/* Single loops and branches in graphs that are made by hand run as a list would, also inside each other, on every
 * driver with conditional nodes. A driver's failure leaves nothing behind. */
#include "unit/support/chance.h"
#include "hand.h"

#ifndef DRIVER
#define DRIVER "13.0"
#endif

static CUgraph whole;
static int *trace;

static void begin_graph(gk_device *device) {
  static const int zeros[4096];
  trace = ints_on(device, zeros, GK_COUNT(zeros));
  whole = new_cu_graph();
}

/* Takes the log, and begins a new one. */
static void assert_traced(gk_device *device, const char *letters) {
  static int there[4096];
  char text[4096];
  assert_ok(gk_download(device, there, trace, sizeof there));
  assert_true(there[0] >= 0 && there[0] < (int)GK_COUNT(text));
  for (int k = 0; k < there[0]; ++k) text[k] = (char)there[k + 1];
  text[there[0]] = 0;
  assert_string_equal(text, letters);
  set_int(device, trace, 0);
}

/* The whole graph logs this. */
static CUgraphExec check_graph(gk_device *device, const char *letters) {
  CUgraphExec exec = new_exec(whole);
  hand_launch(exec);
  assert_traced(device, letters);
  return exec;
}

static CUgraphNode log_letter(CUgraph into, CUgraphNode after, char letter) {
  return hand_add(into, after, "hand_log", trace, (uint64_t)letter);
}

static gk_cuda_block block_after(gk_device *device, gk_op op, const int *flag, uint32_t bound, CUgraph into,
                                 CUgraphNode after) {
  gk_cuda_block block;
  assert_ok(gk_cuda_begin(device, op, flag, bound, into, after ? &after : NULL, after ? 1 : 0, &block));
  return block;
}

/* The end of a body: `flag` counts down. */
static CUgraphNode count_down(CUgraph body, CUgraphNode after, const int *flag) {
  return hand_add(body, after, "hand_add", flag, (uint64_t)-1);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Blocks are written as text. A letter is logged. D3{x}: a DO_WHILE whose flag is 3 and counts down; W3<2{x}: a WHILE
 * with a bound; I1{x}: an IF; E0{x|y}: an IF with an ELSE; in these, ! sets the flag to 0. ^ before a block: kernels of
 * the program's own decide. */
typedef struct block { bool own; gk_op op; int value; uint32_t bound; const char *body, *other, *end; } block;

static bool is_loop(gk_op op) { return op == GK_OP_DO_WHILE || op == GK_OP_WHILE; }
static bool goes_on(const char *text) { return *text && *text != '}' && *text != '|'; }

static block read_block(const char *text) {
  char *at;
  block b = {.own = *text == '^'};
  text += b.own;
  b.op = *text == 'D' ? GK_OP_DO_WHILE : *text == 'W' ? GK_OP_WHILE : *text == 'I' ? GK_OP_IF : GK_OP_ELSE;
  b.value = (int)strtol(text + 1, &at, 10);
  if (*at == '<') b.bound = (uint32_t)strtol(at + 1, &at, 10);
  b.body = b.end = at + 1;
  for (int depth = 1; depth > 0; ++b.end) {
    if (*b.end == '|' && depth == 1) b.other = b.end + 1;
    depth += (*b.end == '{') - (*b.end == '}');
  }
  return b;
}

static int *flags, used_flags; /* one for each block, and one for an ELSE that kernels of the program's own decide */

/* The program's own kernel decides before the block is entered. */
static CUgraphNode decide_first(CUgraph into, CUgraphNode after, const gk_cuda_block *made, int k, const int *flag) {
  const CUgraphNode decided = hand_decide(into, after, made->handle[k], flag);
  RIGHT(cu.cuGraphAddDependencies(into, &decided, &made->first, NULL, 1));
  return decided;
}

static CUgraphNode build(gk_device *device, const char *text, CUgraph into, CUgraphNode after, const int *around) {
  while (goes_on(text)) {
    if (*text == '!' || (*text >= 'a' && *text <= 'z')) {
      after = *text == '!' ? hand_add(into, after, "hand_put", around, 0) : log_letter(into, after, *text);
      ++text;
      continue;
    }
    const block b = read_block(text);
    const int *flag = flags + used_flags++, *otherwise = flags + used_flags;
    after = hand_add(into, after, "hand_put", flag, (uint64_t)b.value);
    if (b.own && b.op == GK_OP_ELSE) after = hand_add(into, after, "hand_put", flags + used_flags++, !b.value);
    gk_cuda_block made = block_after(device, b.op, b.own ? NULL : flag, b.bound, into, after);
    if (b.own && b.op != GK_OP_DO_WHILE) after = decide_first(into, after, &made, 0, flag);
    if (b.own && b.op == GK_OP_ELSE) decide_first(into, after, &made, 1, otherwise);
    CUgraphNode last = build(device, b.body, made.body[0], NULL, flag);
    if (is_loop(b.op)) last = count_down(made.body[0], last, flag);
    if (is_loop(b.op) && b.own) hand_decide(made.body[0], last, made.handle[0], flag);
    if (b.op == GK_OP_ELSE) build(device, b.other, made.body[1], NULL, flag);
    else assert_null(made.body[1]);
    assert_ok(gk_cuda_end(device, &made));
    after = made.node;
    text = b.end;
  }
  return after;
}

/* The program logs this, twice: the first launch leaves nothing behind. */
static void check_program(gk_device *device, const char *text, const char *letters) {
  begin_graph(device);
  flags = ints_on(device, NULL, 128);
  used_flags = 0;
  build(device, text, whole, NULL, NULL);
  const CUgraphExec exec = check_graph(device, letters);
  hand_launch(exec);
  assert_traced(device, letters);
  discard(exec);
  discard(whole);
  gk_free(device, flags);
  gk_free(device, trace);
}

TEST_ON_HAND(test_each_by_itself) {
  static const char *const programs[][2] = {
      {"aD3{x}z", "axxxz"}, {"aD1{x}z", "axz"}, {"aD9<2{x}z", "axxz"}, {"aD9<1{x}z", "axz"}, {"aW3{x}z", "axxxz"},
      {"aW0{x}z", "az"}, {"aW9<4{x}z", "axxxxz"}, {"aW4<4{x}z", "axxxxz"}, {"aW2<4{x}z", "axxz"},
      {"I0{i!}z", "z"}, {"I1{i!}z", "iz"}, {"I-5{i!}z", "iz"}, {"E0{i!|e}z", "ez"}, {"E2{i!|e}z", "iz"}};
  for (size_t k = 0; k < GK_COUNT(programs); ++k) check_program(device, programs[k][0], programs[k][1]);
}

/* The handle of a DO_WHILE is 0 after it has ended, and the loop is entered again all the same. */
TEST_ON_HAND(test_own_kernels) {
  check_program(device, "^E0{i|e}^W0{w}", "e");
  check_program(device, "^E3{i|e}^W3{w}", "iwww");
  check_program(device, "D3{^D2{x}y}", "xxyxxyxxy");
}

typedef struct program { uint64_t random; int left; char text[1024], letters[4096]; size_t length, logged; } program;

static void write_blocks(program *p, int depth) {
  for (uint32_t count = pick(&p->random, 4) + (depth == 0); count > 0 && p->left > 0; --count) {
    const uint32_t what = depth < 3 ? pick(&p->random, 5) : 0;
    --p->left;
    if (what == 0) {
      p->text[p->length++] = (char)('a' + p->left % 26);
      continue;
    }
    const uint32_t bound = what <= 2 && pick(&p->random, 2) ? 1 + pick(&p->random, 3) : 0;
    uint32_t value = pick(&p->random, 4);
    if (what == 1 && !value && !bound) value = 1;
    const bool own = !bound && pick(&p->random, 4) == 0;
    p->length += (size_t)snprintf(p->text + p->length, 32, "%s%c%u<%u{", own ? "^" : "", "DWIE"[what - 1], value,
                                  bound);
    write_blocks(p, depth + 1);
    if (what == 4) p->text[p->length++] = '|';
    if (what == 4) write_blocks(p, depth + 1);
    p->text[p->length++] = '}';
  }
}

static void carry_out(program *p, const char *text) {
  while (goes_on(text)) {
    if (*text >= 'a' && *text <= 'z') {
      assert_true(p->logged < sizeof p->letters - 1);
      p->letters[p->logged++] = *text++;
      continue;
    }
    const block b = read_block(text);
    int flag = b.value;
    text = b.end;
    if (!is_loop(b.op)) carry_out(p, flag ? b.body : b.other ? b.other : "");
    for (uint32_t passes = 0; is_loop(b.op) && (flag || (b.op == GK_OP_DO_WHILE && !passes)); --flag) {
      carry_out(p, b.body);
      if (++passes == b.bound) break;
    }
  }
}

TEST_ON_HAND(test_random) {
  size_t longest = 0;
  for (uint64_t seed = first_seed(), end = seed + scaled(60); seed < end; ++seed) {
    static program p;
    p = (program){.random = seed, .left = 40};
    write_blocks(&p, 0);
    carry_out(&p, p.text);
    if (p.logged > longest) longest = p.logged;
    sim->set_seed(seed);
    check_program(device, p.text, p.letters);
  }
  if (longest < 40) fail_msg("at most %zu letters", longest);
}

/* ---- the body's end ---------------------------------------------------------------------------------------------- */

TEST_ON_HAND(test_empty_bodies) {
  begin_graph(device);
  int *no = int_on(device, 0), *yes = int_on(device, 1);
  gk_cuda_block one = block_after(device, GK_OP_IF, yes, 0, whole, NULL);
  gk_cuda_block two = block_after(device, GK_OP_ELSE, no, 0, whole, one.node);
  gk_cuda_block three = block_after(device, GK_OP_DO_WHILE, yes, 3, whole, two.node);
  assert_ok(gk_cuda_end(device, &three));
  assert_ok(gk_cuda_end(device, &two));
  assert_ok(gk_cuda_end(device, &one));
  log_letter(whole, three.node, 'z');
  check_graph(device, "z");
}

/* The decision comes behind everything that a body holds, however it ends. */
TEST_ON_HAND(test_decision_is_last) {
  begin_graph(device);
  int *left = int_on(device, 3), *sum = int_on(device, 0);
  gk_cuda_block loop = block_after(device, GK_OP_DO_WHILE, left, 0, whole, NULL);
  CUgraphNode fork = hand_add(loop.body[0], NULL, "hand_add", sum, 1), ends[5];
  for (int k = 0; k < 5; ++k) ends[k] = hand_add(loop.body[0], fork, "hand_add", sum, 10);
  hand_add_after(loop.body[0], ends, 2, "hand_add", (uint64_t)(uintptr_t)left, (uint64_t)-1);
  assert_ok(gk_cuda_end(device, &loop));
  CUgraphNode nodes[16], from[32], to[32];
  CUgraphEdgeData data[32];
  size_t count = GK_COUNT(nodes), edges = GK_COUNT(from), behind = 0;
  RIGHT(cu.cuGraphGetNodes(loop.body[0], nodes, &count));
  RIGHT(cu.cuGraphGetEdges(loop.body[0], from, to, data, &edges));
  for (size_t k = 0; k < edges; ++k) behind += to[k] == nodes[count - 1];
  assert_int_equal(count, 8);
  assert_int_equal(behind, 4); /* three ends, and the one behind two of them */
  hand_launch(new_exec(whole));
  assert_int_equal(int_at(device, sum), 3 * 51);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

TEST_ON_HAND(test_refused) {
  gk_device *openmp = new_device("openmp", 0), *other = new_device("cuda", 0);
  begin_graph(device);
  int *flag = int_on(device, 0);
  gk_cuda_block b;
  INVALID("gk_cuda_begin: there is no device", gk_cuda_begin(NULL, GK_OP_IF, flag, 0, whole, NULL, 0, &b));
  INVALID("backend openmp", gk_cuda_begin(openmp, GK_OP_IF, flag, 0, whole, NULL, 0, &b));
  INVALID("nowhere to put", gk_cuda_begin(device, GK_OP_IF, flag, 0, whole, NULL, 0, NULL));
  INVALID("there is no graph", gk_cuda_begin(device, GK_OP_IF, flag, 0, NULL, NULL, 0, &b));
  INVALID("`after` is NULL", gk_cuda_begin(device, GK_OP_IF, flag, 0, whole, NULL, 2, &b));
  INVALID("after[0] is no node", gk_cuda_begin(device, GK_OP_IF, flag, 0, whole, (CUgraphNode[1]){NULL}, 1, &b));
  INVALID("no single loop or branch", gk_cuda_begin(device, GK_OP_SWITCH, flag, 0, whole, NULL, 0, &b));
  INVALID("multiple of 4", gk_cuda_begin(device, GK_OP_IF, (void *)((char *)flag + 2), 0, whole, NULL, 0, &b));
  INVALID("a branch has no bound", gk_cuda_begin(device, GK_OP_ELSE, flag, 1, whole, NULL, 0, &b));
  INVALID("without a flag", gk_cuda_begin(device, GK_OP_WHILE, NULL, 1, whole, NULL, 0, &b));
  INVALID("wasn't begun", gk_cuda_end(device, &b));
  INVALID("there is no block", gk_cuda_end(device, NULL));
  b = block_after(device, GK_OP_WHILE, flag, 0, whole, NULL);
  INVALID("another device", gk_cuda_end(other, &b));
  assert_ok(gk_cuda_end(device, &b));
  INVALID("was completed before", gk_cuda_end(device, &b));
  b = block_after(device, GK_OP_WHILE, NULL, 0, whole, NULL);
  INVALID("no node that could end it", gk_cuda_end(device, &b));
}

/* The driver knows what graphs and nodes there are. */
TEST_ON_HAND(test_driver_minds) {
  begin_graph(device);
  CUgraphNode there = hand_add(new_cu_graph(), NULL, "hand_put", trace, 0);
  gk_cuda_block b;
  INVALID("different ones of that graph", gk_cuda_begin(device, GK_OP_IF, trace, 0, whole, &there, 1, &b));
  assert_memory_equal(&b, &(gk_cuda_block){0}, sizeof b);
}

TEST_ON_HAND(test_without_conditional_nodes) {
  gk_cuda_block b;
  setenv("GK_CUDA_PROBE", "0", 1);
  gk_device *other = new_device("cuda", 0);
  unsetenv("GK_CUDA_PROBE");
  assert_fails(GK_ERROR_UNSUPPORTED, "GK_CUDA_PROBE",
               gk_cuda_begin(other, GK_OP_IF, NULL, 0, new_cu_graph(), NULL, 0, &b));
}

/* What a device keeps for loops goes with it, for loops on any stream. */
TEST_ON_HAND(test_on_a_shared_stream) {
  gk_cuda_sharing sharing = GK_CUDA_SHARE(hand_context, hand_stream);
  gk_device *other = NULL;
  assert_ok(gk_device_open(&(gk_device_desc){.backend = "cuda", .next = &sharing.base}, &other));
  const size_t before = sim->alive(SIMGPU_MEMORY);
  check_program(other, "aD9<2{x}z", "axxz");
  assert_true(sim->alive(SIMGPU_MEMORY) > before);
  gk_device_close(other);
  assert_int_equal(sim->alive(SIMGPU_MEMORY), before);
}

TEST_ON_HAND(test_closed_in_the_middle) {
  begin_graph(device);
  (void)block_after(device, GK_OP_DO_WHILE, trace, 5, whole, NULL);
  gk_device_close(device);
  *state = NULL;
}

static gk_result try_all(gk_device *device, const int *flag) {
  gk_cuda_block loop, branch;
  gk_result result = gk_cuda_begin(device, GK_OP_DO_WHILE, flag, 2, whole, NULL, 0, &loop);
  if (result == GK_OK) result = gk_cuda_begin(device, GK_OP_ELSE, flag, 0, loop.body[0], NULL, 0, &branch);
  if (result == GK_OK) result = gk_cuda_end(device, &branch);
  if (result == GK_OK) result = gk_cuda_end(device, &loop);
  return result;
}

TEST_ON_HAND(test_every_call_fails) {
  int *flag = int_on(device, 1);
  begin_graph(device);
  size_t alive = 0;
  FOR_EACH_CALL(k, failed) {
    const gk_result result = FAILING(k, CUDA_ERROR_UNKNOWN, failed, try_all(device, flag));
    if (result != GK_OK) assert_fails(GK_ERROR_DEVICE, "CUDA_ERROR_UNKNOWN", result);
    discard(whole);
    whole = new_cu_graph();
    if (alive && sim->alive(SIMGPU_MEMORY) != alive) alive = 0; /* counts of passes, once */
    else alive = sim->alive(SIMGPU_MEMORY);
    assert_int_equal(sim->alive(SIMGPU_GRAPHS), 1);
    assert_int_equal(sim->broken(), 0);
    assert_true(failed || (result == GK_OK && k > 20));
  }
}

/* A block that couldn't be completed can be completed later, when the driver works again. */
TEST_ON_HAND(test_completed_later) {
  FOR_EACH_CALL(k, failed) {
    begin_graph(device);
    int *left = int_on(device, 2), *flag = int_on(device, 0);
    gk_cuda_block blocks[2] = {block_after(device, GK_OP_DO_WHILE, left, 5, whole, NULL)};
    count_down(blocks[0].body[0], log_letter(blocks[0].body[0], NULL, 'x'), left);
    blocks[1] = block_after(device, GK_OP_ELSE, flag, 0, whole, blocks[0].node);
    fail_call(k, CUDA_ERROR_OUT_OF_MEMORY);
    gk_result results[2];
    for (int b = 0; b < 2; ++b) results[b] = gk_cuda_end(device, &blocks[b]);
    failed = failed_call();
    for (int b = 0; b < 2; ++b) {
      assert_true(results[b] == GK_OK || results[b] == GK_ERROR_MEMORY);
      if (results[b] != GK_OK) assert_ok(gk_cuda_end(device, &blocks[b]));
      INVALID("was completed before", gk_cuda_end(device, &blocks[b]));
    }
    log_letter(whole, blocks[1].node, 'z');
    check_graph(device, "xxz");
  }
}

TEST_ON_HAND(test_lost) {
  begin_graph(device);
  gk_cuda_block b = block_after(device, GK_OP_DO_WHILE, trace, 5, whole, NULL);
  (sim->fail)(1, CUDA_ERROR_LAUNCH_FAILED, SIMGPU_LOST);
  gk_cuda_block c;
  assert_fails(GK_ERROR_DEVICE, "", gk_cuda_begin(device, GK_OP_IF, trace, 0, whole, NULL, 0, &c));
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_cuda_end(device, &b));
  assert_fails(GK_ERROR_DEVICE, "is lost", gk_cuda_begin(device, GK_OP_IF, trace, 0, whole, NULL, 0, &c));
  sim->mark();
  driver_is_lost = true;
}

/* Each launch makes that many passes. */
static void check_passes(gk_device *device, const int *passes, int wanted) {
  const CUgraphExec exec = new_exec(whole);
  for (int k = 1; k <= 2; ++k) {
    hand_launch(exec);
    assert_int_equal(int_at(device, passes), k * wanted);
  }
}

/* Counts of passes are taken from blocks of 256: each loop has one of its own, in memory that is there. */
TEST_ON_HAND(test_many_bounded_loops) {
  enum { LOOPS = 2 * 256 + 1 };
  begin_graph(device);
  int *endless = int_on(device, 1), *passes = int_on(device, 0);
  CUgraphNode last = log_letter(whole, NULL, 'a');
  for (uint32_t k = 0; k < LOOPS; ++k) {
    gk_cuda_block loop = block_after(device, GK_OP_WHILE, endless, 1 + k % 3, whole, last);
    hand_add(loop.body[0], NULL, "hand_add", passes, 1);
    assert_ok(gk_cuda_end(device, &loop));
    last = loop.node;
  }
  check_passes(device, passes, 2 * LOOPS);
}

/* Loops in one another count separately, and begin at 0 when they are entered. */
TEST_ON_HAND(test_bounds_in_one_another) {
  begin_graph(device);
  int *endless = int_on(device, 1), *passes = int_on(device, 0);
  gk_cuda_block loops[4];
  for (uint32_t k = 0; k < GK_COUNT(loops); ++k)
    loops[k] = block_after(device, k % 2 ? GK_OP_DO_WHILE : GK_OP_WHILE, endless, k + 2,
                           k ? loops[k - 1].body[0] : whole, NULL);
  hand_add(loops[3].body[0], NULL, "hand_add", passes, 1);
  for (size_t k = GK_COUNT(loops); k-- > 0;) assert_ok(gk_cuda_end(device, &loops[k]));
  check_passes(device, passes, 2 * 3 * 4 * 5);
}

static void *build_many(void *at) {
  gk_device *device = at;
  gk_result result = GK_OK;
  for (int round = 0; round < 3 && result == GK_OK; ++round) {
    CUgraph mine;
    if (cu.cuGraphCreate(&mine, 0) != CUDA_SUCCESS) return at;
    for (int k = 0; k < 100 && result == GK_OK; ++k) {
      gk_cuda_block b;
      result = gk_cuda_begin(device, GK_OP_WHILE, trace, 7, mine, NULL, 0, &b);
      if (result == GK_OK) result = gk_cuda_end(device, &b);
    }
    if (cu.cuGraphDestroy(mine) != CUDA_SUCCESS) return at;
  }
  return result == GK_OK ? NULL : at;
}

TEST_ON_HAND(test_threads) {
  pthread_t threads[4];
  begin_graph(device);
  const size_t before = sim->alive(SIMGPU_MEMORY);
  for (size_t k = 0; k < GK_COUNT(threads); ++k)
    assert_int_equal(pthread_create(&threads[k], NULL, build_many, device), 0);
  for (size_t k = 0; k < GK_COUNT(threads); ++k) {
    void *wrong;
    pthread_join(threads[k], &wrong);
    assert_null(wrong);
  }
  assert_int_equal(sim->alive(SIMGPU_MEMORY) - before, 5); /* 1200 counts */
}

int main(UNUSED int count, char **words) {
  setenv("SIMGPU_VERSION", DRIVER, 1);
  return run_on_simgpu(words);
}
