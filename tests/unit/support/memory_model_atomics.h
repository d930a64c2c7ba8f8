/* From here on atomics are those of memory_model.h. No guard, as what follows decides what they mean. */
#include "memory_model.h"
#undef atomic_store
#undef atomic_load
#undef atomic_store_explicit
#undef atomic_load_explicit
#undef atomic_thread_fence
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_compare_exchange_strong_explicit
#define MODEL_VALUE(p, value) \
  _Generic(*(p), unsigned: (unsigned)(value), int: (int)(value), default: (value))
#define atomic_store_explicit(p, value, order) model_store((void *)(p), (uint64_t)(value), sizeof *(p), order)
#define atomic_load_explicit(p, order) MODEL_VALUE(p, model_load((const void *)(p), sizeof *(p), order))
#define atomic_store(p, value) atomic_store_explicit(p, value, memory_order_seq_cst)
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)
#define atomic_thread_fence(order) model_fence(order)
#define atomic_fetch_add_explicit(p, value, order) \
  MODEL_VALUE(p, model_add((void *)(p), (uint64_t)(value), sizeof *(p), order))
#define atomic_fetch_sub_explicit(p, value, order) \
  MODEL_VALUE(p, model_add((void *)(p), 0 - (uint64_t)(value), sizeof *(p), order))
#define atomic_compare_exchange_strong_explicit(p, expected, value, order, failed) \
  model_exchange((void *)(p), expected, (uint64_t)(value), sizeof *(p), order, failed)
#define __atomic_store_n(p, value, order) \
  model_store((void *)(p), (uint64_t)(value), sizeof *(p), (memory_order)(order))
#define __atomic_load_n(p, order) \
  MODEL_VALUE(p, model_load((const void *)(p), sizeof *(p), (memory_order)(order)))
#define __atomic_compare_exchange_n(p, expected, value, weak, order, failed) \
  model_exchange((void *)(p), expected, (uint64_t)(value), sizeof *(p), (memory_order)(order), (memory_order)(failed))
