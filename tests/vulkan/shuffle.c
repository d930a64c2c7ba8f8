/* Commands are kept as they are submitted. When the host waits, they are handed on in an order that a seed chooses
 * among those that their barriers allow. What a command does at two stages is two steps: a grid or a condition may be
 * read long before the dispatch, from a copy made then. */
#include "vulkan/shuffle.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 256 /* steps to choose from */, COPY_BYTES = 16 /* of a grid or condition */ };
#define NOT_YET UINT32_MAX

/* ---- recording --------------------------------------------------------------------------------------------------- */

typedef enum kind_of_step { DISPATCH, TRANSFER, GRID, CONDITION, KINDS, BARRIER = KINDS, END_CONDITION } kind_of_step;

typedef struct command {
  kind_of_step kind; /* CONDITION: begins a region, END_CONDITION ends it */
  VkPipeline pipeline;
  VkPipelineLayout layout;
  uint32_t bytes; /* of push constants */
  unsigned char constants[128];
  uint32_t groups[3];
  VkBuffer from, to; /* a copy; a fill has no `from`; a grid that is read, or a condition: `from` */
  VkBufferCopy range;
  uint32_t value; /* of a fill; a condition's flags */
  VkPipelineStageFlags src_stages, dst_stages;
  VkAccessFlags src_access, dst_access;
} command;

typedef struct commands { command *all; size_t count, room; } commands;

typedef struct recording {
  struct recording *next;
  VkCommandBuffer handle;
  commands done;
  command state; /* pipeline and push constants */
} recording;

typedef struct queue {
  struct queue *next;
  VkQueue handle;
  VkDevice device;
  VkCommandPool pool;
  VkCommandBuffer buffer;
  VkBuffer copies; /* of grids and conditions */
  VkDeviceMemory memory;
  size_t copy_room;
  commands pending;
  VkSemaphore *signals;
  uint64_t *values;
  uint32_t signal_count;
} queue;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static recording *recordings;
static queue *queues;
static uint64_t chance; /* 0: nothing is shuffled */
static unsigned recorded[END_CONDITION + 1];

static void *grown(void *memory, size_t bytes) {
  void *larger = realloc(memory, bytes);
  if (!larger) abort();
  return larger;
}

static void append(commands *to, const command *c) {
  if (to->count == to->room) {
    to->room = to->room ? 2 * to->room : 16;
    to->all = grown(to->all, to->room * sizeof *to->all);
  }
  to->all[to->count++] = *c;
}

/* NULL: it is handed on at once. */
static recording *recording_of(VkCommandBuffer handle) {
  recording *r = recordings;
  while (r && r->handle != handle) r = r->next;
  return r;
}

void shuffle_set_seed(uint64_t seed) {
  pthread_mutex_lock(&lock);
  chance = seed ? seed * 0x9e3779b97f4a7c15u | 1 : 0;
  pthread_mutex_unlock(&lock);
}

static uint32_t below(uint32_t end) {
  chance ^= chance << 13;
  chance ^= chance >> 7;
  chance ^= chance << 17;
  return (uint32_t)((chance >> 33) % end);
}

static void forget(VkCommandBuffer handle) {
  recording **at = &recordings;
  while (*at && (*at)->handle != handle) at = &(*at)->next;
  recording *r = *at;
  if (!r) return;
  *at = r->next;
  free(r->done.all);
  free(r);
}

void shuffle_forget(VkCommandBuffer handle) {
  pthread_mutex_lock(&lock);
  forget(handle);
  pthread_mutex_unlock(&lock);
}

VkResult shuffle_BeginCommandBuffer(VkCommandBuffer handle, const VkCommandBufferBeginInfo *info) {
  pthread_mutex_lock(&lock);
  forget(handle);
  if (chance) {
    recording *r = grown(NULL, sizeof *r);
    *r = (recording){.next = recordings, .handle = handle};
    recordings = r;
  }
  pthread_mutex_unlock(&lock);
  return standin.BeginCommandBuffer(handle, info);
}

