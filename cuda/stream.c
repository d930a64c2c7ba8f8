#include "cuda/stream.h"

gk_result gki_cuda_mark_last(gki_cuda_device *device) {
  gki_cuda_order *last = device->last;
  if (!last) return GK_OK;
  CUresult result = device->driver->cuEventRecord(last->event, device->stream);
  if (result == CUDA_SUCCESS) device->last = NULL;
  return gki_cuda_graph_result(device, last->plan, result, "cuEventRecord");
}

gk_result gki_cuda_follow(gki_cuda_device *device) {
  pthread_mutex_lock(&device->lock);
  gk_result result = gki_cuda_mark_last(device);
  pthread_mutex_unlock(&device->lock);
  return result;
}

CUresult gki_cuda_order_drain(const gki_cuda_device *device, const gki_cuda_order *order) {
  const gki_cuda_driver *driver = device->driver;
  const bool by_event = order->current_stream == device->stream && order->end;
  gki_cuda_relax(device);
  const CUresult result =
      by_event ? driver->cuEventSynchronize(order->end) : driver->cuStreamSynchronize(order->current_stream);
  gki_cuda_unrelax();
  return result;
}

void gki_cuda_mark_joined(gki_cuda_device *device, gki_cuda_order *order) {
  gki_cuda_order **at = &device->unjoined;
  while (*at && *at != order) at = &(*at)->next_unjoined;
  if (*at) *at = order->next_unjoined;
}

/* Called once the device's stream waits for the order's last launch. From then on the order is on that stream, even if
 * the new launch fails. */
static void return_to_own_stream(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on) {
  pthread_mutex_lock(&device->lock);
  gki_cuda_mark_joined(device, order);
  order->last_stream = *on;
  order->end = NULL;
  pthread_mutex_unlock(&device->lock);
}

gk_result gki_cuda_order_begin(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on) {
  const gki_cuda_driver *driver = device->driver;
  CUresult result = CUDA_SUCCESS;
  if (!gki_cuda_is_same(on, &order->last_stream)) {
    CUevent before = order->end;
    if (!before) {
      before = order->event;
      pthread_mutex_lock(&device->lock);
      result = driver->cuEventRecord(before, device->stream);
      if (result == CUDA_SUCCESS && device->last == order) device->last = NULL;
      pthread_mutex_unlock(&device->lock);
    }
    if (result != CUDA_SUCCESS) return gki_cuda_graph_result(device, order->plan, result, "cuEventRecord");
    result = driver->cuStreamWaitEvent(on->stream, before, 0);
    if (result == CUDA_SUCCESS && on->stream == device->stream) return_to_own_stream(device, order, on);
  }
  if (result == CUDA_SUCCESS) order->current_stream = on->stream;
  return gki_cuda_graph_result(device, order->plan, result, "cuStreamWaitEvent");
}

gk_result gki_cuda_join_streams(gki_cuda_device *device) {
  gk_result result = GK_OK;
  pthread_mutex_lock(&device->lock);
  while (result == GK_OK && device->unjoined) {
    gki_cuda_order *order = device->unjoined;
    result = gki_cuda_graph_result(device, order->plan,
                                  device->driver->cuStreamWaitEvent(device->stream, order->end, 0),
                                  "cuStreamWaitEvent");
    if (result == GK_OK) device->unjoined = order->next_unjoined;
  }
  pthread_mutex_unlock(&device->lock);
  return result;
}

/* Callers can't put work on gk's own stream, so the event of its last launch is only recorded when needed. */
static bool is_own(const gki_cuda_device *device, CUstream stream) {
  return stream == device->stream && !device->shares_stream;
}

/* For a launch whose end has no event. */
static gk_result drain(const gki_cuda_device *device, const gki_cuda_order *order) {
  return gki_cuda_graph_result(device, order->plan, gki_cuda_order_drain(device, order), "waiting for the launch");
}

static gk_result mark_end_on_own(gki_cuda_device *device, gki_cuda_order *order, CUevent event) {
  if (!order->events) {
    device->last = order;
    return GK_OK;
  }
  const CUresult marked = device->driver->cuEventRecord(event, order->current_stream);
  return marked == CUDA_SUCCESS ? GK_OK : drain(device, order);
}

/* For a stream on which callers may put work. gk doesn't use that stream afterwards, since the caller may capture or
 * destroy it. */
static gk_result mark_end_on_shared(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on,
                                    CUevent event) {
  const gki_cuda_driver *driver = device->driver;
  const CUresult result = driver->cuEventRecord(event, order->current_stream);
  order->last_stream = *on;
  order->end = event;
  gki_cuda_mark_joined(device, order);
  if (result == CUDA_SUCCESS && order->current_stream != device->stream) {
    order->next_unjoined = device->unjoined;
    device->unjoined = order;
  }
  if (result == CUDA_SUCCESS) return GK_OK;
  order->last_stream = (gki_cuda_stream_id){device->stream, 0};
  order->end = NULL;
  return drain(device, order);
}

static gk_result launch_and_mark(gki_cuda_device *device, gki_cuda_order *order, CUgraphExec exec,
                                 const gki_cuda_stream_id *on, CUevent event) {
  const bool own = is_own(device, order->current_stream);
  gk_result result = own && device->last != order ? gki_cuda_mark_last(device) : GK_OK;
  if (result == GK_OK)
    result = gki_cuda_graph_result(device, order->plan, device->driver->cuGraphLaunch(exec, order->current_stream),
                                   "cuGraphLaunch");
  if (result != GK_OK) return result;
  return own ? mark_end_on_own(device, order, event) : mark_end_on_shared(device, order, on, event);
}

gk_result gki_cuda_order_launch(gki_cuda_device *device, gki_cuda_order *order, CUgraphExec exec,
                                const gki_cuda_stream_id *on, uint64_t number) {
  pthread_mutex_lock(&device->lock);
  const gk_result result = launch_and_mark(device, order, exec, on, gki_cuda_event_of(order, number));
  pthread_mutex_unlock(&device->lock);
  return result;
}

CUresult gki_cuda_order_wait(gki_cuda_device *device, gki_cuda_order *order) {
  const gki_cuda_driver *driver = device->driver;
  const uint64_t launched = atomic_load(&order->launched);
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&device->lock);
  if (device->last == order) {
    result = driver->cuEventRecord(order->event, device->stream);
    device->last = NULL;
  }
  pthread_mutex_unlock(&device->lock);
  if (order->busy_until == UINT64_MAX) { /* a failed launch may have no event */
    result = gki_cuda_order_drain(device, order);
    if (result == CUDA_SUCCESS) order->busy_until = 0;
    return result;
  }
  if (result == CUDA_SUCCESS && launched)
    result = driver->cuEventSynchronize(order->end ? order->end : gki_cuda_event_of(order, launched));
  return result == CUDA_SUCCESS ? result : gki_cuda_order_drain(device, order);
}
