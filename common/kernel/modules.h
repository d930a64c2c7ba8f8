/* Modules of a device: what is made of a source, or of handwritten code, once for all kernels in it. */
#ifndef GKI_KERNEL_MODULES_H
#define GKI_KERNEL_MODULES_H
#include "kernel/unit.h"

typedef struct gki_module {
  struct gki_module *next;
  const void *from;    /* the address of the source, or of the handwritten text or image */
  const char *options; /* of a handwritten text, "" if it has none; else NULL */
  void *loaded;        /* the driver's module */
  unsigned users;      /* kernels that use it */
} gki_module;

/* How a backend makes the driver's modules. */
typedef struct gki_module_loader {
  const char *language; /* of gk_compose */
  gk_result (*load_text)(void *device, const gki_unit *text, void **loaded);
  gk_result (*load_image)(void *device, const gk_kernel *kernel, void **loaded);
} gki_module_loader;

/* Finds or loads the module that a kernel is in, and counts the kernel as a user. code: the kernel's handwritten code
 * for this backend, which has no .function; NULL: it is composed. Common loads one kernel at a time. */
gk_result gki_module_use(gki_module **modules, const gki_module_loader *loader, void *device, const gk_kernel *kernel,
                         const gk_code *code, gki_module **used);

/* A kernel no longer uses it. Returns the driver's module, to be unloaded, if that was the last; else NULL. */
void *gki_module_release(gki_module **modules, gki_module *module);
#endif
