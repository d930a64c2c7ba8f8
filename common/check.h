/* Stage 2: judging a list. Every problem is reported; nothing here needs a device. */
#ifndef GKI_CHECK_H
#define GKI_CHECK_H
#include "blocks.h"

/* Judges blocks that were read. takes: whether a kernel has code for the backend at hand; NULL: any will do.
 * Reports in the order of the tasks. GK_ERROR_INVALID: the first problem is the message. */
gk_result gki_check(const gki_blocks *blocks, const gk_backend *backend, gk_report report, void *user);
#endif
