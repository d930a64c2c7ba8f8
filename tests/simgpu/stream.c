/* Streams, events, and the thread of each device that carries out what they hold. */
#include "sim.h"
#include <stdlib.h>

/* ---- work ---- */

static void event_free(sim_event *event) {
  free(event->nodes);
  free(event);
}

static void item_end(sim_item *item) {
  if (item->program) sim_program_release(item->program);
  if (item->exec) sim_exec_over(item->exec);
  if (item->event && --item->event->items == 0 && item->event->gone) event_free(item->event);
  free(item->call);
  free(item->staged);
  free(item);
}

static bool has_earlier(const sim_device *device, const sim_stream *stream) {
  for (const sim_stream *other = device->streams; other; other = other->next)
    if (other->base.context == stream->base.context && other->blocking && other->is_default != stream->is_default &&
        other->first && other->first->number < stream->first->number) return true;
  return false;
}

static bool waits(const sim_item *item) {
  return item->kind == SIM_ITEM_WAIT && item->event->reached < item->event_record;
}

/* Other work on the device leaves room for copies, not for kernels. */
static bool is_kept_out(const sim_item *item) {
  return sim_busy && (item->kind == SIM_ITEM_KERNEL || item->kind == SIM_ITEM_GRAPH);
}

/* A graph that never ends, until the answer is another one; what is left then isn't its owners' fault. Other streams
 * go on. */
static bool is_stuck(const sim_stream *stream) {
  const sim_item *item = stream->first;
  const bool stuck = item->kind == SIM_ITEM_GRAPH && item->program->handle_count && sim_says_no("ends");
  if (stuck) stream->base.context->device->hung = true;
  return stuck;
}

static unsigned waiting; /* number of calls that wait for a device now */
static uint64_t steps;   /* queries since the last of them */

static bool may_run(const sim_device *device, const sim_stream *stream) {
  if (sim_held || (sim_lazy && waiting == 0 && steps == 0)) return false;
  if (!stream->first || (stream->blocking && has_earlier(device, stream))) return false;
  return !waits(stream->first) && !is_kept_out(stream->first) && !is_stuck(stream);
}

/* A stream whose first item may run now; which one is left open. */
static sim_stream *pick(sim_device *device) {
  sim_stream *chosen = NULL;
  uint64_t seen = 0;
  for (sim_stream *each = device->streams; each; each = each->next)
    if (may_run(device, each) && sim_random(&device->random) % ++seen == 0) chosen = each;
  if (chosen && sim_lazy && waiting == 0) --steps;
  return chosen;
}

static bool is_at_rest(const sim_device *device) {
  if (device->running) return false;
  for (const sim_stream *each = device->streams; each; each = each->next)
    if (may_run(device, each)) return false;
  return true;
}

void sim_seed_device(sim_device *device, uint64_t seed) {
  device->random = seed;
  device->streams_random = ~seed;
  for (sim_stream *each = device->streams; each; each = each->next) each->random = sim_random(&device->streams_random);
}

static bool run_item(sim_device *device, sim_item *item) {
  bool over;
  switch (item->kind) {
    case SIM_ITEM_KERNEL: return sim_go_on_call(device, item->call, sim_begin_call(item->call), NULL, &over);
    case SIM_ITEM_COPY:
      sim_torn_forget(device, item->copy.to, item->copy.bytes);
      if (item->source && item->source != sim_source_hash(item->copy.from, item->copy.bytes))
        sim_torn_note(device, item->copy.to, item->copy.bytes);
      return sim_run_copy(device, &item->copy);
    case SIM_ITEM_GRAPH: return sim_run_program(device, item->program, item->exec);
    case SIM_ITEM_EVENT:
    case SIM_ITEM_WAIT: return true;
  }
  return true;
}

static void add_counts(const simgpu_counts *counts) {
  sim_count.nodes += counts->nodes;
  sim_count.kernel_nodes += counts->kernel_nodes;
  sim_count.conditional_nodes += counts->conditional_nodes;
  sim_count.passes += counts->passes;
  sim_count.dropped += counts->dropped;
}

static void stream_free(sim_stream *stream) {
  sim_stream **link = &stream->base.context->device->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  free(stream->last_nodes);
  free(stream->last_edges);
  free(stream);
}

