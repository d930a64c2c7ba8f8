/** @file gk_gates.h
 * For authors of native backends whose devices have conditional nodes, such as CUDA's graphs. Common decides what these
 * nodes need; the backend only makes the nodes. Programs and backends of other kinds don't need this header.
 *
 * A launch of such a graph skips segments by closing their gates. Control kernels decide: each walks a chain of points
 * on one thread, and the points set handles. A straight body of a loop may stand several times in its WHILE node, or,
 * without a node, in the block around: its tasks are then several nodes each. More in docs/backend-author.md.
 * \sa gk_walk_start: the same contract for devices without conditional nodes. */
#ifndef GK_GATES_H
#define GK_GATES_H

#include "gk_backend.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** Bits of gk_gates_make. */
enum {
  GK_WITH_RESUME = 1, /**< Launches may start at any checkpoint. Without this bit they start at the top. */
  GK_WITH_CANCEL = 2, /**< Every loop end can stop the launch. */
  GK_WITH_SWITCH = 4, /**< The device has SWITCH nodes. Without this bit a branch is one IF node per case. */
  GK_WITH_GUARDS = 8, /**< Kernels, copies and fills can read a guard, as control kernels do, so a segment of few tasks
                       * needs no IF node. CALLs and handwritten code (gk_node.handwritten) read none. */
  GK_WITH_PLAIN = 16, /**< For devices on which a kernel can set only the handle of the node right behind it. A control
                       * kernel sets that handle (those of all IF nodes of one branch), or, last in a loop's body, the
                       * loop's handle, once before each time that the node is reached. Only guards close segments. */
};

/** Kinds of a graph's nodes. */
typedef enum gk_gate_kind {
  GK_GATE_TASK,     /**< The plan's KERNEL, COPY, FILL or CALL at `node`. */
  GK_GATE_CONTROL,  /**< A control kernel: walks the chain from `point` on, unless its guard is closed. With a closed
                     * guard and GK_WITH_PLAIN it sets the chain's handles to 0, a SWITCH's to its off value. */
  GK_GATE_SEGMENT,  /**< An IF node that gk adds: the gate of a segment that can be skipped. */
  GK_GATE_IF,       /**< An IF node; `node` is the plan's IF, ELSE or CASE, or a loop (its last passes). */
  GK_GATE_SWITCH,   /**< A SWITCH node: its bodies are the BRANCH nodes in it; any higher value runs none of them. */
  GK_GATE_WHILE,    /**< A WHILE node; `node` is the plan's loop. */
  GK_GATE_PARALLEL, /**< No node. The BRANCH nodes in it run in any order; what follows waits for all. */
  GK_GATE_BRANCH,   /**< No node: a body of a SWITCH node, or a branch of a PARALLEL. */
  GK_GATE_PROLOGUE, /**< First: a control kernel. In a launch with a target it applies the target and walks nothing. */
  GK_GATE_EPILOGUE, /**< Last: posts the status and advances the launch number. */
} gk_gate_kind;

/** A node of the graph. The nodes in it are those from its own index + 1 to end - 1, in order. No body is empty. */
typedef struct gk_gate_node {
  gk_gate_kind kind; /**< What it is. */
  uint32_t end;      /**< One past the last node in it. */
  uint32_t node;     /**< The plan's node, or GK_NONE. */
  uint32_t handle;   /**< SEGMENT, IF, SWITCH, WHILE: its handle. */
  uint32_t point;    /**< CONTROL, PROLOGUE: first of its chain; GK_NONE: nothing to walk. */
  uint32_t guard;    /**< CONTROL, TASK: it does nothing while this guard holds the launch's number; GK_NONE: none. */
  bool decides;      /**< BRANCH of a PARALLEL: contains control kernels. Two such branches must not overlap if the
                      * device can't set handles from both at once. */
} gk_gate_node;

/** The condition of one node. */
typedef struct gk_gate_handle {
  uint32_t initial; /**< Value at the start of every launch. */
  uint32_t off;     /**< Value with which the node runs nothing. */
  uint32_t node;    /**< The node, as an index into gk_gates.nodes. */
} gk_gate_handle;

