#include "image.h"
#include <ctype.h>
#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[8] = "simcubin";
static const char PTX_CODE[] = "// simgpu ";
static const uint32_t FATBIN = 0xBA55ED50;
enum { KIND_PTX = 1, KIND_CUBIN = 2, COMPRESSED = 0xA000, FEATURE_A = 0x100000, FEATURE_F = 0x200000 };

typedef struct cubin_head {
  char magic[8];
  uint32_t toolkit, arch, feature;
  uint32_t check; /* of the rest of the head: nothing behind it is looked at before it is right */
  uint64_t bytes; /* of the code behind it */
  uint64_t hash;
} cubin_head;

typedef struct reader {
  int driver, arch;
  char *why;
  size_t why_bytes;
} reader;

__attribute__((format(printf, 3, 4)))
static CUresult refuse(const reader *r, CUresult code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (r->why_bytes > 0) vsnprintf(r->why, r->why_bytes, format, arguments);
  va_end(arguments);
  return code;
}

static CUresult no_memory(const reader *r) { return refuse(r, CUDA_ERROR_OUT_OF_MEMORY, "no memory for the module"); }

uint64_t sim_hash(const void *at, size_t bytes, uint64_t seed) {
  uint64_t hash = seed ^ 0xcbf29ce484222325u;
  const unsigned char *s = at, *end = s + bytes;
  for (uint64_t word; end - s >= 8; s += 8) {
    memcpy(&word, s, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  for (; s < end; ++s) hash = (hash ^ *s) * 0x100000001b3u;
  return hash ^ hash >> 29;
}

sim_arch sim_arch_of(const char *text, const char **end) {
  sim_arch arch = {0};
  const char *s = text;
  for (; isdigit((unsigned char)*s) && arch.number < 1000; ++s) arch.number = arch.number * 10 + (*s - '0');
  if (arch.number > 0 && (*s == 'a' || *s == 'f')) arch.feature = *s++;
  *end = s;
  return arch;
}

int sim_ptx_version(int cuda_version) {
  static const struct { int cuda, ptx; } known[] = {
    {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82},
    {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74}};
  for (size_t k = 0; k < sizeof known / sizeof known[0]; ++k)
    if (cuda_version >= known[k].cuda) return known[k].ptx;
  return 70;
}

/* Machine code runs on its own and later minor versions of an architecture, with `a` on no other. */
static bool cubin_runs(sim_arch made, int arch) {
  if (made.feature == 'a') return made.number == arch;
  return made.number / 10 == arch / 10 && made.number <= arch;
}

static bool ptx_runs(sim_arch made, int arch) {
  if (made.feature == 0) return made.number <= arch;
  return cubin_runs((sim_arch){made.number, made.feature == 'a' ? 'a' : 0}, arch);
}

/* The eighth form of cubins came with toolkit 13. */
static bool driver_knows(const reader *r, int abi) { return abi < 8 || r->driver >= 13000; }

static CUresult check_cubin(const reader *r, bool is_known, sim_arch arch) {
  if (!is_known)
    return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the cubin was made by a newer toolkit than driver %d knows", r->driver);
  if (cubin_runs(arch, r->arch)) return CUDA_SUCCESS;
  return refuse(r, CUDA_ERROR_NO_BINARY_FOR_GPU, "the cubin is for sm_%d, the device is sm_%d", arch.number, r->arch);
}

/* ---- images of the simulated NVRTC ------------------------------------------------------------------------------- */

static uint32_t check_of(cubin_head head) {
  head.check = 0;
  return (uint32_t)sim_hash(&head, sizeof head, 0);
}

void *sim_image_cubin(int toolkit, sim_arch arch, const void *code, size_t code_bytes, size_t *bytes) {
  cubin_head head = {.toolkit = (uint32_t)toolkit, .arch = (uint32_t)arch.number, .feature = (uint32_t)arch.feature,
                     .bytes = code_bytes, .hash = sim_hash(code, code_bytes, 0)};
  memcpy(head.magic, MAGIC, sizeof head.magic);
  head.check = check_of(head);
  char *image = malloc(sizeof head + code_bytes);
  if (!image) return NULL;
  memcpy(image, &head, sizeof head);
  memcpy(image + sizeof head, code, code_bytes);
  *bytes = sizeof head + code_bytes;
  return image;
}

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void *sim_image_ptx(int toolkit, sim_arch arch, const void *code, size_t code_bytes, size_t *bytes) {
  char *image = NULL;
  FILE *out = open_memstream(&image, bytes);
  if (!out) return NULL;
  int version = sim_ptx_version(toolkit);
  fprintf(out, "//\n// Made by a stand-in for NVRTC: what runs is the shared object below.\n//\n\n.version %d.%d\n"
          ".target sm_%d%s\n.address_size 64\n\n%s%zu %016llx", version / 10, version % 10, arch.number,
          arch.feature ? (char[]){arch.feature, 0} : "", PTX_CODE, code_bytes,
          (unsigned long long)sim_hash(code, code_bytes, 0));
  const unsigned char *s = code;
  char line[112]; /* of 84 bytes */
  size_t length = 0;
  for (size_t k = 0; k < code_bytes; k += 3) {
    unsigned word = (unsigned)s[k] << 16;
    if (k + 1 < code_bytes) word |= (unsigned)s[k + 1] << 8;
    if (k + 2 < code_bytes) word |= s[k + 2];
    for (int shift = 18; shift >= 0; shift -= 6) line[length++] = DIGITS[word >> shift & 63];
    if (length < sizeof line && k + 3 < code_bytes) continue;
    fputs("\n// ", out);
    fwrite(line, 1, length, out);
    length = 0;
  }
  fputs("\n\n", out);
  fputc(0, out);
  if (fclose(out) == 0) return image;
  free(image);
  return NULL;
}

static CUresult read_own_cubin(const reader *r, const unsigned char *image, sim_image *read) {
  cubin_head head;
  memcpy(&head, image, sizeof head);
  if (head.check != check_of(head)) return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the cubin's header is damaged");
  CUresult result = check_cubin(r, (int)head.toolkit / 1000 <= r->driver / 1000,
                                (sim_arch){(int)head.arch, (char)head.feature});
  if (result != CUDA_SUCCESS) return result;
  if (sim_hash(image + sizeof head, head.bytes, 0) != head.hash)
    return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the cubin is damaged");
  read->code = malloc(head.bytes);
  if (!read->code) return no_memory(r);
  memcpy(read->code, image + sizeof head, head.bytes);
  read->code_bytes = head.bytes;
  return CUDA_SUCCESS;
}

/* s: behind PTX_CODE. */
static CUresult read_ptx_code(const reader *r, const char *s, sim_image *read) {
  unsigned long long hash = 0;
  size_t bytes = 0, have = 0;
  if (sscanf(s, "%zu %llx", &bytes, &hash) != 2 || bytes == 0 || bytes > 1u << 30)
    return refuse(r, CUDA_ERROR_INVALID_PTX, "the code in the PTX is damaged");
  unsigned char *code = read->code = malloc(bytes + 3);
  if (!code) return no_memory(r);
  unsigned word = 0, digits = 0;
  for (s += strcspn(s, "\n"); *s && have < bytes; ++s) {
    if (*s == '\n' || *s == '/' || *s == ' ') continue;
    const char *digit = strchr(DIGITS, *s);
    if (!digit) break;
    word = word << 6 | (unsigned)(digit - DIGITS);
    if (++digits % 4 != 0) continue;
    for (int shift = 16; shift >= 0; shift -= 8) code[have++] = (unsigned char)(word >> shift);
  }
  read->code_bytes = bytes;
  if (have >= bytes && sim_hash(code, bytes, 0) == hash) return CUDA_SUCCESS;
  return refuse(r, CUDA_ERROR_INVALID_PTX, "the code in the PTX is damaged");
}

/* ---- PTX --------------------------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s) {
  for (;;) {
    if (isspace((unsigned char)*s)) ++s;
    else if (s[0] == '/' && s[1] == '/') s += strcspn(s, "\n");
    else if (s[0] == '/' && s[1] == '*') {
      const char *end = strstr(s + 2, "*/");
      s = end ? end + 2 : s + strlen(s);
    } else return s;
  }
}

