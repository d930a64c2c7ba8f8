/* Kernels as code that is there: behind sim_module and sim_kernel. */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H
#include "code.h"
#include "kernel.h"

struct sim_kernel {
  const sim_code_kernel *code;
  const sim_code *of;
  const char *name;
};

/* cuda/gates.cu, compiled for the host: what images of other compilers are taken to hold. */
extern const sim_code sim_gates_code;

/* The driver's: notes that a rule was broken. */
__attribute__((format(printf, 2, 3)))
_Bool sim_broken(const char *rule, const char *text, ...);
#endif