/** Kinds of points. */
typedef enum gk_point_kind {
  GK_POINT_YIELD,    /**< End of a checkpoint with a flag, or a YIELD, as if it had a flag that is never 0. Notes that
                      * the checkpoint ran. Stops with its label if the flag isn't 0, without a label if the launch is
                      * cancelled. Exits: on. */
  GK_POINT_LOOP_END, /**< Counts `passes`. Stops if the launch is cancelled (GK_WITH_CANCEL). Else reads the flag
                      * (REPEAT: compares the passes of the entry with its count), checks the bound, sets its handle to
                      * 0 or 1 and those in `reenable` to 1. If the passes of the entry are neither a multiple of
                      * gk_node.every nor at the bound, it doesn't stop, and the flag counts as true. Exits: again,
                      * out, and a third one if `passes` doesn't divide the bound: instead of `again`, where another
                      * `passes` would exceed the bound; it sets its handle to 0, and that of the exit to 1. */
  GK_POINT_HEAD,     /**< Start of a WHILE: reads the flag, sets its handle to 0 or 1. Start of a REPEAT: reads the
                      * count, keeps it with the entry, sets its handle to 1 if it is positive. Exits: in, past. */
  GK_POINT_BRANCH,   /**< Reads the flag once and sets handles by its exits. Exits: one per case, in order; then one for
                      * no case, except in an IF with an ELSE. An IF takes its first exit if the flag isn't 0. */
  GK_POINT_MARK,     /**< Notes that a checkpoint without a flag ran. Exits: on. */
  GK_POINT_ENTER,    /**< GK_WITH_PLAIN, in front of a SEGMENT or a DO_WHILE: sets its handle to 1. Exits: on. */
  GK_POINT_AIM,      /**< GK_WITH_RESUME, in front of an item of the list that holds targets in REPEATs: if the launch
                      * begins at one of them, reads the counts of the REPEATs around it whose entry doesn't wait, the
                      * outermost first; such a count is at least 1. Exits: on. */
  GK_POINT_BEGIN,    /**< In front of a DO_WHILE with gk_node.is_numbered: touches its record, as a HEAD does, so that
                      * its first pass has the number 0. Exits: on. */
  GK_POINT_PASSES,   /**< Of a REPEAT without a node: counts its `passes`, and notes that its bound was hit if its count
                      * is greater. Comes before or behind its tasks, whenever they run. Exits: on. */
} gk_point_kind;

/** One decision. `node` has its flag, bound and label. The `node` of a SEGMENT's ENTER is the first task in it. */
typedef struct gk_gate_point {
  gk_point_kind kind;  /**< What it is. */
  uint32_t node;       /**< The plan's CHECKPOINT, YIELD, loop, IF or SWITCH. */
  uint32_t checkpoint; /**< Number of the checkpoint that this point notes or stops at, or GK_NONE. */
  uint32_t exits;      /**< Index of its first exit in gk_gates.exits. */
  uint32_t exit_count; /**< Number of its exits. */
  uint32_t handle;     /**< HEAD, LOOP_END, BRANCH: the handle that it sets. GK_NONE: a loop without nodes, or a branch
                        * whose exits have handles. */
  uint32_t reenable;   /**< LOOP_END: index in gk_gates.reenables of the first handle that it sets to 1 in each pass. */
  uint32_t reenable_count; /**< Number of these handles. */
  uint32_t block;      /**< YIELD, LOOP_END: the block in which a stop begins to close; AIM: its first target */
  uint32_t close;      /**< and the first close item there; AIM: one past its last target. */
  uint32_t passes;     /**< LOOP_END: how often the body stands in its node, so the passes that end here; 0: all that
                        * count and bound leave, as the body is empty. PASSES: all passes of an entry. */
} gk_gate_point;

/** Where a chain goes on. */
typedef struct gk_gate_exit {
  uint32_t next;   /**< Point to walk next; GK_NONE: the chain ends here. */
  uint32_t handle; /**< BRANCH without a handle: a handle to set to 1 if this exit is taken, else to 0; or GK_NONE.
                    * LOOP_END, third exit: the handle to set to 1 if this exit is taken. */
  uint32_t value;  /**< BRANCH with a handle: the value to set that handle to. */
} gk_gate_exit;

/** Kinds of close items. */
typedef enum gk_close_kind {
  GK_CLOSE_GATE,  /**< Handle of a SEGMENT. */
  GK_CLOSE_NODE,  /**< Handle of a conditional node in a segment without a gate. Only points open it again. */
  GK_CLOSE_GUARD, /**< A word that control kernels and tasks read; closed while it holds the launch's number. */
} gk_close_kind;

/** An item that closes a segment. The close items of a block are adjacent, in the order of its segments. */
typedef struct gk_gate_close {
  gk_close_kind kind;  /**< What it is. */
  uint32_t at;         /**< Number of the handle or guard. */
  uint32_t value;      /**< Value of the handle that closes it. */
} gk_gate_close;

