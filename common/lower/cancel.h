/* The word by which a cancel stops the launch under way, in memory that the device reads. Common has set
 * gk_launch_args.cancel before. A launch that begins meanwhile clears the word before it reads that one, so it sees the
 * cancel there, or the word is set after it was cleared. */
#ifndef GKI_LOWER_CANCEL_H
#define GKI_LOWER_CANCEL_H
#include "gk_backend.h"
#include <stdatomic.h>

/* Sets the word. Any thread may do so at any time. */
static inline void gki_cancel_set(uint32_t *word) {
  atomic_thread_fence(memory_order_seq_cst);
  __atomic_store_n(word, 1, __ATOMIC_RELAXED);
}

/* Clears the word, before a launch. */
static inline void gki_cancel_begin(uint32_t *word, const gk_launch_args *launch) {
  __atomic_store_n(word, 0, __ATOMIC_RELAXED);
  atomic_thread_fence(memory_order_seq_cst);
  if (__atomic_load_n(launch->cancel, __ATOMIC_RELAXED)) gki_cancel_set(word);
}
#endif
