#include "cuda/probe.h"
#include "base/clock.h"
#include "base/fork.h"
#include "cuda/probe_graphs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAUNCHES = 2, SPINS_NS = 2000000, PAUSE_NS = 100000, CALL_BYTES = 300 };
/* A graph is stuck after LONGEST_MS, or after PATIENCE_MS if HEARTBEATS plain kernels ran meanwhile. */
enum { PATIENCE_MS = 3000, HEARTBEATS = 20, HEARTBEAT_MS = 100, LONGEST_MS = 60000, NS_PER_MS = 1000000 };

const gki_cuda_question_text gki_cuda_questions[GKI_CUDA_QUESTION_COUNT] = {
#define QUESTION(id, name, quirk, text) {name, text, quirk},
    GKI_CUDA_QUESTIONS(QUESTION)
#undef QUESTION
};

typedef struct probe {
  const gki_cuda_driver *driver;
  CUcontext context;
  CUstream stream, beside;
  CUgraph heartbeat_graph;
  CUgraphExec heartbeat;    /* one plain kernel */
  CUdeviceptr memory;       /* gki_probe_memory */
  gki_probe_memory *pinned; /* the initial state, then the state after each launch */
  CUfunction set_list, set_beside;
  bool hangs, busy;         /* a graph, or the first heartbeat, didn't end: nothing may be freed */
  char failure[CALL_BYTES]; /* the first call that failed and was needed */
} probe;

static uint32_t us_of(uint64_t from, uint64_t to) { return (uint32_t)((to - from) / 1000); }

/* @param graph  The call was for it; or NULL. */
static bool check(probe *p, CUresult result, const char *call, const char *graph) {
  if (result == CUDA_SUCCESS) return true;
  char text[CALL_BYTES / 2];
  gki_cuda_describe_result(p->driver, result, text, sizeof text);
  if (!p->failure[0])
    snprintf(p->failure, sizeof p->failure, "%s%s%s: %s", call, graph ? ", for the graph of " : "", graph ? graph : "",
             text);
  return false;
}

/* ---- resources --------------------------------------------------------------------------------------------------- */

static bool find_kernels(probe *p, CUmodule gates) {
  const gki_cuda_driver *d = p->driver;
  return check(p, d->cuModuleGetFunction(&p->set_list, gates, "gki_set_list"), "cuModuleGetFunction of gki_set_list",
               NULL) &&
         check(p, d->cuModuleGetFunction(&p->set_beside, gates, "gki_set_beside"),
               "cuModuleGetFunction of gki_set_beside", NULL);
}

static gki_probe_trial trial_of(const probe *p) {
  return (gki_probe_trial){.driver = p->driver, .context = p->context, .set_list = p->set_list,
                           .set_beside = p->set_beside, .memory = p->memory,
                           .settings = p->pinned ? p->pinned->settings : NULL};
}

