/* world.h has all of this. */
#ifndef USER_DRIVER_H
#define USER_DRIVER_H
#include "world.h"

static inline int find_user_driver(void **state) {
  (void)state;
  return 0;
}
#endif
