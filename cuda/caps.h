/* What a device's driver does with conditional nodes: the questions of the probe, the answers, and the quirk that a
 * "no" stands for. */
#ifndef GKI_CUDA_CAPS_H
#define GKI_CUDA_CAPS_H
#include <stdbool.h>
#include <stdint.h>

/* Quirks, as bits: how lists are lowered for a driver that doesn't do all that gk relies on. Plain gates cover all of
 * those from PASS_ON_PER_LEVEL to LOOP_END_LAST.
 * A driver without quirks: a handle has its default at the start of a launch. It keeps its value, also from pass to
 * pass, until a kernel of the graph sets it, wherever that kernel and the handle's node are. */
enum {
  GKI_CUDA_HOST_GATED = 1 << 0,        /* no conditional nodes at all */
  GKI_CUDA_NO_SWITCH = 1 << 1,         /* one IF node per case; without GK_WITH_SWITCH */
  GKI_CUDA_CHAIN_BRANCHES = 1 << 2,    /* branches of a PARALLEL that decide run in sequence */
  GKI_CUDA_PASS_ON_PER_LEVEL = 1 << 3, /* a kernel sets handles of its own body and of that body's loop only; a kernel
                                        * behind each body passes a stop on */
  GKI_CUDA_SET_AT_ENTRY = 1 << 4,      /* handles in a body are set by a kernel at its beginning, not from outside */
  GKI_CUDA_SET_PER_PASS = 1 << 5,      /* gates in a loop's body are set in each pass */
  GKI_CUDA_REENABLE_IN_FRONT = 1 << 6, /* a DO_WHILE in a loop gets a kernel in front of it that sets its handle */
  GKI_CUDA_MERGE_IN_BODY = 1 << 7,     /* a chain stays in its body, and enters none beside it */
  GKI_CUDA_WRITE_ONCE = 1 << 8,        /* a kernel sets each handle once at most */
  GKI_CUDA_CLOSE_FROM_OUTSIDE = 1 << 9, /* no kernel sets the handle of an IF or SWITCH that it is in */
  GKI_CUDA_LOOP_END_LAST = 1 << 10,    /* the last node of a loop's body is a kernel that sets the loop's handle */
  GKI_CUDA_TARGET_BY_COPY = 1 << 11,   /* no node is updated; the target is copied to the device */
  GKI_CUDA_CODE_ON_HOST = 1 << 12,     /* no graph with conditional nodes has handwritten kernels */
};
enum { GKI_CUDA_CONDITIONAL_SINCE = 12040 }; /* drivers for 12.3 have the nodes, with faults */

/* Lists that one of these matters to are lowered with GK_WITH_PLAIN. */
enum {
  GKI_CUDA_QUIRKS_PLAIN = GKI_CUDA_PASS_ON_PER_LEVEL | GKI_CUDA_SET_AT_ENTRY | GKI_CUDA_SET_PER_PASS |
                        GKI_CUDA_REENABLE_IN_FRONT | GKI_CUDA_MERGE_IN_BODY | GKI_CUDA_WRITE_ONCE |
                        GKI_CUDA_CLOSE_FROM_OUTSIDE | GKI_CUDA_LOOP_END_LAST,
};
/* Those that cuda/lower.c handles. */
enum {
  GKI_CUDA_QUIRKS_HANDLED = GKI_CUDA_NO_SWITCH | GKI_CUDA_CHAIN_BRANCHES | GKI_CUDA_TARGET_BY_COPY |
                        GKI_CUDA_CODE_ON_HOST | GKI_CUDA_QUIRKS_PLAIN,
};

/* The questions, graph by graph in the order of asking: X(id, name, quirk if the answer is no, what is true if it is
 * yes). Each of the first two ends the probe if its answer is no. */
