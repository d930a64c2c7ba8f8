/* A device that doesn't work any more. Each call on it fails, with the failure that it began with. */
#ifndef GKI_LOWER_LOSS_H
#define GKI_LOWER_LOSS_H
#include "gk_backend.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct gki_loss {
  atomic_bool is_lost;
  char why[1400]; /* written before, under the device's lock */
} gki_loss;

/* The device is lost, by the thread's last failure. */
void gki_loss_note(gki_loss *loss, pthread_mutex_t *lock);

/* GK_ERROR_DEVICE if it is lost. Calls no driver; any thread.
 * @param kind  "CUDA" */
gk_result gki_loss_refuse(const gki_loss *loss, const char *kind, int ordinal, const char *name);
#endif
