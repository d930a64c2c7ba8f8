/* In which order a device's streams do what gk puts on them. */
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

/* For the next launch on that stream: the launch before, and what was sent, may be on another one. In the device's
 * context, as all that follow. */
gk_result gki_cuda_go_to(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on);

/* Behind a launch on a stream that others may put work on; from here on that stream isn't touched any more: it may be
 * captured, or destroyed. Under the device's lock. If the end can't be marked, it is waited for. */
CUresult gki_cuda_mark_end(gki_cuda_device *device, gki_cuda_order *order, const gki_cuda_stream_id *on, CUevent event);

/* Another graph's launch that nothing marks the end of is marked before this one goes behind it. Under the device's
 * lock. */
gk_result gki_cuda_mark_last(gki_cuda_device *device);

/* The device's own stream needn't follow it any more. Under the device's lock. */
void gki_cuda_mark_joined(gki_cuda_device *device, gki_cuda_order *order);

/* Until the launches are over, those of other graphs not. None is being started. */
CUresult gki_cuda_await_launches(gki_cuda_device *device, gki_cuda_order *order);

/* Until what the graph has put on streams is over; order->current_stream is the device's own, or in use by a launch. */
CUresult gki_cuda_catch_up(const gki_cuda_device *device, const gki_cuda_order *order);

/* The device's own stream follows launches on other streams from now on. */
gk_result gki_cuda_join_streams(gki_cuda_device *device);

/* Before work of others is put on the device's stream: the end of what is last there is marked. */
gk_result gki_cuda_follow(gki_cuda_device *device);
#endif