/* Runs the first item of the stream; holds the lock except while it runs. */
static void work_on(sim_device *device, sim_stream *stream) {
  sim_item *item = stream->first;
  sim_context *context = stream->base.context;
  device->running = stream;
  device->launch_random = sim_random(&stream->random);
  device->passes_most = sim_passes;
  device->counts = (simgpu_counts){0};
  if (context->sticky == CUDA_SUCCESS && !item->event) {
    sim_memory_open(device);
    pthread_mutex_unlock(&sim_lock);
    bool right = run_item(device, item);
    pthread_mutex_lock(&sim_lock);
    sim_memory_show(device);
    add_counts(&device->counts);
    if (!right) sim_fail_context(context, CUDA_ERROR_ILLEGAL_ADDRESS, device->why);
  }
  if (item->kind == SIM_ITEM_EVENT && item->event->reached < item->event_record)
    item->event->reached = item->event_record;
  device->running = NULL;
  stream->first = item->next;
  if (!stream->first) stream->last = NULL;
  item_end(item);
  if (stream->gone && !stream->first) stream_free(stream);
}

static void *work(void *data) {
  sim_device *device = data;
  pthread_mutex_lock(&sim_lock);
  for (;;) {
    sim_stream *stream = pick(device);
    /* Only now, as the next item's memory may be the same; and before other threads wake, which need the lock. */
    if (!stream) sim_memory_close(device);
    pthread_cond_broadcast(&device->done);
    if (stream) work_on(device, stream);
    else if (device->ending) break;
    else pthread_cond_wait(&device->work, &sim_lock);
  }
  pthread_mutex_unlock(&sim_lock);
  return NULL;
}

void sim_worker_start(sim_device *device) {
  device->ending = false;
  pthread_cond_init(&device->work, NULL);
  pthread_cond_init(&device->done, NULL);
  if (pthread_create(&device->thread, NULL, work, device) != 0) abort();
}

void sim_worker_stop(sim_device *device) {
  device->ending = true;
  pthread_cond_broadcast(&device->work);
  pthread_mutex_unlock(&sim_lock);
  pthread_join(device->thread, NULL);
  pthread_mutex_lock(&sim_lock);
  pthread_cond_destroy(&device->work);
  pthread_cond_destroy(&device->done);
}

void sim_post(sim_stream *stream, sim_item asked) {
  static uint64_t number;
  sim_item *item = sim_duplicate(&asked, sizeof asked);
  item->number = ++number;
  if (stream->last) stream->last->next = item;
  else stream->first = item;
  stream->last = item;
  pthread_cond_signal(&stream->base.context->device->work);
}

void sim_wake_devices(void) {
  SIM_EACH_DEVICE(each)
    if (each->contexts) pthread_cond_broadcast(&each->work);
}

/* A query is one step of the clock of other work on the device. */
static void busy_step(void) {
  steps += sim_lazy;
  if ((sim_busy && --sim_busy == 0) || sim_lazy) sim_wake_devices();
}

/* Around each wait for a device's thread; other work on the device ends before. */
static void wait_begin(void) {
  steps = 0;
  ++waiting;
  if (sim_busy || (waiting == 1 && sim_lazy)) sim_wake_devices();
  sim_busy = 0;
}

static void wait_end(void) { --waiting; }

/* Later work isn't waited for: other threads may go on handing over work. */
void sim_wait_stream(sim_stream *stream) {
  sim_device *device = stream->base.context->device;
  uint64_t until = stream->last ? stream->last->number : 0, handle = stream->base.handle;
  wait_begin();
  while (sim_is(handle, stream) && stream->first && stream->first->number <= until)
    pthread_cond_wait(&device->done, &sim_lock);
  wait_end();
}

size_t sim_queued(void) {
  size_t count = 0;
  SIM_EACH_DEVICE(device)
    for (const sim_stream *each = device->streams; each; each = each->next)
      for (const sim_item *item = each->first; item; item = item->next) count += !item->event;
  return count;
}

static bool is_idle(const sim_device *device) {
  const sim_stream *each = device->streams;
  while (each && !each->first) each = each->next;
  return !each;
}

void sim_wait_idle(sim_context *context) {
  ++sim_count.waits;
  wait_begin();
  while (!is_idle(context->device)) pthread_cond_wait(&context->device->done, &sim_lock);
  wait_end();
}

