#include "vulkan/graph.h"
#include "base/error.h"
#include "base/within.h"

/* Unmapped memory during a call: a copy of the whole block, since a call may write all of it, and two arguments may be
 * in one block. */
typedef struct host_copy { const gki_vulkan_block *block; void *at; uint32_t slot; /* the first in it */ } host_copy;
typedef struct host_copies { host_copy all[GK_MAX_ARGS]; uint32_t count; } host_copies;

static void *address_of(const gki_vulkan_block *block) { return (void *)(uintptr_t)block->address; }

static gk_result copy_to_host(gki_vulkan_device *d, host_copies *copies, const gki_vulkan_block *block,
                              uint32_t slot, unsigned char **copy) {
  uint32_t k = 0;
  while (k < copies->count && copies->all[k].block != block) ++k;
  if (k == copies->count) {
    copies->all[k] = (host_copy){block, gki_array(1, block->bytes, "a call's copy of unmapped memory"), slot};
    if (!copies->all[k].at) return GK_ERROR_MEMORY;
    ++copies->count;
    const gk_result result = gki_vulkan_copy_memory(d, GK_TO_HOST, copies->all[k].at, address_of(block), block->bytes);
    if (result != GK_OK) return result;
  }
  *copy = copies->all[k].at;
  return GK_OK;
}

gk_result gki_vulkan_slot_failed(const gki_vulkan_graph *g, const gk_node *node, uint32_t slot, gk_result result) {
  return gki_fail_with_prefix(result, "task %u (%s): slot %u (%s)", (unsigned)node->source, node->name, (unsigned)slot,
                              g->plan->slots[slot].name);
}

/* What a call wrote stays, also if the call failed. */
static gk_result copy_back(gki_vulkan_graph *g, const gk_node *node, const host_copies *copies, bool is_made,
                           gk_result result) {
  for (uint32_t k = 0; k < copies->count; ++k) {
    const host_copy *copy = &copies->all[k];
    const gk_result copied = is_made ? gki_vulkan_copy_memory(g->device, GK_TO_DEVICE, address_of(copy->block),
                                                              copy->at, copy->block->bytes) : GK_OK;
    if (result == GK_OK && copied != GK_OK) result = gki_vulkan_slot_failed(g, node, copy->slot, copied);
    gk_host_free(copy->at);
  }
  return result;
}

static gk_result find_memory(gki_vulkan_graph *g, const gk_node *node, uint32_t slot, host_copies *copies,
                             gk_value *arg) {
  const gki_vulkan_block *block = gki_vulkan_block_of(g->device, arg->ptr, 1);
  if (!block) return gki_vulkan_slot_failed(g, node, slot, gki_vulkan_refuse_address(arg->ptr));
  const size_t offset = (uintptr_t)arg->ptr - block->address;
  unsigned char *host = block->host;
  const gk_result result = host ? GK_OK : copy_to_host(g->device, copies, block, slot, &host);
  if (result != GK_OK) return gki_vulkan_slot_failed(g, node, slot, result);
  arg->ptr = host + offset;
  return GK_OK;
}

gk_result gki_vulkan_call(gki_vulkan_graph *g, const gk_node *node) {
  gk_value args[GK_MAX_ARGS] = {{.ptr = NULL}};
  host_copies copies = {.count = 0};
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < node->arg_count && result == GK_OK; ++k) {
    const uint32_t slot = g->plan->args[node->args + k];
    args[k] = g->launch.values[slot];
    if (g->plan->slots[slot].type == GK_PTR) result = find_memory(g, node, slot, &copies, &args[k]);
  }
  const bool is_made = result == GK_OK;
  if (is_made) result = gki_call_task(node, args, NULL);
  return copy_back(g, node, &copies, is_made, result);
}