typedef struct ptx_head { int version; sim_arch target; } ptx_head;

/* False: that is no PTX. */
static bool read_ptx_head(const char *text, ptx_head *head) {
  int major = 0, minor = 0, read = 0;
  const char *s = skip_blanks(text);
  if (sscanf(s, ".version %d.%d%n", &major, &minor, &read) != 2) return false;
  s = skip_blanks(s + read);
  if (strncmp(s, ".target", 7) != 0) return false;
  s = skip_blanks(s + 7);
  if (strncmp(s, "sm_", 3) != 0) return false;
  *head = (ptx_head){major * 10 + minor, sim_arch_of(s + 3, &s)};
  return head->target.number > 0;
}

/* The names behind .entry; NULL: braces don't match, or there is no memory. */
static char *ptx_entries(const char *text) {
  char *names = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&names, &bytes);
  if (!out) return NULL;
  long depth = 0;
  fputc('\n', out);
  for (const char *s = skip_blanks(text); *s && depth >= 0; s = skip_blanks(s)) {
    if (strncmp(s, ".entry", 6) == 0 && isspace((unsigned char)s[6])) {
      s = skip_blanks(s + 6);
      size_t length = strcspn(s, " \t\n\r({;/");
      fprintf(out, "%.*s\n", (int)length, s);
      s += length;
    } else if (*s == '"') {
      s += 1 + strcspn(s + 1, "\"");
      s += *s == '"';
    } else {
      depth += (*s == '{') - (*s == '}');
      ++s;
    }
  }
  if (fclose(out) == 0 && depth == 0) return names;
  free(names);
  return NULL;
}

