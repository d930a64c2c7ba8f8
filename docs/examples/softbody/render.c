/* Draws triangles into a depth buffer: once from the light for the shadow (Williams 1978, softened as in Reeves et al.
 * 1987), once from the eye. The pattern on the skin depends on a point's place at rest, so it shows strain. */
#include "render.h"
#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 330, HEIGHT = 460, FINE = 3 /* samples along a pixel's side */, SHADOW = 1024 };

/* A view: eye, axes, and the length on the picture of a unit at distance 1. The light has no perspective. */
typedef struct view { v3 eye, right, up, ahead; double zoom; bool parallel; int width, height; } view;

/* What a pixel shows: depth, triangle, place on the triangle. */
typedef struct hit { float depth, b, c; int triangle; } hit;

typedef struct scene {
  const mesh *body;
  const v3 *x;
  v3 *normals;
  hit *image, *shadow;
  view eye, light;
} scene;

static v3 unit(v3 a) { double l = v3_length(a); return v3_scale(l > 0.0 ? 1.0 / l : 0.0, a); }
static v3 mix3(v3 a, v3 b, double t) { return v3_add(v3_scale(1.0 - t, a), v3_scale(t, b)); }
static double clamp(double a, double low, double high) { return a < low ? low : a > high ? high : a; }
static double ramp(double from, double to, double a) {
  double t = clamp((a - from) / (to - from), 0.0, 1.0);
  return t * t * (3.0 - 2.0 * t);
}

static view view_of(v3 eye, v3 at, double zoom, bool parallel, int width, int height) {
  v3 ahead = unit(v3_sub(at, eye)), right = unit(v3_cross(ahead, v3_of(0.0, 1.0, 0.0)));
  return (view){eye, right, v3_cross(right, ahead), ahead, zoom, parallel, width, height};
}

/* x, y in pixels, z the depth; false behind the eye. */
static bool project(const view *v, v3 p, v3 *to) {
  v3 d = v3_sub(p, v->eye);
  double depth = v3_dot(d, v->ahead), scale = 0.5 * v->height * v->zoom / (v->parallel ? 1.0 : depth);
  *to = v3_of(0.5 * v->width + scale * v3_dot(d, v->right), 0.5 * v->height - scale * v3_dot(d, v->up), depth);
  return depth > 0.05 && fabs(to->x) < 1e5 && fabs(to->y) < 1e5;
}

/* Shortens the range of pixels `from` to `to` of a row to those where the weight `at` + `rate` x isn't negative, and a
 * few more. A mesh may be a fan of needles that each cross the picture. */
static void narrow(double at, double rate, double *from, double *to) {
  if (rate > 0.0) *from = fmax(*from, fmin(floor(-at / rate) - 1.0, *to + 1.0));
  else if (rate < 0.0) *to = fmin(*to, fmax(ceil(-at / rate) + 1.0, *from - 1.0));
}

static void draw_triangle(const view *v, hit *image, int number, v3 a, v3 b, v3 c) {
  v3 p, q, r;
  if (!project(v, a, &p) || !project(v, b, &q) || !project(v, c, &r)) return;
  double area = (q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x);
  if (!(fabs(area) > 1e-12)) return;
  int left = (int)fmax(fmin(p.x, fmin(q.x, r.x)), 0.0), top = (int)fmax(fmin(p.y, fmin(q.y, r.y)), 0.0);
  int right = (int)fmin(fmax(p.x, fmax(q.x, r.x)), v->width - 1),
      low = (int)fmin(fmax(p.y, fmax(q.y, r.y)), v->height - 1);
  double rate_b = (r.y - p.y) / area, rate_c = (p.y - q.y) / area; /* the change of the corners' weights along a row */
  for (int row = top; row <= low; ++row) {
    double y0 = row + 0.5 - p.y, at_b = (-(p.x * (r.y - p.y)) - y0 * (r.x - p.x)) / area;
    double at_c = ((q.x - p.x) * y0 + p.x * (q.y - p.y)) / area, from = left, to = right;
    narrow(at_b, rate_b, &from, &to);
    narrow(at_c, rate_c, &from, &to);
    narrow(1.0 - at_b - at_c, -rate_b - rate_c, &from, &to);
    for (int column = (int)from, end = (int)to; column <= end; ++column) {
      double x = column + 0.5, y = row + 0.5;
      double wb = ((x - p.x) * (r.y - p.y) - (y - p.y) * (r.x - p.x)) / area;
      double wc = ((q.x - p.x) * (y - p.y) - (q.y - p.y) * (x - p.x)) / area, wa = 1.0 - wb - wc;
      if (wa < 0.0 || wb < 0.0 || wc < 0.0) continue;
      double depth = wa * p.z + wb * q.z + wc * r.z;
      if (!v->parallel) { /* what is linear in space is linear in 1 / depth on the picture */
        depth = 1.0 / (wa / p.z + wb / q.z + wc / r.z);
        wb *= depth / q.z;
        wc *= depth / r.z;
      }
      hit *h = image + (size_t)row * (size_t)v->width + column;
      if (depth < (double)h->depth) *h = (hit){(float)depth, (float)wb, (float)wc, number};
    }
  }
}

