/* The results of all cases, and the format in which they are written. */
#ifndef RESULTS_H
#define RESULTS_H
#include "session.h"
#include <stdio.h>

typedef enum verdict { NOT_RUN, PASS, FAIL, SKIP, EXPECTED_FAILURE, UNEXPECTED_PASS } verdict;

typedef struct result {
  verdict verdict;
  char *text; /* why; or NULL */
} result;

typedef struct column { /* a backend */
  char name[64];
  report report;
  char unavailable[2200]; /* why there is none; "" */
  result *results;        /* by case */
} column;

void write_matrix(FILE *to, const column *columns, size_t count);
void write_json(FILE *to, const column *columns, size_t count);
#endif
