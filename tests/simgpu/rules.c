/* Rules that were broken, refusals, answers of probes, and what is left at the end. */
#include "sim.h"
#include "base/fork.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIM_TEXT = 512, SIM_EXIT = 70 };

GKI_PROCESS_LOCK(lock)
static unsigned broken_count;
static char first_broken[SIM_TEXT];
static char *says_no, *allowed, *lacked; /* as in the environment */
static enum { COUNT, AT_EXIT, AT_ONCE } strict = AT_EXIT;

/* Of a thread; not its variables, as those are few (SIM_FAST_PER_THREAD). */
typedef struct texts { char refused[SIM_TEXT], broken[SIM_TEXT]; } texts;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static void make_key(void) { pthread_key_create(&key, free); }

static texts *own_texts(void) {
  pthread_once(&key_once, make_key);
  texts *own = pthread_getspecific(key);
  if (own) return own;
  own = sim_obtain(sizeof *own);
  pthread_setspecific(key, own);
  return own;
}

/* Whether a list as in the environment has the name. */
static bool is_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list; at && *at; at += strcspn(at, ",")) {
    at += strspn(at, ", ");
    if (strncmp(at, name, length) == 0 && (at[length] == '\0' || at[length] == ',')) return true;
  }
  return false;
}

static void set_list(char **list, const char *text) {
  SIM_HOLD(lock);
  free(*list);
  *list = text ? strdup(text) : NULL;
}

static bool has(char *const *list, const char *name) {
  SIM_HOLD(lock);
  return is_listed(*list, name);
}

bool sim_says_no(const char *probe) { return has(&says_no, probe); }
bool sim_allows(const char *rule) { return has(&allowed, rule); }
bool sim_lacks(const char *entry) { return has(&lacked, entry); }
void sim_answer_no(const char *probes) { set_list(&says_no, probes); }
void sim_allow(const char *rules) { set_list(&allowed, rules); }
void sim_lack(const char *entries) { set_list(&lacked, entries); }

bool sim_broken(const char *rule, const char *text, ...) {
  char message[SIM_TEXT];
  int used = snprintf(message, sizeof message, "%s: ", rule);
  va_list arguments;
  va_start(arguments, text);
  vsnprintf(message + used, sizeof message - (size_t)used, text, arguments);
  va_end(arguments);
  SIM_HOLD(lock);
  bool counts = !is_listed(allowed, rule);
  if (counts && broken_count++ == 0) memcpy(first_broken, message, sizeof message);
  if (counts && strict == AT_ONCE) {
    fprintf(stderr, "simgpu: broken rule: %s\n", message);
    abort();
  }
  return counts;
}

CUresult sim_refuse(CUresult code, const char *text, ...) {
  char *refused = own_texts()->refused;
  int used = snprintf(refused, SIM_TEXT, "%s: ", sim_entered);
  va_list arguments;
  va_start(arguments, text);
  vsnprintf(refused + used, SIM_TEXT - (size_t)used, text, arguments);
  va_end(arguments);
  if (getenv("SIMGPU_TRACE")) fprintf(stderr, "simgpu: refused (%d): %s\n", (int)code, refused);
  return code;
}

void sim_rules_read(void) {
  const char *how = getenv("SIMGPU_STRICT");
  if (how) strict = strcmp(how, "0") == 0 ? COUNT : strcmp(how, "abort") == 0 ? AT_ONCE : AT_EXIT;
  set_list(&says_no, getenv("SIMGPU_NO"));
  set_list(&allowed, getenv("SIMGPU_ALLOW"));
  set_list(&lacked, getenv("SIMGPU_LACKS"));
}

unsigned sim_broken_count(void) {
  SIM_HOLD(lock);
  return broken_count;
}

const char *sim_first_broken(void) {
  SIM_HOLD(lock);
  return memcpy(own_texts()->broken, first_broken, sizeof first_broken);
}

void sim_forgive(void) {
  SIM_HOLD(lock);
  broken_count = 0;
  first_broken[0] = '\0';
}

const char *sim_last_refused(void) { return own_texts()->refused; }

/* ---- at the end ---- */

static void report_leaks(void) {
  SIM_EACH_DEVICE(each)
    if (each->hung) return; /* giving back would have hung, too */
  char text[SIM_TEXT] = "";
  size_t used = 0;
  for (int kind = SIMGPU_RETAINS; kind < SIMGPU_KINDS; ++kind) {
    size_t count = sim_alive((simgpu_kind)kind);
    if (count && used < sizeof text)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%zu %s", used ? ", " : "", count,
                               sim_kind_names[kind]);
  }
  if (used) sim_broken("leak", "at the end of the process there are still %s", text);
}

__attribute__((destructor))
static void report(void) {
  pthread_mutex_lock(&sim_lock);
  report_leaks();
  pthread_mutex_unlock(&sim_lock);
  if (broken_count == 0) return;
  fprintf(stderr, "simgpu: %u broken rule%s, the first: %s\n", broken_count, broken_count == 1 ? "" : "s",
          first_broken);
  if (strict != AT_EXIT) return;
  fflush(NULL);
  _exit(SIM_EXIT);
}
