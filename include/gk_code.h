/** @file gk_code.h
 * For programs that describe a kernel by hand (its parameters, its code for the CPU or for one backend, such as PTX, a
 * cubin or a CUfunction), or that contain kernels compiled when the program was built. Other programs don't need it: a
 * list needs only a kernel's address, and GK_KERNEL in gk_kernel.h, which includes this file, writes the description.
 * \sa docs/kernels.md */
#ifndef GK_CODE_H
#define GK_CODE_H

#include "gk.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- a kernel: a constant that names its code -------------------------------------------------------------------- */

/** How a kernel accesses a parameter; the words of GK_KERNEL. */
typedef enum gk_access {
  GK_ACCESS_VALUE,  /**< A number or struct, not memory. */
  GK_ACCESS_IN,     /**< Only read. */
  GK_ACCESS_OUT,    /**< Written. */
  GK_ACCESS_INOUT,  /**< Read and written. */
  GK_ACCESS_SUM,    /**< Added to at [0]: int, uint, float or double. */
  GK_ACCESS_ATOMIC, /**< Accessed only by atomics. */
} gk_access;

/** One parameter of a kernel. */
typedef struct gk_param {
  const char *name;           /**< Name in the source. */
  const char *element;        /**< Name of the element type in the source; NULL: unchecked. */
  uint32_t element_bytes;     /**< Size of an element. */
  uint32_t element_alignment; /**< Alignment of an element. */
  gk_type type;               /**< GK_PTR for every access but GK_ACCESS_VALUE. */
  gk_access access;           /**< How the kernel accesses it. */
} gk_param;

/** The items of one call of a host kernel: numbers begin to end - 1 of all items; x runs fastest, then y, then z. */
typedef struct gk_range {
  size_t begin;       /**< First item. */
  size_t end;         /**< One past the last item. */
  uint32_t extent[3]; /**< Number of items along x, y, z. */
} gk_range;

/** A kernel on the CPU. Several threads call it, each with its own range. A sum parameter points to separate zeroed
 * memory in each call, and the backend adds the results up in a fixed order. */
typedef void (*gk_host_kernel)(const gk_value *args, gk_range items);

/** The text of a file, and the line from which it is for devices. GK_SOURCE makes it. */
typedef struct gk_source {
  const char *file;                    /**< File name, for messages. */
  const char *text;                    /**< The whole text, with a 0 at its end. */
  uint32_t line;                       /**< The line of GK_SOURCE, from 1. */
  const struct gk_source *const *uses; /**< Sources whose functions this one calls. */
  uint32_t use_count;                  /**< Length of uses. */
  const char *from;                    /**< "line:file" of the GK_SOURCE that `text` is from; NULL: not known. */
  const char *own;                     /**< The text of this GK_SOURCE's own file, to compare; NULL: not known. */
} gk_source;

/** Handwritten code for one backend: one of text, image and function. It gets the kernel's parameters in their order:
 * for memory the bound address (for `in` of a struct's slot that of the graph's copy, for `sum` that to add to),
 * numbers and structs by value. The number of items is no parameter; add one if the code needs it. Extents must be
 * numbers (no PTR). On CUDA and HIP, parameters have at most 4,096 bytes; only CUDA drivers from 12.4 on report wrong
 * ones. On Vulkan they are push constants of at most 128 bytes, `layout(push_constant, scalar)`: an address is a
 * buffer_reference or uint64_t; a struct must have no padding at its end. This struct and what it points to must live
 * as long as the device. On CUDA and HIP, kernels with the same address of text or image share one module. */
