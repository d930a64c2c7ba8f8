#include "kernel/object.h"
#include <elf.h>
#include <string.h>

const char *gki_object_problem(const void *image, size_t bytes, unsigned machine) {
  const unsigned char *at = image;
  Elf64_Ehdr head;
  if (bytes < sizeof head) return GKI_OBJECT_SHORT;
  memcpy(&head, at, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != machine)
    return "is no code for this kind of GPU";
  if (!gki_lies_within(head.e_phoff, (uint64_t)head.e_phnum * head.e_phentsize, bytes) ||
      !gki_lies_within(head.e_shoff, (uint64_t)head.e_shnum * sizeof(Elf64_Shdr), bytes))
    return GKI_OBJECT_SHORT;
  for (unsigned k = 0; k < head.e_shnum; ++k) {
    Elf64_Shdr section;
    memcpy(&section, at + head.e_shoff + k * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS && !gki_lies_within(section.sh_offset, section.sh_size, bytes))
      return GKI_OBJECT_SHORT;
  }
  return NULL;
}

/* ---- bundles, as the documentation of clang-offload-bundler describes them --------------------------------------- */

static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__", compressed[] = "CCOB";
typedef struct entry { uint64_t at, bytes, name_bytes; /* the name follows */ } entry;

static bool begins_with(const void *image, size_t bytes, const char *word) {
  return bytes >= strlen(word) && memcmp(image, word, strlen(word)) == 0;
}

/* The host's entry may be empty. */
static const char *problem_of_entries(const unsigned char *image, size_t bytes) {
  uint64_t count, at = sizeof magic - 1 + sizeof count;
  if (bytes < at) return GKI_OBJECT_SHORT;
  memcpy(&count, image + sizeof magic - 1, sizeof count);
  if (!count) return "is a bundle without code";
  for (; count; --count) {
    entry one;
    if (!gki_lies_within(at, sizeof one, bytes)) return GKI_OBJECT_SHORT;
    memcpy(&one, image + at, sizeof one);
    at += sizeof one;
    if (!gki_lies_within(at, one.name_bytes, bytes) || !gki_lies_within(one.at, one.bytes, bytes))
      return GKI_OBJECT_SHORT;
    at += one.name_bytes;
    const unsigned char *code = image + one.at;
    const char *problem = begins_with(code, (size_t)one.bytes, ELFMAG)
                              ? gki_object_problem(code, (size_t)one.bytes, EM_AMDGPU) : NULL;
    if (problem) return problem;
  }
  return NULL;
}

/* Version 1 doesn't say how long the file is, 2 and 3 do. */
static const char *problem_of_compressed(const unsigned char *image, size_t bytes) {
  enum { VERSION_AT = 4, SIZE_AT = 8, HEAD_1 = 20, HEAD_2 = 24, HEAD_3 = 32 };
  uint16_t version;
  uint32_t narrow;
  uint64_t size = 0;
  if (bytes <= HEAD_1) return GKI_OBJECT_SHORT;
  memcpy(&version, image + VERSION_AT, sizeof version);
  memcpy(&narrow, image + SIZE_AT, sizeof narrow);
  if (version == 1) return NULL;
  if (version != 2 && version != 3) return "is compressed in a way that gk doesn't know (-no-offload-compress)";
  if (bytes <= (version == 2 ? HEAD_2 : HEAD_3)) return GKI_OBJECT_SHORT;
  memcpy(&size, image + SIZE_AT, sizeof size);
  if (version == 2) size = narrow;
  return size <= bytes ? NULL : GKI_OBJECT_SHORT;
}

const char *gki_bundle_problem(const void *image, size_t bytes) {
  if (begins_with(image, bytes, magic)) return problem_of_entries(image, bytes);
  if (begins_with(image, bytes, compressed)) return problem_of_compressed(image, bytes);
  if (begins_with(image, bytes, ELFMAG)) return gki_object_problem(image, bytes, EM_AMDGPU);
  return bytes < sizeof magic ? "is too short for a code object" : "is neither a code object nor a bundle of them";
}