/* ---- streams ---- */

sim_stream *sim_stream_make(sim_context *context, bool is_default, bool blocking) {
  static uint64_t id;
  sim_stream *stream = sim_object_make(sizeof *stream, SIM_STREAM, context, is_default);
  stream->id = ++id;
  stream->is_default = is_default;
  stream->blocking = blocking;
  stream->random = sim_random(&context->device->streams_random);
  stream->next = context->device->streams;
  context->device->streams = stream;
  return stream;
}

void sim_stream_drop(sim_stream *stream) {
  if (stream->capture) sim_capture_drop(stream);
  sim_object_end(&stream->base);
  stream->gone = true;
  if (!stream->first) stream_free(stream);
}

/* NULL and 1 are names of the default stream of the current context. */
static CUresult find(CUstream handle, sim_stream **stream) {
  SIM_FIND_CONTEXT(context);
  *stream = (uintptr_t)handle <= GKI_CU_STREAM_LEGACY ? context->default_stream
                                                      : SIM_OF(sim_stream, handle, SIM_STREAM);
  return *stream ? CUDA_SUCCESS : sim_refuse(CUDA_ERROR_INVALID_HANDLE, "no stream");
}

CUresult sim_stream_asked(CUstream handle, sim_stream **stream) {
  SIM_TRY(find(handle, stream));
  if (!sim_capture_implicit(*stream)) return CUDA_SUCCESS;
  return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "a blocking stream of the context is being captured");
}

CUresult sim_stream_find(CUstream handle, sim_stream **stream) {
  SIM_TRY(find(handle, stream));
  SIM_TRY(sim_check_context(&(*stream)->base));
  return sim_capture_unusable(*stream);
}

CUresult sim_cuStreamCreate(CUstream *stream, unsigned int flags) {
  SIM_ENTER(cuStreamCreate);
  SIM_FIND_CONTEXT(context);
  if (!stream || flags > CU_STREAM_NON_BLOCKING) return sim_invalid("flags");
  *stream = SIM_HANDLE(CUstream, sim_stream_make(context, false, flags == CU_STREAM_DEFAULT));
  return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream handle) {
  sim_stream *stream = SIM_OF(sim_stream, handle, SIM_STREAM);
  if (!stream || stream->is_default) return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "no stream, or the default stream");
  CUresult state = sim_check_context(&stream->base);
  if (stream->capture) sim_broken("capture", "a stream was destroyed that is being captured");
  sim_stream_drop(stream);
  return state;
}

SIM_DEFINE_BACK(cuStreamDestroy, (CUstream stream), stream_destroy(stream))

CUresult sim_cuStreamSynchronize(CUstream handle) {
  SIM_ENTER(cuStreamSynchronize);
  SIM_FIND_STREAM(stream, handle);
  SIM_TRY(sim_capture_refuses(stream));
  SIM_TRY(sim_capture_unsafe());
  sim_context *context = stream->base.context;
  ++sim_count.waits;
  sim_wait_stream(stream);
  return sim_state(context);
}

CUresult sim_cuStreamQuery(CUstream handle) {
  SIM_ENTER(cuStreamQuery);
  SIM_FIND_STREAM(stream, handle);
  if (sim_settles) {
    sim_device *device = stream->base.context->device;
    while (!is_at_rest(device)) pthread_cond_wait(&device->done, &sim_lock);
    SIM_TRY(sim_stream_find(handle, &stream)); /* another thread may have destroyed it */
  }
  SIM_TRY(sim_capture_refuses(stream));
  SIM_TRY(sim_capture_unsafe());
  if (!stream->first) return sim_state(stream->base.context);
  busy_step();
  return CUDA_ERROR_NOT_READY;
}

/* Of streams of any context. */
#define FIND_ASKED(name, handle) \
  sim_stream *name; \
  SIM_TRY(sim_stream_asked(handle, &name))
#define FIND_UNCAPTURED(name, handle) \
  sim_stream *name; \
  SIM_TRY(find(handle, &name)); \
  SIM_TRY(sim_capture_refuses(name))
