#include "fiber.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
/* Lines for AddressSanitizer and for ThreadSanitizer. */
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define ASAN(...) __VA_ARGS__
#else
#define ASAN(...)
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define TSAN(...) __VA_ARGS__
#else
#define TSAN(...)
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

enum { STACK_BYTES = 256 * 1024 };

struct sim_fiber {
  void (*run)(void *data);
  void *data;
  char *stack; /* NULL: the thread's own */
  sim_fiber *came_from;
#ifdef __x86_64__
  void *stack_pointer;
#else
  ucontext_t context;
#endif
  ASAN(void *fake_stack; const void *bottom; size_t bytes;)
  TSAN(void *tsan;)
};

_Noreturn void sim_die(const char *why) {
  fprintf(stderr, "the simulated GPU: %s\n", why);
  abort();
}

/* ---- the switch -------------------------------------------------------------------------------------------------- */

static sim_fiber *arriving(sim_fiber *self);
static void begin(sim_fiber *self) {
  arriving(self);
  self->run(self->data);
  abort();
}

#ifdef __x86_64__
/* swapcontext would do, but it asks the kernel for the signal mask each time. */
void sim_fiber_swap(void **from, void *to);
__asm__(".text\n.globl sim_fiber_swap\n.hidden sim_fiber_swap\n.type sim_fiber_swap, @function\n"
        "sim_fiber_swap:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n.size sim_fiber_swap, . - sim_fiber_swap\n"
        /* What a new stack returns to: r12 has the fiber, r13 begin(). */
        ".globl sim_fiber_start\n.hidden sim_fiber_start\n.type sim_fiber_start, @function\n"
        "sim_fiber_start:\n  movq %r12, %rdi\n  callq *%r13\n  ud2\n.size sim_fiber_start, . - sim_fiber_start\n");
void sim_fiber_start(void);

static void prepare(sim_fiber *fiber) {
  void **top = (void **)(void *)(fiber->stack + STACK_BYTES);
  *--top = NULL;
  *--top = NULL;
  union { void (*code)(void); void (*begin)(sim_fiber *); void *at; } start = {.code = sim_fiber_start}, first;
  first.begin = begin;
  *--top = start.at;
  *--top = NULL;     /* rbp */
  *--top = NULL;     /* rbx */
  *--top = fiber;    /* r12 */
  *--top = first.at; /* r13 */
  *--top = NULL;
  *--top = NULL;
  fiber->stack_pointer = top;
}

static void swap(sim_fiber *from, sim_fiber *to) { sim_fiber_swap(&from->stack_pointer, to->stack_pointer); }
#else
static void begin_halves(unsigned high, unsigned low) {
  begin((sim_fiber *)(uintptr_t)((uint64_t)high << 32 | low));
}

static void prepare(sim_fiber *fiber) {
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = STACK_BYTES;
  fiber->context.uc_link = NULL;
  uint64_t at = (uintptr_t)fiber;
  makecontext(&fiber->context, (void (*)(void))begin_halves, 2, (unsigned)(at >> 32), (unsigned)at);
}

static void swap(sim_fiber *from, sim_fiber *to) { swapcontext(&from->context, &to->context); }
#endif

/* ---- what sanitizers are told ------------------------------------------------------------------------------------ */

/* On the new stack, first of all. */
static sim_fiber *arriving(sim_fiber *self) {
  ASAN(sim_fiber *before = self->came_from;
       __sanitizer_finish_switch_fiber(self->fake_stack, &before->bottom, &before->bytes);)
  return self;
}

static void leaving(sim_fiber *from, sim_fiber *to, __attribute__((unused)) int for_good) {
  to->came_from = from;
  ASAN(__sanitizer_start_switch_fiber(for_good ? NULL : &from->fake_stack, to->bottom, to->bytes);)
  TSAN(__tsan_switch_to_fiber(to->tsan, 0);)
}

void sim_fiber_go(sim_fiber *from, sim_fiber *to) {
  leaving(from, to, 0);
  swap(from, to);
  arriving(from);
}

void sim_fiber_leave(sim_fiber *from, sim_fiber *to) {
  leaving(from, to, 1);
  swap(from, to);
}

void sim_fiber_jumped(__attribute__((unused)) sim_fiber *from, __attribute__((unused)) sim_fiber *to) {
  ASAN(const void *bottom;
       size_t bytes;
       __sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->bytes);
       __sanitizer_finish_switch_fiber(to->fake_stack, &bottom, &bytes);)
  TSAN(__tsan_switch_to_fiber(to->tsan, 0);)
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static sim_fiber *obtain(void) {
  sim_fiber *fiber = calloc(1, sizeof *fiber);
  if (!fiber) sim_die("no memory left");
  return fiber;
}

sim_fiber *sim_fiber_of_thread(void) {
  sim_fiber *fiber = obtain();
  TSAN(fiber->tsan = __tsan_get_current_fiber();)
  return fiber;
}

/* With a page below it that nothing may touch. */
sim_fiber *sim_fiber_make(void (*run)(void *data), void *data) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *memory = mmap(NULL, page + STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page, PROT_NONE) != 0) sim_die("no memory left for stacks");
  sim_fiber *fiber = obtain();
  fiber->run = run;
  fiber->data = data;
  fiber->stack = memory + page;
  ASAN(fiber->bottom = fiber->stack;
       fiber->bytes = STACK_BYTES;)
  TSAN(fiber->tsan = __tsan_create_fiber(0);)
  prepare(fiber);
  return fiber;
}

void sim_fiber_reset(sim_fiber *fiber) {
  ASAN(__asan_unpoison_memory_region(fiber->stack, STACK_BYTES);
       fiber->fake_stack = NULL; /* the old one is lost: that's for errors only */)
  prepare(fiber);
}

void sim_fiber_drop(sim_fiber *fiber) {
  if (!fiber) return;
  TSAN(if (fiber->stack) __tsan_destroy_fiber(fiber->tsan);)
  if (fiber->stack) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    ASAN(__asan_unpoison_memory_region(fiber->stack, STACK_BYTES);)
    munmap(fiber->stack - page, page + STACK_BYTES);
  }
  free(fiber);
}