VkResult shuffle_EndCommandBuffer(VkCommandBuffer handle) {
  pthread_mutex_lock(&lock);
  const recording *r = recording_of(handle);
  for (size_t k = 0; r && k < r->done.count; ++k) ++recorded[r->done.all[k].kind];
  pthread_mutex_unlock(&lock);
  return standin.EndCommandBuffer(handle);
}

void shuffle_recorded(unsigned *dispatches, unsigned *barriers) {
  pthread_mutex_lock(&lock);
  *dispatches = recorded[DISPATCH];
  *barriers = recorded[BARRIER];
  pthread_mutex_unlock(&lock);
}

/* A command's function: what it does to the recording r, or else to the real command buffer. */
#define COMMAND(name, params, args, ...) \
  VKAPI_ATTR void VKAPI_CALL shuffle_##name params { \
    pthread_mutex_lock(&lock); \
    recording *r = recording_of(handle); \
    if (r) __VA_ARGS__ \
    pthread_mutex_unlock(&lock); \
    if (!r) standin.name args; \
  }

COMMAND(CmdBindPipeline, (VkCommandBuffer handle, VkPipelineBindPoint point, VkPipeline pipeline),
        (handle, point, pipeline), { r->state.pipeline = pipeline; })
COMMAND(CmdPushConstants, (VkCommandBuffer handle, VkPipelineLayout layout, VkShaderStageFlags stages, uint32_t at,
                           uint32_t bytes, const void *constants),
        (handle, layout, stages, at, bytes, constants), {
          r->state.layout = layout;
          if (at + bytes > r->state.bytes) r->state.bytes = at + bytes;
          memcpy(r->state.constants + at, constants, bytes);
        })
COMMAND(CmdDispatch, (VkCommandBuffer handle, uint32_t x, uint32_t y, uint32_t z), (handle, x, y, z), {
  command c = r->state;
  memcpy(c.groups, (uint32_t[]){x, y, z}, sizeof c.groups);
  append(&r->done, &c);
})
COMMAND(CmdDispatchIndirect, (VkCommandBuffer handle, VkBuffer grid, VkDeviceSize at), (handle, grid, at), {
  command c = r->state;
  c.from = grid;
  c.range.srcOffset = at;
  append(&r->done, &c);
})
COMMAND(CmdCopyBuffer, (VkCommandBuffer handle, VkBuffer from, VkBuffer to, uint32_t count, const VkBufferCopy *ranges),
        (handle, from, to, count, ranges), {
          for (uint32_t k = 0; k < count; ++k)
            append(&r->done, &(command){.kind = TRANSFER, .from = from, .to = to, .range = ranges[k]});
        })
COMMAND(CmdFillBuffer, (VkCommandBuffer handle, VkBuffer to, VkDeviceSize at, VkDeviceSize bytes, uint32_t value),
        (handle, to, at, bytes, value), {
          append(&r->done, &(command){.kind = TRANSFER, .to = to, .range = {0, at, bytes}, .value = value});
        })
COMMAND(CmdBeginConditionalRenderingEXT, (VkCommandBuffer handle, const VkConditionalRenderingBeginInfoEXT *info),
        (handle, info), {
          append(&r->done, &(command){.kind = CONDITION, .from = info->buffer, .range.srcOffset = info->offset,
                                      .value = info->flags});
        })
