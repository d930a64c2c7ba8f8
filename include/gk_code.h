/** @file gk_code.h
 * For those who write a kernel's description by hand: its parameters, its code for the CPU, its code for one backend
 * (PTX, cubin, a CUfunction), or who bring kernels along that were compiled when the program was built. GK_KERNEL in
 * gk_kernel.h, which includes this file, writes the rest, and a list needs a kernel's address alone.
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

/** What a kernel does to what a parameter points to; the words of GK_KERNEL. */
typedef enum gk_access {
  GK_ACCESS_VALUE,  /**< A number or struct, no memory. */
  GK_ACCESS_IN,     /**< Read only. */
  GK_ACCESS_OUT,    /**< Written. */
  GK_ACCESS_INOUT,  /**< Read and written. */
  GK_ACCESS_SUM,    /**< Added to at [0]: int, uint, float or double. */
  GK_ACCESS_ATOMIC, /**< Touched by atomics only. */
} gk_access;

/** One parameter of a kernel. */
typedef struct gk_param {
  const char *name;           /**< As in the source. */
  const char *element;        /**< The type's name there; NULL: unchecked. */
  uint32_t element_bytes;     /**< Its size. */
  uint32_t element_alignment; /**< Its alignment. */
  gk_type type;               /**< GK_PTR for every access but GK_ACCESS_VALUE. */
  gk_access access;           /**< What is done to it. */
} gk_param;

/** The items of one call of a host kernel: begin to end - 1 of all of them, numbered x fastest, then y, then z. */
typedef struct gk_range {
  size_t begin;       /**< First item. */
  size_t end;         /**< One past the last. */
  uint32_t extent[3]; /**< Items along x, y, z. */
} gk_range;

/** A kernel on the CPU: called by several threads, each with its own range. A sum parameter points to zeroed memory of
 * that call alone; the backend adds these up in a fixed order. */
typedef void (*gk_host_kernel)(const gk_value *args, gk_range items);

/** The text of a file, and the line after which it is for devices; made by GK_SOURCE. */
typedef struct gk_source {
  const char *file;                    /**< For messages. */
  const char *text;                    /**< All of it, 0 at its end. */
  uint32_t line;                       /**< The line of GK_SOURCE, from 1. */
  const struct gk_source *const *uses; /**< Sources whose functions this one calls. */
  uint32_t use_count;                  /**< Length of uses. */
  const char *from;                    /**< Where text is from, "line:file" of that GK_SOURCE; NULL: not known. */
  const char *own;                     /**< What text should be, from this GK_SOURCE's own file; NULL: not known. */
} gk_source;

/** Code written by hand for one backend: one of text, image and function. It gets exactly the kernel's parameters, in
 * their order: for memory the address that is bound (`in` a struct's slot: of the graph's copy; `sum`: where to add),
 * numbers and structs by value. How many items there are is no parameter: list it as one if the code needs it. So far
 * only CUDA takes such code. There, numbers of items must be numbers (no PTR), parameters have 4,096 bytes at most, and
 * drivers from 12.4 on tell of wrong parameters; others take what they get. All of this and what it points to must
 * live as long as the device: kernels that name the same text or image, by address, are of one module. */
typedef struct gk_code {
  const char *text;      /**< Source for the backend's compiler (NVRTC); messages call it gk_code.text, or as its line
                          * directives say. */
  const char *options;   /**< For that compiler, with blanks between them; NULL: none. One that names a GPU goes before
                          * the device's. */
  const void *image;     /**< PTX, cubin or fatbin (code object, SPIR-V). */
  size_t image_bytes;    /**< Its size; a zero at the end of PTX needn't be counted, nor be there. */
  void *function;        /**< A CUfunction of the device's context (hipFunction_t); stays yours. If shared_bytes ask for
                          * it, its CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES is raised. */
  const char *entry;     /**< Its name in text or image, as the linker has it: extern "C", or mangled. NULL: the
                          * kernel's. */
  uint32_t block[3];     /**< Threads in a block; 0: 256, 1, 1. At most 1,024 in all, 64 along z, and what the code's
                          * registers and launch bounds allow. */
  uint32_t per_block[3]; /**< Items a block covers; 0: as block. The grid has so many blocks as cover all; along y and z
                          * 65,535 at most, or the launch is refused. No items: it doesn't run. */
  uint32_t shared_bytes; /**< Dynamic shared memory of a block; more than 48 KiB is asked for. */
  uint32_t reserved[3];  /**< Zero. */
} gk_code;

/** A kernel: a constant that names its code for each backend. */
struct gk_kernel {
  const char *name;        /**< In messages, and of its entry. */
  const gk_param *params;  /**< In order; at most GK_MAX_ARGS. */
  uint32_t param_count;    /**< Length of params. */
  uint32_t dimensions;     /**< Of its items, 1 to 3; 0: 1. */
  const gk_source *source; /**< Portable text, for any backend; or NULL. */
  gk_host_kernel host;     /**< For the CPU; or NULL. */
  const gk_code *cuda;     /**< Goes before the portable text on CUDA; or NULL. */
  const gk_code *hip;      /**< Likewise, once there is such a backend. */
  const gk_code *vulkan;   /**< Likewise. */
  uintptr_t reserved[2];   /**< Zero. */
};

/* ---- kernels compiled when the program was built ----------------------------------------------------------------- */

/** What a gk_image holds. */
typedef enum gk_image_kind {
  GK_IMAGE_NONE, /**< Nothing. */
  GK_IMAGE_CODE, /**< Machine code of an NVIDIA GPU (cubin), for later ones of the same generation, too. */
  GK_IMAGE_PTX,  /**< PTX, which the driver translates for any later GPU. */
} gk_image_kind;

/** The kernels of a source, compiled when the program was built. */
typedef struct gk_image {
  const char *file;    /**< The source's, for messages. */
  uint64_t text[2];    /**< A hash of all that was compiled: it serves just this text. */
  uint32_t target;     /**< 89: sm_89. */
  gk_image_kind kind;  /**< Machine code or PTX. */
  uint32_t made_by;    /**< The compiler's version; 12040: NVRTC 12.4. */
  uint32_t reserved;   /**< Zero. */
  const void *bytes;   /**< Aligned for anything, a zero behind them. */
  size_t size;         /**< Their number. */
} gk_image;

/** What gk-embed writes: `extern const gk_images cloth_images;` */
typedef struct gk_images {
  uint32_t abi;       /**< GK_ABI. */
  uint32_t count;     /**< Length of at. */
  const gk_image *at; /**< In any order. */
} gk_images;

/** Has devices use images that the program brings along, so that no compiler is needed where it runs. To be called
 * before the first graph that needs them; once is enough. They must live until the process ends. What was made from
 * another text than the program has isn't used, and the log (GK_LOG_WARN) says so. Thread-safe. docs/kernels.md has it.
 * @return GK_ERROR_INVALID: they are of another gk, or damaged. GK_ERROR_MEMORY: 64 were given before. */
gk_result gk_use_images(const gk_images *images);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
