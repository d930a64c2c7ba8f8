#include "kernel/unit.h"
#include "base/memory.h"
#include "kernel/compose.h"
#include "kernel/source.h"
#include "kernel/token.h"
#include <stdio.h>
#include <string.h>

void gki_compiled_free(gki_compiled *image) {
  gk_host_free(image->bytes);
  gk_host_free(image->log);
  *image = (gki_compiled){0};
}

void gki_unit_name(const gki_unit *text, char name[GKI_UNIT_NAME_BYTES]) {
  snprintf(name, GKI_UNIT_NAME_BYTES, "%s%.200s%s%s", text->kernel ? "kernel " : "", text->kernel ? text->kernel : "",
           text->kernel ? " of " : "", text->file);
}

/* The text behind gk_kernel.h, with which composed texts begin. */
static const char *own_part(const char *text) {
  const char *head = strstr(text, gki_text_gk_kernel);
  return head ? head + strlen(gki_text_gk_kernel) : text;
}

bool gki_unit_may_go_on(const gki_unit *text) {
  const char *own = own_part(text->text);
  return own != text->text && gki_includes(own, own + strlen(own));
}

/* Whether an option includes a file; --include-path only names a folder. The option's value may follow a blank. */
static bool options_include(const char *options) {
  static const char word[] = "include";
  for (const char *at = options; (at = strstr(at, word));)
    if (*(at += sizeof word - 1) && strchr("= \t\n", *at)) return true;
  return strstr(options, "pch") != NULL;
}

bool gki_unit_includes(const gki_unit *text) {
  if (text->is_whole) return false;
  if (text->options && options_include(text->options)) return true;
  const char *s = own_part(text->text), *end = s + strlen(s);
  gki_token token = {GKI_END, s, s}, before;
  do {
    before = token;
    token = gki_next_token(token.end, end);
    const bool directive = gki_token_is(before, "#") || gki_token_is(before, ":"); /* %: is another spelling of # */
    if (directive && gki_token_in(token, " include include_next import embed ")) return true;
    if (gki_token_in(token, " __has_include __has_embed ")) return true;
  } while (token.kind != GKI_END);
  return false;
}

/* Whether names of files may get into the compiled result. */
static bool names_files(const gki_unit *text) {
  const char *own = own_part(text->text);
  return text->options || strstr(own, "__FILE__") || strstr(own, "assert") || strstr(own, "source_location");
}

/* A line without the folders, if it is a #line directive; returns the end of the copy. */
static char *copy_line(char *to, const char *line, size_t length) {
  const char *open = strncmp(line, "#line ", 6) == 0 ? memchr(line, '"', length) : NULL, *file = open;
  if (!open) return (char *)memcpy(to, line, length) + length;
  for (const char *at = open; at < line + length; ++at)
    if (*at == '/') file = at;
  const size_t head = (size_t)(open - line), rest = (size_t)(line + length - file) - 1;
  memcpy(to, line, head);
  memcpy(to + head, file + 1, rest);
  return to + head + rest;
}

char *gki_unit_plain(const gki_unit *text) {
  const char *s = text->text;
  char *copy = gk_host_alloc(strlen(s) + 1), *to = copy;
  if (!copy) return NULL;
  if (names_files(text)) return memcpy(copy, s, strlen(s) + 1);
  while (*s) {
    const size_t length = strcspn(s, "\n");
    to = copy_line(to, s, length);
    s += length;
    if (*s) *to++ = *s++;
  }
  *to = 0;
  return copy;
}

/* FNV-1a of 128 bits. It only distinguishes texts and isn't a defence against attacks. It doesn't depend on what gk was
 * built with. */
__extension__ typedef unsigned __int128 fnv;
static fnv add_bytes(fnv hash, const char *bytes, size_t count) {
  const fnv prime = ((fnv)1 << 88) + 0x13b;
  for (size_t k = 0; k < count; ++k) hash = (hash ^ (unsigned char)bytes[k]) * prime;
  return hash;
}

bool gki_unit_hash(const gki_unit *text, uint64_t hash[2]) {
  char *plain = gki_unit_includes(text) ? NULL : gki_unit_plain(text);
  if (!plain) return false;
  const char *options = text->options ? text->options : "";
  fnv sum = (fnv)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
  sum = add_bytes(sum, plain, strlen(plain) + 1);
  sum = add_bytes(sum, options, strlen(options) + 1);
  hash[0] = (uint64_t)(sum >> 64);
  hash[1] = (uint64_t)sum;
  gk_host_free(plain);
  return true;
}