COMMAND(CmdEndConditionalRenderingEXT, (VkCommandBuffer handle), (handle), {
  append(&r->done, &(command){.kind = END_CONDITION});
})
COMMAND(CmdPipelineBarrier, (VkCommandBuffer handle, VkPipelineStageFlags src, VkPipelineStageFlags dst,
                             VkDependencyFlags flags, uint32_t count, const VkMemoryBarrier *all, uint32_t buffer_count,
                             const VkBufferMemoryBarrier *buffers, uint32_t image_count,
                             const VkImageMemoryBarrier *images),
        (handle, src, dst, flags, count, all, buffer_count, buffers, image_count, images), {
          command c = {.kind = BARRIER, .src_stages = src, .dst_stages = dst};
          for (uint32_t k = 0; k < count; ++k) {
            c.src_access |= all[k].srcAccessMask;
            c.dst_access |= all[k].dstAccessMask;
          }
          if (buffer_count + image_count) standin_break("tests/vulkan/shuffle.c knows barriers of all memory only");
          append(&r->done, &c);
        })

/* ---- which order barriers allow ---------------------------------------------------------------------------------- */

static const struct { VkPipelineStageFlags stage; VkAccessFlags reads, writes; } stages[KINDS + 1] = {
  [DISPATCH] = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT, VK_ACCESS_SHADER_WRITE_BIT},
  [TRANSFER] = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
  [GRID] = {VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, VK_ACCESS_INDIRECT_COMMAND_READ_BIT, 0},
  [CONDITION] = {VK_PIPELINE_STAGE_CONDITIONAL_RENDERING_BIT_EXT, VK_ACCESS_CONDITIONAL_RENDERING_READ_BIT_EXT, 0},
  [KINDS] = {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT, 0}, /* the host, which is no step */
};

static bool has(VkAccessFlags mask, VkAccessFlags needed) {
  const VkAccessFlags writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  if (mask & VK_ACCESS_MEMORY_READ_BIT) needed &= writes;
  if (mask & VK_ACCESS_MEMORY_WRITE_BIT) needed &= ~writes;
  return (mask & needed) == needed;
}

/* Whether steps of kind b behind the barrier see what steps of kind a before it wrote. Before a write, what only reads
 * must be over. Copies don't read what copies wrote: gk has none of this kind. */
static bool orders(const command *barrier, kind_of_step a, kind_of_step b) {
  const bool all_before = barrier->src_stages & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
             all_behind = barrier->dst_stages & VK_PIPELINE_STAGE_ALL_COMMANDS_BIT && b != KINDS;
  if (!(all_before || barrier->src_stages & stages[a].stage)) return false;
  if (!(all_behind || barrier->dst_stages & stages[b].stage)) return false;
  if (!stages[a].writes) return true;
  VkAccessFlags needed = stages[b].reads | stages[b].writes;
  if (b == TRANSFER) needed = a == TRANSFER ? stages[b].writes : stages[b].reads;
  return has(barrier->src_access, stages[a].writes) && has(barrier->dst_access, needed);
}

/* What a command does at one stage. */
typedef struct step {
  kind_of_step kind;
  const command *at;    /* dispatch or transfer; a grid's dispatch; the beginning of a region */
  uint32_t need[KINDS]; /* steps of that kind before this index come before it */
  uint32_t grid, condition; /* steps before a dispatch; NOT_YET: none */
  uint32_t copy;        /* where it is copied to; NOT_YET: it's read with its dispatch */
  bool is_over;
} step;

typedef struct plan { step *steps; uint32_t count, copies, first[KINDS] /* of the kind that isn't over */; } plan;

static uint32_t add_step(plan *p, kind_of_step kind, const command *at, uint32_t since[KINDS][KINDS + 1],
                         bool is_copied) {
  step *s = &p->steps[p->count];
  *s = (step){.kind = kind, .at = at, .grid = NOT_YET, .condition = NOT_YET, .copy = is_copied ? p->copies++ : NOT_YET};
  for (int k = 0; k < KINDS; ++k) s->need[k] = since[k][kind];
  return p->count++;
}

