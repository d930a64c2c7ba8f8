/* The order of gk's work on a device's streams. */
#ifndef GKI_CUDA_STREAM_H
#define GKI_CUDA_STREAM_H
#include "cuda/device.h"
#include "cuda/gates.h"
#include <stdatomic.h>

/* The launches of a graph: their streams, and the events at their ends. */
typedef struct gki_cuda_order {
  const gk_plan *plan;     /* for messages */
  CUstream current_stream; /* where work is put: the device's own, except during a launch on another */
  gki_cuda_stream_id last_stream;     /* of the last launch */
  CUevent end;             /* right behind that launch, if callers may put work on its stream; NULL: it is on gk's
                            * own stream. Under the device's lock */
  struct gki_cuda_order *next_unjoined;
  CUevent event;           /* behind the last launch, if the device's `last` isn't this order */
  CUevent *events;         /* by place in the ring, if launches post no status; NULL: they post one */
  atomic_uint_fast64_t launched; /* launches that the driver took, as the control block counts them */
  uint64_t busy_until;     /* the graph's memory is in use until this launch is over; UINT64_MAX: a wait or a
                            * launch failed */
} gki_cuda_order;

static inline uint32_t gki_cuda_place_of(uint64_t number) { return (uint32_t)((number - 1) % GKI_LAUNCH_RING); }

static inline CUevent gki_cuda_event_of(const gki_cuda_order *order, uint64_t number) {
  return order->events ? order->events[gki_cuda_place_of(number)] : order->event;
}

/* What is known of an order's last launch:
 *
 *   last_stream            end      device->last  in device->unjoined   the launch is
 *   the device's           NULL     this          no                    on the device's own stream, its end unmarked
 *   the device's           NULL     another       no                    there, its event behind it; or there is none
 *   the device's, shared   its event  another     no                    there, where the caller may put work behind it
 *   another                its event  another     yes                   there; the device's stream doesn't wait for it
 *   another                its event  another     no                    there; the device's stream waits for it
 *
 * gki_cuda_order_launch leads to one of the first four, gki_cuda_join_streams from the fourth to the last, and
 * gki_cuda_mark_last from the first to the second. */

/* Makes `on` the current stream. It waits for the order's last launch and uploads. In the device's context, like all
 * functions below. */
gk_result gki_cuda_order_begin(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on);

/* Launches on the current stream, as launch `number`. Records an event at its end if callers may put work behind it. If
 * that fails, waits for the launch, since the next launch would overwrite what this one still reads. */
gk_result gki_cuda_order_launch(gki_cuda_device *device, gki_cuda_order *order, CUgraphExec exec,
                                const gki_cuda_stream_id *on, uint64_t number);

/* Waits for the order's launches, not for those of other graphs. No launch may start meanwhile. */
CUresult gki_cuda_order_wait(gki_cuda_device *device, gki_cuda_order *order);

/* Records the event of device->last, before other work follows that launch. Under the device's lock. */
gk_result gki_cuda_mark_last(gki_cuda_device *device);

/* Removes the order from device->unjoined. Under the device's lock. */
void gki_cuda_mark_joined(gki_cuda_device *device, gki_cuda_order *order);

/* Waits until all work of the graph is over. Its current stream is the device's own, or that of a starting launch. */
CUresult gki_cuda_order_drain(const gki_cuda_device *device, const gki_cuda_order *order);

/* Makes the device's own stream wait for all launches on other streams. */
gk_result gki_cuda_join_streams(gki_cuda_device *device);

/* gki_cuda_mark_last with the lock, before other work is put on the device's stream. */
gk_result gki_cuda_follow(gki_cuda_device *device);
#endif
