/* What a case of the conformance suite is written with. Every graph has the reference interpreter beside it: both get
 * the same slots and launches, and after each launch the status and all memory that the list knows are compared. What a
 * case states besides are golden values, from docs/contract.md.
 *
 * A case is `CASE(name) { ... }` in the file of its chapter, and a line of cases.def. It gets a trial with an open
 * device; all that it makes is freed for it, also when it ends early. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H
#include "gk_info.h"

typedef struct trial trial;     /* one case on one backend */
typedef struct subject subject; /* a graph, with its reference */
typedef struct buffer buffer;   /* device memory, with its copy for the reference */

#define CASE(name) void case_##name(trial *t); void case_##name(trial *t)

/* ---- verdicts: each ends the case where it doesn't hold ---------------------------------------------------------- */

#define expect(t, condition, ...) ((condition) ? (void)0 : fail_at((t), __FILE__, __LINE__, __VA_ARGS__))
#define expect_int(t, is, wanted) expect_int_at((t), __FILE__, __LINE__, #is, (long long)(is), (long long)(wanted))
/* The call succeeds. In a sweep of failures, one that was injected ends the case quietly. */
#define must(t, call) must_at((t), __FILE__, __LINE__, #call, (call))
/* The call is refused with that code, and the message has these words ('|' between several). */
#define refuses(t, code, words, call) refuses_at((t), __FILE__, __LINE__, #call, (code), (words), (call))
#if defined(__GNUC__)
#define PRINTS(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTS(text, first)
#endif
_Noreturn void fail_at(trial *t, const char *file, int line, const char *format, ...) PRINTS(4, 5);
/* Ends the case as one that can't be tried here. */
_Noreturn void skip(trial *t, const char *format, ...) PRINTS(2, 3);
void expect_int_at(trial *t, const char *file, int line, const char *what, long long is, long long wanted);
void must_at(trial *t, const char *file, int line, const char *call, gk_result result);
void refuses_at(trial *t, const char *file, int line, const char *call, gk_result code, const char *words,
                gk_result result);

bool is_sweep(const trial *t); /* failures are injected, hundreds of times: leave out what takes long */

/* ---- the device -------------------------------------------------------------------------------------------------- */

gk_device *device_of(trial *t);
const char *backend_of(const trial *t);            /* its name */
gk_support support_of(trial *t, const char *construct); /* of the capability report; GK_NATIVE where it has no line */
gk_device *another_device(trial *t);               /* of the same backend; closed for you */
/* Runs a part of the case on each of two devices (which may be one) at the same time, in threads of their own. Each
 * part is a trial of its own: what it makes through the names below is freed at its end. */
void at_once(trial *t, gk_device *first, gk_device *second, void (*part)(trial *t));

/* ---- memory ------------------------------------------------------------------------------------------------------ */

buffer *buffer_of(trial *t, size_t ints);          /* zeroed; freed for you */
buffer *buffer_for_host(trial *t, size_t ints);    /* the same, of memory that the host reaches, too */
void buffer_put(buffer *b, size_t index, int value);
int buffer_get(const buffer *b, size_t index);     /* what is on the device */
void *buffer_at(const buffer *b);                  /* the device's address */
void buffer_free(buffer *b);                       /* before the end of the case: never to be touched again */

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

/* Tasks and slots must last as long as the graph; of the list itself there is a copy. */
#define LIST_OF(tasks, slots) &(const gk_list)GK_LIST(list, tasks, slots)
#define INT(s) GK_OWN(s, int, 1)
/* Declares s, a graph of these tasks over these slots. */
#define GRAPH_OF(s, slots, ...) \
  static const gk_task s##_tasks[] = {__VA_ARGS__}; \
  subject *s = graph_of(t, LIST_OF(s##_tasks, slots), 0)
subject *graph_of(trial *t, const gk_list *list, uint32_t bits);
gk_graph *graph(subject *s);                       /* gk's; for calls that have no name here */
void end_graph(subject *s);                        /* before the end of the case */
void bind_buffer(subject *s, gk_slot slot, buffer *b);
void bind_int(subject *s, gk_slot slot, int64_t value);
void bind_float(subject *s, gk_slot slot, double value);
void bind_struct(subject *s, gk_slot slot, const void *value, size_t bytes);
/* What a library call gets from the host: one address for the device, another for the reference. */
void bind_host(subject *s, gk_slot slot, void *for_device, void *for_reference);
void resize(subject *s, gk_slot slot, size_t count);
void put(subject *s, gk_slot slot, int value);     /* the int at [0] of the memory bound to it; put_at: at [index] */
void put_at(subject *s, gk_slot slot, size_t index, int value);
int get(subject *s, gk_slot slot);
int get_at(subject *s, gk_slot slot, size_t index);

/* Launches (0: fresh, else resumes), waits, compares with the reference: state, yielded label and name, limit, passes
 * and bounds of each loop, which checkpoints ran, all memory. The status is valid until the next launch. */
const gk_status *launch(subject *s, int32_t label);
/* The same in two steps, for what lies between: several launches may be begun before all are finished. */
void begin_launch(subject *s, int32_t label);
/* The same by gk_launch_on, on the default stream of the backend. */
void begin_launch_on_default(subject *s, int32_t label);
const gk_status *finish_launches(subject *s);
/* A launch whose end says GK_ERROR_INVALID and has these words ('|' in between), and that fails on the reference, too;
 * what is in memory then isn't compared. In front of an arrow, what is given before: "N=9 -> task 1|9 elements". */
#define launch_fails(s, label, words) launch_fails_at((s), __FILE__, __LINE__, (label), (words))
void launch_fails_at(subject *s, const char *file, int line, int32_t label, const char *words);
/* The same for a launch that gk_launch itself refuses. */
#define launch_refused(s, label, words) launch_refused_at((s), __FILE__, __LINE__, (label), (words))
void launch_refused_at(subject *s, const char *file, int line, int32_t label, const char *words);

/* "N=3 A[2]=-1": numbers, and ints of memory, by the names of their slots. */
#define given(s, values) given_at((s), __FILE__, __LINE__, (values))
void given_at(subject *s, const char *file, int line, const char *values);
/* launch, and what must have come of it; in front of an arrow, what is given before:
 *   "N=3 F=1 -> A=1 F=1, yielded B"
 *   "A=1 B=1 C=0, yielded B"            ints at [0] of the slots of that name; the checkpoint that yielded
 *   "A=3, passes n=3 m=2, ran B, bound n"   loops by name, checkpoints that ran (no others), the status's limit
 *   "A[2]=7 in.N=1, ran nothing"        an int elsewhere, a slot of an included list, no checkpoint
 * Of several loops of one name, the nth mention is the nth of them. Without `yielded NAME` or `cancelled` it must have
 * finished; without `bound` there is no limit. */
#define trace(s, label, wanted) trace_at((s), __FILE__, __LINE__, (label), (wanted))
void trace_at(subject *s, const char *file, int line, int32_t label, const char *wanted);
/* The memory alone, between launches. */
#define holds(s, wanted) holds_at((s), __FILE__, __LINE__, (wanted))
void holds_at(subject *s, const char *file, int line, const char *wanted);

/* ---- lists that are refused -------------------------------------------------------------------------------------- */

/* gk_check and gk_graph_create refuse the list; a problem of that code is reported for that task (SIZE_MAX: any), and
 * its message has all these words ('|' between them). */
void refuses_list(trial *t, const gk_list *list, const char *code, size_t task, const char *words);
#endif
