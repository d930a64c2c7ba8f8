/** @file gk_cuda.h
 * Direct control over CUDA, for programs that have contexts, streams and graphs of their own.
 *
 * Needs no header of CUDA and may be included before or after cuda.h. With the runtime API: cudaStream_t is CUstream,
 * cudaGraph_t is CUgraph, and so on. Devices and graphs are those of gk.h. Its rules for errors, ownership and threads
 * hold here, too. A device or graph of another backend is GK_ERROR_INVALID.
 *
 * Objects that you pass to gk stay yours and must live as long as the device or graph that got them. Objects that gk
 * returns belong to gk and live as long as their device or graph. Pointers to memory are valid in the device's context
 * only. */
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
  CUcontext context; /**< NULL: the primary context, which the runtime API uses, of the device with that ordinal.
                      * Otherwise the ordinal must be that of the context's device, or 0. */
  CUstream stream;   /**< A stream of that context: for launches, uploads, downloads and copies, in order with your own
                      * work on it; calls are refused while it is captured. NULL: a stream of gk's own. The default
                      * stream is (CUstream)1, CU_STREAM_LEGACY. */
} gk_cuda_sharing;

/** Initializes a gk_cuda_sharing: `gk_cuda_sharing s = GK_CUDA_SHARE(context, stream); desc.next = &s.base;` */
#define GK_CUDA_SHARE(c, s) {{GK_CUDA_SHARING, sizeof(gk_cuda_sharing), NULL}, (c), (s)}

/** The context and the stream in which a device works. Thread-safe. Don't capture a stream of gk's own: during the
 * capture, gk refuses calls that need the device, as for a shared stream.
 * @param context  May be NULL.
 * @param stream   May be NULL. */
gk_result gk_cuda_context(gk_device *device, CUcontext *context, CUstream *stream);

/* ---- looking inside ---------------------------------------------------------------------------------------------- */

/** The graph for launches from the top (label 0), or for launches that resume at a label. It is made now if it doesn't
 * exist. Use it to look at it, and for cuGraphExecKernelNodeSetParams and similar calls. Only gk_launch may launch it,
 * since it counts launches (gk_cuda_add is for graphs that you launch). It changes when gk_wait reports
 * GK_BY_RECORDING.
 * @param whole  May be NULL; not to be changed.
 * @param exec   May be NULL.
 * @return GK_ERROR_UNSUPPORTED: the host gates this graph, and the message says why. */
gk_result gk_cuda_graph(gk_graph *graph, int32_t label, CUgraph *whole, CUgraphExec *exec);

/** The node of a task, in the graph that gk_cuda_graph returns for that label. For a loop, IF or SWITCH it is the
 * conditional node (for a SWITCH made of IF nodes, the first). For a CHECKPOINT it is the kernel that decides whether
 * the checkpoint yields, if that kernel has its own node. For a CALL it is the child graph node of the recorded work,
 * or the first recorded node if the work holds conditional nodes or memory, which no child graph can hold.
 * @param task  Its index in the list that the graph was made of; for a LIST, the result is the first node of its tasks.
 * @param in    May be NULL; gets the graph or body that the node is in.
 * @param node  Gets the node.
 * @return GK_ERROR_INVALID: there is no such task, or it has no node (SECTION, PARALLEL, END, some CHECKPOINTs). The
 * nodes of a graph from gk_cuda_add are in your graph, for any label. */
gk_result gk_cuda_node(gk_graph *graph, int32_t label, size_t task, CUgraph *in, CUgraphNode *node);

/** The driver's own drawing (cuGraphDebugDotPrint, with all details) of the graph that gk_cuda_graph returns for that
 * label. Each of gk's nodes begins with its meaning in the list: the index and name of its task, or its decision.
 * @return Graphviz text, to be freed by gk_free_text; NULL: gk_error() says why. A body that the driver leaves out of
 * its drawing follows as a separate drawing. */
char *gk_cuda_dump(gk_graph *graph, int32_t label);

/* ---- a list inside a graph of yours ------------------------------------------------------------------------------ */

/** A bit of gk_cuda_add: the graph has the gates for resuming, so gk_cuda_arm accepts labels. */
enum { GK_CUDA_RESUMABLE = 0x100 };

/** Adds a list to a graph of yours, behind given nodes. Bind its slots, arm it, launch your exec, and call gk_poll for
 * the result. A graph with conditional nodes can't be cloned, can't be a child, and has one exec at a time. Two lists
 * without an order in your graph may decide at the same time, like sections of a PARALLEL. The report on PARALLEL says
 * whether this driver supports that.
 *
 * Thread-safe, except that only one thread at a time may use one graph of yours, as CUDA requires.
 * @param list    As for gk_graph_create; without CALLs.
 * @param bits    GK_CANCELLABLE, GK_CUDA_RESUMABLE or 0.
 * @param into    Yours; a whole graph, no body and no child. For the device's context, without an exec.
 * @param after   Nodes of `into` that come first.
 * @param count   Length of after; 0: none.
 * @param graph   For gk_bind, gk_resize, gk_cuda_arm, gk_poll, gk_cancel. gk_launch and gk_wait refuse it, and
 *                gk_resize returns GK_ERROR_BUSY until the armed launch has ended. Destroy it after the last launch of
 *                any exec of `into`, before the device; this waits for all work in the context.
 * @param last    Gets the node that follows everything of the list.
 * @return GK_ERROR_UNSUPPORTED: this driver has no conditional nodes or doesn't update them, or there is a CALL.
 * GK_ERROR_INVALID: an argument is wrong, or the driver refuses the graph or the nodes. After a failure `into` may
 * hold some of the nodes, whose memory was freed: destroy it. */
