/* softbody MESH.obj drops a mesh, shows the fall, and checks the physics. The last line of output is for programs. */
#include "gk_info.h"
#include "render.h"
#include "step.h"
#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

static const char help[] =
  "softbody MESH.obj [options]   drops a mesh on the ground and on itself, and checks the physics\n"
  "  --steps N       time steps of 0.01 s (default 240)\n"
  "  --backend NAME  the device's backend (default: $GK_BACKEND, else the first that is able)\n"
  "  --threads N     host threads (default: OMP_NUM_THREADS, else all)\n"
  "  --out DIR       where final.obj and fall.png go (default build/softbody-out)\n"
  "  --pairs N       pairs of touching vertices that fit into the buffer at first (default 8: far too few)\n"
  "  --verify        simulates again with a buffer that is large enough; the result must be the same bit for bit\n"
  "  --drop M        metres between the body and the ground (default 0.4)\n"
  "  --stretch X     stiffness against stretching in N/m (default 1500)\n"
  "  --bend X        stiffness against bending in N m (default 0.004)\n"
  "  --host-gated    the host makes every decision (GK_HOST_GATED)\n"
  "  --quiet         no line per step\n"
  "  --plan FORMAT   writes what gk makes of a step's task list, as text, dot or json, and does nothing else\n"
  "Exit code 0: all went well and every check holds; 1: not so; 2: the command line is wrong.\n";

typedef struct options {
  const char *mesh, *backend, *out, *plan;
  int steps, threads, pairs;
  double drop, stretch, bend;
  bool verify, quiet, host_gated, help;
} options;

/* What the program measures during the fall. */
typedef struct watch {
  double mass, start, least, rise;  /* energy: at the start, least so far, largest rise above that */
  v3 momentum;                      /* at the start */
  int free_steps;                   /* before the body touches the ground */
  double drift, drift_allowed;      /* of the momentum, in free fall */
  bool landed, finite;
} watch;

static const double energy_allowed = 0.01, taken_allowed = 0.05, depth_allowed = 1e-3;

static bool read_number(const char *name, const char *text, double low, double high, double *to) {
  char *end = NULL;
  double value = text ? strtod(text, &end) : 0.0;
  if (text && end != text && !*end && value >= low && value <= high) {
    *to = value;
    return true;
  }
  fprintf(stderr, "softbody: %s takes a number from %g to %g%s%s\n", name, low, high, text ? ", not " : "",
          text ? text : "");
  return false;
}

static bool read_count(const char *name, const char *text, int low, int high, int *to) {
  double value = 0.0;
  if (!read_number(name, text, low, high, &value)) return false;
  *to = (int)value;
  if (*to == value) return true;
  fprintf(stderr, "softbody: %s takes a whole number, not %s\n", name, text);
  return false;
}

static bool read_options(int argc, char **argv, options *o) {
  for (int k = 1; k < argc; ++k) {
    const char *name = argv[k], *text = k + 1 < argc ? argv[k + 1] : NULL;
    bool good = true, one_word = false;
    if (strcmp(name, "--steps") == 0) good = read_count(name, text, 1, 1000000, &o->steps);
    else if (strcmp(name, "--threads") == 0) good = read_count(name, text, 1, 1024, &o->threads);
    else if (strcmp(name, "--pairs") == 0) good = read_count(name, text, 1, 100000000, &o->pairs);
    else if (strcmp(name, "--drop") == 0) good = read_number(name, text, 0.01, 100.0, &o->drop);
    else if (strcmp(name, "--stretch") == 0) good = read_number(name, text, 1.0, 1e6, &o->stretch);
    else if (strcmp(name, "--bend") == 0) good = read_number(name, text, 0.0, 1e3, &o->bend);
    else if (strcmp(name, "--backend") == 0) good = (o->backend = text) != NULL;
    else if (strcmp(name, "--out") == 0) good = (o->out = text) != NULL;
    else if (strcmp(name, "--plan") == 0) good = (o->plan = text) != NULL;
    else {
      one_word = true;
      if (strcmp(name, "--verify") == 0) o->verify = true;
      else if (strcmp(name, "--quiet") == 0) o->quiet = true;
      else if (strcmp(name, "--host-gated") == 0) o->host_gated = true;
      else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) o->help = true;
      else if (name[0] != '-' && !o->mesh) o->mesh = name;
      else {
        fprintf(stderr, "softbody: %s isn't understood; see softbody --help\n", name);
        return false;
      }
    }
    if (!good) {
      if (!text) fprintf(stderr, "softbody: %s needs something behind it\n", name);
      return false;
    }
    k += !one_word;
  }
  if (o->mesh || o->help || o->plan) return true;
  fprintf(stderr, "softbody: which mesh? softbody MESH.obj; see softbody --help\n");
  return false;
}

