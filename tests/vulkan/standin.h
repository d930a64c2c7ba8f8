/* A libvulkan.so.1 between gk and the real one, which it finds as libvulkan.so: its controls for tests, beside its
 * environment (README.md). A test gets them by vulkan_standin_find. */
#ifndef VULKAN_STANDIN_H
#define VULKAN_STANDIN_H
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

/* How call k fails. */
typedef enum vulkan_standin_how {
  VULKAN_STANDIN_NOW,  /* it does nothing and answers the code */
  VULKAN_STANDIN_LATE, /* it works, and waits answer the code from then on */
  VULKAN_STANDIN_LOST  /* it works, and then the device is lost */
} vulkan_standin_how;

typedef struct vulkan_standin {
  void (*set_seed)(uint64_t seed); /* 0: commands are handed on as they are recorded */
  /* The k-th call from now on, from 1, fails; 0: none does. Only calls that answer a VkResult count. code: one of
   * VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST; calls that can't answer that answer VK_ERROR_UNKNOWN. Of a
   * wait also VK_TIMEOUT. */
  void (*fail)(unsigned long k, int code, vulkan_standin_how how);
  unsigned long (*calls)(void);  /* since fail() */
  unsigned (*alive)(void);       /* objects that aren't destroyed, but for instances */
  const char *(*broken)(void);   /* the first rule that was broken, in words; "" if there is none */
  /* Dispatches and barriers in the command buffers that were recorded so far, with a seed. */
  void (*recorded)(unsigned *dispatches, unsigned *barriers);
} vulkan_standin;

/* NULL: there is the real library alone, or none. */
static inline const vulkan_standin *vulkan_standin_find(void) {
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? (const vulkan_standin *)dlsym(library, "vulkan_standin_control") : NULL;
}
#endif
