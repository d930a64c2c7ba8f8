/* Pictures of the body side by side, with a depth buffer, smooth shading and a soft shadow. */
#ifndef SOFTBODY_RENDER_H
#define SOFTBODY_RENDER_H
#include "mesh.h"

enum { STRIP_PICTURES = 8 };

/* A row of pictures, filled one by one. */
typedef struct strip { int width, height; unsigned char *rgb; } strip;

/* @return False: there isn't enough memory. */
bool strip_make(strip *s);
void strip_free(strip *s);

/* Draws the body, with its vertices at x, as picture `index`. @return False: there isn't enough memory. */
bool strip_draw(strip *s, int index, const mesh *body, const v3 *x);

bool strip_write(const strip *s, const char *path, complaint *why);
#endif
