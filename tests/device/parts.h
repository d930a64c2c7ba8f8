/* The test device: test_device.c has the backend's entries, which check how gk calls them; queue.c has the device's
 * thread. */
#ifndef TEST_DEVICE_PARTS_H
#define TEST_DEVICE_PARTS_H
#include "test_device.h"
#include "tasks.h"
#include "gk_ahead.h"
#include <pthread.h>
#include <stdatomic.h>

enum { QUEUE = 64, STAGING = 1 << 16, LEVEL = 6, TAPES = 2 };

typedef struct block { uintptr_t begin; size_t bytes; unsigned char *at; gk_memory kind; } block;
struct graph;

typedef enum command_kind {
  COMMAND_RUN, COMMAND_FLAG, COMMAND_LEVEL, COMMAND_FAIL, COMMAND_COPY
} command_kind;
typedef struct command {
  command_kind kind;
  struct graph *graph;
  uint32_t at;            /* RUN: the run; FLAG: the node; LEVEL: index in graph.states, if it ends a tape */
  bool ends_tape;         /* LEVEL */
  uint32_t runs[LEVEL], count; /* LEVEL: if there are none, it is a control kernel alone */
  bool was_cancelled, ignores_cancel; /* LEVEL: the launch was cancelled when this was posted; it doesn't look again */
  gk_result code;         /* FAIL */
  gk_direction direction; /* COPY: to and from are the device's addresses, or NULL: the staging memory */
  void *to;
  const void *from;
  size_t bytes;
} command;

typedef struct device {
  int ordinal;
  bool opened;
  pthread_mutex_t lock; /* for the members up to copy_lock */
  pthread_cond_t posted, finished;
  block *blocks;        /* by address */
  size_t block_count, block_capacity;
  uintptr_t begin, next;
  atomic_uint codes;
  struct graph *graphs;
  command queue[QUEUE];
  uint64_t written, flushed, done; /* numbers of commands */
  uint64_t random;                 /* for the threads that call gk */
  unsigned batch;
  bool lost, busy, ending;
  pthread_t thread;
  pthread_mutex_t copy_lock; /* for staging and copy_result */
  unsigned char *staging;
  gk_result copy_result;
  uint64_t device_random; /* for the device's thread */
  bool slow;
} device;

/* What the host and the device's thread share is handed over by commands: each waits until the other is done. */
typedef struct graph {
  device *device;
  struct graph *next;
  const gk_plan *plan;
  atomic_flag in_call;
  uint64_t launched;
  bool running;
  gk_value *values;
  unsigned char *bytes; /* structs */
  const int32_t *cancel;
  const size_t *capacity; /* of the current launch */
  gk_result late;         /* the first failure of the launch's work, with its message */
  char late_message[600];
  int32_t flag;
  uint32_t *words;         /* the state on the device */
  void *words_at;          /* its address there */
  uint32_t *states[TAPES]; /* its copies, one behind each tape under way */
  uint64_t tapes[TAPES];   /* numbers of the commands that end these tapes */
  uint32_t first, under_way; /* index of the oldest tape under way, and their number */
} graph;

void *test_device_here(void *device, const void *address, size_t bytes); /* takes the lock; NULL: nowhere */
void *test_device_pass(void *graph, uint32_t node); /* gk_backend.pass */
bool test_device_queue_open(device *d);
void test_device_queue_close(device *d);
/* Waits for room. The number is for test_device_wait. */
uint64_t test_device_post(device *d, const command *c);
void test_device_wait(device *d, uint64_t number); /* 0: for all there are */
#endif
