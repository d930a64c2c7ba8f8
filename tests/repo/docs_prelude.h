/* What fragments on the pages of docs/ may take for granted. */
#include <gk.h>
#include <gk_kernel.h>
#include <gk_backend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern gk_device *device;
extern gk_graph *graph;
extern const gk_status *status;
