#include "base/name.h"
#include <string.h>

const char *gki_type_name(gk_type type) {
  static const char *const names[] = {"GK_NO_TYPE", "GK_PTR", "GK_I32", "GK_U32",   "GK_I64",
                                      "GK_F32",     "GK_F64", "GK_BYTES", "GK_HOST_PTR"};
  return (size_t)type < GK_COUNT(names) ? names[type] : NULL;
}

gk_type gki_number_type(const char *element) {
  static const struct { const char *name; gk_type type; } numbers[] = {
      {"int", GK_I32},      {"int32_t", GK_I32},      {"uint", GK_U32},  {"uint32_t", GK_U32},
      {"unsigned", GK_U32}, {"unsigned int", GK_U32}, {"float", GK_F32}, {"double", GK_F64},
      {"int64_t", GK_I64}};
  for (size_t k = 0; element && k < GK_COUNT(numbers); ++k)
    if (strcmp(element, numbers[k].name) == 0) return numbers[k].type;
  return GK_NO_TYPE;
}

static const char *const op_names[] = {
    "NONE",  "KERNEL", "COPY", "FILL", "CALL",   "CALL_HOST", "YIELD",      "LIST",     "DO_WHILE", "WHILE",
    "REPEAT", "IF",    "ELSE", "SWITCH", "CASE", "CHECKPOINT", "PARALLEL", "SECTION", "END",
};

const char *gki_op_name(gk_op op) {
  size_t index = (size_t)op;
  return index < GK_COUNT(op_names) ? op_names[index] : NULL;
}