/* A condition is read where its region begins, or anew before each dispatch: drivers do either. */
static void make_steps(plan *p, const commands *all) {
  uint32_t since[KINDS][KINDS + 1] = {{0}}, latched = NOT_YET, last[KINDS] = {0};
  const command *region = NULL;
  for (size_t k = 0; k < all->count; ++k) {
    const command *c = &all->all[k];
    if (c->kind == BARRIER) {
      for (int a = 0; a < KINDS; ++a)
        for (int b = 0; b <= KINDS; ++b)
          if (orders(c, (kind_of_step)a, (kind_of_step)b)) since[a][b] = p->count;
    } else if (c->kind == CONDITION) {
      region = c;
      latched = below(2) ? add_step(p, CONDITION, c, since, true) : NOT_YET;
    } else if (c->kind == END_CONDITION) {
      region = NULL;
    } else {
      const uint32_t condition = !region ? NOT_YET : latched != NOT_YET ? latched
                                                                      : add_step(p, CONDITION, region, since, false);
      const bool has_grid = c->kind == DISPATCH && c->from;
      const uint32_t grid = has_grid ? add_step(p, GRID, c, since, below(2)) : NOT_YET;
      const uint32_t at = add_step(p, c->kind, c, since, false);
      p->steps[at].grid = grid;
      p->steps[at].condition = c->kind == DISPATCH ? condition : NOT_YET;
      last[c->kind] = p->count;
    }
  }
  for (int k = DISPATCH; k <= TRANSFER; ++k)
    if (last[k] > since[k][KINDS])
      standin_break("the host waits for what %s wrote, without a barrier", k == TRANSFER ? "a copy" : "a shader");
}

static bool may_begin(const plan *p, const step *s) {
  for (int k = 0; k < KINDS; ++k)
    if (p->first[k] < s->need[k]) return false;
  return true;
}

/* A step that is read with its dispatch has no turn of its own. */
static bool is_ready(const plan *p, uint32_t at) {
  const step *s = &p->steps[at];
  if (s->is_over || ((s->kind == GRID || s->kind == CONDITION) && s->copy == NOT_YET) || !may_begin(p, s)) return false;
  const uint32_t before[] = {s->grid, s->condition};
  for (int k = 0; k < 2; ++k) {
    if (before[k] == NOT_YET) continue;
    const step *b = &p->steps[before[k]];
    if (b->copy == NOT_YET ? !may_begin(p, b) : !b->is_over) return false;
  }
  return true;
}

static void end_step(plan *p, uint32_t at) {
  step *s = &p->steps[at];
  s->is_over = true;
  uint32_t *first = &p->first[s->kind];
  while (*first < p->count && (p->steps[*first].kind != s->kind || p->steps[*first].is_over)) ++*first;
}

/* Any, or the last that may be the next one. */
static uint32_t choose(const plan *p, uint32_t from, bool takes_last) {
  uint32_t chosen = NOT_YET, found = 0;
  for (uint32_t k = from; k < p->count && k < from + WINDOW; ++k)
    if (is_ready(p, k) && (takes_last || below(++found) == 0)) chosen = k;
  return chosen;
}

/* ---- handing on -------------------------------------------------------------------------------------------------- */

static void put_barrier(const queue *q) {
  const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
  const VkPipelineStageFlags behind = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  standin.CmdPipelineBarrier(q->buffer, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, behind, 0, 1, &all, 0, NULL, 0, NULL);
}

static void put_dispatch(const queue *q, const plan *p, const step *s) {
  const command *c = s->at;
  const step *condition = s->condition != NOT_YET ? &p->steps[s->condition] : NULL;
  if (condition) {
    VkConditionalRenderingBeginInfoEXT info = {.sType = VK_STRUCTURE_TYPE_CONDITIONAL_RENDERING_BEGIN_INFO_EXT,
                                               .buffer = condition->at->from, .flags = condition->at->value,
                                               .offset = condition->at->range.srcOffset};
    if (condition->copy != NOT_YET) {
      info.buffer = q->copies;
      info.offset = condition->copy * COPY_BYTES;
    }
    standin.CmdBeginConditionalRenderingEXT(q->buffer, &info);
  }
  standin.CmdBindPipeline(q->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, c->pipeline);
  if (c->bytes)
    standin.CmdPushConstants(q->buffer, c->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, c->bytes, c->constants);
  if (!c->from) standin.CmdDispatch(q->buffer, c->groups[0], c->groups[1], c->groups[2]);
  else if (p->steps[s->grid].copy == NOT_YET) standin.CmdDispatchIndirect(q->buffer, c->from, c->range.srcOffset);
  else standin.CmdDispatchIndirect(q->buffer, q->copies, p->steps[s->grid].copy * COPY_BYTES);
  if (condition) standin.CmdEndConditionalRenderingEXT(q->buffer);
}