static void draw_body(const scene *s, const view *v, hit *image) {
  for (size_t k = 0; k < (size_t)v->width * (size_t)v->height; ++k) image[k] = (hit){1e30f, 0.0f, 0.0f, -1};
  for (int k = 0; k < s->body->triangle_count; ++k) {
    const int *t = s->body->triangles[k];
    draw_triangle(v, image, k, s->x[t[0]], s->x[t[1]], s->x[t[2]]);
  }
}

/* The share of light that reaches p: samples around it in the light's depth buffer, wider at a larger distance from the
 * object that casts the shadow. */
static double lit(const scene *s, v3 p, double spread) {
  static const double taps[12][2] = {{0.1, 0.2}, {-0.3, 0.2}, {0.2, -0.4}, {-0.5, -0.2}, {0.6, 0.3}, {-0.1, 0.7},
                                     {-0.7, 0.5}, {0.5, -0.7}, {-0.3, -0.8}, {0.9, -0.1}, {-0.95, 0.0}, {0.4, 0.85}};
  v3 q;
  double sum = 0.0;
  if (!project(&s->light, p, &q)) return 1.0;
  for (int k = 0; k < 12; ++k) {
    double x = q.x + spread * taps[k][0], y = q.y + spread * taps[k][1];
    if (x < 0.0 || y < 0.0 || x >= SHADOW || y >= SHADOW) sum += 1.0;
    else sum += (double)s->shadow[(size_t)y * SHADOW + (size_t)x].depth > q.z - 0.02 ? 1.0 : 0.0;
  }
  return sum / 12.0;
}

/* Blotches on a pale skin. */
static v3 skin(v3 rest) {
  double a = sin(7.1 * rest.x + 1.3 * sin(5.0 * rest.y) + 0.7), b = sin(6.3 * rest.y + 1.7 * sin(4.0 * rest.z) + 2.0);
  double c = sin(6.7 * rest.z + 1.1 * sin(6.0 * rest.x) + 4.0);
  return mix3(v3_of(0.86, 0.79, 0.70), v3_of(0.34, 0.17, 0.10), ramp(0.10, 0.17, a * b + b * c + c * a));
}

static v3 sky(v3 direction) {
  return mix3(v3_of(0.80, 0.86, 0.92), v3_of(0.36, 0.52, 0.74), ramp(-0.1, 0.6, direction.y));
}

static v3 shade_body(const scene *s, const hit *h, v3 direction) {
  const int *t = s->body->triangles[h->triangle];
  double b = (double)h->b, c = (double)h->c, a = 1.0 - b - c;
  v3 rest = v3_mad(v3_mad(v3_scale(a, s->body->rest[t[0]]), b, s->body->rest[t[1]]), c, s->body->rest[t[2]]);
  v3 p = v3_mad(v3_mad(v3_scale(a, s->x[t[0]]), b, s->x[t[1]]), c, s->x[t[2]]);
  v3 n = unit(v3_mad(v3_mad(v3_scale(a, s->normals[t[0]]), b, s->normals[t[1]]), c, s->normals[t[2]]));
  if (v3_dot(n, direction) > 0.0) n = v3_scale(-1.0, n);
  v3 to_light = v3_scale(-1.0, s->light.ahead), half_way = unit(v3_sub(to_light, direction));
  double sun = fmax(v3_dot(n, to_light), 0.0) * lit(s, v3_mad(p, 0.01, n), 3.0);
  double open = 0.55 + 0.45 * ramp(-0.05, 0.35, p.y); /* near the ground less of the sky is visible */
  double gloss = pow(fmax(v3_dot(n, half_way), 0.0), 40.0) * (sun > 0.0 ? 0.25 : 0.0);
  double rim = pow(1.0 - fmax(-v3_dot(n, direction), 0.0), 3.0) * 0.12;
  v3 ambient = v3_scale(open, mix3(v3_of(0.30, 0.26, 0.22), v3_of(0.46, 0.52, 0.60), 0.5 + 0.5 * n.y));
  v3 light = v3_mad(v3_scale(0.85, ambient), 0.72 * sun, v3_of(1.0, 0.94, 0.84));
  return v3_add(v3_times(skin(rest), light), v3_scale(gloss + rim * open, v3_of(1.0, 1.0, 1.0)));
}

static v3 shade_ground(const scene *s, v3 direction) {
  v3 eye = s->eye.eye, far = sky(direction);
  if (direction.y > -1e-3) return far;
  v3 p = v3_mad(eye, -eye.y / direction.y, direction);
  double distance = v3_length(p), line = 0.0;
  const double at[2] = {p.x, p.z};
  for (int k = 0; k < 2; ++k) { /* lines every 0.25 m; wider far away, to cover a pixel */
    double off = fabs(at[k] / 0.25 - floor(at[k] / 0.25 + 0.5)) * 0.25, width = 0.004 + 0.002 * distance;
    line = fmax(line, 1.0 - ramp(0.5 * width, width, off));
  }
  v3 colour = mix3(v3_of(0.62, 0.63, 0.62), v3_of(0.45, 0.47, 0.49), 0.6 * line * (1.0 - ramp(1.0, 4.0, distance)));
  colour = v3_scale(0.50 + 0.50 * lit(s, p, 9.0), colour);
  return mix3(colour, far, ramp(1.5, 9.0, distance));
}