static CUresult read_ptx(const reader *r, const char *text, sim_image *read) {
  ptx_head head;
  int newest = sim_ptx_version(r->driver);
  if (!read_ptx_head(text, &head))
    return refuse(r, CUDA_ERROR_INVALID_PTX, "the PTX doesn't begin with .version and .target");
  if (head.version > newest)
    return refuse(r, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the PTX is of version %d.%d, the driver takes up to %d.%d",
                  head.version / 10, head.version % 10, newest / 10, newest % 10);
  if (!ptx_runs(head.target, r->arch))
    return refuse(r, CUDA_ERROR_INVALID_PTX, "the PTX is for sm_%d%.1s, the device is sm_%d", head.target.number,
                  &head.target.feature, r->arch);
  const char *own = strstr(text, PTX_CODE);
  if (own) return read_ptx_code(r, own + strlen(PTX_CODE), read);
  read->entries = ptx_entries(text);
  return read->entries ? CUDA_SUCCESS : refuse(r, CUDA_ERROR_INVALID_PTX, "the PTX ends too early");
}

/* ---- cubins ------------------------------------------------------------------------------------------------------ */

typedef struct cubin { sim_arch arch; int abi; char *entries; } cubin;

static bool within(uint64_t at, uint64_t bytes, uint64_t all) { return at <= all && bytes <= all - at; }

