/* Facts and devices as text or JSON. */
#include "info/info.h"
#include <stdlib.h>
#include <string.h>

enum { WIDEST_NAME = 24, WIDEST_VALUE = 34 };

/* ---- letters ----------------------------------------------------------------------------------------------------- */

/* The bytes of the UTF-8 character that begins here; 0: it isn't valid. */
static size_t letter_bytes(const unsigned char *at) {
  const unsigned first = at[0];
  if (first < 0x80) return 1;
  if (first < 0xC2 || first >= 0xF5) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (size_t k = 1; k < bytes; ++k)
    if ((at[k] & 0xC0) != 0x80) return 0;
  if ((first == 0xE0 && at[1] < 0xA0) || (first == 0xED && at[1] >= 0xA0)) return 0;
  if ((first == 0xF0 && at[1] < 0x90) || (first == 0xF4 && at[1] >= 0x90)) return 0;
  return bytes;
}

static void put_letter(FILE *file, const unsigned char *at, size_t bytes) {
  if (bytes) fwrite(at, 1, bytes, file);
  else fputs("\xEF\xBF\xBD", file); /* U+FFFD */
}

void info_json_string(FILE *file, const char *text) {
  if (!text) {
    fputs("null", file);
    return;
  }
  fputc('"', file);
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    const size_t bytes = letter_bytes(at);
    if (*at == '"' || *at == '\\') fprintf(file, "\\%c", *at);
    else if (*at == '\n') fputs("\\n", file);
    else if (*at < ' ' || *at == 0x7F) fprintf(file, "\\u%04x", *at);
    else put_letter(file, at, bytes);
    at += bytes ? bytes : 1;
  }
  fputc('"', file);
}

void info_plain(FILE *file, const char *text) {
  for (const unsigned char *at = (const unsigned char *)text; *at;) {
    const size_t bytes = letter_bytes(at);
    if (*at < ' ' || *at == 0x7F) fputc(' ', file);
    else put_letter(file, at, bytes);
    at += bytes ? bytes : 1;
  }
}

/* Columns, if each character takes one. */
static size_t columns_of(const char *text) {
  size_t columns = 0;
  for (const char *at = text; *at; ++at) columns += ((unsigned char)*at & 0xC0) != 0x80;
  return columns;
}

/* ---- rows of text ------------------------------------------------------------------------------------------------ */

static void put_cell(FILE *file, const char *text, size_t width) {
  info_plain(file, text);
  for (size_t used = columns_of(text); used < width; ++used) fputc(' ', file);
}

static void put_row(FILE *file, const char *name, size_t name_width, const char *value, size_t value_width,
                    const char *why) {
  fputs("    ", file);
  put_cell(file, name, name_width + 2);
  if (!why[0]) value_width = 0;
  else if (columns_of(value) > value_width) value_width = columns_of(value);
  if (!why[0]) fputc(INFO_COLUMN, file);
  put_cell(file, value, value_width + (why[0] ? 2 : 0));
  if (why[0]) fputc(INFO_COLUMN, file);
  info_plain(file, why);
  fputc('\n', file);
}

static size_t widen(size_t width, const char *text, size_t widest) {
  const size_t columns = columns_of(text);
  return columns > width && columns <= widest ? columns : width;
}