static unsigned char to_byte(double a) { return (unsigned char)(255.0 * pow(clamp(a, 0.0, 1.0), 1.0 / 1.8) + 0.5); }

static void shade(const scene *s, strip *row_of, int index) {
  double unit_size = 2.0 / (s->eye.height * s->eye.zoom);
  for (int row = 0; row < HEIGHT; ++row) {
    for (int column = 0; column < WIDTH; ++column) {
      v3 sum = {0.0, 0.0, 0.0};
      for (int k = 0; k < FINE * FINE; ++k) {
        int x = column * FINE + k % FINE, y = row * FINE + k / FINE;
        const hit *h = s->image + (size_t)y * (size_t)s->eye.width + x;
        v3 ray = v3_mad(s->eye.ahead, (x + 0.5 - 0.5 * s->eye.width) * unit_size, s->eye.right);
        ray = unit(v3_mad(ray, (0.5 * s->eye.height - y - 0.5) * unit_size, s->eye.up));
        v3 colour = h->triangle >= 0 ? shade_body(s, h, ray) : shade_ground(s, ray);
        sum = v3_add(sum, v3_of(fmin(colour.x, 1.0), fmin(colour.y, 1.0), fmin(colour.z, 1.0)));
      }
      unsigned char *to =
          row_of->rgb + 3 * ((size_t)row * (size_t)row_of->width + (size_t)(index * (WIDTH + 4) + column));
      to[0] = to_byte(sum.x / (FINE * FINE));
      to[1] = to_byte(sum.y / (FINE * FINE));
      to[2] = to_byte(sum.z / (FINE * FINE));
    }
  }
}

bool strip_make(strip *s) {
  s->width = STRIP_PICTURES * (WIDTH + 4) - 4;
  s->height = HEIGHT;
  size_t bytes = 3 * (size_t)s->width * (size_t)s->height;
  s->rgb = malloc(bytes);
  if (s->rgb) memset(s->rgb, 255, bytes);
  return s->rgb != NULL;
}

void strip_free(strip *s) {
  free(s->rgb);
  s->rgb = NULL;
}

/* The point of the ground below the body. The camera follows it. */
static v3 middle_of(const mesh *body, const v3 *x) {
  v3 sum = {0.0, 0.0, 0.0};
  double mass = 0.0;
  for (int k = 0; k < body->vertex_count; ++k) {
    sum = v3_mad(sum, body->mass[k], x[k]);
    mass += body->mass[k];
  }
  return v3_of(sum.x / mass, 0.0, sum.z / mass);
}

bool strip_draw(strip *row, int index, const mesh *body, const v3 *x) {
  scene s = {.body = body, .x = x};
  s.normals = calloc((size_t)body->vertex_count, sizeof *s.normals);
  s.image = malloc((size_t)WIDTH * FINE * HEIGHT * FINE * sizeof *s.image);
  s.shadow = malloc((size_t)SHADOW * SHADOW * sizeof *s.shadow);
  bool good = s.normals && s.image && s.shadow;
  if (good) {
    for (int k = 0; k < body->triangle_count; ++k) { /* a normal's length is the triangle's area */
      const int *t = body->triangles[k];
      v3 n = v3_cross(v3_sub(x[t[1]], x[t[0]]), v3_sub(x[t[2]], x[t[0]]));
      for (int c = 0; c < 3; ++c) s.normals[t[c]] = v3_add(s.normals[t[c]], n);
    }
    v3 middle = middle_of(body, x);
    s.eye = view_of(v3_add(middle, v3_of(-2.1, 1.35, -2.9)), v3_add(middle, v3_of(0.0, 0.58, 0.0)), 4.1, false,
                    WIDTH * FINE, HEIGHT * FINE);
    s.light = view_of(v3_add(middle, v3_of(-2.2, 5.0, -1.6)), v3_add(middle, v3_of(0.0, 0.5, 0.0)), 0.62, true, SHADOW,
                      SHADOW);
    draw_body(&s, &s.light, s.shadow);
    draw_body(&s, &s.eye, s.image);
    shade(&s, row, index);
  }
  free(s.normals);
  free(s.image);
  free(s.shadow);
  return good;
}

bool strip_write(const strip *s, const char *path, complaint *why) {
  png_image image = {.version = PNG_IMAGE_VERSION, .width = (png_uint_32)s->width, .height = (png_uint_32)s->height,
                     .format = PNG_FORMAT_RGB};
  if (png_image_write_to_file(&image, path, 0, s->rgb, 0, NULL)) return true;
  return complain(why, "%s: can't be written: %s", path, image.message);
}
