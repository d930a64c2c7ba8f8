/* Reads and writes the part of Wavefront's OBJ format that describes a mesh: v and f. */
#ifndef SOFTBODY_OBJ_H
#define SOFTBODY_OBJ_H
#include "body.h"
#include <stdbool.h>
#include <stddef.h>

enum { OBJ_LIMIT = 1 << 24 /* the most vertices or triangles: int can count all */ };

typedef struct obj {
  v3 *vertices;
  int (*triangles)[3]; /* polygons come as fans; indices from 0, all in range */
  int vertex_count, triangle_count;
} obj;

/* What went wrong, with file and line. */
typedef struct complaint { char text[512]; } complaint;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* Writes the complaint; returns false, so that a failing function can end with it. */
bool complain(complaint *why, const char *format, ...);

/* Reads a file. @return False: *why has the reason and the place, and *mesh is empty. */
bool obj_read(const char *path, obj *mesh, complaint *why);

/* The same from memory: `size` bytes at `text`, followed by a 0. `path` is for messages. */
bool obj_parse(const char *path, const char *text, size_t size, obj *mesh, complaint *why);

/* Writes a mesh. */
bool obj_write(const char *path, const obj *mesh, complaint *why);

void obj_free(obj *mesh);
#endif
