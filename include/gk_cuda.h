/** @file gk_cuda.h
 * Direct control over CUDA, for programs that have contexts, streams and graphs of their own.
 *
 * Needs no header of CUDA's and agrees with cuda.h in either order. With the runtime API: cudaStream_t is CUstream,
 * cudaGraph_t is CUgraph, and so on. Devices and graphs are those of gk.h; what is said there of errors, ownership and
 * threads holds here, too. One of another backend is GK_ERROR_INVALID.
 *
 * What you hand in stays yours and must live as long as what it was handed to. What you get out is gk's and lives as
 * long as its device or graph; a pointer to it isn't valid in a context other than the device's. */
#ifndef GK_CUDA_H
#define GK_CUDA_H
#include "gk.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/** @cond as in cuda.h */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
/** @endcond */

/* ---- sharing a context and a stream ------------------------------------------------------------------------------ */

enum { GK_CUDA_SHARING = 0x43554401 /**< gk_extension.id of gk_cuda_sharing. */ };

/** For gk_device_desc.next: the device works in a context, and on a stream, of yours. */
typedef struct gk_cuda_sharing {
  gk_extension base; /**< Of GK_CUDA_SHARE. */
  CUcontext context; /**< NULL: the primary context, the one of the runtime API, of the device with that ordinal. Else
                      * the ordinal must be that of its device, or 0. */
  CUstream stream;   /**< Of that context: for launches, uploads, downloads and copies, in the order of what else you
                      * put on it; refused while it is captured. NULL: one of gk's own; the default stream is
                      * (CUstream)1, CU_STREAM_LEGACY. */
} gk_cuda_sharing;

/** Initializes a gk_cuda_sharing: `gk_cuda_sharing s = GK_CUDA_SHARE(context, stream); desc.next = &s.base;` */
#define GK_CUDA_SHARE(c, s) {{GK_CUDA_SHARING, sizeof(gk_cuda_sharing), NULL}, (c), (s)}

/** The context and the stream in which a device works. Thread-safe. A stream of gk's own isn't for captures: while
 * it is captured, what needs the device is refused, as on one that it shares.
 * @param context  May be NULL.
 * @param stream   May be NULL. */
gk_result gk_cuda_context(gk_device *device, CUcontext *context, CUstream *stream);

/* ---- looking inside ---------------------------------------------------------------------------------------------- */

/** The graph of launches from the top (label 0), or of those that resume at a label; made now if it wasn't yet. Good
 * for looking at it and for cuGraphExecKernelNodeSetParams and its kin; launched by gk_launch alone, which counts
 * launches (gk_cuda_add is for graphs that you launch). It changes when gk_wait reports GK_BY_RECORDING.
 * @param whole  May be NULL; not to be changed.
 * @param exec   May be NULL.
 * @return GK_ERROR_UNSUPPORTED: the host gates this graph, and the message says why. */
gk_result gk_cuda_graph(gk_graph *graph, int32_t label, CUgraph *whole, CUgraphExec *exec);

/** The node of a task, in the graph that gk_cuda_graph gives for that label. A loop, IF or SWITCH answers its
 * conditional node (of a SWITCH made of IF nodes, the first), a CHECKPOINT the kernel that decides whether it yields,
 * if that has a node of its own, a CALL the child graph node of what it recorded; where that holds what no child graph
 * can, conditional nodes or memory, it answers the first node that was recorded.
 * @param task  Its index in the list that the graph was made of; of a LIST, the first node of its tasks.
 * @param in    May be NULL; gets the graph or body that the node is in.
 * @param node  Gets the node.
 * @return GK_ERROR_INVALID: there is no such task, or it has no node (SECTION, PARALLEL, END, some CHECKPOINTs). Of a
 * graph from gk_cuda_add the nodes are in yours, whatever the label. */
gk_result gk_cuda_node(gk_graph *graph, int32_t label, size_t task, CUgraph *in, CUgraphNode *node);

/** The driver's own drawing (cuGraphDebugDotPrint, with all it has to tell) of the graph that gk_cuda_graph gives for
 * that label, where each node of gk's says first what it is of the list: the index and name of its task, or what it
 * decides.
 * @return Graphviz text, to be freed by gk_free_text; NULL: gk_error() says why. A body that the driver leaves out of
 * its drawing follows as one of its own. */
char *gk_cuda_dump(gk_graph *graph, int32_t label);

/* ---- a list inside a graph of yours ------------------------------------------------------------------------------ */

/** Among the bits of gk_cuda_add: with the gates that it takes to resume, so that gk_cuda_arm takes labels. */
enum { GK_CUDA_RESUMABLE = 0x100 };

/** Adds a list to a graph of yours, behind given nodes. Bind its slots, arm it, launch your exec, ask gk_poll how it
 * went. A graph with conditional nodes can't be cloned nor be a child, and has one exec at a time. Two lists that
 * nothing in your graph orders may decide at once, as sections of a PARALLEL do: the report on that says whether this
 * driver can.
 *
 * Thread-safe, but for one graph of yours from one thread at a time, as CUDA asks it.
 * @param list    As for gk_graph_create; without CALLs.
 * @param bits    GK_CANCELLABLE, GK_CUDA_RESUMABLE or 0.
 * @param into    Yours; a whole graph, no body and no child. For the device's context, without an exec.
 * @param after   Nodes of `into` that come first.
 * @param count   Length of after; 0: none.
 * @param graph   For gk_bind, gk_resize, gk_cuda_arm, gk_poll, gk_cancel; gk_launch and gk_wait
 *                refuse it, and gk_resize answers GK_ERROR_BUSY while what was armed isn't over. To be destroyed once
 *                no exec of `into` will be launched any more, before the device; that waits for all work in the
 *                context.
 * @param last    Gets the node that everything of the list comes before.
 * @return GK_ERROR_UNSUPPORTED: this driver has no conditional nodes or doesn't update them, or there is a CALL.
 * GK_ERROR_INVALID: an argument is wrong, or the driver doesn't take the graph or the nodes. After a failure `into`
 * may hold some of the nodes, whose memory is gone: destroy it. */
