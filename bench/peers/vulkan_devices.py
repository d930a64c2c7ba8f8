"""Finds Vulkan devices by asking the loader, or prints them. Peers without a device silently continue on the CPU."""
import ctypes

LIBRARY = "libvulkan.so.1"
MOST = 16                       # devices at most
NAME, NAME_BYTES = 20, 256      # in VkPhysicalDeviceProperties, after five numbers
PROPERTIES_BYTES = 4096         # more than its size


def devices():
    """Their names, in the loader's order. Raises an OSError with the reason if there are none."""
    vulkan = ctypes.CDLL(LIBRARY)
    instance, count = ctypes.c_void_p(), ctypes.c_uint32(MOST)
    asked = (ctypes.c_uint64 * 8)(1)  # VkInstanceCreateInfo with its type and nothing else: no layers, no extensions
    code = vulkan.vkCreateInstance(asked, None, ctypes.byref(instance))
    if code:
        raise OSError(f"the loader answers {code}")
    found = (ctypes.c_void_p * MOST)()
    code = vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), found)
    names = []
    for k in range(count.value if code >= 0 else 0):
        properties = ctypes.create_string_buffer(PROPERTIES_BYTES)
        vulkan.vkGetPhysicalDeviceProperties(ctypes.c_void_p(found[k]), properties)
        names.append(properties.raw[NAME:NAME + NAME_BYTES].partition(b"\0")[0].decode(errors="replace"))
    vulkan.vkDestroyInstance(instance, None)
    if not names:
        raise OSError(f"the loader answers {code} and names none")
    return names


def why_none():
    """The reason why there is no device, or None."""
    try:
        devices()
    except OSError as why:
        return f"there is no Vulkan device: {why}"
    return None


if __name__ == "__main__":
    print("\n".join(devices()))
