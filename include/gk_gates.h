/** @file gk_gates.h
 * For those who write a native backend whose device has conditional nodes, as CUDA's graphs have: what these nodes
 * need, decided once in common; the backend only makes the nodes. Users and backends of other kinds don't need it.
 *
 * A launch of such a graph skips what must not run by gates that are closed, and decides by control kernels: each walks
 * a chain of points, on one thread, which sets handles. More in docs/backend-author.md.
 * \sa gk_walk_start: the same contract for devices that have no conditional nodes. */
#ifndef GK_GATES_H
#define GK_GATES_H

#include "gk_backend.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define GK_NONE UINT32_MAX /**< No such index. */

/** Bits of gk_gates_make. */
enum {
  GK_WITH_RESUME = 1, /**< Launches may start at any checkpoint, else at the top only. */
  GK_WITH_CANCEL = 2, /**< Every loop end can stop the launch. */
  GK_WITH_SWITCH = 4, /**< There are SWITCH nodes; else a branch is one IF node per case. */
  GK_WITH_GUARDS = 8, /**< Kernels, copies and fills can look at a word as control kernels do; then a segment of few tasks
                       * needs no IF node. Not those with code by hand (gk_node.handwritten), and no CALL. */
  GK_WITH_PLAIN = 16, /**< For devices that do less: a control kernel sets the handle of the node right behind it (of
                       * the IF nodes, where they are the cases of one branch), or, last in a loop's body, that loop's;
                       * once, and before each time that the node is reached. Only words close anything. */
};

/** Kinds of a graph's nodes. */
typedef enum gk_gate_kind {
  GK_GATE_TASK,     /**< The plan's KERNEL, COPY, FILL or CALL at `node`. */
  GK_GATE_CONTROL,  /**< A control kernel: walks the chain from `point` on, unless its word is closed; GK_WITH_PLAIN:
                     * then it sets what the chain would set to 0, or a SWITCH's to its off value. */
  GK_GATE_SEGMENT,    /**< An IF node of gk's own: a segment that can be skipped. */
  GK_GATE_IF,       /**< An IF node; `node` is the plan's IF, ELSE or CASE. */
  GK_GATE_SWITCH,   /**< A SWITCH node: its bodies are the BRANCH nodes in it; any higher value runs none of them. */
  GK_GATE_WHILE,    /**< A WHILE node; `node` is the plan's loop. */
  GK_GATE_PARALLEL, /**< No node: the BRANCH nodes in it have no order among themselves, what follows waits for all. */
  GK_GATE_BRANCH,   /**< No node: a body of a SWITCH node, or a branch of a PARALLEL. */
  GK_GATE_PROLOGUE, /**< First: a control kernel; with a target it does what the target says and walks nothing. */
  GK_GATE_EPILOGUE, /**< Last: posts the status and advances the launch number. */
} gk_gate_kind;

/** A node of the graph. What is in it lies from its own index + 1 to end - 1, in order; bodies are never empty. */
typedef struct gk_gate_node {
  gk_gate_kind kind; /**< What it is. */
  uint32_t end;      /**< One past the last node in it. */
  uint32_t node;     /**< The plan's node; GK_NONE: it stands for none. */
  uint32_t handle;   /**< SEGMENT, IF, SWITCH, WHILE: its handle. */
  uint32_t point;    /**< CONTROL, PROLOGUE: first of its chain; GK_NONE: nothing to walk. */
  uint32_t word;     /**< CONTROL, TASK: it does nothing while this word holds the launch's number; GK_NONE: none. */
  bool decides;      /**< BRANCH of a PARALLEL: holds control kernels. Two of those must not overlap where a device
                      * can't set handles from both at once. */
} gk_gate_node;

/** The condition of one node. */
typedef struct gk_gate_handle {
  uint32_t initial; /**< Value at the start of every launch. */
  uint32_t off;     /**< Value with which the node runs nothing. */
  uint32_t node;    /**< Which node's; as an index into gk_gates.nodes. */
} gk_gate_handle;

/** Kinds of points. */
typedef enum gk_point_kind {
  GK_POINT_YIELD,    /**< True end of a checkpoint with a flag: notes that it ran; flag not 0: stops with its label;
                      * else stops if the launch is cancelled; else goes on. Exits: on. */
  GK_POINT_LOOP_END, /**< Counts the pass, stops if the launch is cancelled (GK_WITH_CANCEL), else reads the flag and
                      * heeds the bound, sets its handle to 0 or 1 and those in `arm` to 1. Exits: again, out. */
  GK_POINT_HEAD,     /**< Start of a WHILE: reads the flag, sets its handle to 0 or 1. Exits: in, past. */
  GK_POINT_BRANCH,   /**< Reads the flag once and sets handles by its exits. Exits: per case in order; then, unless
                      * it is an IF with an ELSE, none of them. An IF takes its first exit if the flag isn't 0. */
  GK_POINT_MARK,     /**< Notes that a checkpoint without a flag ran. Exits: on. */
  GK_POINT_ENTER,    /**< GK_WITH_PLAIN, in front of a SEGMENT or a DO_WHILE: sets its handle to 1. Exits: on. */
} gk_point_kind;

