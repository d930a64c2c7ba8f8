/* Images of device code. Drivers don't get an image's size and trust its headers, so these are checked first. */
#ifndef GKI_KERNEL_OBJECT_H
#define GKI_KERNEL_OBJECT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether so many bytes lie within all of them. */
static inline bool gki_lies_within(uint64_t at, uint64_t bytes, uint64_t all) { return at <= all && bytes <= all - at; }

#define GKI_OBJECT_SHORT "ends before its headers say"

/* What is wrong with an ELF file for a machine, an EM_ of elf.h, as "ends before its headers say"; NULL: nothing. */
const char *gki_object_problem(const void *image, size_t bytes, unsigned machine);

/* The same for what AMD's runtime loads: a code object, or a bundle of them by clang, which may be compressed. */
const char *gki_bundle_problem(const void *image, size_t bytes);
#endif