/** A block as stops and targets see it.
 *
 * A stop works from its own block outwards to the root. It closes from its place to `end`, then, in each block around,
 * from `after` on. In each loop's body on the way it touches the loop's record and sets the handle, if any, to 0.
 *
 * A target closes from `begin` to its place, then, in each block around, from `begin` to `before`. It sets the handle
 * of each block on the way, if any, to `value`, and touches the records of loops there with gk_node.is_numbered. The
 * first loop end of the launch opens again the gates and guards that the target closed in blocks inside loops.
 *
 * With GK_WITH_PLAIN, stops and targets only close and set no handle. A loop end sets its own handle to 0 if its launch
 * stops or its guard is closed. A HEAD or BRANCH with the handle of a block on the way to the target reads no flag and
 * sets the handle to that block's value (other IF nodes of the branch to 0), until the first loop end of the launch. */
typedef struct gk_gate_block {
  uint32_t begin;  /**< Its first close item. */
  uint32_t end;    /**< One past its last close item. */
  uint32_t around; /**< The block around; GK_NONE for the root. */
  uint32_t before; /**< In the block around: one past the last close item before this block. */
  uint32_t after;  /**< In the block around: the first close item behind this block. */
  uint32_t loop;   /**< Number of the loop whose body this is, or GK_NONE. */
  uint32_t handle; /**< Handle of the node whose body this is, or GK_NONE. */
  uint32_t value;  /**< Value of the handle with which the node runs this body. */
  bool in_loop;    /**< Whether this is the body of a loop, or lies in one. */
  uint32_t head;   /**< Body of a REPEAT: its HEAD point, which tells where its count is; else GK_NONE. */
} gk_gate_block;

/** A checkpoint or YIELD at which a launch may start. */
typedef struct gk_gate_target {
  uint32_t block; /**< The block in which the checkpoint begins, or the YIELD ends, */
  uint32_t close; /**< and one past the last close item before that place. */
} gk_gate_target;

/** The gates of a plan for one kind of launches. All graphs of a plan share the state that outlives a launch (the
 * launch's number, the records of loops). Guards belong to one graph. */
typedef struct gk_gates {
  const gk_plan *plan;            /**< Their plan, which must outlive them. */
  uint32_t bits;                  /**< The bits given to gk_gates_make. */
  uint32_t node_count;            /**< Length of nodes. */
  uint32_t handle_count;          /**< Length of handles. */
  uint32_t point_count;           /**< Length of points. */
  uint32_t exit_count;            /**< Length of exits. */
  uint32_t reenable_count;        /**< Length of reenables. */
  uint32_t close_count;           /**< Length of closes. */
  uint32_t block_count;           /**< Length of blocks. */
  uint32_t target_count;          /**< Length of targets: the plan's checkpoints, or 0 without GK_WITH_RESUME. */
  uint32_t guard_count;           /**< Number of guards. */
  const gk_gate_node *nodes;      /**< The graph, in order. */
  const gk_gate_handle *handles;  /**< Conditions. */
  const gk_gate_point *points;    /**< Decisions. */
  const gk_gate_exit *exits;      /**< Exits of all points. */
  const uint32_t *reenables;      /**< Handles that loop ends set to 1. */
  const gk_gate_close *closes;    /**< Close items of all blocks. */
  const gk_gate_block *blocks;    /**< Blocks; [0] is the root. */
  const gk_gate_target *targets;  /**< Targets, by number of the checkpoint. */
  uint32_t control_count;         /**< Number of control kernels without prologue and epilogue. */
  uint32_t conditional_count;     /**< Number of IF, SWITCH and WHILE nodes. */
} gk_gates;

/** Decides the gates of a plan, in time and memory linear in its size. Needs no device. Thread-safe.
 * @param plan   Constant; must outlive the gates.
 * @param bits   Any of GK_WITH_RESUME, GK_WITH_CANCEL, GK_WITH_SWITCH, GK_WITH_GUARDS and GK_WITH_PLAIN.
 * @param gates  The caller frees them by gk_gates_free.
 * @return GK_OK; GK_ERROR_INVALID: an unknown bit; GK_ERROR_MEMORY. */
gk_result gk_gates_make(const gk_plan *plan, uint32_t bits, const gk_gates **gates);

/** Frees gates of gk_gates_make. NULL is allowed. */
void gk_gates_free(const gk_gates *gates);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
