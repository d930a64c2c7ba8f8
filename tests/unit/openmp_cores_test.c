/* The team's threads on cores of their own: one that the system put on its leader's is sent to another. */
#include "libomp_leaks.h"
#include "openmp/team.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <unistd.h>

enum { TRIES = 40, ROUNDS = 5 };

typedef struct probe {
  gki_order order;
  gki_team *team;
  cpu_set_t leaders, both;
  int ran_on;
} probe;

static void look_where(gki_order *order, uint32_t index) {
  (void)index;
  ((probe *)order)->ran_on = sched_getcpu();
}

static void ask(probe *p) {
  p->order.work = look_where;
  gki_team_post(p->team, &p->order, 0, 2, 2);
}

static void ask_at_meeting(void *at) {
  probe *p = at;
  if (p->team->size < 2) return;
  ask(p);
  gki_team_wait(p->team, &p->order);
}

static void put_follower_here(const probe *p) {
  const int thread = atomic_load(&p->team->seats[1].thread);
  assert_true(thread > 0);
  assert_int_equal(sched_setaffinity(thread, sizeof p->leaders, &p->leaders), 0);
}

/* It stays where it is until the system looks. */
static void let_follower_go(const probe *p) {
  assert_int_equal(sched_setaffinity(atomic_load(&p->team->seats[1].thread), sizeof p->both, &p->both), 0);
}

/* As a sleeper that is woken onto the leader's core. The leader sleeps meanwhile, too, and doesn't only yield: else
 * the system has it wait for the one that it wakes. */
static void ask_while_asleep(void *at) {
  probe *p = at;
  if (p->team->size < 2) return;
  const uint64_t begun = gki_now();
  while (!gki_team_sleeps(p->team, 1) && gki_now() - begun < 1000000000) (void)usleep(100);
  put_follower_here(p);
  ask(p);
  let_follower_go(p);
  gki_team_wait(p->team, &p->order);
}

static bool two_cpus(cpu_set_t *usual, probe *p) {
  CPU_ZERO(&p->leaders);
  CPU_ZERO(&p->both);
  if (sched_getaffinity(0, sizeof *usual, usual) != 0) return false;
  for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&p->both) < 2; ++cpu) {
    if (!CPU_ISSET(cpu, usual)) continue;
    CPU_SET(cpu, &p->both);
    if (CPU_COUNT(&p->leaders) == 0) CPU_SET(cpu, &p->leaders);
  }
  return CPU_COUNT(&p->both) == 2 && sched_setaffinity(0, sizeof p->leaders, &p->leaders) == 0;
}

/* On a busy machine the leader may lose its core before it has asked for another one for its follower.
 * @return how often the follower did not run on the leader's core, of TRIES */
static int apart(void (*lead)(void *), bool here_before) {
  gki_team team;
  probe p = {.team = &team};
  cpu_set_t usual, after;
  if (!two_cpus(&usual, &p)) {
    print_message("there is one core, or the system doesn't let a thread be kept on one\n");
    skip();
  }
  /* The runtime's own threads are kept where their maker is. */
  assert_int_equal(sched_setaffinity(0, sizeof p.both, &p.both), 0);
  assert_true(gki_team_make(&team, 2));
  gki_team_meet(&team, ask_at_meeting, &p);
  if (atomic_load(&team.seats[1].thread) == 0) {
    gki_team_free(&team);
    assert_int_equal(sched_setaffinity(0, sizeof usual, &usual), 0);
    print_message("OpenMP gives one thread only\n");
    skip();
  }
  assert_int_equal(sched_setaffinity(0, sizeof p.leaders, &p.leaders), 0);
  int count = 0;
  for (int k = 0; k < TRIES; ++k) {
    p.ran_on = -1;
    if (here_before) put_follower_here(&p), let_follower_go(&p);
    gki_team_meet(&team, lead, &p);
    assert_true(p.ran_on >= 0);
    count += !CPU_ISSET((size_t)p.ran_on, &p.leaders);
    /* Nothing of the ban is left. */
    assert_int_equal(sched_getaffinity(atomic_load(&team.seats[1].thread), sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&after, &p.both));
  }
  gki_team_free(&team);
  assert_int_equal(sched_setaffinity(0, sizeof usual, &usual), 0);
  return count;
}

/* Where it runs is no proof: it may be behind somebody else's thread, and the system may move either. */
static void test_at_a_meeting(void **state) {
  (void)state;
  (void)apart(ask_at_meeting, true);
}

/* Where nobody sends it away, it is next to never apart. */
static void test_when_woken(void **state) {
  (void)state;
  enum { LEAST = TRIES / 8 };
  int count = 0;
  for (int k = 0; k < ROUNDS && count < LEAST; ++k) count = apart(ask_while_asleep, false);
  assert_true(count >= LEAST);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_at_a_meeting),
    cmocka_unit_test(test_when_woken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