/** One decision. `node` has its flag, bound and label; an ENTER of a SEGMENT has the first task in that. */
typedef struct gk_gate_point {
  gk_point_kind kind;  /**< What it is. */
  uint32_t node;       /**< The plan's CHECKPOINT, loop, IF or SWITCH. */
  uint32_t checkpoint; /**< That ran, if this point notes it or stops: its number; GK_NONE: none. */
  uint32_t exits;      /**< Where its exits begin in gk_gates.exits. */
  uint32_t exit_count; /**< How many. */
  uint32_t handle;     /**< HEAD, LOOP_END, BRANCH: what it sets. GK_NONE: a loop without nodes; a branch whose exits
                        * have handles of their own. */
  uint32_t arm;        /**< LOOP_END: where the handles that it sets to 1 at every pass begin in gk_gates.arms. */
  uint32_t arm_count;  /**< How many. */
  uint32_t block;      /**< YIELD, LOOP_END: where a stop begins to close: the block, */
  uint32_t closer;     /**< and the first closer in it. */
} gk_gate_point;

/** Where a chain goes on. */
typedef struct gk_gate_exit {
  uint32_t next;   /**< Point to walk next; GK_NONE: the chain ends here. */
  uint32_t handle; /**< BRANCH without a handle: set to 1 if this exit is taken and else to 0, or GK_NONE. */
  uint32_t value;  /**< BRANCH with a handle: what that is set to. */
} gk_gate_exit;

/** Kinds of closers. */
typedef enum gk_closer_kind {
  GK_CLOSER_GATE, /**< Handle of a SEGMENT. */
  GK_CLOSER_NODE, /**< Handle of a conditional node in a segment without a gate; never opened again: points do that. */
  GK_CLOSE_GUARD, /**< A word of control kernels and tasks: closed while it holds the launch's number. */
} gk_closer_kind;

/** What closes a segment of a block. Those of one block stand together, in its order. */
typedef struct gk_gate_close {
  gk_closer_kind kind; /**< What it is. */
  uint32_t at;         /**< The handle's or the word's number. */
  uint32_t value;      /**< A handle's value that closes it. */
} gk_gate_close;

/** A block as stops and targets see it. A stop closes, from its own block outwards to the root: from its place to
 * `end`, then, in the block around, from `after` on. In each block with a loop it touches the record of that loop and
 * sets the handle, if there is one, to 0. A target closes from `begin` to its place, then, in the block around, from
 * there to `before`; it sets the handle of each block on the way, if there is one, to `value`. The gates and words that
 * it closed in blocks that lie in a loop are opened again by the first loop end of the launch, whichever that is.
 * GK_WITH_PLAIN: stops and targets close and set no handle. A loop end whose launch stops, or whose word is closed,
 * sets its own to 0; a HEAD or BRANCH whose handle is that of a block on the way to the target reads no flag and gives
 * it that block's value (other IF nodes of the branch get 0), until the first loop end of the launch. */
typedef struct gk_gate_block {
  uint32_t begin;  /**< Its first closer. */
  uint32_t end;    /**< One past its last. */
  uint32_t around; /**< The block around; GK_NONE: it is the root. */
  uint32_t before; /**< In the block around: one past the closers that come before this one. */
  uint32_t after;  /**< In the block around: first closer behind this one. */
  uint32_t loop;   /**< Number of the loop whose body it is, or GK_NONE. */
  uint32_t handle; /**< Of the node whose body it is, or GK_NONE. */
  uint32_t value;  /**< With which that node runs it. */
  bool in_loop;    /**< It is, or lies in, the body of a loop. */
} gk_gate_block;

/** Where a launch may start: by number of the checkpoint. */
typedef struct gk_gate_target {
  uint32_t block;  /**< Where its checkpoint begins: the block, */
  uint32_t closer; /**< and one past the closers in it that come before. */
} gk_gate_target;

/** The gates of a plan for one kind of launches. What lasts from launch to launch (the launch's number, the records of
 * loops) is shared by all graphs of a plan; words belong to one graph. */
typedef struct gk_gates {
  const gk_plan *plan;            /**< Whose they are; must outlive them. */
  uint32_t bits;                  /**< As given to gk_gates_make. */
  uint32_t node_count;            /**< Length of nodes. */
  uint32_t handle_count;          /**< Length of handles. */
  uint32_t point_count;           /**< Length of points. */
  uint32_t exit_count;            /**< Length of exits. */
  uint32_t arm_count;             /**< Length of arms. */
  uint32_t closer_count;          /**< Length of closers. */
  uint32_t block_count;           /**< Length of blocks. */
  uint32_t target_count;          /**< Length of targets: the plan's checkpoints, or 0 without GK_WITH_RESUME. */
  uint32_t word_count;            /**< How many words there are. */
  const gk_gate_node *nodes;      /**< The graph in its order. */
  const gk_gate_handle *handles;  /**< Conditions. */
  const gk_gate_point *points;    /**< Decisions. */
  const gk_gate_exit *exits;      /**< Of all points. */
  const uint32_t *arms;           /**< Handles. */
  const gk_gate_close *closers;       /**< Of all blocks. */
  const gk_gate_block *blocks;    /**< [0] is the root. */
  const gk_gate_target *targets;  /**< By number of the checkpoint. */
  uint32_t control_count;         /**< Control kernels, without prologue and epilogue. */
  uint32_t conditional_count;     /**< IF, SWITCH and WHILE nodes. */
} gk_gates;

/** Decides the gates of a plan, in time and memory linear in it. Needs no device; thread-safe.
 * @param plan   Constant, and outlives the gates.
 * @param bits   GK_WITH_RESUME, GK_WITH_CANCEL, GK_WITH_SWITCH, GK_WITH_GUARDS, GK_WITH_PLAIN or 0.
 * @param gates  Freed by gk_gates_free.
 * @return GK_OK; GK_ERROR_INVALID: a bit that is unknown; GK_ERROR_MEMORY. */
gk_result gk_gates_make(const gk_plan *plan, uint32_t bits, const gk_gates **gates);

/** Frees what gk_gates_make gave; NULL is fine. */
void gk_gates_free(const gk_gates *gates);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
