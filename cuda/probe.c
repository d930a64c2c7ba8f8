#include "cuda/probe.h"
#include "base/clock.h"
#include "base/fork.h"
#include "cuda/probe_graphs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 2, SPINS_NS = 2000000, PAUSE_NS = 100000, CALL_BYTES = 300 };
/* A graph is stuck if in so much time so many plain kernels went past it, or after the longest time. */
enum { PATIENCE_MS = 3000, BEATS = 20, BEAT_MS = 100, LONGEST_MS = 60000, NS_PER_MS = 1000000 };

const gki_cuda_question_text gki_cuda_questions[GKI_CUDA_QUESTION_COUNT] = {
#define QUESTION(id, name, quirk, text) {name, text, quirk},
    GKI_CUDA_QUESTIONS(QUESTION)
#undef QUESTION
};

/* What all graphs of one probe use. */
typedef struct asking {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUstream stream, beside;
  CUgraph beat_graph;
  CUgraphExec beat;         /* one plain kernel */
  CUdeviceptr memory;       /* gki_probe_memory */
  gki_probe_memory *pinned; /* the first as it goes there, then one per launch as it was behind it */
  CUfunction set_list, set_beside;
  bool hangs, busy;         /* a graph, or a beat, didn't end: nothing may be freed any more */
  char failure[CALL_BYTES]; /* the first call that failed, if it was needed */
} asking;

static uint32_t us_of(uint64_t from, uint64_t to) { return (uint32_t)((to - from) / 1000); }

/* graph: whose call it is, or NULL. */
static bool check(asking *a, CUresult result, const char *call, const char *graph) {
  if (result == CUDA_SUCCESS) return true;
  char text[CALL_BYTES / 2];
  gki_cuda_describe_result(a->driver, result, text, sizeof text);
  if (!a->failure[0])
    snprintf(a->failure, sizeof a->failure, "%s%s%s: %s", call, graph ? ", for the graph of " : "", graph ? graph : "",
             text);
  return false;
}

/* ---- what is used ------------------------------------------------------------------------------------------------ */

static bool take_kernels(asking *a, CUmodule gates) {
  const gki_cuda_driver *d = a->driver;
  return check(a, d->cuModuleGetFunction(&a->set_list, gates, "gki_set_list"), "cuModuleGetFunction of gki_set_list",
               NULL) &&
         check(a, d->cuModuleGetFunction(&a->set_beside, gates, "gki_set_beside"),
               "cuModuleGetFunction of gki_set_beside", NULL);
}

static gki_probe_trial trial_of(const asking *a) {
  return (gki_probe_trial){.driver = a->driver, .context = a->context, .set_list = a->set_list,
                           .set_beside = a->set_beside, .memory = a->memory,
                           .settings = a->pinned ? a->pinned->settings : NULL};
}

static bool instantiate(const asking *a, gki_probe_trial *t, CUgraphExec *exec) {
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
  if (gki_probe_check(t, a->driver->cuGraphInstantiateWithParams(exec, t->graph, &parameters),
                      "cuGraphInstantiateWithParams"))
    return true;
  *exec = NULL;
  return false;
}

static void build(gki_probe_trial *t, void (*by)(gki_probe_trial *trial)) {
  if (!gki_probe_check(t, t->driver->cuGraphCreate(&t->graph, 0), "cuGraphCreate")) t->graph = NULL;
  else by(t);
}

static const char one_kernel[] = "one kernel";

static bool take_beat(asking *a) {
  gki_probe_trial t = trial_of(a);
  build(&t, gki_probe_build_beat);
  a->beat_graph = t.graph;
  if (t.result == CUDA_SUCCESS) (void)instantiate(a, &t, &a->beat);
  return check(a, t.result, t.call, one_kernel);
}

static bool take_stream(asking *a, CUstream *stream) {
  const CUresult result = a->driver->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) *stream = NULL;
  return check(a, result, "cuStreamCreate", NULL);
}