typedef struct gk_code {
  const char *text;      /**< Source for the backend's compiler (NVRTC, hipRTC; GLSL on Vulkan). Messages of NVRTC and
                          * hipRTC call it gk_code.text, or by its line directives. */
  const char *options;   /**< Options for that compiler, separated by blanks; NULL: none. An option that names a GPU
                          * overrides the device's. Vulkan takes none. */
  const void *image;     /**< PTX, cubin or fatbin; on HIP a code object or a bundle of them; on Vulkan SPIR-V. */
  size_t image_bytes;    /**< Size of the image. PTX needs no 0 at its end. */
  void *function;        /**< A CUfunction of the device's context (hipFunction_t), which remains yours. If shared_bytes
                          * needs it, gk raises a CUfunction's
                          * CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
  const char *entry;     /**< Symbol in text or image: extern "C" or mangled. NULL: the kernel's name, on
                          * Vulkan main. */
  uint32_t block[3];     /**< Threads in a block; 0: 256, 1, 1. At most 1,024 in all, 64 along z, and no more than the
                          * code's registers and launch bounds allow. On Vulkan 0, or the shader's local size. */
  uint32_t per_block[3]; /**< Items that a block covers; 0: as block. The grid has as many blocks as cover all items.
                          * With more than 65,535 along y or z, on Vulkan also x, the launch is refused; on HIP
                          * also with 2^32 threads along an axis. Without items it doesn't run. */
  uint32_t shared_bytes; /**< Dynamic shared memory of a block in bytes, at most what the GPU has; on CUDA also
                          * more than 48 KiB. Vulkan has none. */
  uint32_t reserved[3];  /**< Zero. */
} gk_code;

/** A kernel: a constant that names its code for each backend. */
struct gk_kernel {
  const char *name;        /**< Name for messages, and of its symbol. */
  const gk_param *params;  /**< Parameters in order, at most GK_MAX_ARGS. */
  uint32_t param_count;    /**< Length of params. */
  uint32_t dimensions;     /**< Dimensions of its items, 1 to 3; 0: 1. */
  const gk_source *source; /**< Portable text for any backend, or NULL. */
  gk_host_kernel host;     /**< Function for the CPU, or NULL. */
  const gk_code *cuda;     /**< Code for CUDA, used instead of the portable text, or NULL. */
  const gk_code *hip;      /**< The same for HIP. */
  const gk_code *vulkan;   /**< The same for Vulkan. */
  uintptr_t reserved[2];   /**< Zero. */
};

/* ---- kernels compiled when the program is built ------------------------------------------------------------------ */

/** Contents of a gk_image. */
typedef enum gk_image_kind {
  GK_IMAGE_NONE, /**< Nothing. */
  GK_IMAGE_CODE, /**< Machine code of an NVIDIA GPU (cubin), also for later GPUs of the same generation. */
  GK_IMAGE_PTX,  /**< PTX, which the driver translates for any later GPU. */
  GK_IMAGE_SPIRV, /**< SPIR-V of one kernel, for Vulkan. */
  GK_IMAGE_AMD,  /**< Machine code of an AMD GPU (code object), for HIP. */
} gk_image_kind;

/** The kernels of a source, or one of them, compiled when the program is built. */
typedef struct gk_image {
  const char *file;    /**< Name of the source file, for messages. */
  uint64_t text[2];    /**< Hash of the compiled text. The image is used only for this text. */
  uint32_t target;     /**< GPU; 89 is sm_89, 0x90a is gfx90a. SPIR-V: devices without atomic additions of
                        * doubles (1), with them (2), or all (0). */
  gk_image_kind kind;  /**< Machine code, PTX or SPIR-V. */
  uint32_t made_by;    /**< Version of the compiler; 12040 is NVRTC 12.4, 502 HIP 5.2. SPIR-V: the generator in
                        * its header. */
  uint32_t reserved;   /**< Zero. */
  const void *bytes;   /**< Contents, aligned for any type, with a 0 behind them. */
  size_t size;         /**< Number of bytes. */
} gk_image;

/** The images that gk-embed writes: `extern const gk_images cloth_images;` */
typedef struct gk_images {
  uint32_t abi;       /**< GK_ABI. */
  uint32_t count;     /**< Length of at. */
  const gk_image *at; /**< The images, in any order. */
} gk_images;

/** Makes devices use images in the program, so that no compiler is needed where it runs. Call it once, before the first
 * graph that needs them. The images must live until the process ends. An image of another text than the program's isn't
 * used, and the log (GK_LOG_WARN) says so. Thread-safe. \sa docs/kernels.md
 * @return GK_OK; GK_ERROR_INVALID: of another version of gk, or damaged; GK_ERROR_MEMORY: more than 64. */
gk_result gk_use_images(const gk_images *images);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