static void put_step(const queue *q, const plan *p, const step *s) {
  const command *c = s->at;
  const VkBufferCopy kept = {c->range.srcOffset, s->copy * COPY_BYTES, s->kind == GRID ? 12 : 4};
  if (s->kind == DISPATCH) put_dispatch(q, p, s);
  else if (s->kind != TRANSFER) standin.CmdCopyBuffer(q->buffer, c->from, q->copies, 1, &kept);
  else if (c->from) standin.CmdCopyBuffer(q->buffer, c->from, c->to, 1, &c->range);
  else standin.CmdFillBuffer(q->buffer, c->to, c->range.dstOffset, c->range.size, c->value);
  put_barrier(q);
}

static void need(VkResult result) {
  if (result != VK_SUCCESS) abort();
}

static void make_room(queue *q, size_t copies) {
  if (copies <= q->copy_room) return;
  standin.DestroyBuffer(q->device, q->copies, NULL);
  standin.FreeMemory(q->device, q->memory, NULL);
  q->copy_room = 2 * copies;
  const VkBufferCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = q->copy_room * COPY_BYTES,
    .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
             (standin.CmdBeginConditionalRenderingEXT ? VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT : 0)};
  need(standin.CreateBuffer(q->device, &info, NULL, &q->copies));
  VkMemoryRequirements needs;
  standin.GetBufferMemoryRequirements(q->device, q->copies, &needs);
  const VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size,
                                       .memoryTypeIndex = (uint32_t)__builtin_ctz(needs.memoryTypeBits)};
  need(standin.AllocateMemory(q->device, &memory, NULL, &q->memory));
  need(standin.BindBufferMemory(q->device, q->copies, q->memory, 0));
}

static void record(queue *q, plan *p) {
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  need(standin.BeginCommandBuffer(q->buffer, &info));
  uint32_t from = 0;
  for (int k = 0; k < KINDS; ++k)
    while (p->first[k] < p->count && p->steps[p->first[k]].kind != (kind_of_step)k) ++p->first[k];
  const bool takes_last = below(4) == 0;
  while (from < p->count) {
    const uint32_t at = choose(p, from, takes_last);
    if (at == NOT_YET) abort();
    const step *s = &p->steps[at];
    put_step(q, p, s);
    end_step(p, at);
    if (s->grid != NOT_YET) end_step(p, s->grid);
    if (s->condition != NOT_YET) end_step(p, s->condition);
    while (from < p->count && p->steps[from].is_over) ++from;
  }
  need(standin.EndCommandBuffer(q->buffer));
}

/* Under the lock. */
static void flush(queue *q) {
  if (!q->signal_count && !q->pending.count) return;
  plan p = {.steps = grown(NULL, (3 * q->pending.count + 1) * sizeof *p.steps)};
  make_steps(&p, &q->pending);
  need(standin.QueueWaitIdle(q->handle));
  need(standin.ResetCommandPool(q->device, q->pool, 0));
  make_room(q, p.copies);
  record(q, &p);
  const VkTimelineSemaphoreSubmitInfo numbers = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                 .signalSemaphoreValueCount = q->signal_count,
                                                 .pSignalSemaphoreValues = q->values};
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &numbers, .commandBufferCount = 1,
                               .pCommandBuffers = &q->buffer, .signalSemaphoreCount = q->signal_count,
                               .pSignalSemaphores = q->signals};
  need(standin.QueueSubmit(q->handle, 1, &submit, VK_NULL_HANDLE));
  free(p.steps);
  q->pending.count = q->signal_count = 0;
}