void info_print_wrapped(FILE *file, const char *text, size_t width) {
  size_t column = 0, hang = 0;
  for (const char *at = text; *at;) {
    if (*at == '\n') {
      fputc('\n', file);
      column = hang = 0;
      ++at;
    } else if (*at == INFO_COLUMN) {
      hang = column;
      ++at;
    } else {
      const size_t blanks = strspn(at, " "), letters = strcspn(at + blanks, " \n\v");
      size_t columns = 0;
      for (size_t k = 0; k < letters; ++k) columns += ((unsigned char)at[blanks + k] & 0xC0) != 0x80;
      const bool breaks = width && hang && hang < width && column > hang && column + blanks + columns > width;
      if (breaks) fprintf(file, "\n%*s", (int)hang, "");
      else if (letters || at[blanks] == INFO_COLUMN) fprintf(file, "%*s", (int)blanks, "");
      fwrite(at + blanks, 1, letters, file);
      column = (breaks ? hang : column + blanks) + columns;
      at += blanks + letters;
    }
  }
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

static void print_facts_json(FILE *file, const info_facts *facts) {
  fputc('[', file);
  for (size_t k = 0; k < facts->count; ++k) {
    const struct info_fact *fact = &facts->all[k];
    fputs(k ? ",\n  {\"group\": " : "\n  {\"group\": ", file);
    info_json_string(file, fact->group);
    fputs(", \"name\": ", file);
    info_json_string(file, fact->name);
    fputs(", \"value\": ", file);
    info_json_string(file, fact->value);
    fputs(", \"why\": ", file);
    info_json_string(file, fact->why);
    fputc('}', file);
  }
  fputc(']', file);
}

static void print_group(FILE *file, const struct info_fact *first, const struct info_fact *end) {
  size_t name_width = 0, value_width = 1;
  for (const struct info_fact *at = first; at < end; ++at) {
    name_width = widen(name_width, at->name, WIDEST_NAME);
    if (at->why[0]) value_width = widen(value_width, at->value ? at->value : "-", WIDEST_VALUE);
  }
  fputs("  ", file);
  info_plain(file, first->group);
  fputc('\n', file);
  for (const struct info_fact *at = first; at < end; ++at)
    put_row(file, at->name, name_width, at->value ? at->value : "-", value_width, at->why);
}

void info_print_facts(FILE *file, bool as_json, const info_facts *facts) {
  if (as_json) {
    print_facts_json(file, facts);
    return;
  }
  for (size_t k = 0, end; k < facts->count; k = end) {
    for (end = k + 1; end < facts->count && strcmp(facts->all[end].group, facts->all[k].group) == 0;) ++end;
    print_group(file, &facts->all[k], &facts->all[end]);
  }
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

/* In text and in JSON. */
static const struct { const char *text, *key; } supports[] = {
  [GK_REFUSED] = {"refused", "refused"},       [GK_ON_HOST] = {"on the host", "on_host"},
  [GK_IN_SERIES] = {"in series", "in_series"}, [GK_BATCHED] = {"batched", "batched"},
  [GK_NATIVE] = {"native", "native"},
};

static const char *support_name(const gk_capability *line, bool as_json) {
  if ((size_t)line->how >= sizeof supports / sizeof *supports) return "unknown";
  return as_json ? supports[line->how].key : supports[line->how].text;
}

static void print_device_json(FILE *file, const gk_device_info *device, const info_facts *facts) {
  fprintf(file, "{\"ordinal\": %d, \"usable\": true, \"why\": \"\", \"name\": ", device->ordinal);
  info_json_string(file, device->name);
  fputs(", \"driver\": ", file);
  info_json_string(file, device->driver);
  fprintf(file, ", \"threads\": %d,\n \"constructs\": [", device->threads);
  for (size_t k = 0; k < device->capability_count; ++k) {
    const gk_capability *line = &device->capabilities[k];
    fputs(k ? ",\n  {\"construct\": " : "\n  {\"construct\": ", file);
    info_json_string(file, line->construct);
    fprintf(file, ", \"how\": \"%s\", \"why\": ", support_name(line, true));
    info_json_string(file, line->why);
    fputc('}', file);
  }
  fputs("],\n \"facts\": ", file);
  print_facts_json(file, facts);
  fputc('}', file);
}

static void print_constructs(FILE *file, const gk_device_info *device) {
  size_t name_width = 0, support_width = 0;
  for (size_t k = 0; k < device->capability_count; ++k) {
    name_width = widen(name_width, device->capabilities[k].construct, WIDEST_NAME);
    support_width = widen(support_width, support_name(&device->capabilities[k], false), WIDEST_VALUE);
  }
  fputs("  constructs\n", file);
  for (size_t k = 0; k < device->capability_count; ++k)
    put_row(file, device->capabilities[k].construct, name_width, support_name(&device->capabilities[k], false),
            support_width, device->capabilities[k].why);
}

void info_print_device(FILE *file, bool as_json, const gk_device_info *device, const info_facts *facts) {
  if (as_json) {
    print_device_json(file, device, facts);
    return;
  }
  fprintf(file, "\n%s %d\n  device\n", device->backend, device->ordinal);
  char threads[16];
  snprintf(threads, sizeof threads, "%d", device->threads);
  put_row(file, "name", sizeof "threads" - 1, device->name, 0, "");
  if (device->driver[0]) put_row(file, "driver", sizeof "threads" - 1, device->driver, 0, "");
  put_row(file, "threads", sizeof "threads" - 1, threads, 1, "of the host that share a task");
  print_constructs(file, device);
  info_print_facts(file, false, facts);
}

void info_print_lost(FILE *file, bool as_json, const char *backend, int ordinal, const char *why) {
  if (as_json) {
    fprintf(file, "{\"ordinal\": %d, \"usable\": false, \"why\": ", ordinal);
    info_json_string(file, why);
    fputs(", \"name\": \"\", \"driver\": \"\", \"threads\": 0, \"constructs\": [], \"facts\": []}", file);
    return;
  }
  fputc('\n', file);
  info_plain(file, backend);
  fprintf(file, " %d\n    %cit can't be opened: ", ordinal, INFO_COLUMN);
  info_plain(file, why);
  fputc('\n', file);
}
