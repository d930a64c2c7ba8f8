#include "base/text.h"
#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Makes room for that many more bytes and the 0. */
static bool make_room(gki_text *text, size_t bytes) {
  size_t wanted;
  if (text->failed) return false;
  if (!gki_add(text->length, bytes, &wanted) || !gki_add(wanted, 1, &wanted)) wanted = SIZE_MAX;
  void *data = text->data;
  text->failed = !gki_grow(&data, &text->capacity, wanted, 1, "a text");
  text->data = data;
  return !text->failed;
}

static void add_bytes(gki_text *text, const char *bytes, size_t count) {
  if (!make_room(text, count)) return;
  memcpy(text->data + text->length, bytes, count);
  text->length += count;
  text->data[text->length] = 0;
}

void gki_text_add(gki_text *text, const char *format, ...) {
  char line[256];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (length < 0) {
    text->failed = true;
    gk_fail(GK_ERROR_INVALID, "a text that can't be formatted");
  } else if ((size_t)length < sizeof line) {
    add_bytes(text, line, (size_t)length);
  } else if (make_room(text, (size_t)length)) {
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
  }
}

/* The number of bytes of the character at `at`, if it is well-formed UTF-8 by the Unicode standard; otherwise 0. */
static size_t character_bytes(const unsigned char *at) {
  unsigned char lowest = 0x80, highest = 0xbf;
  size_t bytes;
  if (at[0] < 0x80) return 1;
  if (at[0] >= 0xc2 && at[0] <= 0xdf) bytes = 2;
  else if (at[0] >= 0xe0 && at[0] <= 0xef) bytes = 3;
  else if (at[0] >= 0xf0 && at[0] <= 0xf4) bytes = 4;
  else return 0;
  if (at[0] == 0xe0) lowest = 0xa0;
  if (at[0] == 0xed) highest = 0x9f;
  if (at[0] == 0xf0) lowest = 0x90;
  if (at[0] == 0xf4) highest = 0x8f;
  if (at[1] < lowest || at[1] > highest) return 0;
  for (size_t k = 2; k < bytes; ++k)
    if (at[k] < 0x80 || at[k] > 0xbf) return 0;
  return bytes;
}

void gki_text_quote(gki_text *text, const char *words, gki_quoting how) {
  for (const unsigned char *at = (const unsigned char *)words; *at;) {
    size_t bytes = character_bytes(at);
    if (!bytes) add_bytes(text, "\xef\xbf\xbd", 3);
    else if (*at < 0x20 || *at == 0x7f)
      gki_text_add(text, how == GKI_JSON ? "\\u%04x" : how == GKI_PLAIN ? "\\x%02x" : "\\\\x%02x", (unsigned)*at);
    else if (how != GKI_PLAIN && (*at == '"' || *at == '\\')) gki_text_add(text, "\\%c", *at);
    else if (how == GKI_RECORD && strchr("{}|<>", *at)) gki_text_add(text, "\\%c", *at);
    else add_bytes(text, (const char *)at, bytes);
    at += bytes ? bytes : 1;
  }
}

void gki_add_slice(gki_text *out, const char *s, const char *end) {
  enum { most = 1 << 20 }; /* the length in a format is an int */
  for (; s < end; s += end - s < most ? end - s : most)
    gki_text_add(out, "%.*s", (int)(end - s < most ? end - s : most), s);
}

char *gki_text_finish(gki_text *text) {
  add_bytes(text, "", 0);
  char *data = text->data;
  if (text->failed) {
    gk_host_free(data);
    data = NULL;
  }
  *text = (gki_text){0};
  return data;
}

char *gki_text_to_malloc(gki_text *text) {
  char *data = gki_text_finish(text), *copy = data ? strdup(data) : NULL;
  gk_host_free(data);
  return copy;
}

void gk_free_text(char *text) { gk_host_free(text); }