/* The later value stands for earlier ones of the same semaphore. */
static void add_signal(queue *q, VkSemaphore semaphore, uint64_t value) {
  uint32_t at = 0;
  while (at < q->signal_count && q->signals[at] != semaphore) ++at;
  if (at == q->signal_count) {
    ++q->signal_count;
    q->signals = grown(q->signals, q->signal_count * sizeof *q->signals);
    q->values = grown(q->values, q->signal_count * sizeof *q->values);
  }
  q->signals[at] = semaphore;
  q->values[at] = value;
}

static void keep_submit(queue *q, const VkSubmitInfo *submit) {
  const VkTimelineSemaphoreSubmitInfo *numbers = submit->pNext;
  while (numbers && numbers->sType != VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO) numbers = numbers->pNext;
  if (submit->waitSemaphoreCount) standin_break("tests/vulkan/shuffle.c doesn't know submits that wait");
  for (uint32_t k = 0; k < submit->commandBufferCount; ++k) {
    const recording *r = recording_of(submit->pCommandBuffers[k]);
    for (size_t n = 0; r && n < r->done.count; ++n) append(&q->pending, &r->done.all[n]);
  }
  for (uint32_t k = 0; k < submit->signalSemaphoreCount; ++k)
    add_signal(q, submit->pSignalSemaphores[k], numbers ? numbers->pSignalSemaphoreValues[k] : 0);
}

VkResult shuffle_QueueSubmit(VkQueue handle, uint32_t count, const VkSubmitInfo *submits, VkFence fence) {
  pthread_mutex_lock(&lock);
  queue *q = queues;
  while (q && q->handle != handle) q = q->next;
  const bool is_kept = chance && q;
  for (uint32_t k = 0; k < count && is_kept; ++k) keep_submit(q, &submits[k]);
  if (is_kept && fence) standin_break("tests/vulkan/shuffle.c doesn't know fences");
  pthread_mutex_unlock(&lock);
  return is_kept ? VK_SUCCESS : standin.QueueSubmit(handle, count, submits, fence);
}

void shuffle_flush(VkDevice device) {
  pthread_mutex_lock(&lock);
  for (queue *q = queues; q; q = q->next)
    if (q->device == device) flush(q);
  pthread_mutex_unlock(&lock);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

void shuffle_add_queue(VkDevice device, uint32_t family, VkQueue handle) {
  pthread_mutex_lock(&lock);
  const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = family};
  queue *q = queues;
  while (q && q->handle != handle) q = q->next;
  if (chance && !q) {
    q = grown(NULL, sizeof *q);
    *q = (queue){.next = queues, .handle = handle, .device = device};
    need(standin.CreateCommandPool(device, &info, NULL, &q->pool));
    const VkCommandBufferAllocateInfo one = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = q->pool, .commandBufferCount = 1};
    need(standin.AllocateCommandBuffers(device, &one, &q->buffer));
    queues = q;
  }
  pthread_mutex_unlock(&lock);
}

void shuffle_end_device(VkDevice device) {
  pthread_mutex_lock(&lock);
  for (queue **at = &queues; *at;) {
    queue *q = *at;
    if (q->device != device) {
      at = &q->next;
      continue;
    }
    if (q->pending.count) standin_break("a device is destroyed before its work was waited for");
    *at = q->next;
    standin.QueueWaitIdle(q->handle);
    standin.DestroyBuffer(device, q->copies, NULL);
    standin.FreeMemory(device, q->memory, NULL);
    standin.DestroyCommandPool(device, q->pool, NULL);
    free(q->pending.all);
    free(q->signals);
    free(q->values);
    free(q);
  }
  pthread_mutex_unlock(&lock);
}
