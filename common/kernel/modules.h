/* Modules of a device: what is made of a source, or of handwritten code, once for all kernels in it. */
#ifndef GKI_KERNEL_MODULES_H
#define GKI_KERNEL_MODULES_H
#include "kernel/store.h"

typedef struct gki_module {
  struct gki_module *next;
  const void *from;    /* the address of the source, or of the handwritten text or image */
  const char *options; /* of a handwritten text, "" if it has none; else NULL */
  void *loaded;        /* the driver's module */
  unsigned users;      /* kernels that use it */
} gki_module;

/* A compiler for a device. */
typedef struct gki_compiler {
  char name[128];     /* in messages, with what it makes: "NVRTC 12.4, cubin for sm_89" */
  char made_for[640]; /* of gki_store_key; "": what it makes isn't kept */
  const char *advice; /* behind ";", if the driver refuses what it makes; "": none */
  uint64_t own[4];    /* the backend's */
} gki_compiler;

/* A device, as messages about images name it. */
typedef struct gki_gpu {
  int architecture;   /* of gki_image_rank */
  char name[64];      /* "sm_89" */
  char driver[64];    /* "CUDA 12.4" */
  char advice[96];    /* "give gk-embed --arch 89" */
} gki_gpu;

/* How a backend makes the driver's modules. */
typedef struct gki_module_loader {
  const char *language; /* of gk_compose */
  const char *entry;    /* of the driver: its name in messages */
  void (*describe)(const void *device, gki_gpu *gpu);
  /* Of the program's images: which suit a device, and what such a one is, as "cubin for sm_89, made by NVRTC 12.4". */
  gki_image_rank *rank;
  void (*describe_image)(const gk_image *image, char *text, size_t bytes);
  /* What is wrong with a handwritten image, as gki_object_problem; NULL: nothing. is_text: a zero byte must follow. */
  const char *(*problem)(const void *image, size_t bytes, bool *is_text);
  gk_result (*find_compiler)(const void *device, gki_compiler *compiler);
  gk_result (*compile)(const void *device, const gki_compiler *compiler, const gki_unit *text, gki_compiled *image);
  /* Without gk_fail: `why` gets the driver's reason. GK_ERROR_COMPILE: the image isn't for this device or driver. */
  gk_result (*load)(void *device, const void *image, void **loaded, char *why, size_t bytes);
  void (*unload)(void *device, void *loaded);
  /* *function stays NULL if the module has no such entry. */
  gk_result (*find)(void *device, void *loaded, const gk_kernel *kernel, const char *entry, void **function);
} gki_module_loader;

/* From a text to a module of the driver: by an image of the program, by one kept on disk, or by the compiler, whose
 * result is then kept. GK_ERROR_COMPILE with the compiler's log; GK_ERROR_UNSUPPORTED: there is no compiler, or none
 * for this device; GK_ERROR_MEMORY; GK_ERROR_DEVICE: the driver refuses what was compiled. */
gk_result gki_module_load_text(const gki_module_loader *loader, void *device, const gki_unit *text, void **loaded);

/* Finds a kernel's function. Loads the module that it is in, if no other kernel has, and counts the kernel as a user.
 * code: the kernel's handwritten code for this backend; NULL: it is composed. *used: NULL if the code has the function.
 * Common loads one kernel at a time. */
gk_result gki_module_use(gki_module **modules, const gki_module_loader *loader, void *device, const gk_kernel *kernel,
                         const gk_code *code, gki_module **used, void **function);

/* A kernel no longer uses its module, which may be NULL. The last one unloads it. */
void gki_module_release(gki_module **modules, const gki_module_loader *loader, void *device, gki_module *module);
#endif
