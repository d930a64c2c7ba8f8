#include "session.h"
#include "gk_backend.h"
#include "own.h"
#include "unit/support/runtime_leaks.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

session the_session;

const own_backend *own_backend_of(const char *name) {
  for (const own_backend *own = own_backends; own->name; ++own)
    if (strcmp(own->name, name) == 0) return own;
  return NULL;
}

bool enter_session(void) {
  answer *slip = the_session.slip;
  for (const own_backend *own = own_backends; own->name; ++own) {
    own->enter();
    if (own->seed) own->seed(the_session.seed);
  }
  for (size_t k = 0; k < the_session.module_count; ++k)
    if (gk_backend_load(the_session.modules[k]) != GK_OK) {
      slip->outcome = FAILED;
      snprintf(slip->text, sizeof slip->text, "%s", gk_error());
      return false;
    }
  return true;
}

bool own_is_content(const char *backend, char *text, size_t bytes) {
  const own_backend *own = own_backend_of(backend);
  if (own && own->broken()[0]) {
    snprintf(text, bytes, "common broke a rule of gk_backend.h: %s", own->broken());
    return false;
  }
  if (own && own->leaks() > 0) {
    snprintf(text, bytes, "%u things of the backend's were not given back", own->leaks());
    return false;
  }
  return true;
}

static void apart(void (*body)(void *user), void *user, ended *e) {
  memset(the_session.slip, 0, sizeof *the_session.slip);
  memset(e, 0, sizeof *e);
  e->well = true;
  if (the_session.here) body(user);
  else run_apart(body, user, the_session.sweep ? INT_MAX / 1000 : the_session.seconds, e);
}

/* ---- which backends there are ------------------------------------------------------------------------------------ */

/* With modules, theirs alone. */
static void list_names(void *user) {
  (void)user;
  answer *slip = the_session.slip;
  size_t all = 0, before = 0;
  for (const own_backend *own = own_backends; own->name; ++own) own->enter();
  while (gk_backend_at(before)) ++before;
  if (!enter_session()) return;
  while (gk_backend_at(all)) ++all;
  size_t count = all > before ? all - before : all;
  for (size_t k = 0; k < count && k < BACKENDS_MAX; ++k)
    snprintf(slip->names[slip->name_count++], sizeof slip->names[0], "%s", gk_backend_at(k)->name);
}

void list_backends(ended *e) { apart(list_names, NULL, e); }

static void look(void *user) {
  answer *slip = the_session.slip;
  report *r = &slip->report;
  gk_device *device = NULL;
  if (!enter_session()) return;
  r->result = gk_device_open(&(gk_device_desc){.backend = user}, &device);
  snprintf(r->error, sizeof r->error, "%s", r->result == GK_OK ? "" : gk_error());
  if (r->result != GK_OK) return;
  const gk_device_info *info = gk_device_describe(device);
  snprintf(r->device, sizeof r->device, "%s", info->name);
  snprintf(r->driver, sizeof r->driver, "%s", info->driver);
  for (size_t k = 0; k < info->capability_count && r->count < CONSTRUCTS_MAX; ++k, ++r->count) {
    const gk_capability *line = &info->capabilities[k];
    snprintf(r->constructs[k].construct, sizeof r->constructs[k].construct, "%s", line->construct);
    snprintf(r->constructs[k].why, sizeof r->constructs[k].why, "%s", line->why);
    r->constructs[k].how = line->how;
  }
  gk_device_close(device);
}

void look_at_backend(const char *name, ended *e) {
  char held[64];
  snprintf(held, sizeof held, "%s", name);
  apart(look, held, e);
}

/* ---- a case ------------------------------------------------------------------------------------------------------ */

typedef struct attempt { const char *backend; const case_entry *c; } attempt;

static void try_it(void *user) {
  const attempt *a = user;
  answer *slip = the_session.slip;
  if (the_session.sweep) {
    sweep_case(a->backend, a->c);
    return;
  }
  if (!enter_session()) return;
  static trial t;
  t = (trial){.backend = a->backend, .bits = the_session.bits};
  run_trial(&t, a->c->body);
  slip->outcome = t.outcome;
  snprintf(slip->text, sizeof slip->text, "%s", t.text);
  if (t.outcome != FAILED && !own_is_content(a->backend, slip->text, sizeof slip->text)) slip->outcome = FAILED;
}

void try_case(const char *backend, const case_entry *c, ended *e) {
  attempt a = {backend, c};
  apart(try_it, &a, e);
}
