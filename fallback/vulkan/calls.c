#include "vulkan/calls.h"
#include "base/error.h"
#include "vulkan/copy.h"

/* Far memory during a call: a copy of the whole block, since a call may write all of it, and two arguments may be in
 * one block. */
typedef struct loan { const gki_vulkan_block *block; void *copy; } loan;
typedef struct loans { loan all[GK_MAX_ARGS]; uint32_t count; } loans;

static void *address_of(const gki_vulkan_block *block) { return (void *)(uintptr_t)block->at; }

static gk_result lend(gki_vulkan_device *d, loans *given, const gki_vulkan_block *block, unsigned char **copy) {
  uint32_t k = 0;
  while (k < given->count && given->all[k].block != block) ++k;
  if (k == given->count) {
    given->all[k] = (loan){block, gki_array(1, block->bytes, "a call's copy of far memory")};
    if (!given->all[k].copy) return GK_ERROR_MEMORY;
    ++given->count;
    const gk_result result = gki_vulkan_copy_memory(d, GK_TO_HOST, given->all[k].copy, address_of(block), block->bytes);
    if (result != GK_OK) return result;
  }
  *copy = given->all[k].copy;
  return GK_OK;
}

/* result: of the call. After a failure nothing is copied back. */
static gk_result take_back(gki_vulkan_device *d, const loans *given, gk_result result) {
  for (uint32_t k = 0; k < given->count; ++k) {
    const gki_vulkan_block *block = given->all[k].block;
    if (result == GK_OK)
      result = gki_vulkan_copy_memory(d, GK_TO_DEVICE, address_of(block), given->all[k].copy, block->bytes);
    gk_host_free(given->all[k].copy);
  }
  return result;
}

gk_result gki_vulkan_refuse(const gki_vulkan_graph *g, const gk_node *node, uint32_t slot) {
  return gk_fail(GK_ERROR_INVALID, "task %u (%s): slot %u (%s) holds %p, which is no memory of this device; bind "
                 "memory of gk_alloc", (unsigned)node->source, node->name, (unsigned)slot, g->plan->slots[slot].name,
                 g->launch.values[slot].ptr);
}

static gk_result find_memory(gki_vulkan_graph *g, const gk_node *node, uint32_t slot, loans *given, gk_value *arg) {
  const gki_vulkan_block *block = gki_vulkan_block_of(g->device, arg->ptr, 1);
  if (!block) return gki_vulkan_refuse(g, node, slot);
  const size_t offset = (uintptr_t)arg->ptr - block->at;
  unsigned char *here = block->here;
  const gk_result result = here ? GK_OK : lend(g->device, given, block, &here);
  if (result == GK_OK) arg->ptr = here + offset;
  return result;
}

gk_result gki_vulkan_call(gki_vulkan_graph *g, const gk_node *node) {
  gk_value args[GK_MAX_ARGS];
  loans given = {.count = 0};
  gk_result result = GK_OK;
  for (uint32_t k = 0; k < node->arg_count && result == GK_OK; ++k) {
    const uint32_t slot = g->plan->args[node->args + k];
    args[k] = g->launch.values[slot];
    if (g->plan->slots[slot].type == GK_PTR) result = find_memory(g, node, slot, &given, &args[k]);
  }
  if (result == GK_OK) {
    result = node->call(args, NULL);
    if (result != GK_OK)
      gk_fail(result, "task %u (%s): the call answered %s", (unsigned)node->source, node->name, gk_result_name(result));
  }
  return take_back(g->device, &given, result);
}