static bool instantiate(const probe *p, gki_probe_trial *t, CUgraphExec *exec) {
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters = {0};
  if (gki_probe_check(t, p->driver->cuGraphInstantiateWithParams(exec, t->graph, &parameters),
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

static bool make_heartbeat(probe *p) {
  gki_probe_trial t = trial_of(p);
  build(&t, gki_probe_build_heartbeat);
  p->heartbeat_graph = t.graph;
  if (t.result == CUDA_SUCCESS) (void)instantiate(p, &t, &p->heartbeat);
  return check(p, t.result, t.call, one_kernel);
}

static bool make_stream(probe *p, CUstream *stream) {
  const CUresult result = p->driver->cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) *stream = NULL;
  return check(p, result, "cuStreamCreate", NULL);
}

static bool make_resources(probe *p) {
  const gki_cuda_driver *d = p->driver;
  CUdeviceptr memory;
  void *pinned;
  if (!make_stream(p, &p->stream) || !make_stream(p, &p->beside)) return false;
  if (!check(p, d->cuMemAlloc(&memory, sizeof(gki_probe_memory)), "cuMemAlloc", NULL)) return false;
  p->memory = memory;
  if (!check(p, d->cuMemHostAlloc(&pinned, (1 + LAUNCHES) * sizeof(gki_probe_memory), GKI_CU_MEMHOSTALLOC_PORTABLE),
             "cuMemHostAlloc", NULL))
    return false;
  p->pinned = pinned;
  return make_heartbeat(p);
}

static void free_resources(probe *p) {
  const gki_cuda_driver *d = p->driver;
  if (p->hangs || p->busy) return;
  if (p->heartbeat) (void)d->cuGraphExecDestroy(p->heartbeat);
  if (p->heartbeat_graph) (void)d->cuGraphDestroy(p->heartbeat_graph);
  if (p->pinned) (void)d->cuMemFreeHost(p->pinned);
  if (p->memory) (void)d->cuMemFree(p->memory);
  if (p->beside) (void)d->cuStreamDestroy(p->beside);
  if (p->stream) (void)d->cuStreamDestroy(p->stream);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

typedef enum wait_result { ENDED, FAILED, IS_STUCK, TOOK_TOO_LONG } wait_result;

/* Plain kernels on the second stream tell a graph that is stuck from a device that has other work. */
typedef struct heartbeats {
  uint64_t last; /* when the last one was launched */
  int done;
  bool is_under_way;
} heartbeats;

/* A failure here occurs again where it matters. */
static void heartbeat(const probe *p, heartbeats *b, uint64_t now) {
  const gki_cuda_driver *d = p->driver;
  if (b->is_under_way && d->cuStreamQuery(p->beside) == CUDA_SUCCESS) {
    b->is_under_way = false;
    ++b->done;
  }
  if (b->is_under_way || now - b->last < (uint64_t)HEARTBEAT_MS * NS_PER_MS) return;
  b->last = now;
  b->is_under_way = d->cuGraphLaunch(p->heartbeat, p->beside) == CUDA_SUCCESS;
}

/* Polls until the stream is done; no call here waits for the device. A stream whose query fails may still be at work,
 * so it is queried twice. */
static wait_result wait_for(probe *p, const char *graph, bool with_heartbeats) {
  const uint64_t begin = gki_now_ns();
  heartbeats b = {.last = begin};
  for (int failures = 0;;) {
    const CUresult result = p->driver->cuStreamQuery(p->stream);
    if (result == CUDA_SUCCESS) return failures ? FAILED : ENDED;
    if (result != CUDA_ERROR_NOT_READY) {
      (void)check(p, result, "cuStreamQuery", graph);
      if (++failures == 2) return FAILED;
      continue;
    }
    const uint64_t now = gki_now_ns(), waited = now - begin;
    if (waited >= (uint64_t)LONGEST_MS * NS_PER_MS) return TOOK_TOO_LONG;
    if (waited >= (uint64_t)PATIENCE_MS * NS_PER_MS && b.done >= HEARTBEATS) return IS_STUCK;
    if (with_heartbeats) heartbeat(p, &b, now);
    if (waited > SPINS_NS) nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
}

/* Whether plain kernels run at all. The time of graphs counts from then on. */
static bool is_free(probe *p) {
  if (!check(p, p->driver->cuGraphLaunch(p->heartbeat, p->stream), "cuGraphLaunch", one_kernel)) return false;
  const wait_result is = wait_for(p, one_kernel, false);
  p->busy = is == TOOK_TOO_LONG;
  if (p->busy)
    snprintf(p->failure, sizeof p->failure, "a plain kernel didn't run within %d s, as the device has other work",
             LONGEST_MS / 1000);
  return is == ENDED;
}

static bool wait_for_graph(probe *p, const char *graph) {
  const wait_result is = wait_for(p, graph, true);
  p->hangs = is == IS_STUCK || is == TOOK_TOO_LONG;
  if (p->hangs)
    snprintf(p->failure, sizeof p->failure, "the graph of %s didn't end within %d s%s", graph,
             (is == IS_STUCK ? PATIENCE_MS : LONGEST_MS) / 1000, is == IS_STUCK ? ", and kernels beside it did" : "");
  return is == ENDED;
}

/* ---- one graph --------------------------------------------------------------------------------------------------- */

static bool launch(probe *p, gki_probe_trial *t, CUgraphExec exec, int number) {
  const gki_cuda_driver *d = p->driver;
  const CUdeviceptr counters = p->memory + offsetof(gki_probe_memory, counters);
  return gki_probe_check(t, d->cuMemsetD8Async(counters, 0, sizeof p->pinned->counters, p->stream),
                         "cuMemsetD8Async") &&
         gki_probe_check(t, d->cuGraphLaunch(exec, p->stream), "cuGraphLaunch") &&
         gki_probe_check(t, d->cuMemcpyDtoHAsync(p->pinned[1 + number].counters, counters, sizeof p->pinned->counters,
                                                 p->stream),
                         "cuMemcpyDtoHAsync");
}

/* The second launch is submitted before the first ends, so the update in between is for the second only. */
static bool launch_both(probe *p, gki_probe_trial *t, CUgraphExec exec, const char *graph) {
  const CUdeviceptr settings = p->memory + offsetof(gki_probe_memory, settings);
  if (!gki_probe_check(t, p->driver->cuMemcpyHtoDAsync(settings, p->pinned->settings, sizeof p->pinned->settings,
                                                       p->stream),
                       "cuMemcpyHtoDAsync"))
    return false;
  if (launch(p, t, exec, 0)) {
    gki_probe_update(t, exec);
    if (t->result == CUDA_SUCCESS) launch(p, t, exec, 1);
  }
  /* Also after a failure: part of the work may be under way. */
  return wait_for_graph(p, graph) && t->result == CUDA_SUCCESS;
}

static void compare(const probe *p, const gki_probe_trial *t, const gki_cuda_probe_timing *ran,
                    gki_cuda_caps *caps) {
  const uint32_t *first = p->pinned[1].counters, *second = p->pinned[2].counters;
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
static bool try_graph(probe *p, const gki_probe_graph *graph, gki_cuda_caps *caps) {
  const gki_cuda_driver *d = p->driver;
  gki_probe_trial t = trial_of(p);
  CUgraphExec exec = NULL;
  const uint64_t begin = gki_now_ns();
  build(&t, graph->build);
  const uint64_t built = gki_now_ns();
  if (t.result == CUDA_SUCCESS) (void)instantiate(p, &t, &exec);
  const uint64_t instantiated = gki_now_ns();
  const bool ran = t.result == CUDA_SUCCESS && launch_both(p, &t, exec, graph->name);
  const gki_cuda_probe_timing it = {graph->name, t.node_count, us_of(begin, built), us_of(built, instantiated),
                                   us_of(instantiated, gki_now_ns())};
  if (ran) compare(p, &t, &it, caps);
  if (p->hangs) return false;
  if (exec) (void)d->cuGraphExecDestroy(exec);
  if (t.graph) (void)d->cuGraphDestroy(t.graph);
  return check(p, t.result, t.call, graph->name) && ran;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static uint32_t quirks_of(const gki_cuda_caps *caps) {
  uint32_t quirks = 0;
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (caps->answers[k] != GKI_CUDA_YES) quirks |= gki_cuda_questions[k].quirk;
  return caps->conditional ? quirks : quirks | GKI_CUDA_HOST_GATED;
}

/* Whether a question with one of these quirks was asked and not answered with yes. */
static bool is_answered_no(const gki_cuda_caps *caps, uint32_t quirks) {
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (gki_cuda_questions[k].quirk & quirks && caps->answers[k] != GKI_CUDA_NOT_ASKED &&
        caps->answers[k] != GKI_CUDA_YES)
      return true;
  return false;
}

static void set_why(gki_cuda_caps *caps, const probe *p) {
  if (p->failure[0]) {
    snprintf(caps->why, sizeof caps->why, "%s couldn't be tried: %s",
             caps->conditional ? "some of what conditional nodes do" : "conditional nodes", p->failure);
    return;
  }
  char text[sizeof caps->why];
  gki_cuda_describe_quirks(caps, GKI_CUDA_HOST_GATED, text, sizeof text);
  memcpy(caps->why, text, sizeof text);
}

static void ask(probe *p, gki_cuda_caps *caps) {
  caps->conditional = !is_answered_no(caps, GKI_CUDA_HOST_GATED);
  caps->is_final = true;
  for (size_t k = 0; k < GKI_CUDA_PROBE_GRAPHS && caps->conditional; ++k) {
    const gki_probe_graph *graph = &gki_probe_graphs[k];
    if (caps->driver_version < graph->since || is_answered_no(caps, graph->unless)) continue;
    if (!try_graph(p, graph, caps)) {
      caps->is_final = p->hangs;
      caps->conditional = !graph->is_vital && !p->hangs;
    } else if (is_answered_no(caps, GKI_CUDA_HOST_GATED)) {
      caps->conditional = false;
    }
  }
}

/* Whether the context failed. It then answers every call with that failure. */
static bool is_broken(const probe *p) {
  if (!p->failure[0] || p->hangs || p->busy) return false;
  for (int tries = 0; tries < 2; ++tries) {
    const CUresult result = p->driver->cuStreamQuery(p->stream);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return false;
  }
  return true;
}

static void refuse(gki_cuda_caps *caps, bool is_final, const char *why) {
  caps->is_final = is_final;
  caps->quirks = quirks_of(caps);
  snprintf(caps->why, sizeof caps->why, "%s", why);
}

/* ---- the environment --------------------------------------------------------------------------------------------- */

typedef struct options {
  bool is_off, is_set; /* the probe is off; the variable is set */
  uint32_t declined;
} options;

_Static_assert(GKI_CUDA_QUESTION_COUNT <= 32, "a bit per question");

static int question_called(const char *name, size_t length) {
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k)
    if (strlen(gki_cuda_questions[k].name) == length && memcmp(gki_cuda_questions[k].name, name, length) == 0) return k;
  return -1;
}

static gk_result read_options(options *wanted) {
  const char *text = secure_getenv("GK_CUDA_PROBE");
  *wanted = (options){.is_off = text && strcmp(text, "0") == 0, .is_set = text && *text};
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

/* CUDA_LAUNCH_BLOCKING is the driver's own variable, for debugging. */
static bool blocks_launches(const options *wanted) {
  const char *text = secure_getenv("CUDA_LAUNCH_BLOCKING");
  return text && *text && strcmp(text, "0") != 0 && !wanted->is_set;
}

void gki_cuda_probe_again(const gki_cuda_driver *driver, CUcontext context, CUmodule gates, const char *why_none,
                          gki_cuda_caps *caps) {
  const uint64_t begin = gki_now_ns();
  options wanted;
  *caps = (gki_cuda_caps){.driver_version = driver->version};
  if (read_options(&wanted) != GK_OK) {
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
  probe p = {.driver = driver, .context = context};
  if (find_kernels(&p, gates) && make_resources(&p) && is_free(&p)) ask(&p, caps);
  caps->hangs = p.hangs;
  caps->busy = p.busy;
  caps->broke = is_broken(&p);
  if (caps->broke) caps->conditional = caps->is_final = false;
  free_resources(&p);
  caps->quirks = quirks_of(caps);
  if (!caps->conditional || p.failure[0]) set_why(caps, &p);
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

static void log_caps(CUdevice device, const gki_cuda_caps *caps) {
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
  options wanted;
  gk_result result = read_options(&wanted);
  if (result != GK_OK) return result;
  if (wanted.is_off) {
    *caps = (gki_cuda_caps){.driver_version = driver->version};
    refuse(caps, false, "GK_CUDA_PROBE=0 says that the driver isn't to be tried");
    return GK_OK;
  }
  pthread_mutex_lock(&lock); /* held during the probe, so that no thread probes twice */
  const bool is_known = here && here->is_final && (here->hangs || here->declined == wanted.declined) &&
                        (gates || !here->conditional);
  if (is_known) *caps = *here;
  else gki_cuda_probe_again(driver, context, gates, why_none, caps);
  if (here && (gates || !here->is_final)) *here = *caps;
  pthread_mutex_unlock(&lock);
  if (!is_known) log_caps(device, caps);
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

static const char *reason_of(const gki_cuda_caps *caps, int question) {
  switch (caps->answers[question]) {
  case GKI_CUDA_NOT_ASKED: return caps->why[0] ? ", couldn't be tried" : ", not asked";
  case GKI_CUDA_DECLINED: return ", as GK_CUDA_PROBE says";
  case GKI_CUDA_NOT_SHOWN: return ", not shown: they were never seen at work at once";
  default: return "";
  }
}

void gki_cuda_describe_quirks(const gki_cuda_caps *caps, uint32_t quirks, char *text, size_t bytes) {
  char full[GKI_CUDA_QUIRKS_BYTES];
  bool asked = true;
  int length = snprintf(full, sizeof full, "this driver (CUDA %d.%d) %s this:", caps->driver_version / 1000,
                        caps->driver_version % 1000 / 10,
                        is_answered_no(caps, quirks) ? "doesn't do"
                        : caps->why[0]    ? "couldn't be tried for"
                                               : "isn't asked for");
  const char *between = " ";
  for (int k = 0; k < GKI_CUDA_QUESTION_COUNT; ++k) {
    const gki_cuda_question_text *q = &gki_cuda_questions[k];
    if (caps->answers[k] == GKI_CUDA_YES || !(q->quirk & quirks) || length >= (int)sizeof full) continue;
    length += snprintf(full + length, sizeof full - (size_t)length, "%s%s (%s%s)", between, q->text, q->name,
                       reason_of(caps, k));
    between = "; ";
    asked = asked && caps->answers[k] != GKI_CUDA_NOT_ASKED;
  }
  if (!asked && caps->why[0] && length < (int)sizeof full)
    snprintf(full + length, sizeof full - (size_t)length, "; %s", caps->why);
  snprintf(text, bytes, "%s", full);
}
