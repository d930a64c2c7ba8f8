/* Names of types and of ops, for messages and dumps. */
#ifndef GKI_BASE_NAME_H
#define GKI_BASE_NAME_H
#include "gk.h"

/* "GK_PTR"; NULL: there is no such type. */
const char *gki_type_name(gk_type type);

/* The type of a kernel's number with that name, in any of its spellings; GK_NO_TYPE: the name isn't a number's type. */
gk_type gki_number_type(const char *element);

/* "DO_WHILE"; NULL: no such op. */
const char *gki_op_name(gk_op op);
#endif
