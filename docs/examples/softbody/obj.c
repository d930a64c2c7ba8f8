/* Reads OBJ files. It checks every number where it is read, and every index when all vertices are known. */
#include "obj.h"
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 24 /* characters of the file that a message repeats */ };
static const size_t largest_file = (size_t)4 << 30; /* 256 bytes for each vertex that there may be */
static const double largest = 1e100; /* a coordinate beyond it couldn't be squared twice */

typedef struct reader {
  const char *path, *at, *end;
  size_t line;
  obj mesh;
  int vertex_room, triangle_room;
  size_t *lines; /* of each triangle, for indices that turn out to be too large */
  complaint *why;
} reader;

bool complain(complaint *why, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why->text, sizeof why->text, format, args);
  va_end(args);
  return false;
}

/* Reports "file:line: " and a sentence, with the current word if there is one. Unprintable bytes become dots. */
static bool reject(const reader *r, const char *word, const char *sentence) {
  char shown[SHOWN + 8] = "";
  int size = 0;
  for (const char *s = word; s && s < r->end && (unsigned char)*s > ' '; ++s) {
    if (size == SHOWN) {
      memcpy(shown + size, "...", 4);
      size += 3;
      break;
    }
    shown[size++] = (unsigned char)*s < 127 ? *s : '.';
    shown[size] = 0;
  }
  if (!size) return complain(r->why, "%s:%zu: %s", r->path, r->line, sentence);
  return complain(r->why, "%s:%zu: \"%s\": %s", r->path, r->line, shown, sentence);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

/* Skips blanks, and line ends behind a backslash. Stops at the end of the line. */
static void skip_blanks(reader *r) {
  for (;;) {
    while (r->at < r->end && is_blank(*r->at)) ++r->at;
    const char *next = r->at + 1;
    if (r->at >= r->end || *r->at != '\\') return;
    if (next < r->end && *next == '\r') ++next;
    if (next >= r->end || *next != '\n') return;
    r->at = next + 1;
    ++r->line;
  }
}
static bool at_line_end(const reader *r) {
  return r->at >= r->end || *r->at == '\n' || *r->at == '\r' || *r->at == '#';
}
static bool at_word_end(const reader *r) { return at_line_end(r) || is_blank(*r->at) || *r->at == '\\'; }

static bool read_coordinate(reader *r, double *value) {
  skip_blanks(r);
  if (at_line_end(r)) return reject(r, NULL, "a vertex needs three coordinates");
  const char *word = r->at;
  char *after;
  *value = strtod(word, &after);
  if (after == word || after > r->end) return reject(r, word, "this is not a number");
  r->at = after;
  if (!at_word_end(r)) return reject(r, word, "this is not a number");
  if (!(fabs(*value) <= largest)) return reject(r, word, "a coordinate must be finite, and below 1e100");
  return true;
}

/* One of the numbers of a face's corner: 7, -2. */
static bool read_index(reader *r, const char *word, long *value) {
  char *after;
  bool digit = r->at < r->end && ((*r->at >= '0' && *r->at <= '9') || *r->at == '-' || *r->at == '+');
  errno = 0;
  *value = digit ? strtol(r->at, &after, 10) : 0;
  if (!digit || after == r->at) return reject(r, word, "a corner of a face is written 7, 7/1, 7//1 or 7/1/1");
  r->at = after;
  if (errno || *value == 0 || *value > INT_MAX || *value < -INT_MAX)
    return reject(r, word, "no vertex has this number; they count from 1, or from -1 backwards");
  return true;
}

static bool read_corner(reader *r, int *corner) {
  const char *word = r->at;
  long index, other;
  if (!read_index(r, word, &index)) return false;
  if (index < 0) {
    if (-index > r->mesh.vertex_count) return reject(r, word, "this counts back before the first vertex");
    index += r->mesh.vertex_count + 1;
  }
  for (int k = 0; k < 2 && r->at < r->end && *r->at == '/'; ++k) {
    ++r->at;
    if (k == 0 && r->at < r->end && *r->at == '/') continue;
    if (!read_index(r, word, &other)) return false;
  }
  if (!at_word_end(r)) return reject(r, word, "a corner of a face is written 7, 7/1, 7//1 or 7/1/1");
  *corner = (int)(index - 1);
  return true;
}

/* Makes room for one more element of `bytes` in an array of `count`. */
static bool make_room(reader *r, void *array, int count, int *room, size_t bytes) {
  if (count < *room) return true;
  int wanted = *room < 512 ? 1024 : *room * 2;
  void *grown = realloc(*(void **)array, (size_t)wanted * bytes);
  if (!grown) return reject(r, NULL, "there isn't enough memory for a mesh of this size");
  *(void **)array = grown;
  *room = wanted;
  return true;
}

static bool add_triangle(reader *r, int a, int b, int c) {
  obj *mesh = &r->mesh;
  int room = r->triangle_room; /* both arrays have the same */
  if (mesh->triangle_count == OBJ_LIMIT) return reject(r, NULL, "there are more than 16,777,216 triangles");
  if (!make_room(r, &mesh->triangles, mesh->triangle_count, &room, sizeof *mesh->triangles)) return false;
  if (!make_room(r, &r->lines, mesh->triangle_count, &r->triangle_room, sizeof *r->lines)) return false;
  int *t = mesh->triangles[mesh->triangle_count];
  t[0] = a;
  t[1] = b;
  t[2] = c;
  r->lines[mesh->triangle_count++] = r->line;
  return true;
}

static bool read_face(reader *r) {
  int corners = 0, first = 0, last = 0, corner = 0;
  for (skip_blanks(r); !at_line_end(r); skip_blanks(r), ++corners) {
    if (!read_corner(r, &corner)) return false;
    if (corners == 0) first = corner;
    if (corners > 1 && !add_triangle(r, first, last, corner)) return false;
    last = corner;
  }
  return corners >= 3 || reject(r, NULL, "a face needs three corners");
}

static bool read_vertex(reader *r) {
  v3 p;
  if (!read_coordinate(r, &p.x) || !read_coordinate(r, &p.y) || !read_coordinate(r, &p.z)) return false;
  if (r->mesh.vertex_count == OBJ_LIMIT) return reject(r, NULL, "there are more than 16,777,216 vertices");
  if (!make_room(r, &r->mesh.vertices, r->mesh.vertex_count, &r->vertex_room, sizeof p)) return false;
  r->mesh.vertices[r->mesh.vertex_count++] = p;
  return true; /* what follows is a weight or a colour */
}

static bool read_line(reader *r) {
  skip_blanks(r);
  if (at_line_end(r)) return true;
  const char *word = r->at;
  for (; !at_word_end(r); ++r->at)
    if ((unsigned char)*r->at <= ' ' || (unsigned char)*r->at >= 127)
      return reject(r, word, "this is not text; is it an OBJ file?");
  if (r->at - word == 1 && *word == 'v') return read_vertex(r);
  if (r->at - word == 1 && *word == 'f') return read_face(r);
  return true; /* texture, normals, groups, materials, lines: not needed */
}

static void skip_line(reader *r) {
  while (r->at < r->end && *r->at != '\n' && *r->at != '\r') {
    if (*r->at == '\\') {
      skip_blanks(r); /* a hidden line end */
      if (r->at < r->end && *r->at == '\\') ++r->at;
    } else ++r->at;
  }
  if (r->end - r->at > 1 && r->at[0] == '\r' && r->at[1] == '\n') ++r->at;
  if (r->at < r->end) ++r->at;
  ++r->line;
}

static bool read_all(reader *r) {
  const char *zero = memchr(r->at, 0, (size_t)(r->end - r->at));
  if (zero) {
    for (const char *s = r->at; s < zero; ++s) r->line += *s == '\n';
    return reject(r, NULL, "there is a byte 0 here; this is not an OBJ file");
  }
  for (; r->at < r->end; skip_line(r))
    if (!read_line(r)) return false;
  if (r->line > 1) --r->line; /* the last line */
  if (!r->mesh.vertex_count) return reject(r, NULL, "the file ends without a vertex (a line \"v x y z\")");
  if (!r->mesh.triangle_count) return reject(r, NULL, "the file ends without a face (a line \"f 1 2 3\")");
  for (int k = 0; k < r->mesh.triangle_count; ++k) {
    for (int c = 0; c < 3; ++c) {
      if (r->mesh.triangles[k][c] < r->mesh.vertex_count) continue;
      return complain(r->why, "%s:%zu: a face asks for vertex %d, the file has %d", r->path, r->lines[k],
                      r->mesh.triangles[k][c] + 1, r->mesh.vertex_count);
    }
  }
  return true;
}

bool obj_parse(const char *path, const char *text, size_t size, obj *mesh, complaint *why) {
  reader r = {.path = path, .at = text, .end = text + size, .line = 1, .why = why};
  if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) r.at += 3; /* what some editors put before UTF-8 */
  bool good = read_all(&r);
  free(r.lines);
  if (!good) obj_free(&r.mesh);
  *mesh = r.mesh;
  return good;
}