gk_result gk_cuda_add(gk_device *device, const gk_list *list, uint32_t bits, CUgraph into, const CUgraphNode *after,
                      size_t count, gk_graph **graph, CUgraphNode *last);

/** Prepares the next cuGraphLaunch of your exec. The new bindings and the starting place become parameters of one node,
 * without work on the device. Each arming has a number, like a launch of gk. Up to 16 may be under way. When your
 * exec's launch has ended, gk_poll reports its result.
 *
 * - Arm each added list before the first launch: until then all slots are null, and its decisions and handwritten
 *   kernels would touch address 0.
 * - A launch without its own arming repeats the previous launch, and gk_poll doesn't report it.
 * - If you arm several times without a launch, only the last arming counts; gk_poll never reports the others.
 * - A list that can yield may be armed again after gk_poll has reported the result of its last launch. Until then the
 *   result is GK_ERROR_BUSY, for another exec, too, unless gk_cuda_disarm took the arming back.
 * - After gk_resize, arm before you launch again. Otherwise the launch uses the old memory.
 *
 * @param exec   An exec of the graph that the list was added to, made after the list was added.
 * @param label  Where to start, as in gk_launch.
 * @return GK_ERROR_INVALID: a slot isn't bound as it must be, there is no such label, or the exec is of another graph.
 * GK_ERROR_BUSY: as above, or 16 are under way. After a failure, arm again before you launch. */
gk_result gk_cuda_arm(gk_graph *graph, CUgraphExec exec, int32_t label);

/** Takes back an arming that wasn't launched, for example before an exec is made again or destroyed. The next launch
 * must be armed again. Waits for all work in the context. Launches have ended then, and gk_poll reports them as usual.
 * @return GK_ERROR_INVALID: the graph isn't from gk_cuda_add, or a stream that the device shares is being captured.
 * GK_ERROR_DEVICE: the driver failed or the device is lost; nothing was taken back. */
gk_result gk_cuda_disarm(gk_graph *graph);

/* ---- single loops and branches in a graph made by hand ----------------------------------------------------------- */

/** A loop or branch that is being made. */
typedef struct gk_cuda_block {
  CUgraphNode node;      /**< Put later nodes behind this one. */
  CUgraphNode first;     /**< The first of its nodes. Without a flag, put the kernel that decides before a WHILE or a
                          * branch in front of this one, by cuGraphAddDependencies. */
  CUgraph body[2];       /**< For your nodes: the body of the loop or IF, and that of the ELSE. */
  uint64_t handle[2];    /**< CUgraphConditionalHandle of each, for kernels of yours: see gk_cuda_begin. */
  uintptr_t reserved[4]; /**< gk's. */
} gk_cuda_block;

/** Adds a loop or a branch with empty bodies to a graph of yours, which may be such a body itself. A kernel of gk
 * decides, in front of the node and, for loops, also at the end of the body. It reads the flag in each launch, each
 * time that it runs. Nothing needs to be bound or armed. The device must outlive your execs of the graph.
 *
 * Without a flag, kernels of yours decide with cudaGraphSetConditional(block->handle[k], value). Only one thread of the
 * whole graph may call it at a time. A handle keeps its value until it is set again, also over the passes of an
 * enclosing loop. A DO_WHILE's handle is set to 1 each time the loop is entered; the others are 0 when your exec is
 * launched. A branch with both bodies is two IF nodes, and each body runs if its own handle isn't 0.
 *
 * Thread-safe, except that only one thread at a time may use one graph, as CUDA requires.
 * @param op              GK_OP_DO_WHILE, GK_OP_WHILE, GK_OP_IF, or GK_OP_ELSE: an IF with both bodies.
 * @param flag            Where on the device an int32_t decides, as in a list. NULL: kernels of yours set the handle.
 * @param max_iterations  Of a loop with a flag: passes of one entry at most; 0: no bound.
 * @param into            Whole graph or body, for the device's context, without an exec.
 * @param after           Nodes of `into` that come first.
 * @param count           Length of after; 0: none.
 * @param block           To be completed by gk_cuda_end.
 * @return GK_ERROR_UNSUPPORTED: this driver has no conditional nodes that gk can use, and the message says why.
 * GK_ERROR_INVALID: an argument is wrong, or the driver refuses the graph or the nodes. After a failure `into` may hold
 * some of the new nodes: destroy the whole graph. */
gk_result gk_cuda_begin(gk_device *device, gk_op op, const int32_t *flag, uint32_t max_iterations, CUgraph into,
                        const CUgraphNode *after, size_t count, gk_cuda_block *block);

/** Completes the bodies when they hold all of your nodes. The decision comes behind all nodes of a loop's body that
 * nothing follows. A loop with a flag that isn't completed never ends. A body without nodes gets an empty node, since
 * drivers before 12.8 hang otherwise. Blocks inside bodies may be completed before or after. Memory for a loop's count
 * lives as long as the device. gk doesn't report the passes: count them in a kernel of yours if you need them.
 * @return GK_ERROR_INVALID: the block wasn't begun with that device, or was completed before; or a loop without a flag
 * has no node that could end it. Otherwise as gk_cuda_begin. */
gk_result gk_cuda_end(gk_device *device, gk_cuda_block *block);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
