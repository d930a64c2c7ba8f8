/* Stage 2: checking a list. Every problem is reported; nothing here needs a device. */
#ifndef GKI_CHECK_CHECK_H
#define GKI_CHECK_CHECK_H
#include "list/blocks.h"

/* Checks blocks that were read. backend: kernels need code for it; NULL: code for any backend is enough. report may be
 * NULL. Reports in the order of the tasks. GK_ERROR_INVALID: the first problem is the message. */
gk_result gki_check(const gki_blocks *blocks, const gk_backend *backend, gk_report report, void *user);
#endif
