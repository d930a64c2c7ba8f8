#include "lower/loss.h"
#include "base/error.h"

void gki_loss_note(gki_loss *loss, pthread_mutex_t *lock) {
  pthread_mutex_lock(lock);
  if (!atomic_load(&loss->is_lost)) gki_error_save(loss->why, sizeof loss->why);
  atomic_store_explicit(&loss->is_lost, true, memory_order_release);
  pthread_mutex_unlock(lock);
}

gk_result gki_loss_refuse(const gki_loss *loss, const char *kind, int ordinal, const char *name) {
  if (!atomic_load_explicit(&loss->is_lost, memory_order_acquire)) return GK_OK;
  return gk_fail(GK_ERROR_DEVICE, "%s device %d (%s) is lost; close it, and if it can't be opened again, start the "
                 "program again. It began with: %s", kind, ordinal, name, loss->why);
}
