/* The table of problems, and the function that fills in a sentence. */
#ifndef GKI_LIST_PROBLEMS_H
#define GKI_LIST_PROBLEMS_H
#include "base/memory.h"

#define PROBLEM(id, code, sentence) GKI_##id,
#define WARNING PROBLEM
typedef enum gki_problem {
#include "list/problems.def"
  GKI_PROBLEM_COUNT
} gki_problem;
#undef WARNING
#undef PROBLEM

/* The stable code, "label-reused". */
const char *gki_problem_code(gki_problem problem);
bool gki_problem_is_warning(gki_problem problem);

/* Writes the sentence with `words`, which end with NULL, in the places of its braces. Like snprintf, it cuts the text
 * to what fits. */
void gki_problem_text(gki_problem problem, const char *const *words, char *text, size_t bytes);
#endif