SIM_ANSWERS(cuStreamGetCtx, (CUstream handle, CUcontext *context), context, FIND_UNCAPTURED(stream, handle),
            SIM_HANDLE(CUcontext, stream->base.context))
SIM_ANSWERS(cuStreamGetId, (CUstream handle, unsigned long long *id), id, FIND_UNCAPTURED(stream, handle), stream->id)
SIM_ANSWERS(cuStreamIsCapturing, (CUstream handle, CUstreamCaptureStatus *status), status, FIND_ASKED(stream, handle),
            sim_capture_status(stream))

/* ---- events ---- */

#define FIND_EVENT(name, handle) SIM_FIND_HERE(sim_event, name, handle, SIM_EVENT, CUDA_ERROR_INVALID_HANDLE)

CUresult sim_cuEventCreate(CUevent *event, unsigned int flags) {
  SIM_ENTER(cuEventCreate);
  SIM_FIND_CONTEXT(context);
  if (!event || flags > 3) return sim_invalid("flags");
  const sim_event *made = sim_object_make(sizeof *made, SIM_EVENT, context, false);
  *event = SIM_HANDLE(CUevent, made);
  return CUDA_SUCCESS;
}

static void post_event(sim_stream *stream, enum sim_item_kind kind, sim_event *event) {
  ++event->items;
  sim_post(stream, (sim_item){.kind = kind, .event = event, .event_record = event->recorded});
}

CUresult sim_cuEventRecord(CUevent handle, CUstream where) {
  SIM_ENTER(cuEventRecord);
  FIND_EVENT(event, handle);
  SIM_FIND_STREAM(stream, where);
  if (stream->capture && stream->capture->invalid)
    return sim_refuse(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture is invalid");
  if (stream->capture) {
    sim_capture_record(stream, event);
    return CUDA_SUCCESS;
  }
  event->capture = 0;
  ++event->recorded;
  post_event(stream, SIM_ITEM_EVENT, event);
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamWaitEvent(CUstream where, CUevent handle, unsigned int flags) {
  SIM_ENTER(cuStreamWaitEvent);
  if (flags > CU_EVENT_WAIT_EXTERNAL) return sim_invalid("flags");
  FIND_EVENT(event, handle);
  SIM_FIND_STREAM(stream, where);
  if (flags == CU_EVENT_WAIT_EXTERNAL) {
    if (!stream->capture) return sim_invalid("external outside of a capture");
    if (event->reached < event->recorded) return sim_unsupported("external waits are simulated for past events only");
    return sim_capture_add(stream, (sim_work){.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT}); /* nothing to do */
  }
  if (stream->capture || event->capture) return sim_capture_wait(stream, event);
  post_event(stream, SIM_ITEM_WAIT, event);
  return CUDA_SUCCESS;
}

/* Queries of an event, and waits for it. */
static CUresult check_asked(const sim_event *event) {
  if (event->capture) return sim_refuse(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture");
  return sim_capture_unsafe();
}

CUresult sim_cuEventQuery(CUevent handle) {
  SIM_ENTER(cuEventQuery);
  FIND_EVENT(event, handle);
  SIM_TRY(check_asked(event));
  if (event->reached >= event->recorded) return sim_state(event->base.context);
  busy_step();
  return CUDA_ERROR_NOT_READY;
}

CUresult sim_cuEventSynchronize(CUevent handle) {
  SIM_ENTER(cuEventSynchronize);
  FIND_EVENT(event, handle);
  SIM_TRY(check_asked(event));
  uint64_t until = event->recorded, number = event->base.handle;
  sim_context *context = event->base.context;
  ++sim_count.waits;
  wait_begin();
  while (sim_is_alive(number, SIM_EVENT) && event->reached < until)
    pthread_cond_wait(&context->device->done, &sim_lock);
  wait_end();
  return sim_state(context);
}

CUresult sim_event_end(CUevent handle) {
  sim_event *event = SIM_OF(sim_event, handle, SIM_EVENT);
  if (!event) return sim_refuse(CUDA_ERROR_INVALID_HANDLE, "no event");
  CUresult state = sim_check_context(&event->base);
  sim_object_end(&event->base);
  event->gone = true;
  if (event->items == 0) event_free(event);
  return state;
}

SIM_DEFINE_BACK(cuEventDestroy, (CUevent event), sim_event_end(event))
