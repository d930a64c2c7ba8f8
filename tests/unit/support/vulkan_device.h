/* A Vulkan device for a test, which is skipped where there is none. */
#ifndef VULKAN_DEVICE_H
#define VULKAN_DEVICE_H
#include "test.h"
#include "gk.h"

static inline gk_device *open_vulkan(void) {
  gk_device *device;
  const gk_result result = gk_device_open(&(gk_device_desc){.backend = "vulkan"}, &device);
  if (result == GK_ERROR_NO_DEVICE) skip();
  assert_ok(result);
  return device;
}
#endif
