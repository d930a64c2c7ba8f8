#include "vulkan/driver.h"
#include "base/fork.h"
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* One for the process, never destroyed: drivers that are unloaded with their last instance leave memory and threads
 * behind. A child process makes its own, since its parent's threads are missing there. */
static struct { VkInstance instance; pid_t process; } shared;
GKI_PROCESS_LOCK(lock)

/* Never closed. */
static PFN_vkGetInstanceProcAddr load(void) {
  void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
  PFN_vkGetInstanceProcAddr entry;
  memcpy(&entry, &found, sizeof entry);
  return entry;
}

/* ---- entries ----------------------------------------------------------------------------------------------------- */

typedef struct entry { const char *name; size_t at; bool is_needed; } entry;
#define NEEDED(name) {"vk" #name, offsetof(gki_vulkan_driver, name), true},
#define OPTIONAL(name) {"vk" #name, offsetof(gki_vulkan_driver, name), false},
static const entry of_instance[] = {GKI_VULKAN_OF_INSTANCE(NEEDED)},
                   of_device[] = {GKI_VULKAN_OF_DEVICE(NEEDED) GKI_VULKAN_OPTIONAL(OPTIONAL)};

static bool keep(gki_vulkan_driver *driver, entry one, PFN_vkVoidFunction found) {
  memcpy((char *)driver + one.at, &found, sizeof found);
  return found != NULL;
}

/* is_shared: the instance is the program's */
static gk_result missing(const char *name, bool is_shared) {
  return is_shared ? gk_fail(GK_ERROR_INVALID, "backend vulkan: gk_vulkan_sharing: %s isn't there; make the VkInstance "
                             "with VkApplicationInfo.apiVersion VK_API_VERSION_1_2 or newer", name)
                   : gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: the driver has no %s; it needs Vulkan 1.2", name);
}

/* ---- the instance ------------------------------------------------------------------------------------------------ */

/* Under the lock. */
static gk_result make_instance(PFN_vkGetInstanceProcAddr find) {
  PFN_vkCreateInstance create = (PFN_vkCreateInstance)find(NULL, "vkCreateInstance");
  if (!create) return missing("vkCreateInstance", false);
  const VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "gk",
                                     .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
  const VkResult result = create(&info, NULL, &shared.instance);
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY) return gki_vulkan_result(result, "vkCreateInstance");
  if (result != VK_SUCCESS)
    return gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: there is no driver that starts (vkCreateInstance gave %d); "
                   "install one, such as mesa-vulkan-drivers", (int)result);
  shared.process = getpid();
  return GK_OK;
}

static gk_result find_instance(PFN_vkGetInstanceProcAddr find, VkInstance *instance) {
  pthread_mutex_lock(&lock);
  const gk_result result = shared.process == getpid() ? GK_OK : make_instance(find);
  *instance = shared.instance;
  pthread_mutex_unlock(&lock);
  return result;
}

gk_result gki_vulkan_driver_open(gki_vulkan_driver *driver, PFN_vkGetInstanceProcAddr find, VkInstance *instance) {
  if (!find) find = load();
  if (!find)
    return gk_fail(GK_ERROR_NO_DEVICE, "backend vulkan: there is no libvulkan.so.1; install libvulkan1 and a driver");
  driver->is_shared = *instance;
  const gk_result result = *instance ? GK_OK : find_instance(find, instance);
  if (result != GK_OK) return result;
  for (size_t k = 0; k < GK_COUNT(of_instance); ++k)
    if (!keep(driver, of_instance[k], find(*instance, of_instance[k].name)))
      return missing(of_instance[k].name, driver->is_shared);
  return GK_OK;
}

gk_result gki_vulkan_driver_find(gki_vulkan_driver *driver, VkDevice device) {
  for (size_t k = 0; k < GK_COUNT(of_device); ++k)
    if (!keep(driver, of_device[k], driver->GetDeviceProcAddr(device, of_device[k].name)) && of_device[k].is_needed)
      return missing(of_device[k].name, driver->is_shared);
  return GK_OK;
}

gk_result gki_vulkan_result(VkResult result, const char *what) {
  switch (result) {
  case VK_SUCCESS: return GK_OK;
  case VK_ERROR_OUT_OF_HOST_MEMORY: return gk_fail(GK_ERROR_MEMORY, "backend vulkan: %s: out of host memory", what);
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
  case VK_ERROR_TOO_MANY_OBJECTS:
    return gk_fail(GK_ERROR_MEMORY, "backend vulkan: %s: out of device memory; free some and call again", what);
  case VK_ERROR_DEVICE_LOST:
    return gk_fail(GK_ERROR_DEVICE, "backend vulkan: %s: the device is lost; a task may have run longer than the "
                   "driver's watchdog allows, often some seconds, or have used memory that isn't its own: close the "
                   "device, and divide such a task into passes of a loop", what);
  default: return gk_fail(GK_ERROR_DEVICE, "backend vulkan: %s failed with VkResult %d; close the device", what,
                          (int)result);
  }
}
