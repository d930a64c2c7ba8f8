/* The ops of a lowered plan as text, in the order in which one thread would run them, with their measured costs. */
#include "base/text.h"
#include "openmp/program.h"
#include <string.h>

static void put_task(gki_text *out, const gki_program *program, const gki_op *op) {
  static const char *const kinds[] = {"kernel", "kernel", "copy", "fill", "call"};
  const gk_node *node = &program->plan->nodes[op->node];
  gki_text_add(out, "task %u (%s): %s", (unsigned)node->source, node->name, kinds[op->kind]);
  if (op->kind <= GKI_KERNEL && op->more) {
    const unsigned sums = program->sums[op->more - 1].count;
    gki_text_add(out, ", %u sum%s", sums, sums > 1 ? "s" : "");
  }
  if (op->kind == GKI_CALL) gki_text_add(out, "\n");
  else if (op->bits & GKI_READS) gki_text_add(out, ", items read when it runs");
  else if (op->bits & GKI_TOO_MANY) gki_text_add(out, ", too many items");
  else if (op->range.end) gki_text_add(out, ", %zu items", op->range.end);
  if (op->kind == GKI_CALL) return;
  const char *const unit = op->kind > GKI_KERNEL ? "per byte" : "each";
  if (op->timed) gki_text_add(out, ", %.3g ns %s\n", (double)op->cost_ns, unit);
  else gki_text_add(out, ", not timed yet\n");
}

static void put_fork(gki_text *out, const gki_program *program, const gki_fork *fork) {
  const gki_trial *trial = &fork->trial;
  gki_text_add(out, "parallel, %u sections%s: ", (unsigned)fork->count, fork->straight ? "" : " with blocks in them");
  if (fork->in_order) gki_text_add(out, "one after the other, as two of them add to one slot\n");
  else if (program->device->team.limit == 1) gki_text_add(out, "one after the other, as there is one thread\n");
  else if (!trial->series_samples) gki_text_add(out, "not timed yet\n");
  else if (!trial->split_samples)
    gki_text_add(out, "one after the other: %.3g ns, too short to share\n", (double)trial->series_ns);
  else
    gki_text_add(out, "%s: %.3g ns, against %.3g ns %s\n", trial->split ? "side by side" : "one after the other",
        (double)(trial->split ? trial->split_ns : trial->series_ns),
        (double)(trial->split ? trial->series_ns : trial->split_ns),
        trial->split ? "one after the other" : "side by side");
}

char *gki_openmp_dump(void *graph, const char *format) {
  const gki_program *program = graph;
  gki_text out = {0};
  if (strcmp(format, "text") != 0) return NULL;
  gki_text_add(&out, "%u threads, %u ops in %u runs\n", (unsigned)program->device->team.limit,
               (unsigned)program->op_count, (unsigned)program->plan->run_count);
  for (uint32_t run = 0; run < program->plan->run_count; ++run) {
    gki_text_add(&out, "run %u\n", (unsigned)run);
    int depth = 1;
    for (uint32_t k = program->runs[run].begin; k < program->runs[run].end; ++k) {
      const gki_op *op = &program->ops[k];
      depth -= op->kind == GKI_JOIN;
      if (op->kind == GKI_JOIN) continue;
      gki_text_add(&out, "%*s", 2 * depth, "");
      if (op->kind == GKI_FORK) put_fork(&out, program, &program->forks[op->more]);
      else put_task(&out, program, op);
      depth += op->kind == GKI_FORK;
    }
  }
  for (uint32_t k = 0; k < program->fork_count; ++k)
    if (!program->forks[k].straight) {
      gki_text_add(&out, "  ");
      put_fork(&out, program, &program->forks[k]);
    }
  return gki_text_to_malloc(&out);
}