bool obj_read(const char *path, obj *mesh, complaint *why) {
  char *text = NULL;
  size_t size = 0, room = 0;
  bool good = false;
  memset(mesh, 0, sizeof *mesh);
  FILE *file = fopen(path, "rb");
  if (!file) return complain(why, "%s: can't be opened: %s", path, strerror(errno));
  for (;;) {
    if (room - size < 2) {
      char *grown = realloc(text, room = room ? room * 2 : 1 << 20);
      if (!grown) {
        complain(why, "%s: there isn't enough memory to read it", path);
        goto done;
      }
      text = grown;
    }
    size_t got = fread(text + size, 1, room - size - 1, file);
    bool strange = memchr(text + size, 0, got) != NULL; /* obj_parse reports it; a device may have no end */
    size += got;
    if (!got || strange) break;
    if (size > largest_file) {
      complain(why, "%s: the file has more than 4 GiB; is it an OBJ file?", path);
      goto done;
    }
  }
  text[size] = 0;
  if (ferror(file)) complain(why, "%s: can't be read: %s", path, strerror(errno));
  else if (!size) complain(why, "%s:1: the file is empty", path);
  else good = obj_parse(path, text, size, mesh, why);

done:
  fclose(file);
  free(text);
  return good;
}

bool obj_write(const char *path, const obj *mesh, complaint *why) {
  FILE *file = fopen(path, "wb");
  if (!file) return complain(why, "%s: can't be written: %s", path, strerror(errno));
  fprintf(file, "# written by softbody\n");
  for (int k = 0; k < mesh->vertex_count; ++k)
    fprintf(file, "v %.9g %.9g %.9g\n", mesh->vertices[k].x, mesh->vertices[k].y, mesh->vertices[k].z);
  for (int k = 0; k < mesh->triangle_count; ++k)
    fprintf(file, "f %d %d %d\n", mesh->triangles[k][0] + 1, mesh->triangles[k][1] + 1, mesh->triangles[k][2] + 1);
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed;
  return !failed || complain(why, "%s: writing failed: %s", path, strerror(errno));
}

void obj_free(obj *mesh) {
  free(mesh->vertices);
  free(mesh->triangles);
  memset(mesh, 0, sizeof *mesh);
}