static bool take(asking *a) {
  const gki_cuda_driver *d = a->driver;
  CUdeviceptr memory;
  void *pinned;
  if (!take_stream(a, &a->stream) || !take_stream(a, &a->beside)) return false;
  if (!check(a, d->cuMemAlloc(&memory, sizeof(gki_probe_memory)), "cuMemAlloc", NULL)) return false;
  a->memory = memory;
  if (!check(a, d->cuMemHostAlloc(&pinned, (1 + LAUNCHES) * sizeof(gki_probe_memory), GKI_CU_MEMHOSTALLOC_PORTABLE),
             "cuMemHostAlloc", NULL))
    return false;
  a->pinned = pinned;
  return take_beat(a);
}

static void give_back(asking *a) {
  const gki_cuda_driver *d = a->driver;
  if (a->hangs || a->busy) return;
  if (a->beat) (void)d->cuGraphExecDestroy(a->beat);
  if (a->beat_graph) (void)d->cuGraphDestroy(a->beat_graph);
  if (a->pinned) (void)d->cuMemFreeHost(a->pinned);
  if (a->memory) (void)d->cuMemFree(a->memory);
  if (a->beside) (void)d->cuStreamDestroy(a->beside);
  if (a->stream) (void)d->cuStreamDestroy(a->stream);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

typedef enum outcome { ENDED, FAILED, IS_STUCK, TOOK_TOO_LONG } outcome;

/* Kernels on the stream beside, to tell a graph that is stuck from a device that has other work. */
typedef struct beats {
  uint64_t last; /* the time then */
  int done;
  bool is_under_way;
} beats;

/* What fails here fails again where it matters. */
static void beat(const asking *a, beats *b, uint64_t now) {
  const gki_cuda_driver *d = a->driver;
  if (b->is_under_way && d->cuStreamQuery(a->beside) == CUDA_SUCCESS) {
    b->is_under_way = false;
    ++b->done;
  }
  if (b->is_under_way || now - b->last < (uint64_t)BEAT_MS * NS_PER_MS) return;
  b->last = now;
  b->is_under_way = d->cuGraphLaunch(a->beat, a->beside) == CUDA_SUCCESS;
}

/* Until the stream is done. What can't be asked may still be at work, so it is asked twice; nothing here waits for the
 * device. */
static outcome wait_for(asking *a, const char *graph, bool with_beats) {
  const uint64_t begin = gki_now_ns();
  beats b = {.last = begin};
  for (int failures = 0;;) {
    const CUresult result = a->driver->cuStreamQuery(a->stream);
    if (result == CUDA_SUCCESS) return failures ? FAILED : ENDED;
    if (result != CUDA_ERROR_NOT_READY) {
      (void)check(a, result, "cuStreamQuery", graph);
      if (++failures == 2) return FAILED;
      continue;
    }
    const uint64_t now = gki_now_ns(), waited = now - begin;
    if (waited >= (uint64_t)LONGEST_MS * NS_PER_MS) return TOOK_TOO_LONG;
    if (waited >= (uint64_t)PATIENCE_MS * NS_PER_MS && b.done >= BEATS) return IS_STUCK;
    if (with_beats) beat(a, &b, now);
    if (waited > SPINS_NS) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
}

/* Whether plain kernels run at all: no graph's time counts before. */
static bool is_free(asking *a) {
  if (!check(a, a->driver->cuGraphLaunch(a->beat, a->stream), "cuGraphLaunch", one_kernel)) return false;
  const outcome is = wait_for(a, one_kernel, false);
  a->busy = is == TOOK_TOO_LONG;
  if (a->busy)
    snprintf(a->failure, sizeof a->failure, "a plain kernel didn't run within %d s, as the device has other work",
             LONGEST_MS / 1000);
  return is == ENDED;
}

static bool wait_for_graph(asking *a, const char *graph) {
  const outcome is = wait_for(a, graph, true);
  a->hangs = is == IS_STUCK || is == TOOK_TOO_LONG;
  if (a->hangs)
    snprintf(a->failure, sizeof a->failure, "the graph of %s didn't end within %d s%s", graph,
             (is == IS_STUCK ? PATIENCE_MS : LONGEST_MS) / 1000, is == IS_STUCK ? ", and kernels beside it did" : "");
  return is == ENDED;
}

/* ---- one graph --------------------------------------------------------------------------------------------------- */

static bool launch(asking *a, gki_probe_trial *t, CUgraphExec exec, int number) {
  const gki_cuda_driver *d = a->driver;
  const CUdeviceptr counters = a->memory + offsetof(gki_probe_memory, counters);
  return gki_probe_check(t, d->cuMemsetD8Async(counters, 0, sizeof a->pinned->counters, a->stream),
                         "cuMemsetD8Async") &&
         gki_probe_check(t, d->cuGraphLaunch(exec, a->stream), "cuGraphLaunch") &&
         gki_probe_check(t, d->cuMemcpyDtoHAsync(a->pinned[1 + number].counters, counters, sizeof a->pinned->counters,
                                                 a->stream),
                         "cuMemcpyDtoHAsync");
}

/* Both are on their way before there is a result: what comes between is for the second. */
static bool launch_both(asking *a, gki_probe_trial *t, CUgraphExec exec, const char *graph) {
  const CUdeviceptr settings = a->memory + offsetof(gki_probe_memory, settings);
  if (!gki_probe_check(t, a->driver->cuMemcpyHtoDAsync(settings, a->pinned->settings, sizeof a->pinned->settings,
                                                       a->stream),
                       "cuMemcpyHtoDAsync"))
    return false;
  if (launch(a, t, exec, 0)) {
    gki_probe_update(t, exec);
    if (t->result == CUDA_SUCCESS) launch(a, t, exec, 1);
  }
  /* Also after a failure, as some of it may be under way. */
  return wait_for_graph(a, graph) && t->result == CUDA_SUCCESS;
}

static void compare(const asking *a, const gki_probe_trial *t, const gki_cuda_probe_timing *ran,
                    gki_cuda_caps *caps) {
  const uint32_t *first = a->pinned[1].counters, *second = a->pinned[2].counters;
  for (uint32_t k = 0; k < t->expected_count; ++k) {
    const gki_probe_expected *e = &t->expected[k];
    const bool is_so = first[e->counter] == e->first && second[e->counter] == e->second;
    uint8_t *answer = &caps->answers[e->question];
    if (*answer == GKI_CUDA_DECLINED) continue;
    if (!is_so || *answer == GKI_CUDA_NOT_ASKED) *answer = is_so ? GKI_CUDA_YES : GKI_CUDA_NO;
    caps->asked_in[e->question] = (uint8_t)caps->graph_count;
  }
  for (uint32_t k = 0; k < t->overlap_count; ++k) {
    const uint32_t counter = t->overlaps[k].counter, seen = first[counter] + second[counter];
    uint8_t *answer = &caps->answers[t->overlaps[k].question];
    if (seen == 0 && *answer == GKI_CUDA_YES) *answer = GKI_CUDA_NOT_SHOWN;
    caps->overlaps += seen;
  }
  caps->graphs[caps->graph_count++] = *ran;
}

/* False: a call failed. */
static bool try_graph(asking *a, const gki_probe_graph *graph, gki_cuda_caps *caps) {
  const gki_cuda_driver *d = a->driver;
  gki_probe_trial t = trial_of(a);
  CUgraphExec exec = NULL;
  const uint64_t begin = gki_now_ns();
  build(&t, graph->build);
  const uint64_t built = gki_now_ns();
  if (t.result == CUDA_SUCCESS) (void)instantiate(a, &t, &exec);
  const uint64_t instantiated = gki_now_ns();
  const bool ran = t.result == CUDA_SUCCESS && launch_both(a, &t, exec, graph->name);
  const gki_cuda_probe_timing it = {graph->name, t.node_count, us_of(begin, built), us_of(built, instantiated),
                                   us_of(instantiated, gki_now_ns())};
  if (ran) compare(a, &t, &it, caps);
  if (a->hangs) return false;
  if (exec) (void)d->cuGraphExecDestroy(exec);
  if (t.graph) (void)d->cuGraphDestroy(t.graph);
  return check(a, t.result, t.call, graph->name) && ran;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static uint32_t quirks_of(const gki_cuda_caps *caps) {
  uint32_t quirks = 0;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (caps->answers[k] != GKI_CUDA_YES) quirks |= gki_cuda_questions[k].quirk;
  return caps->conditional ? quirks : quirks | GKI_CUDA_HOST_GATED;
}

/* Of what was asked. */
static bool is_no(const gki_cuda_caps *caps, uint32_t quirks) {
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (gki_cuda_questions[k].quirk & quirks && caps->answers[k] != GKI_CUDA_NOT_ASKED &&
        caps->answers[k] != GKI_CUDA_YES)
      return true;
  return false;
}

static void say_why(gki_cuda_caps *caps, const asking *a) {
  if (a->failure[0]) {
    snprintf(caps->why, sizeof caps->why, "%s couldn't be tried: %s",
             caps->conditional ? "some of what conditional nodes do" : "conditional nodes", a->failure);
    return;
  }
  char text[sizeof caps->why];
  gki_cuda_describe_quirks(caps, GKI_CUDA_HOST_GATED, text, sizeof text);
  memcpy(caps->why, text, sizeof text);
}

static void ask(asking *a, gki_cuda_caps *caps) {
  caps->conditional = !is_no(caps, GKI_CUDA_HOST_GATED);
  caps->is_final = true;
  for (size_t k = 0; k < GKI_CUDA_PROBE_GRAPHS && caps->conditional; ++k) {
    const gki_probe_graph *graph = &gki_probe_graphs[k];
    if (caps->driver_version < graph->since || is_no(caps, graph->unless)) continue;
    if (!try_graph(a, graph, caps)) {
      caps->is_final = a->hangs;
      caps->conditional = !graph->is_vital && !a->hangs;
    } else if (is_no(caps, GKI_CUDA_HOST_GATED)) {
      caps->conditional = false;
    }
  }
}

/* After a failure: whether it was one of the context, which then answers every call with it. */
static bool is_broken(const asking *a) {
  if (!a->failure[0] || a->hangs || a->busy) return false;
  for (int tries = 0; tries < 2; ++tries) {
    const CUresult result = a->driver->cuStreamQuery(a->stream);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return false;
  }
  return true;
}

static void refuse(gki_cuda_caps *caps, bool is_final, const char *why) {
  caps->is_final = is_final;
  caps->quirks = quirks_of(caps);
  snprintf(caps->why, sizeof caps->why, "%s", why);
}

/* ---- what the environment says ----------------------------------------------------------------------------------- */

typedef struct wishes {
  bool is_off, is_said; /* nothing is to be tried; anything is said */
  uint32_t declined;
} wishes;

_Static_assert(GKI_CUDA_QUESTION_COUNT <= 32, "a bit per question");

static int question_called(const char *name, size_t length) {
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (strlen(gki_cuda_questions[k].name) == length && memcmp(gki_cuda_questions[k].name, name, length) == 0) return k;
  return -1;
}

/* Nothing or 1: all is tried. 0: nothing is. -P4e,-P9a: these are answered with no. */
static gk_result read_wishes(wishes *wanted) {
  const char *text = secure_getenv("GK_CUDA_PROBE");
  *wanted = (wishes){.is_off = text && strcmp(text, "0") == 0, .is_said = text && *text};
  if (!text || !*text || wanted->is_off || strcmp(text, "1") == 0) return GK_OK;
  for (const char *at = text;; ++at) {
    const size_t length = strcspn(at, ",");
    const int question = *at == '-' ? question_called(at + 1, length - 1) : -1;
    if (question < 0)
      return gk_fail(GK_ERROR_INVALID,
                     "backend cuda: GK_CUDA_PROBE=%.100s: \"%.*s\" isn't understood; give 0, to try nothing, or "
                     "questions of docs/cuda.md that are to be answered with no, as in GK_CUDA_PROBE=-P4e,-P9a", text,
                     (int)(length < 100 ? length : 100), at);
    wanted->declined |= (uint32_t)1 << question;
    at += length;
    if (!*at) return GK_OK;
  }
}

/* The driver's own variable, for debugging. */
static bool blocks_launches(const wishes *wanted) {
  const char *text = secure_getenv("CUDA_LAUNCH_BLOCKING");
  return text && *text && strcmp(text, "0") != 0 && !wanted->is_said;
}

void gki_cuda_probe_anew(const gki_cuda_driver *driver, CUcontext context, CUmodule gates, const char *why_none,
                         gki_cuda_caps *caps) {
  const uint64_t begin = gki_now_ns();
  wishes wanted;
  *caps = (gki_cuda_caps){.driver_version = driver->version};
  if (read_wishes(&wanted) != GK_OK) {
    refuse(caps, false, gk_error());
    return;
  }
  caps->declined = wanted.declined;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (wanted.declined >> k & 1) caps->answers[k] = GKI_CUDA_DECLINED;
  if (driver->version < GKI_CUDA_CONDITIONAL_SINCE) {
    char why[200];
    snprintf(why, sizeof why, "the driver is for CUDA %d.%d, and conditional nodes can be relied on from 12.4 on; "
             "update NVIDIA's driver", driver->version / 1000, driver->version % 1000 / 10);
    refuse(caps, true, why);
    return;
  }
  if (driver->lacks[GKI_CUDA_FOR_CONDITIONAL]) {
    char why[200];
    snprintf(why, sizeof why, "the driver has no %s, which graphs with conditional nodes need; install NVIDIA's driver "
             "anew", driver->lacks[GKI_CUDA_FOR_CONDITIONAL]);
    refuse(caps, true, why);
    return;
  }
  if (!gates) {
    refuse(caps, false, why_none ? why_none : "gk's own kernels can't be loaded");
    return;
  }
  if (blocks_launches(&wanted)) {
    refuse(caps, false, "with CUDA_LAUNCH_BLOCKING a launch waits for its end, and one that has none would keep "
           "this process for ever; unset it, or say GK_CUDA_PROBE=1 to try all the same");
    return;
  }
  asking a = {.driver = driver, .context = context};
  if (take_kernels(&a, gates) && take(&a) && is_free(&a)) ask(&a, caps);
  caps->hangs = a.hangs;
  caps->busy = a.busy;
  caps->broke = is_broken(&a);
  if (caps->broke) caps->conditional = caps->is_final = false;
  give_back(&a);
  caps->quirks = quirks_of(caps);
  if (!caps->conditional || a.failure[0]) say_why(caps, &a);
  caps->microseconds = us_of(begin, gki_now_ns());
}

/* ---- once per device --------------------------------------------------------------------------------------------- */

enum { MOST_DEVICES = 64 };
GKI_PROCESS_LOCK(lock)
static gki_cuda_caps known[MOST_DEVICES];

static gk_result device_result(CUdevice device, const gki_cuda_caps *caps) {
  if (caps->hangs)
    return gk_fail(GK_ERROR_DEVICE,
                   "backend cuda: device %d hangs: %s; this process can't use it any more; start it anew with "
                   "GK_CUDA_PROBE=0, then nothing is tried and lists run host-gated", device, caps->why);
  if (caps->busy)
    return gk_fail(GK_ERROR_DEVICE,
                   "backend cuda: device %d is busy: %s; open it again when that is over, or with GK_CUDA_PROBE=0, "
                   "then nothing is tried and lists run host-gated", device, caps->why);
  if (caps->broke)
    return gk_fail(GK_ERROR_DEVICE,
                   "backend cuda: device %d failed as it was tried: %s; its context is of no use until all in this "
                   "process have given it back; with GK_CUDA_PROBE=0 nothing is tried and lists run host-gated", device,
                   caps->why);
  return GK_OK;
}

static void tell(CUdevice device, const gki_cuda_caps *caps) {
  char names[200] = "";
  for (int k = 0, length = 0; k < GKI_CUDA_QUESTION_COUNT && length < (int)sizeof names; ++k)
    if (caps->answers[k] != GKI_CUDA_YES)
      length += snprintf(names + length, sizeof names - (size_t)length, " %s", gki_cuda_questions[k].name);
  if (caps->conditional)
    gk_log(GK_LOG_INFO, "CUDA device %d: conditional nodes tried in %u us; not seen to work:%s", device,
           caps->microseconds, names[0] ? names : " nothing");
  else gk_log(GK_LOG_INFO, "CUDA device %d: no conditional nodes: %s", device, caps->why);
}

static gki_cuda_caps *place_of(CUdevice device) {
  return device >= 0 && device < MOST_DEVICES ? &known[device] : NULL;
}

gk_result gki_cuda_probe(const gki_cuda_driver *driver, CUdevice device, CUcontext context, CUmodule gates,
                         const char *why_none, gki_cuda_caps *caps) {
  gki_cuda_caps *here = place_of(device);
  wishes wanted;
  gk_result result = read_wishes(&wanted);
  if (result != GK_OK) return result;
  if (wanted.is_off) {
    *caps = (gki_cuda_caps){.driver_version = driver->version};
    refuse(caps, false, "GK_CUDA_PROBE=0 says that the driver isn't to be tried");
    return GK_OK;
  }
  pthread_mutex_lock(&lock); /* also while it is asked, so that nobody asks twice */
  const bool is_known = here && here->is_final && (here->hangs || here->declined == wanted.declined) &&
                        (gates || !here->conditional);
  if (is_known) *caps = *here;
  else gki_cuda_probe_anew(driver, context, gates, why_none, caps);
  if (here && (gates || !here->is_final)) *here = *caps;
  pthread_mutex_unlock(&lock);
  if (!is_known) tell(device, caps);
  return device_result(device, caps);
}

gk_result gki_cuda_probe_refuses(CUdevice device) {
  gki_cuda_caps *here = place_of(device);
  gki_cuda_caps found = {.hangs = false};
  pthread_mutex_lock(&lock);
  if (here && here->hangs) found = *here;
  pthread_mutex_unlock(&lock);
  return device_result(device, &found);
}

static const char *said_of(const gki_cuda_caps *caps, int question) {
  switch (caps->answers[question]) {
  case GKI_CUDA_NOT_ASKED: return caps->why[0] ? ", couldn't be tried" : ", not asked";
  case GKI_CUDA_DECLINED: return ", as GK_CUDA_PROBE says";
  case GKI_CUDA_NOT_SHOWN: return ", not shown: they were never seen at work at once";
  default: return "";
  }
}

void gki_cuda_describe_quirks(const gki_cuda_caps *caps, uint32_t quirks, char *text, size_t bytes) {
  char said[GKI_CUDA_SAID_BYTES];
  bool asked = true;
  int length = snprintf(said, sizeof said, "this driver (CUDA %d.%d) %s this:", caps->driver_version / 1000,
                        caps->driver_version % 1000 / 10,
                        is_no(caps, quirks) ? "doesn't do"
                        : caps->why[0]    ? "couldn't be tried for"
                                               : "isn't asked for");
  const char *between = " ";
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k) {
    const gki_cuda_question_text *q = &gki_cuda_questions[k];
    if (caps->answers[k] == GKI_CUDA_YES || !(q->quirk & quirks) || length >= (int)sizeof said) continue;
    length += snprintf(said + length, sizeof said - (size_t)length, "%s%s (%s%s)", between, q->text, q->name,
                       said_of(caps, k));
    between = "; ";
    asked = asked && caps->answers[k] != GKI_CUDA_NOT_ASKED;
  }
  if (!asked && caps->why[0] && length < (int)sizeof said)
    snprintf(said + length, sizeof said - (size_t)length, "; %s", caps->why);
  snprintf(text, bytes, "%s", said);
}
