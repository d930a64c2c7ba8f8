/* The order of gk's work on a device's streams. */
#ifndef GKI_CUDA_STREAM_H
#define GKI_CUDA_STREAM_H
#include "cuda/device.h"
#include "cuda/gates.h"
#include <stdatomic.h>

/* The launches of a graph: where they are, and what marks their end. */
typedef struct gki_cuda_order {
  const gk_plan *plan;     /* for messages */
  CUstream current_stream; /* where all goes that is put on a stream: the device's own, but in a launch on another */
  gki_cuda_stream_id last_stream;     /* where the last launch is */
  CUevent end;             /* behind that launch alone, where others may put work behind it; NULL: it is on a stream of
                            * gk's own, and only waited for there. Under the device's lock */
  struct gki_cuda_order *next_unjoined;
  CUevent event;           /* behind the last launch, if the device's `last` isn't this order */
  CUevent *events;         /* by place in the ring, of launches that post nothing; NULL: all post */
  atomic_uint_fast64_t launched; /* launches that the driver took, as the control block counts them */
  uint64_t busy_until;     /* until this launch is over, something may use the graph's memory; UINT64_MAX: a wait
                            * failed, or a launch half way */
} gki_cuda_order;

static inline uint32_t gki_cuda_place_of(uint64_t number) { return (uint32_t)((number - 1) % GKI_CUDA_RING); }

static inline CUevent gki_cuda_event_of(const gki_cuda_order *order, uint64_t number) {
  return order->events ? order->events[gki_cuda_place_of(number)] : order->event;
}

/* What is known of an order's last launch:
 *
 *   last_stream            end      device->last  in device->unjoined   it is
 *   the device's           NULL     this          no                    on the device's own stream, its end unmarked
 *   the device's           NULL     another       no                    there, its event behind it; or never launched
 *   the device's, shared   its event  another     no                    there, where others may put work behind it
 *   another                its event  another     yes                   there; the device's stream doesn't follow it
 *   another                its event  another     no                    there; the device's stream follows it
 *
 * gki_cuda_order_launch leads to one of the first four, gki_cuda_join_streams from the fourth to the last, and
 * gki_cuda_mark_last from the first to the second. */

/* Goes to the stream of the next launch, which from there on follows the launch before and what was sent. In the
 * device's context, as all that follow. */
gk_result gki_cuda_order_begin(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on);

/* Launches it behind all that, as the launch of that number, and marks its end where others may put work behind it. If
 * the end can't be marked, it is waited for, as the next launch would write over what this one is still to read. */
gk_result gki_cuda_order_launch(gki_cuda_device *device, gki_cuda_order *order, CUgraphExec exec,
                                const gki_cuda_stream_id *on, uint64_t number);

/* Until the launches are over, those of other graphs not. None is being started. */
CUresult gki_cuda_order_wait(gki_cuda_device *device, gki_cuda_order *order);

/* Another graph's launch that nothing marks the end of is marked before this one goes behind it. Under the device's
 * lock. */
gk_result gki_cuda_mark_last(gki_cuda_device *device);

/* The device's own stream needn't follow it any more. Under the device's lock. */
void gki_cuda_mark_joined(gki_cuda_device *device, gki_cuda_order *order);

/* Until what the graph has put on streams is over; order->current_stream is the device's own, or in use by a launch. */
CUresult gki_cuda_catch_up(const gki_cuda_device *device, const gki_cuda_order *order);

/* The device's own stream follows launches on other streams from now on. */
gk_result gki_cuda_join_streams(gki_cuda_device *device);

/* Before work of others is put on the device's stream: the end of what is last there is marked. */
gk_result gki_cuda_follow(gki_cuda_device *device);
#endif