#define GKI_CUDA_QUESTIONS(X) \
  X(P1A, "P1a", GKI_CUDA_HOST_GATED, "a handle has its default in each launch and keeps it until it is set") \
  X(P2O0, "P2o0", GKI_CUDA_HOST_GATED, "a kernel opens and closes the nodes behind it, and ends the loop it is in") \
  X(P2O1, "P2o1", GKI_CUDA_PASS_ON_PER_LEVEL, "a kernel in a loop's body sets a node behind the loop") \
  X(P1B, "P1b", 0, "a loop that ended within a loop stays ended until it is armed again") \
  X(P1B2, "P1b2", GKI_CUDA_REENABLE_IN_FRONT, "the end of a loop arms a loop in it again") \
  X(P1C, "P1c", GKI_CUDA_SET_AT_ENTRY, "what was set two levels further out isn't overwritten as the body is entered") \
  X(P1D, "P1d", GKI_CUDA_TARGET_BY_COPY, "an updated node works as updated from the next launch on; defaults stay") \
  X(P1E, "P1e", GKI_CUDA_SET_PER_PASS, "a node in a loop that no kernel sets keeps its default over the passes") \
  X(P1K, "P1k", GKI_CUDA_SET_PER_PASS, "a node in a loop keeps what was set over the passes") \
  X(P2O2, "P2o2", GKI_CUDA_PASS_ON_PER_LEVEL, "a kernel ends a loop two levels out, and sets nodes on the way there") \
  X(P2O3, "P2o3", GKI_CUDA_PASS_ON_PER_LEVEL, "the same three levels out") \
  X(P2D, "P2d", GKI_CUDA_SET_AT_ENTRY, "a loop's end sets nodes one, two and three levels deeper for the next pass") \
  X(P2B, "P2b", GKI_CUDA_MERGE_IN_BODY, "a kernel sets nodes in a body beside its own, one and two levels deep") \
  X(P4A, "P4a", GKI_CUDA_WRITE_ONCE, "of what one kernel sets one after the other the last counts") \
  X(P6, "P6", GKI_CUDA_CLOSE_FROM_OUTSIDE, "a kernel sets the IF that it is in: that counts when it is reached again") \
  X(P7, "P7", GKI_CUDA_LOOP_END_LAST, "a loop ends that was ended within an IF and whose last node is a closed one") \
  X(P17A, "P17a", GKI_CUDA_CODE_ON_HOST, "a node in a body works as updated from the next launch on") \
  X(P17B, "P17b", GKI_CUDA_CODE_ON_HOST, "an update gives a node, also one in a body, another kernel") \
  X(P4E, "P4e", GKI_CUDA_CHAIN_BRANCHES, "kernels in two parallel branches set different handles") \
  X(P4F, "P4f", GKI_CUDA_CHAIN_BRANCHES, "kernels in eight parallel branches set different handles") \
  X(P4G, "P4g", GKI_CUDA_CHAIN_BRANCHES, "kernels in two parallel branches set one handle to the same value") \
  X(P8, "P8", GKI_CUDA_CHAIN_BRANCHES, "loops in parallel branches each make their own passes") \
  X(P9A, "P9a", GKI_CUDA_NO_SWITCH, "a SWITCH runs its case, and nothing for a value beyond; from 13.0")

typedef enum gki_cuda_question {
#define GKI_CUDA_QUESTION(id, name, quirk, text) GKI_CUDA_##id,
  GKI_CUDA_QUESTIONS(GKI_CUDA_QUESTION)
#undef GKI_CUDA_QUESTION
  GKI_CUDA_QUESTION_COUNT
} gki_cuda_question;

typedef struct gki_cuda_question_text { const char *name, *text; uint32_t quirk; } gki_cuda_question_text;
extern const gki_cuda_question_text gki_cuda_questions[GKI_CUDA_QUESTION_COUNT];

typedef enum gki_cuda_answer {
  GKI_CUDA_NOT_ASKED,
  GKI_CUDA_NO,
  GKI_CUDA_DECLINED,  /* by GK_CUDA_PROBE */
  GKI_CUDA_NOT_SHOWN, /* its branches gave the right result, but never ran at the same time */
  GKI_CUDA_YES
} gki_cuda_answer;

enum { GKI_CUDA_PROBE_GRAPHS = 6 };

/* A graph of the probe. Each runs twice. */
typedef struct gki_cuda_probe_timing {
  const char *name;
  uint32_t nodes;
  uint32_t build_us, instantiate_us, run_us;
} gki_cuda_probe_timing;

typedef struct gki_cuda_caps {
  bool conditional;   /* false: everything is host-gated; `why` has the reason */
  bool is_final;      /* false: a call failed for a reason that may pass; the next call probes again */
  bool hangs;         /* a graph didn't end: a wait for the device, or the end of its context, may never return */
  bool busy;          /* other work kept a plain kernel from running; the same as `hangs` until that work ends */
  bool broke;         /* the context failed permanently */
  int driver_version; /* 12040 is 12.4 */
  uint32_t quirks;
  uint8_t answers[GKI_CUDA_QUESTION_COUNT]; /* gki_cuda_answer; all but YES count as no, with a bit in `quirks` */
  uint32_t declined;  /* questions, as bits, that GK_CUDA_PROBE answers with no */
  uint32_t overlaps;  /* how often kernels of parallel branches ran at the same time */
  uint32_t microseconds; /* of the whole probe */
  uint32_t graph_count;  /* that ran */
  gki_cuda_probe_timing graphs[GKI_CUDA_PROBE_GRAPHS];
  uint8_t asked_in[GKI_CUDA_QUESTION_COUNT]; /* index of its graph */
  char why[400];      /* without `conditional`: the reason, as a sentence */
} gki_cuda_caps;

/* Nothing is freed on such a device, since that could wait for work that doesn't end. */
static inline bool gki_cuda_must_leak(const gki_cuda_caps *caps) {
  return caps->hangs || caps->busy;
}
#endif
