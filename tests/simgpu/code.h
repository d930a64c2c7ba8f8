/* Between the simulated GPU and the code of kernels: the form of a CUDA source that is compiled for the host with
 * shim.h. C and C++, without includes, as the source may declare the C library's types its own way. */
#ifndef SIM_CODE_H
#define SIM_CODE_H

typedef struct sim_index { unsigned x, y, z; } sim_index;

typedef enum sim_meeting { SIM_MEET_SHUFFLE = 1, SIM_MEET_VOTE, SIM_MEET_WARP, SIM_MEET_BLOCK } sim_meeting;

/* What a kernel asks of the GPU. */
typedef struct sim_services {
  /* The lanes of the mask meet; answers what each brought, by lane, until the next meeting. */
  const unsigned long long *(*meet)(sim_meeting what, unsigned mask, unsigned long long brought);
  /* All threads of the block meet; answers the number of those that brought true. */
  unsigned (*barrier)(int brought);
  void (*set_conditional)(unsigned long long handle, unsigned value);
  void (*stop)(const char *why); /* doesn't return */
  void (*pause)(void); /* here kernels beside this one may go on */
  void (*touch)(unsigned long long at, unsigned long long bytes); /* before a load or store */
} sim_services;

typedef struct sim_code_kernel {
  const char *name; /* in the source; the symbol of `function`, if it has one, is what it is called by */
  void (*function)(void);
  void (*call)(const void *parameters);
  unsigned count;
  const unsigned *offsets, *bytes; /* of its parameters */
  unsigned threads;                /* in a block, at most */
} sim_code_kernel;

/* All kernels of a source; the compiled code exports one. Its places are variables of that code. */
typedef struct sim_code {
  unsigned version;
  unsigned count;
  const sim_code_kernel *kernels;
  const sim_services **services;
  sim_index *thread, *block, *block_size, *grid_size;
  int shares; /* some kernel has shared memory, so each runs without a pause */
} sim_code;

enum { SIM_CODE_VERSION = 4 };
#endif