gk_result gk_cuda_add(gk_device *device, const gk_list *list, uint32_t bits, CUgraph into, const CUgraphNode *after,
                      size_t count, gk_graph **graph, CUgraphNode *last);

/** Prepares the next cuGraphLaunch of your exec: what was bound, and where to start, become parameters of one node,
 * with no work on the device. Each arming is numbered as a launch of gk's is, up to 16 may be under way, and when your
 * exec's launch is done gk_poll tells how it ended.
 *
 * - Arm each list that was added before the first launch: till then all slots are null, and its kernels would touch
 *   address 0.
 * - A launch that wasn't armed by itself does once more what the one before it did, and gk_poll doesn't tell of it.
 * - Of what was armed and not launched only the last counts; of the others gk_poll never tells.
 * - A list that can yield is armed again once gk_poll has told how its last launch ended: GK_ERROR_BUSY till then, for
 *   another exec, too, unless gk_cuda_disarm took it back.
 * - After gk_resize arm before you launch again, or the old memory is used.
 *
 * @param exec   Of the graph that the list was added to, made thereafter.
 * @param label  Where to start, as in gk_launch.
 * @return GK_ERROR_INVALID: a slot isn't bound as it must be, there is no such label, or the exec is of another graph.
 * GK_ERROR_BUSY: as above, or 16 are under way. After a failure arm again before you launch. */
gk_result gk_cuda_arm(gk_graph *graph, CUgraphExec exec, int32_t label);

/** Takes back what was armed and not launched, as before an exec is made again or given up; the next launch has to be
 * armed anew. Waits for all work in the context; what was launched is over then, and gk_poll tells of it as ever.
 * @return GK_ERROR_INVALID: the graph isn't one of gk_cuda_add, or a stream that the device shares is captured now.
 * GK_ERROR_DEVICE: the driver failed or the device is lost; nothing was taken back. */
gk_result gk_cuda_disarm(gk_graph *graph);

/* ---- single loops and branches in a graph made by hand ----------------------------------------------------------- */

/** A loop or branch that is being made. */
typedef struct gk_cuda_block {
  CUgraphNode node;      /**< What comes next goes behind this one. */
  CUgraphNode first;     /**< The first of its nodes: without a flag, what decides before a WHILE or a branch goes in
                          * front of this one, by cuGraphAddDependencies. */
  CUgraph body[2];       /**< To be filled with your nodes: of the loop or IF, and of the ELSE. */
  uint64_t handle[2];    /**< CUgraphConditionalHandle of each, for kernels of yours: see gk_cuda_begin. */
  uintptr_t reserved[4]; /**< gk's. */
} gk_cuda_block;

/** Adds a loop or a branch with empty bodies to a graph of yours, which may be such a body itself. What decides is a
 * kernel of gk's, in front and, of loops, at the end of the body. It reads the flag in each launch, whenever it comes
 * by; gk isn't asked any more, and nothing is to be bound or armed. The device must outlive your execs of the graph.
 *
 * Without a flag kernels of yours decide, by cudaGraphSetConditional(block->handle[k], value), which only one thread of
 * the whole graph may call at a time. A handle keeps its value until it is set again, over the passes of a loop around,
 * too. A DO_WHILE's is set to 1 whenever it is entered; the others are 0 when your exec is launched. A branch with both
 * bodies is two IF nodes, and each body runs if its own handle isn't 0.
 *
 * Thread-safe, but for one graph from one thread at a time, as CUDA asks it.
 * @param op              GK_OP_DO_WHILE, GK_OP_WHILE, GK_OP_IF, or GK_OP_ELSE: an IF with both bodies.
 * @param flag            Where on the device an int32_t decides, as in a list. NULL: kernels of yours set the handle.
 * @param max_iterations  Of a loop with a flag: passes of one entry at most; 0: no bound.
 * @param into            Whole graph or body, for the device's context, without an exec.
 * @param after           Nodes of `into` that come first.
 * @param count           Length of after; 0: none.
 * @param block           To be completed by gk_cuda_end.
 * @return GK_ERROR_UNSUPPORTED: this driver has no conditional nodes that gk can use, and the message says why.
 * GK_ERROR_INVALID: an argument is wrong, or the driver doesn't take the graph or the nodes. After a failure `into` may
 * hold some of what was to be added: destroy the whole graph. */
gk_result gk_cuda_begin(gk_device *device, gk_op op, const int32_t *flag, uint32_t max_iterations, CUgraph into,
                        const CUgraphNode *after, size_t count, gk_cuda_block *block);

/** Completes the bodies, once they hold all of your nodes: behind every node of a loop's body that has none behind it
 * comes the decision; a loop with a flag that isn't completed never ends. A body without nodes gets an empty one, since
 * drivers before 12.8 hang without. Blocks in bodies may be completed before or after. Memory for a loop's count lives
 * as long as the device. Nothing tells of the passes: count them by a kernel of yours if you need to know.
 * @return GK_ERROR_INVALID: the block wasn't begun with that device, or was completed before; or a loop without a flag
 * has no node that could end it. Else as gk_cuda_begin. */
gk_result gk_cuda_end(gk_device *device, gk_cuda_block *block);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
