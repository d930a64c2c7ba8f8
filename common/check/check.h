/* Stage 2: judging a list. Every problem is reported; nothing here needs a device. */
#ifndef GKI_CHECK_CHECK_H
#define GKI_CHECK_CHECK_H
#include "list/blocks.h"

/* Judges blocks that were read. backend: kernels need code for it; NULL: any will do. report may be NULL.
 * Reports in the order of the tasks. GK_ERROR_INVALID: the first problem is the message. */
gk_result gki_check(const gki_blocks *blocks, const gk_backend *backend, gk_report report, void *user);
#endif
