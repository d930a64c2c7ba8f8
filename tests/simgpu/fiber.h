/* Stacks that a thread goes to and comes back from. All of one thread; sanitizers are told. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

typedef struct sim_fiber sim_fiber;

/* One for the thread's own stack: what sim_fiber_make's go back to. Ends the process where there is no memory. */
sim_fiber *sim_fiber_of_thread(void);
/* Calls run(data) when it is first gone to; that must not return. */
sim_fiber *sim_fiber_make(void (*run)(void *data), void *data);
void sim_fiber_go(sim_fiber *from, sim_fiber *to);
/* From a fiber that is never gone to again, and may be dropped then. */
void sim_fiber_leave(sim_fiber *from, sim_fiber *to);
/* After a jump from `from`'s stack to that of `to` that sim_fiber_go doesn't know of. */
void sim_fiber_jumped(sim_fiber *from, sim_fiber *to);
/* Makes it begin anew, whatever it was doing. */
void sim_fiber_reset(sim_fiber *fiber);
void sim_fiber_drop(sim_fiber *fiber);
_Noreturn void sim_die(const char *why); /* ends the process */
#endif
