#include "kernel/token.h"
#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }
static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool starts(const char *s, const char *end, char first, char second) {
  return s < end && *s == first && s + 1 < end && s[1] == second;
}

static const char *skip_line(const char *s, const char *end) {
  const char *found = memchr(s, '\n', (size_t)(end - s));
  return found ? found : end;
}

static const char *skip_comment(const char *s, const char *end) {
  for (s += 2; s < end; ++s)
    if (starts(s, end, '*', '/')) return s + 2;
  return end;
}

static const char *skip_blanks(const char *s, const char *end) {
  while (s < end) {
    if (is_blank(*s)) ++s;
    else if (starts(s, end, '\\', '\n') || starts(s, end, '\\', '\r')) s += 2;
    else if (starts(s, end, '/', '/')) s = skip_line(s, end);
    else if (starts(s, end, '/', '*')) s = skip_comment(s, end);
    else break;
  }
  return s;
}

/* Ends at the end of the line at the latest: an apostrophe in an #error doesn't begin a constant. */
static const char *skip_literal(const char *s, const char *end) {
  char quote = *s++;
  for (; s < end && *s != '\n'; ++s) {
    if (*s == quote) return s + 1;
    if (*s == '\\' && s + 1 < end && s[1] != '\n') ++s;
  }
  return s;
}

static const char *skip_number(const char *s, const char *end) {
  for (++s; s < end; ++s) {
    bool exponent = (*s == '+' || *s == '-') && (s[-1] == 'e' || s[-1] == 'E');
    if (!is_letter(*s) && *s != '.' && !exponent) break;
  }
  return s;
}

gki_token gki_next_token(const char *s, const char *end) {
  s = skip_blanks(s, end);
  if (s == end) return (gki_token){GKI_END, s, s};
  if (is_digit(*s) || (*s == '.' && end - s > 1 && is_digit(s[1])))
    return (gki_token){GKI_NUMBER, s, skip_number(s, end)};
  if (*s == '"' || *s == '\'') return (gki_token){GKI_LITERAL, s, skip_literal(s, end)};
  gki_token token = {GKI_WORD, s, s};
  while (token.end < end && is_letter(*token.end)) ++token.end;
  if (token.end > s) return token;
  token = (gki_token){GKI_SIGN, s, s + 1};
  bool doubled = end - s > 1 && s[1] == *s && strchr("&|+-=<>", *s);
  bool assigns = end - s > 1 && s[1] == '=' && strchr("!<>+-*/%&|^", *s);
  if (doubled || assigns || starts(s, end, '-', '>')) ++token.end;
  return token;
}

gki_token gki_whole_token(const char *text) { return (gki_token){GKI_WORD, text, text + strlen(text)}; }

bool gki_token_is(gki_token token, const char *text) {
  for (const char *s = token.at; s < token.end; ++s, ++text)
    if (*s != *text) return false;
  return *text == 0;
}

bool gki_token_in(gki_token token, const char *words) {
  size_t size = (size_t)(token.end - token.at);
  if (token.kind != GKI_WORD || !size) return false;
  for (const char *at = words; (at = strchr(at, ' ')) && at[1]; ++at)
    if (at[1] == *token.at && strncmp(at + 1, token.at, size) == 0 && at[1 + size] == ' ') return true;
  return false;
}

const char *gki_group_end(const char *s, const char *end) {
  for (int depth = 0;;) {
    gki_token token = gki_next_token(s, end);
    if (token.kind == GKI_END) return end;
    s = token.end;
    if (token.kind != GKI_SIGN) continue;
    if (strchr("([{", *token.at)) ++depth;
    if (strchr(")]}", *token.at) && --depth <= 0) return s;
  }
}

const char *gki_directive_end(const char *s, const char *end) {
  while (s < end && *s != '\n') {
    if (starts(s, end, '\\', '\n')) s += 2;
    else if (starts(s, end, '\\', '\r') && starts(s + 1, end, '\r', '\n')) s += 3;
    else if (starts(s, end, '/', '*')) s = skip_comment(s, end);
    else if (starts(s, end, '/', '/')) return skip_line(s, end);
    else ++s;
  }
  return s;
}
