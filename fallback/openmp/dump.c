/* What lower made, as text: ops in the order in which one thread would run them, with what was learned about them. */
#include "lower.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text { char *at; size_t length, capacity; bool failed; } text;

__attribute__((format(printf, 2, 3))) static void put(text *out, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  if (out->failed || length < 0) return;
  size_t wanted = out->length + (size_t)length + 1;
  if (wanted > out->capacity) {
    char *grown = realloc(out->at, 2 * wanted); /* common frees it by free() */
    if (!grown) {
      out->failed = true;
      return;
    }
    out->at = grown;
    out->capacity = 2 * wanted;
  }
  va_start(args, format);
  vsnprintf(out->at + out->length, out->capacity - out->length, format, args);
  va_end(args);
  out->length = wanted - 1;
}

static void put_task(text *out, const gki_program *program, const gki_op *op) {
  static const char *const kinds[] = {"kernel", "kernel", "copy", "fill", "call"};
  const gk_node *node = &program->plan->nodes[op->node];
  put(out, "task %u (%s): %s", (unsigned)node->source, node->name, kinds[op->kind]);
  if (op->kind <= GKI_KERNEL && op->more)
    put(out, ", %u sum%s", program->sums[op->more - 1].count, program->sums[op->more - 1].count > 1 ? "s" : "");
  if (op->kind == GKI_CALL) put(out, "\n");
  else if (op->bits & GKI_READS) put(out, ", items read when it runs");
  else if (op->bits & GKI_TOO_MANY) put(out, ", too many items");
  else if (op->range.end) put(out, ", %zu items", op->range.end);
  if (op->kind == GKI_CALL) return;
  if (op->timed) put(out, ", %.3g ns each\n", (double)op->cost_ns);
  else put(out, ", not timed yet\n");
}

static void put_fork(text *out, const gki_program *program, const gki_fork *fork) {
  const gki_trial *trial = &fork->trial;
  put(out, "parallel, %u sections%s: ", (unsigned)fork->count, fork->straight ? "" : " with blocks in them");
  if (fork->in_order) put(out, "one after the other, as two of them add to one slot\n");
  else if (program->device->team.most == 1) put(out, "one after the other, as there is one thread\n");
  else if (!trial->series_samples) put(out, "not timed yet\n");
  else if (!trial->split_samples)
    put(out, "one after the other: %.3g ns, too short to share\n", (double)trial->series_ns);
  else
    put(out, "%s: %.3g ns, against %.3g ns %s\n", trial->split ? "side by side" : "one after the other",
        (double)(trial->split ? trial->split_ns : trial->series_ns),
        (double)(trial->split ? trial->series_ns : trial->split_ns),
        trial->split ? "one after the other" : "side by side");
}

char *gki_openmp_dump(void *graph, const char *format) {
  const gki_program *program = graph;
  text out = {0};
  if (strcmp(format, "text") != 0) return NULL;
  put(&out, "%u threads, %u ops in %u runs\n", (unsigned)program->device->team.most, (unsigned)program->op_count,
      (unsigned)program->plan->run_count);
  for (uint32_t run = 0; run < program->plan->run_count; ++run) {
    put(&out, "run %u\n", (unsigned)run);
    int depth = 1;
    for (uint32_t k = program->runs[run].begin; k < program->runs[run].end; ++k) {
      const gki_op *op = &program->ops[k];
      depth -= op->kind == GKI_JOIN;
      if (op->kind == GKI_JOIN) continue;
      put(&out, "%*s", 2 * depth, "");
      if (op->kind == GKI_FORK) put_fork(&out, program, &program->forks[op->more]);
      else put_task(&out, program, op);
      depth += op->kind == GKI_FORK;
    }
  }
  for (uint32_t k = 0; k < program->fork_count; ++k)
    if (!program->forks[k].straight) {
      put(&out, "  ");
      put_fork(&out, program, &program->forks[k]);
    }
  if (!out.failed) return out.at;
  free(out.at);
  return NULL;
}
