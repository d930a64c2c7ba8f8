/* gk_vulkan.h: memory of the program, and launches between its semaphores. */
#include "base/error.h"
#include "vulkan/graph.h"

static gk_result device_of(gk_device *device, const char *call, gki_vulkan_device **ours) {
  void *state;
  const gk_result result = gk_device_state(device, "vulkan", call, &state);
  if (result != GK_OK) return result;
  *ours = state;
  if ((*ours)->sharing.device) return GK_OK;
  return gk_fail(GK_ERROR_INVALID, "%s: the device doesn't share a VkDevice of yours; open it with gk_vulkan_sharing",
                 call);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static gk_result refuse_memory(const gk_vulkan_memory *memory, void **at) {
  if (!memory || !at)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_add_memory: `%s` is NULL", memory ? "at" : "memory");
  if (!memory->bytes) return gk_fail(GK_ERROR_INVALID, "gk_vulkan_add_memory: `bytes` is 0; give the memory's size");
  if (!memory->buffer && !memory->address)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_add_memory: there is neither a buffer nor an address; give one");
  return GK_OK;
}

gk_result gk_vulkan_add_memory(gk_device *device, const gk_vulkan_memory *memory, void **at) {
  if (at) *at = NULL;
  gki_begin();
  gki_vulkan_device *d;
  gk_result result = device_of(device, "gk_vulkan_add_memory", &d);
  if (result == GK_OK) result = refuse_memory(memory, at);
  if (result != GK_OK) return result;
  const VkBufferDeviceAddressInfo where = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                           .buffer = memory->buffer};
  const uint64_t begin = memory->buffer ? d->driver.GetBufferDeviceAddress(d->device, &where) + memory->offset
                                        : memory->address;
  if (memory->bytes > UINT64_MAX - begin)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_add_memory: no memory has %zu bytes from 0x%llx on", memory->bytes,
                   (unsigned long long)begin);
  gki_vulkan_block *block;
  result = gki_vulkan_add_block(d, memory->buffer, memory->buffer ? memory->offset : 0, begin, memory->bytes,
                                memory->host, &block);
  if (result == GK_OK) *at = (void *)(uintptr_t)begin;
  return result;
}

gk_result gk_vulkan_remove_memory(gk_device *device, void *at) {
  gki_begin();
  gki_vulkan_device *d;
  const gk_result result = device_of(device, "gk_vulkan_remove_memory", &d);
  if (result != GK_OK) return result;
  gki_vulkan_block *block = gki_vulkan_block_of(d, at, 1);
  if (!block || !gki_vulkan_is_added(block) || block->address != (uintptr_t)at)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_remove_memory: %p isn't from gk_vulkan_add_memory", at);
  const gk_result waited = gki_vulkan_check(d, gki_vulkan_wait(d, UINT64_MAX), "vkWaitSemaphores");
  gki_vulkan_free(d, block);
  return waited;
}

gk_result gk_vulkan_find_memory(gk_device *device, const void *at, gk_vulkan_memory *memory) {
  gki_begin();
  if (!memory) return gk_fail(GK_ERROR_INVALID, "gk_vulkan_find_memory: `memory` is NULL");
  *memory = (gk_vulkan_memory){0};
  gki_vulkan_device *d;
  const gk_result result = device_of(device, "gk_vulkan_find_memory", &d);
  if (result != GK_OK) return result;
  const gki_vulkan_block *block = gki_vulkan_block_of(d, at, 1);
  if (!block)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_find_memory: %p isn't memory of this device; give memory of gk_alloc",
                   at);
  const size_t from = (uintptr_t)at - block->address;
  *memory = (gk_vulkan_memory){block->buffer, block->offset + from, block->address + from, block->bytes - from,
                               block->host ? block->host + from : NULL};
  return GK_OK;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* What a launch gets of gk_vulkan_launch, and frees. No semaphore: there is nothing to wait for, or to signal. */
typedef struct order { gk_vulkan_point wait, signal; } order;

static gk_result refuse_used(gki_vulkan_graph *g) {
  uint64_t now = 0;
  const gki_vulkan_device *d = g->device;
  const gk_vulkan_point signal = g->signal;
  if (!signal.semaphore) return GK_OK;
  g->signal.semaphore = NULL;
  const VkResult answer = d->driver.GetSemaphoreCounterValue(d->device, signal.semaphore, &now);
  if (answer != VK_SUCCESS) return gki_vulkan_check(g->device, answer, "vkGetSemaphoreCounterValue");
  if (now >= signal.value)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_launch: graph %s can't signal the value %llu, since the semaphore is "
                   "at %llu already; give a larger value in each launch", g->plan->name,
                   (unsigned long long)signal.value, (unsigned long long)now);
  g->signal = signal;
  return GK_OK;
}

gk_result gki_vulkan_begin_order(gki_vulkan_graph *g, void *given) {
  g->signal = (gk_vulkan_point){0};
  if (!given) return GK_OK;
  const order points = *(const order *)given;
  gk_host_free(given);
  if (!g->device->sharing.device)
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_launch: the device of graph %s doesn't share a VkDevice of yours; open "
                   "it with gk_vulkan_sharing", g->plan->name);
  g->signal = points.signal;
  const gk_result result = refuse_used(g);
  if (result != GK_OK || !points.wait.semaphore) return result;
  VkResult answer = gki_vulkan_order(g->device, &points.wait, NULL);
  /* What the host does first in the launch comes behind the semaphore, too. */
  if (answer == VK_SUCCESS) answer = gki_vulkan_submit(g->device, NULL, 0, &g->last);
  return gki_vulkan_check(g->device, answer, "vkQueueSubmit of a wait for the program's semaphore");
}

gk_result gki_vulkan_end_order(gki_vulkan_graph *g, gk_result result) {
  if (!g->signal.semaphore) return result;
  const gk_vulkan_point signal = g->signal;
  g->signal.semaphore = NULL;
  const VkResult answer = gki_vulkan_order(g->device, NULL, &signal);
  const gk_result signalled = gki_vulkan_check(g->device, answer, "vkQueueSubmit of the program's semaphore");
  return result == GK_OK ? signalled : result;
}

gk_result gk_vulkan_launch(gk_graph *graph, int32_t label, const gk_vulkan_point *wait, const gk_vulkan_point *signal) {
  gki_begin();
  if ((wait && !wait->semaphore) || (signal && !signal->semaphore))
    return gk_fail(GK_ERROR_INVALID, "gk_vulkan_launch: `%s` has no semaphore; give NULL if there is none",
                   wait && !wait->semaphore ? "wait" : "signal");
  order *points = gk_host_alloc(sizeof *points);
  if (!points) return gki_fail_memory("a launch between semaphores", sizeof *points);
  if (wait) points->wait = *wait;
  if (signal) points->signal = *signal;
  const gk_result result = gk_graph_launch(graph, "vulkan", "gk_vulkan_launch", label, points);
  if (result != GK_OK) gk_host_free(points);
  return result;
}