/* Makes a folder and its parents. */
static bool make_folder(const char *path, complaint *why) {
  char part[4096];
  size_t size = strlen(path);
  if (!size || size >= sizeof part) return complain(why, "--out: the folder's name is empty or too long");
  for (size_t k = 1; k <= size; ++k) {
    if (path[k] && path[k] != '/') continue;
    memcpy(part, path, k);
    part[k] = 0;
    if (mkdir(part, 0777) != 0 && errno != EEXIST) return complain(why, "%s: can't be made: %s", part, strerror(errno));
  }
  struct stat folder;
  if (stat(path, &folder) != 0 || !S_ISDIR(folder.st_mode)) return complain(why, "%s: is no folder", path);
  return true;
}

/* Why a call of the simulation failed. */
static bool blame(complaint *why, const simulation *s) {
  return complain(why, "after %d steps: %s", s->steps, s->trouble ? s->trouble : gk_error());
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

extern const gk_images softbody_images; /* in the file that gk-embed writes (softbody.ninja) */

static gk_result start(simulation *s, const options *o, const mesh *body, const world *constants, int room) {
  const gk_device_desc device = {.backend = o->backend, .threads = o->threads};
  const gk_result used = gk_use_images(&softbody_images);
  if (used != GK_OK) return used;
  return simulation_start(s, &device, body, constants, o->drop, v3_of(0.8, 0.3, 0.5), room,
                          o->host_gated ? GK_HOST_GATED : 0);
}

/* Checks a step. In free fall the momentum grows by weight times time. The only error allowed is rounding: each step
 * rounds positions of less than 4 m a few times, and divides the difference by the step. */
static void observe(watch *w, const simulation *s, double drop) {
  w->finite = w->finite && isfinite(s->energy) && isfinite(s->kinetic);
  w->rise = fmax(w->rise, s->energy - w->least);
  w->least = fmin(w->least, s->energy);
  w->landed = w->landed || s->touching > 0;
  if (w->landed) return;
  double seconds = s->steps * s->world.step;
  v3 expected = v3_add(w->momentum, v3_of(0.0, -w->mass * s->world.gravity * seconds, 0.0));
  w->free_steps = s->steps;
  w->drift = fmax(w->drift, v3_length(v3_sub(s->momentum, expected)));
  w->drift_allowed = s->steps * w->mass * 8.0 * DBL_EPSILON * (drop + 2.0) / s->world.step;
}

static void print_step(const simulation *s, uint64_t newton, uint64_t cg) {
  printf("step %4d  newton %3d  cg %5d  pairs %6d  yields %2d  growths %2d  energy %9.4f\n", s->steps, (int)newton,
         (int)cg, s->contacts / 2, s->yields, s->growths, s->energy);
  fflush(stdout);
}

/* The step after which picture k is drawn. Most pictures show the impact. */
static int picture_step(int k, int steps) {
  static const double share[STRIP_PICTURES] = {0.0, 0.1, 0.15, 0.2, 0.27, 0.36, 0.55, 1.0};
  return (int)(steps * share[k] + 0.5);
}

/* Runs all steps. If `pictures` is NULL, it draws and prints nothing. */
static bool run(simulation *s, const options *o, watch *w, strip *pictures, v3 *x, complaint *why) {
  for (int k = 0, drawn = 0; k <= o->steps; ++k) {
    uint64_t newton = s->newton, cg = s->cg;
    if (k > 0 && simulation_step(s) != GK_OK) return blame(why, s);
    if (w && k > 0) observe(w, s, o->drop);
    if (pictures && k > 0 && !o->quiet) print_step(s, s->newton - newton, s->cg - cg);
    for (; pictures && drawn < STRIP_PICTURES && picture_step(drawn, o->steps) == k; ++drawn) {
      if (simulation_read(s, x, NULL) != GK_OK) return blame(why, s);
      if (!strip_draw(pictures, drawn, s->body, x)) return complain(why, "there isn't enough memory for a picture");
    }
  }
  return true;
}

/* Simulates again, with room for the greatest number of pairs, and compares every bit of the result and the passes of
 * the loops. An interrupted run must equal an uninterrupted one. */
static bool verify(const options *o, const simulation *first, const v3 *x, const v3 *v, complaint *why) {
  size_t n = (size_t)first->body->vertex_count;
  v3 *again = calloc(2 * n, sizeof *again);
  simulation s = {0};
  bool good = again != NULL;
  if (!good) complain(why, "there isn't enough memory to compare");
  else if (start(&s, o, first->body, &first->world, first->room + first->room / 2) != GK_OK)
    good = blame(why, &s);
  good = good && run(&s, o, NULL, NULL, NULL, why);
  if (good && simulation_read(&s, again, again + n) != GK_OK) good = blame(why, &s);
  if (good && s.yields) good = complain(why, "a buffer that was large enough overflowed");
  if (good && (memcmp(again, x, n * sizeof *x) != 0 || memcmp(again + n, v, n * sizeof *v) != 0))
    good = complain(why, "the result without yields is another one");
  if (good)
    printf("check  the same bit for bit: %d yields here, none with room for %d contacts: ok\n", first->yields, s.room);
  simulation_end(&s);
  free(again);
  return good;
}

static bool check(const watch *w, const simulation *s, double depth) {
  bool calm = w->rise <= energy_allowed * w->start, still = w->drift <= w->drift_allowed,
       above = depth <= depth_allowed, honest = s->taken <= taken_allowed * w->start;
  printf("check  energy %.4f J at first, %.4f at the end (%.4f of it kinetic), rose by %.4f %% of the first at most"
         " (1 %% allowed): %s\n", w->start, s->energy, s->kinetic, 100.0 * w->rise / w->start, calm ? "ok" : "FAILED");
  printf("check  energy taken back from steps that gained some: %.4f %% of the first in all (%g %% allowed): %s\n",
         100.0 * s->taken / w->start, 100.0 * taken_allowed, honest ? "ok" : "FAILED");
  printf("check  momentum %.4g kg m/s after %d steps of free fall, off by %.2g (rounding alone allows %.2g): %s\n",
         w->mass * s->world.gravity * s->world.step * w->free_steps, w->free_steps, w->drift, w->drift_allowed,
         still ? "ok" : "FAILED");
  printf("check  deepest vertex %.2g mm below the ground (1 mm allowed): %s\n", 1e3 * depth, above ? "ok" : "FAILED");
  if (s->unfinished)
    printf("note   in %d steps the outer loop ended at its bound of passes, before all was still\n", s->unfinished);
  if (!w->finite) printf("check  the result is a number: FAILED\n");
  return calm && honest && still && above && w->finite;
}

/* Replaces a file only by a complete one. */
static bool put_in_place(const char *part, const char *path, bool written, complaint *why) {
  if (written && rename(part, path) != 0) written = complain(why, "%s: can't be written: %s", path, strerror(errno));
  if (written) printf("wrote  %s\n", path);
  else remove(part);
  return written;
}

static bool write_results(const options *o, const mesh *body, v3 *x, const strip *pictures, complaint *why) {
  char path[4200], part[4210];
  obj last = {.vertices = x, .triangles = body->triangles, .vertex_count = body->vertex_count,
              .triangle_count = body->triangle_count};
  snprintf(path, sizeof path, "%s/final.obj", o->out);
  snprintf(part, sizeof part, "%s.part", path);
  if (!put_in_place(part, path, obj_write(part, &last, why), why)) return false;
  snprintf(path, sizeof path, "%s/fall.png", o->out);
  snprintf(part, sizeof part, "%s.part", path);
  return put_in_place(part, path, strip_write(pictures, part, why), why);
}

static void introduce(const mesh *m, const simulation *s) {
  const gk_device_info *d = gk_device_describe(s->device);
  printf("mesh   %d vertices, %d triangles, %d edges: %d open, %d with more than two triangles (these don't bend)\n",
         m->vertex_count, m->triangle_count, m->edge_count, m->open_edges, m->crowded_edges);
  if (m->joined + m->isolated + m->flat + m->twice)
    printf("mesh   joined %d vertices at the place of others; left out %d in no triangle, %d triangles without area,"
           " %d repeated\n", m->joined, m->isolated, m->flat, m->twice);
  printf("device %s: %s, %d threads\n", d->backend, d->name, d->threads);
}

static bool simulate(const options *o, const mesh *body, complaint *why) {
  size_t n = (size_t)body->vertex_count;
  simulation s = {0};
  strip pictures = {0};
  v3 *x = calloc(n, sizeof *x), *v = calloc(n, sizeof *v);
  bool good = make_folder(o->out, why), held = false;
  world constants = simulation_constants(body);
  double depth = 0.0;
  if (!x || !v || !(constants.reach > 0.0) || !strip_make(&pictures))
    good = complain(why, "there isn't enough memory");
  if (!good) goto done;
  if (start(&s, o, body, &constants, 2 * o->pairs) != GK_OK) {
    blame(why, &s);
    goto done;
  }
  introduce(body, &s);
  watch w = {.mass = constants.mass, .start = s.energy, .least = s.energy, .momentum = s.momentum, .finite = true};
  double begun = seconds_now();
  if (!run(&s, o, &w, &pictures, x, why)) goto done;
  printf("time   %.1f s for %d steps and their pictures\n", seconds_now() - begun, s.steps);
  if (simulation_read(&s, x, v) != GK_OK) {
    blame(why, &s);
    goto done;
  }
  for (size_t k = 0; k < n; ++k) depth = fmax(depth, -x[k].y);
  if (!write_results(o, body, x, &pictures, why)) goto done;
  held = check(&w, &s, depth);
  if (!held) complain(why, "the result breaks the laws above");
  if (o->verify) held = verify(o, &s, x, v, why) && held;
  if (held)
    printf("steps %d newton %d cg %d pairs %d yields %d resumes %d growths %d energy %.6g penetration %.6g\n", s.steps,
           (int)s.newton, (int)s.cg, s.most / 2, s.yields, s.resumes, s.growths, s.energy, depth);

done:
  simulation_end(&s);
  strip_free(&pictures);
  free(x);
  free(v);
  return held;
}

static bool show_plan(const char *format) {
  char *text = gk_dump(simulation_list(), NULL, format);
  if (text) fputs(text, stdout);
  else fprintf(stderr, "softbody: --plan: %s\n", gk_error());
  gk_free_text(text);
  return text != NULL;
}

/* Returns the exit code, or 1 if standard output failed. */
static int leave(int code) {
  const bool arrived = fflush(stdout) == 0 && !ferror(stdout);
  if (!arrived) fprintf(stderr, "softbody: standard output can't be written: %s\n", strerror(errno));
  return arrived || code ? code : 1;
}

int main(int argc, char **argv) {
  options o = {.out = "build/softbody-out", .steps = 240, .pairs = 8, .drop = 0.4, .stretch = 1500.0, .bend = 0.004};
  obj file = {0};
  mesh body = {0};
  complaint why = {""};
  if (!read_options(argc, argv, &o)) return 2;
  if (o.help) {
    fputs(help, stdout);
    return leave(0);
  }
  if (o.plan) return leave(show_plan(o.plan) ? 0 : 1);
  material stuff = {.density = 1.0, .membrane = o.stretch, .bending = o.bend};
  bool good = obj_read(o.mesh, &file, &why) && mesh_build(o.mesh, &file, &stuff, &body, &why);
  obj_free(&file);
  good = good && simulate(&o, &body, &why);
  mesh_free(&body);
  if (!good) {
    fflush(stdout);
    fprintf(stderr, "softbody: %s\n", why.text);
  }
  return leave(good ? 0 : 1);
}
