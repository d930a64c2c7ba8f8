/* Callers hold numbers that are never given out twice, so that a use after the end is always seen. Streams are the
 * exception: a new stream gets the handle of a destroyed one, as drivers do. */
#include "sim.h"
#include <stdlib.h>
#include <string.h>

/* Handles look like pointers, but point to no memory that a process has. */
static const uint64_t FIRST = UINT64_C(0x0ABC000000000000);
enum { STEP = 16 };

typedef struct entry {
  sim_object *object; /* NULL: ended */
  sim_kind kind;
} entry;

static entry *entries;
static size_t entry_count;
static uint64_t *ended; /* handles of streams, the last one at the end */
static size_t ended_count;
static size_t alive[SIM_KIND_COUNT];
static const char *const names[SIM_KIND_COUNT] = {"thing", "context", "module", "function", "stream", "event", "graph",
                                                  "graph node", "graph exec", "conditional handle"};

void *sim_obtain(size_t bytes) {
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) abort();
  return memory;
}

void *sim_duplicate(const void *from, size_t bytes) { return from ? memcpy(sim_obtain(bytes), from, bytes) : NULL; }

void *sim_grow(void *array, size_t count, size_t element) {
  if (count != 0 && (count & (count - 1)) != 0) return array; /* grows at powers of two */
  void *grown = realloc(array, (count ? 2 * count : 1) * element);
  if (!grown) abort();
  return grown;
}

uint64_t sim_random(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t mixed = *state;
  mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
  return mixed ^ (mixed >> 31);
}

static bool is_given_again(const sim_object *object) { return object->kind == SIM_STREAM && !object->inner; }

void *sim_object_make(size_t bytes, sim_kind kind, sim_context *context, bool inner) {
  sim_object *object = sim_obtain(bytes);
  object->kind = kind;
  object->context = context;
  object->inner = inner;
  if (is_given_again(object) && ended_count) {
    object->handle = ended[--ended_count];
    entries[(object->handle - FIRST) / STEP - 1].object = object;
  } else {
    entries = sim_grow(entries, entry_count, sizeof *entries);
    entries[entry_count] = (entry){object, kind};
    object->handle = FIRST + STEP * (uint64_t)++entry_count;
  }
  if (!inner) ++alive[kind];
  return object;
}

void sim_object_end(sim_object *object) {
  entries[(object->handle - FIRST) / STEP - 1].object = NULL;
  if (is_given_again(object)) {
    ended = sim_grow(ended, ended_count, sizeof *ended);
    ended[ended_count++] = object->handle;
  }
  if (!object->inner) --alive[object->kind];
}

void sim_object_forget(sim_object *object) {
  if (!object->inner) --alive[object->kind];
  object->inner = true;
}

static entry *entry_of(uint64_t handle) {
  if (handle <= FIRST || (handle - FIRST) % STEP != 0 || (handle - FIRST) / STEP > entry_count) return NULL;
  return &entries[(handle - FIRST) / STEP - 1];
}

bool sim_is_alive(uint64_t handle, sim_kind kind) {
  entry *found = entry_of(handle);
  return found && found->kind == kind && found->object;
}

bool sim_is(uint64_t handle, const void *object) {
  entry *found = entry_of(handle);
  return found && found->object == object;
}

void *sim_find(uint64_t handle, sim_kind kind) {
  entry *found = entry_of(handle);
  if (!found) sim_broken("handle", "%#llx was used as a %s, and is nothing", (unsigned long long)handle, names[kind]);
  else if (found->kind != kind) sim_broken("handle", "a %s was used as a %s", names[found->kind], names[kind]);
  else if (!found->object) sim_broken("destroyed", "a %s was used after its end", names[kind]);
  else return found->object;
  return NULL;
}

CUresult sim_check_context(const sim_object *object) {
  SIM_FIND_CONTEXT(context);
  if (object->context == context) return CUDA_SUCCESS;
  return sim_breaks(CUDA_ERROR_INVALID_CONTEXT, "foreign", "a %s of another context than the current one was used",
                    names[object->kind]);
}

CUresult sim_find_here(uint64_t handle, sim_kind kind, CUresult code, void **object) {
  SIM_FIND_CONTEXT(context);
  *object = sim_find(handle, kind);
  return *object ? sim_check_context(*object) : sim_refuse(code, "no %s", names[kind]);
}

const char *const sim_kind_names[SIMGPU_KINDS] = {
  "", "context retains", "streams", "events", "modules", "graphs", "graph execs", "blocks of device memory",
  "blocks of pinned memory", "blocks of managed memory", "contexts"};

static const sim_kind kinds[SIMGPU_KINDS] = {
  [SIMGPU_STREAMS] = SIM_STREAM, [SIMGPU_EVENTS] = SIM_EVENT, [SIMGPU_MODULES] = SIM_MODULE,
  [SIMGPU_GRAPHS] = SIM_GRAPH, [SIMGPU_EXECS] = SIM_EXEC, [SIMGPU_CONTEXTS] = SIM_CONTEXT};

static size_t alive_blocks(const sim_context *context, simgpu_kind kind) {
  size_t count = 0;
  for (const sim_block *each = context->blocks; each; each = each->next) count += each->kind == kind;
  return count;
}

size_t sim_alive(simgpu_kind kind) {
  size_t count = 0;
  if (kind == SIMGPU_ALL) {
    for (int each = SIMGPU_ALL + 1; each < SIMGPU_KINDS; ++each) count += sim_alive((simgpu_kind)each);
    return count;
  }
  if (kind >= SIMGPU_KINDS) return 0;
  if (kinds[kind]) return alive[kinds[kind]];
  SIM_EACH_DEVICE(device)
    for (const sim_context *each = device->contexts; each; each = each->next)
      count += kind == SIMGPU_RETAINS ? each->retains : alive_blocks(each, kind);
  return count;
}

size_t sim_alive_in(const sim_context *context, simgpu_kind kind) {
  size_t count = 0;
  if (!kinds[kind]) return alive_blocks(context, kind);
  for (size_t k = 0; k < entry_count; ++k) {
    const entry *each = &entries[k];
    count += each->object && each->kind == kinds[kind] && each->object->context == context && !each->object->inner;
  }
  return count;
}

void sim_objects_reset(const sim_context *context) {
  for (size_t k = 0; k < entry_count; ++k) {
    const sim_object *object = entries[k].object;
    if (!object || object->context != context || object->inner) continue;
    const uintptr_t handle = (uintptr_t)object->handle;
    if (object->kind == SIM_MODULE) (void)sim_unload((CUmodule)handle);
    else if (object->kind == SIM_EVENT) (void)sim_event_end((CUevent)handle);
    else if (object->kind == SIM_EXEC) (void)sim_exec_end((CUgraphExec)handle);
    else if (object->kind == SIM_STREAM) sim_stream_drop((sim_stream *)entries[k].object);
  }
}
