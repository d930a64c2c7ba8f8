/* Words that all formats share. */
#include "dump/formats.h"
#include "base/op.h"
#include <inttypes.h>

const char *gki_dump_type(gk_type type) {
  static const char *const names[] = {"none", "ptr", "i32", "u32", "i64", "f32", "f64", "bytes", "host_ptr"};
  return (size_t)type < GK_COUNT(names) ? names[type] : "unknown";
}

void gki_dump_slot(gki_text *text, const gk_plan *plan, uint32_t slot, uint32_t offset, gki_quoting how) {
  gki_text_quote(text, plan->slots[slot].name, how);
  if (offset) gki_text_add(text, "+%" PRIu32, offset);
}

static void add_items(gki_text *text, const gk_plan *plan, const gk_node *node, gki_quoting how) {
  uint32_t axes = node->items[2] ? 3 : node->items[1] ? 2 : 1;
  if (node->op == GK_OP_KERNEL && node->kernel->dimensions > axes) axes = node->kernel->dimensions;
  gki_text_add(text, " over ");
  for (uint32_t k = 0; k < axes && k < 3; ++k) {
    uint32_t slot = node->items[k];
    if (k) gki_text_add(text, " x ");
    /* COPY and FILL use the offset for their memory; a kernel uses it for a count read on the device. */
    bool is_read = k == 0 && slot && node->op == GK_OP_KERNEL && plan->slots[slot].type == GK_PTR;
    if (slot) gki_dump_slot(text, plan, slot, is_read ? node->offset : 0, how);
    else gki_text_add(text, "1");
  }
}

void gki_dump_work(gki_text *text, const gk_plan *plan, const gk_node *node, gki_quoting how) {
  bool has_items = node->op == GK_OP_KERNEL || node->op == GK_OP_COPY || node->op == GK_OP_FILL;
  if (has_items) add_items(text, plan, node, how);
  if (!has_items && !gki_op_is_call(node->op)) return;
  gki_text_add(text, " (");
  for (uint32_t k = 0; k < node->arg_count; ++k) {
    bool is_transfer = node->op == GK_OP_COPY || node->op == GK_OP_FILL;
    uint32_t offset = !is_transfer ? 0 : k ? node->from_offset : node->offset;
    if (k) gki_text_add(text, ", ");
    gki_dump_slot(text, plan, plan->args[node->args + k], offset, how);
  }
  gki_text_add(text, ")");
}