/* Of the sections called .text.NAME. bytes: of all of it; 0: as far as its header says. False: damaged. */
static bool read_elf(const unsigned char *image, size_t bytes, cubin *read) {
  Elf64_Ehdr head;
  if (bytes != 0 && bytes < sizeof head) return false;
  memcpy(&head, image, sizeof head);
  if (head.e_machine != 190 || head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shstrndx >= head.e_shnum) return false;
  uint64_t table = (uint64_t)head.e_shnum * sizeof(Elf64_Shdr);
  if (bytes == 0) bytes = (size_t)(head.e_shoff + table);
  if (!within(head.e_shoff, table, bytes)) return false;
  read->abi = head.e_ident[EI_ABIVERSION];
  read->arch.number = (int)(read->abi >= 8 ? head.e_flags >> 8 & 0xff : head.e_flags & 0xff);
  Elf64_Shdr names, section;
  memcpy(&names, image + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
  if (!within(names.sh_offset, names.sh_size, bytes) || names.sh_size == 0 ||
      image[names.sh_offset + names.sh_size - 1] != 0) return false;
  size_t list_bytes;
  FILE *out = open_memstream(&read->entries, &list_bytes);
  if (!out) return false;
  fputc('\n', out);
  for (unsigned k = 0; k < head.e_shnum; ++k) {
    memcpy(&section, image + head.e_shoff + k * sizeof section, sizeof section);
    if (section.sh_name >= names.sh_size) continue;
    const char *name = (const char *)image + names.sh_offset + section.sh_name;
    if (strncmp(name, ".text.", 6) == 0) fprintf(out, "%s\n", name + 6);
  }
  return fclose(out) == 0;
}

static CUresult read_cubin(const reader *r, const unsigned char *image, sim_image *read) {
  cubin found = {0};
  const bool right = read_elf(image, 0, &found);
  read->entries = found.entries;
  if (!right) return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the ELF file is no cubin, or damaged");
  return check_cubin(r, driver_knows(r, found.abi), found.arch);
}

/* ---- fatbins ----------------------------------------------------------------------------------------------------- */

typedef struct fatbin_head { uint32_t magic; uint16_t version, head_bytes; uint64_t bytes; } fatbin_head;

/* As far as it is known here. */
typedef struct fatbin_entry {
  uint16_t kind, attributes;
  uint32_t head_bytes;
  uint64_t bytes;
  uint32_t packed_bytes, reserved;
  uint16_t minor, major; /* of the PTX; a cubin's form is in `minor` */
  uint32_t arch;
  uint32_t name_at, name_bytes;
  uint64_t flags;
} fatbin_entry;

typedef struct choice { fatbin_entry entry; const unsigned char *at; bool any; } choice;

static sim_arch arch_of(const fatbin_entry *entry) {
  return (sim_arch){(int)entry->arch, entry->flags & FEATURE_A ? 'a' : entry->flags & FEATURE_F ? 'f' : 0};
}

static void consider(const reader *r, const fatbin_entry *entry, const unsigned char *at, choice *best, bool *too_new) {
  bool is_cubin = entry->kind == KIND_CUBIN;
  if (!is_cubin && entry->kind != KIND_PTX) return;
  if (is_cubin ? !cubin_runs(arch_of(entry), r->arch) : !ptx_runs(arch_of(entry), r->arch)) return;
  if (is_cubin ? !driver_knows(r, entry->minor) : entry->major * 10 + entry->minor > sim_ptx_version(r->driver)) {
    *too_new = *too_new || !is_cubin;
    return;
  }
  bool better = !best->any || (is_cubin && best->entry.kind == KIND_PTX) ||
    (entry->kind == best->entry.kind && entry->arch > best->entry.arch);
  if (better) *best = (choice){*entry, at, true};
}

static CUresult read_chosen(const reader *r, const choice *best, sim_image *read) {
  if (best->entry.flags & COMPRESSED) return CUDA_SUCCESS; /* what is in it can't be seen */
  if (best->entry.kind == KIND_CUBIN) {
    cubin found = {0};
    bool right = read_elf(best->at, best->entry.bytes, &found);
    read->entries = found.entries;
    return right ? CUDA_SUCCESS : refuse(r, CUDA_ERROR_INVALID_IMAGE, "a cubin in the fatbin is damaged");
  }
  char *text = strndup((const char *)best->at, best->entry.bytes);
  if (!text) return no_memory(r);
  CUresult result = read_ptx(r, text, read);
  free(text);
  return result;
}

static CUresult read_fatbin(const reader *r, const unsigned char *image, sim_image *read) {
  fatbin_head head;
  memcpy(&head, image, sizeof head);
  if (head.version != 1 || head.head_bytes != sizeof head || head.bytes > 1u << 30)
    return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the fatbin's header is damaged");
  choice best = {0};
  bool too_new = false;
  const unsigned char *s = image + head.head_bytes, *end = s + head.bytes;
  while (s < end) {
    fatbin_entry entry;
    if ((size_t)(end - s) < sizeof entry) return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the fatbin ends too early");
    memcpy(&entry, s, sizeof entry);
    if (entry.head_bytes < sizeof entry || entry.head_bytes > (size_t)(end - s) ||
        entry.bytes > (size_t)(end - s) - entry.head_bytes)
      return refuse(r, CUDA_ERROR_INVALID_IMAGE, "the fatbin ends too early");
    consider(r, &entry, s + entry.head_bytes, &best, &too_new);
    s += entry.head_bytes + entry.bytes;
  }
  if (best.any) return read_chosen(r, &best, read);
  if (too_new)
    return refuse(r, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "the fatbin's PTX is too new for driver %d", r->driver);
  return refuse(r, CUDA_ERROR_NO_BINARY_FOR_GPU, "the fatbin has nothing for sm_%d and driver %d", r->arch, r->driver);
}

CUresult sim_image_read(const void *image, int driver_version, int arch, sim_image *read, char *why, size_t why_bytes) {
  const reader r = {driver_version, arch, why, why_bytes};
  uint32_t first;
  *read = (sim_image){0};
  CUresult result;
  /* Text may be as short as a zero. */
  const unsigned char *s = image;
  if (*s == (FATBIN & 0xff) && (memcpy(&first, s, sizeof first), first == FATBIN)) result = read_fatbin(&r, s, read);
  else if (*s == ELFMAG[0] && memcmp(s, ELFMAG, SELFMAG) == 0) result = read_cubin(&r, s, read);
  else if (strncmp(image, MAGIC, sizeof MAGIC) == 0) result = read_own_cubin(&r, s, read);
  else if (isprint(*s) || isspace(*s)) result = read_ptx(&r, image, read);
  else result = refuse(&r, CUDA_ERROR_INVALID_IMAGE, "that is neither PTX nor a cubin nor a fatbin");
  if (result != CUDA_SUCCESS) {
    free(read->code);
    free(read->entries);
    *read = (sim_image){0};
  }
  return result;
}
