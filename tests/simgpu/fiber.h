/* Stacks between which a thread switches. All calls of one thread; sanitizers are told. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

typedef struct sim_fiber sim_fiber;

/* One for the thread's own stack, to which fibers of sim_fiber_make return. Ends the process if there is no memory. */
sim_fiber *sim_fiber_of_thread(void);
/* Calls run(data) at the first switch to it; run must not return. */
sim_fiber *sim_fiber_make(void (*run)(void *data), void *data);
void sim_fiber_go(sim_fiber *from, sim_fiber *to);
/* From a fiber that isn't switched to again, and may be dropped then. */
void sim_fiber_leave(sim_fiber *from, sim_fiber *to);
/* After a jump from `from`'s stack to `to`'s that bypassed sim_fiber_go. */
void sim_fiber_jumped(sim_fiber *from, sim_fiber *to);
/* Makes it begin anew, in any state. */
void sim_fiber_reset(sim_fiber *fiber);
void sim_fiber_drop(sim_fiber *fiber);
_Noreturn void sim_die(const char *why); /* ends the process */
#endif
