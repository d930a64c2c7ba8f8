/** @file gk_kernel_host.h
 * What stands behind the macros of gk_kernel.h in C on the host. Programs include gk_kernel.h, which includes this. */
#ifndef GK_KERNEL_HOST_H
#define GK_KERNEL_HOST_H
#include "gk_code.h"
#include <math.h>
#include <string.h>

/** @cond behind the macros */
#if defined(__GNUC__)
#define GKI_UNUSED __attribute__((unused))
#define GKI_INLINE static inline __attribute__((always_inline, unused))
#else
#define GKI_UNUSED
#define GKI_INLINE static inline
#endif
#if defined(__clang__)
#define GKI_INDEPENDENT /* restrict is enough for clang, whose pragma warns about each loop that it can't vectorise */
#elif defined(__GNUC__)
#define GKI_INDEPENDENT _Pragma("GCC ivdep")
#else
#define GKI_INDEPENDENT
#endif
#if defined(__cplusplus) && defined(__GNUC__)
#define GKI_RESTRICT __restrict__
#elif defined(__cplusplus)
#define GKI_RESTRICT
#else
#define GKI_RESTRICT restrict
#endif

#if defined(__GNUC__) && defined(__ELF__) && !defined(GK_TEXT_GENERATED)
/* If several objects define a name, the linker takes gki_text_ and gki_from_ of one of them. gki_own_ is each object's
 * own text; the linker merges equal texts. With LTO all objects may be one assembly, which has only the first text.
 * gcc's LTO may separate C from assembly, and then gki_own_ is NULL. */
#define GKI_EMBED(name, line) \
  __asm__(".ifndef gki_text_" #name "\n.pushsection .rodata.gki,\"aMS\",%progbits,1\n.weak gki_text_" #name "\n" \
          ".hidden gki_text_" #name "\n.weak gki_from_" #name "\n.hidden gki_from_" #name "\n" \
          "gki_text_" #name ":\ngki_own_" #name ":\n.incbin \"" __FILE__ "\"\n.byte 0\n" \
          "gki_from_" #name ":\n.asciz \"" GKI_STRING(line) ":" __FILE__ "\"\n.popsection\n.endif\n"); \
  extern const char gki_from_##name[] __attribute__((visibility("hidden"))); \
  extern const char gki_text_##name[] __attribute__((visibility("hidden"))); \
  GKI_DECLARE_OWN(name)
#if defined(__clang__)
#define GKI_DECLARE_OWN(name) extern const char gki_own_##name
#define GKI_OWN(name) &gki_own_##name
#else
#define GKI_DECLARE_OWN(name) static char gki_own_or_null_##name __attribute__((weakref("gki_own_" #name)))
#define GKI_OWN(name) &gki_own_or_null_##name
#endif
#define GKI_FROM(name) gki_from_##name
#define GKI_STRING(line) GKI_STRING_(line)
#define GKI_STRING_(line) #line
#else
#define GKI_EMBED(name, line) extern const char gki_text_##name[]
#define GKI_FROM(name) NULL
#define GKI_OWN(name) NULL
#endif
#define GKI_SOURCE(variable, name, ...) \
  GKI_EMBED(name, __LINE__); \
  static const gk_source *const gki_uses_##name[] = {__VA_ARGS__}; \
  static const gk_source variable GKI_UNUSED = {__FILE__, gki_text_##name, __LINE__, gki_uses_##name, \
                                                GK_COUNT(gki_uses_##name) - 1, GKI_FROM(name), GKI_OWN(name)};
/* The compiler's message about a GK_KERNEL without a GK_SOURCE, or about a second GK_SOURCE, has this name. */
#define GKI_THIS_SOURCE GKI_CAT(gki_one_GK_SOURCE_in_a_file_above_its_GK_KERNELs_or_define_, GK_THIS_SOURCE)

#ifdef __cplusplus
#define GKI_KERNEL(id, list, d) \
  static_assert(sizeof(#id) == 0, "GK_KERNEL(" #id ", ...) is C: write it in a .c file, with a function that returns " \
                                  "&" #id " to C++ files"); \
  extern const gk_kernel id; \
  GKI_INLINE void gki_item_##id(GKI_EACH(GKI_FORMAL, list) GKI_PLACE_##d)
#else
#define GKI_KERNEL(id, list, d) \
  _Static_assert(GKI_COUNT list <= GK_MAX_ARGS, \
                 "the kernel " #id " has more than 16 parameters; put some of them into a GK_STRUCT"); \
  GKI_EACH(GKI_CHECK, list) \
  GKI_INLINE void gki_item_##id(GKI_EACH(GKI_FORMAL, list) GKI_PLACE_##d); \
  static void gki_host_##id(GKI_UNUSED const gk_value *gki_arg, gk_range gki_items) { \
    enum { gki_sum_count = 0 GKI_EACH(GKI_IS_SUM, list) }; \
    GKI_EACH(GKI_BEFORE, list) \
    for (gki_rows gki_at = gki_first_rows(gki_items, d); gki_at.i < gki_at.end; \
         gki_at = gki_next_rows(gki_at, gki_items, d)) \
      if (gki_sum_count > 0 && gki_at.end - gki_at.i >= (d == 1 ? GKI_LANES : GKI_LONG_ROW)) \
        for (int gki_j = gki_at.j; gki_j < gki_at.last_j; ++gki_j) { \
          int gki_i = gki_at.i; \
          do { GKI_LANES_OF(id, list, d, gki_i, GKI_LANES) } while (gki_at.end - gki_i >= GKI_LANES); \
          GKI_REST(id, list, d, gki_i) \
        } \
      else if (gki_sum_count > 0 && d > 1 && gki_at.end - gki_at.i >= GKI_FEW_LANES) \
        for (int gki_j = gki_at.j; gki_j < gki_at.last_j; ++gki_j) { \
          int gki_i = gki_at.i; \
          do { GKI_LANES_OF(id, list, d, gki_i, GKI_FEW_LANES) } while (gki_at.end - gki_i >= GKI_FEW_LANES); \
          GKI_REST(id, list, d, gki_i) \
        } \
      else \
        for (int gki_j = gki_at.j; gki_j < gki_at.last_j; ++gki_j) { GKI_REST(id, list, d, gki_at.i) } \
    GKI_EACH(GKI_AFTER, list) \
  } \
  static const gk_param gki_params_##id[] = {GKI_EACH(GKI_PARAM, list) {0}}; \
  static const gk_kernel id GKI_UNUSED = {.name = #id, .params = gki_params_##id, \
    .param_count = GK_COUNT(gki_params_##id) - 1, .dimensions = d, .source = &GKI_THIS_SOURCE, \
    .host = gki_host_##id}; \
  GKI_INLINE void gki_item_##id(GKI_EACH(GKI_FORMAL, list) GKI_PLACE_##d)

#define GKI_LANES_OF(id, list, d, first, count) \
  GKI_INDEPENDENT for (int gki_lane = 0; gki_lane < count; ++gki_lane) \
    gki_item_##id(GKI_EACH(GKI_ACTUAL, list) GKI_NUMBERS_##d(first + gki_lane)); \
  first += count;
#define GKI_REST(id, list, d, first) \
  GKI_INDEPENDENT for (int i = first; i < gki_at.end; ++i) { \
    enum { gki_lane = GKI_LANES }; \
    gki_item_##id(GKI_EACH(GKI_ACTUAL, list) GKI_NUMBERS_##d(i)); \
  }

/* The next items of a range: i to end in each of the rows j to last_j of plane k. A row in which the range begins or
 * ends comes alone, whole rows of a plane come together, so that values that all rows need are computed once. After
 * them come `whole` rows and `rest` items of one more. One dimension is one row, and the compiler sees that. */
typedef struct gki_rows { int i, end, j, last_j, k; size_t whole, rest; } gki_rows;
GKI_INLINE gki_rows gki_rows_at(int j, int k, size_t whole, size_t rest, gk_range items, int dimensions) {
  if (whole == 0 && rest == 0) return (gki_rows){0};
  if (dimensions == 3 && j == (int)items.extent[1]) {
    j = 0;
    ++k;
  }
  if (whole == 0) return (gki_rows){0, (int)rest, j, j + 1, k, 0, 0};
  size_t rows = dimensions == 3 && items.extent[1] - (size_t)j < whole ? items.extent[1] - (size_t)j : whole;
  return (gki_rows){0, (int)items.extent[0], j, j + (int)rows, k, whole - rows, rest};
}
GKI_INLINE gki_rows gki_first_rows(gk_range items, int dimensions) {
  if (dimensions == 1 || items.begin >= items.end) return (gki_rows){(int)items.begin, (int)items.end, 0, 1, 0, 0, 0};
  size_t nx = items.extent[0], number = items.begin / nx, i = items.begin % nx, count = items.end - items.begin;
  int j = (int)(dimensions == 3 ? number % items.extent[1] : number);
  int k = (int)(dimensions == 3 ? number / items.extent[1] : 0);
  if (i == 0) return gki_rows_at(j, k, count / nx, count % nx, items, dimensions);
  size_t here = nx - i < count ? nx - i : count;
  return (gki_rows){(int)i, (int)(i + here), j, j + 1, k, (count - here) / nx, (count - here) % nx};
}
GKI_INLINE gki_rows gki_next_rows(gki_rows at, gk_range items, int dimensions) {
  if (dimensions == 1) return (gki_rows){0};
  return gki_rows_at(at.last_j, at.k, at.whole, at.rest, items, dimensions);
}
#define GKI_NUMBERS_1(i) i
#define GKI_NUMBERS_2(i) i, gki_j
#define GKI_NUMBERS_3(i) i, gki_j, gki_at.k

/* Assertions about a parameter list. */
#define GKI_CHECK(p) \
  _Static_assert(GKI_KNOWN(p), "GK_KERNEL(..., (" #p ")): each parameter is in, out, inout, atomic, value or sum of " \
                               "(type, name), and there is one at least"); \
  GKI_WITH(GKI_CHECK_, p)
#define GKI_CHECK_in(T, name) GKI_CHECK_ELEMENT(T, name)
#define GKI_CHECK_out(T, name) GKI_CHECK_ELEMENT(T, name)
#define GKI_CHECK_inout(T, name) GKI_CHECK_ELEMENT(T, name)
#define GKI_CHECK_atomic(T, name) \
  _Static_assert(_Generic((T *)0, int *: 1, uint *: 1, float *: 1, double *: 1, int64_t *: 0, \
                          default: !GKI_NO_TYPE_HERE(T)), \
                 "atomic(" #T ", " #name "): the type must be int, uint, float, double, or a struct of these");
#define GKI_CHECK_value(T, name) GKI_CHECK_ELEMENT(T, name)
#define GKI_CHECK_sum(T, name) \
  _Static_assert(_Generic((T *)0, int *: 1, uint *: 1, float *: 1, double *: 1, default: 0), \
                 "sum(" #T ", " #name "): the type must be int, uint, float or double");
#define GKI_CHECK_ELEMENT(T, name) \
  _Static_assert(!GKI_NO_TYPE_HERE(T), #T " " #name ": the type must be int, uint, int64_t, float, double or a struct");
#if defined(__GNUC__)
#define GKI_IS_POINTER(T) (__builtin_classify_type(*(T *)0) == __builtin_classify_type((void *)0))
#else
#define GKI_IS_POINTER(T) 0
#endif
#define GKI_NO_TYPE_HERE(T) \
  (GKI_IS_POINTER(T) || _Generic((T *)0, int64_t *: 0, default: \
           _Generic((T *)0, _Bool *: 1, char *: 1, signed char *: 1, unsigned char *: 1, short *: 1, \
                    unsigned short *: 1, long *: 1, unsigned long *: 1, long long *: 1, unsigned long long *: 1, \
                    default: 0)))

#define GKI_PARAM(p) GKI_WITH(GKI_PARAM_, p)
#define GKI_PARAM_POINTER(T, name, access) {#name, #T, sizeof(T), _Alignof(T), GK_PTR, access},
#define GKI_PARAM_in(T, name) GKI_PARAM_POINTER(T, name, GK_ACCESS_IN)
#define GKI_PARAM_out(T, name) GKI_PARAM_POINTER(T, name, GK_ACCESS_OUT)
#define GKI_PARAM_inout(T, name) GKI_PARAM_POINTER(T, name, GK_ACCESS_INOUT)
#define GKI_PARAM_atomic(T, name) GKI_PARAM_POINTER(T, name, GK_ACCESS_ATOMIC)
#define GKI_PARAM_sum(T, name) GKI_PARAM_POINTER(T, name, GK_ACCESS_SUM)
#define GKI_PARAM_value(T, name) {#name, #T, sizeof(T), _Alignof(T), GKI_TYPE_OF(T), GK_ACCESS_VALUE},
#define GKI_TYPE_OF(T) \
  _Generic((T *)0, int *: GK_I32, uint *: GK_U32, int64_t *: GK_I64, float *: GK_F32, double *: GK_F64, \
           default: GK_BYTES)
#define GKI_VALUE_OF(T, at) \
  _Generic((T *)0, int *: (at)->i32, uint *: (at)->u32, int64_t *: (at)->i64, float *: (at)->f32, double *: (at)->f64, \
           default: *(const T *)(at)->ptr)

#define GKI_BEFORE_in(T, name) const T *const restrict name = (gki_arg++)->ptr;
#define GKI_BEFORE_out(T, name) T *const name = (gki_arg++)->ptr;
#define GKI_BEFORE_inout(T, name) T *const name = (gki_arg++)->ptr;
#define GKI_BEFORE_atomic(T, name) T *const name = (gki_arg++)->ptr;
#define GKI_BEFORE_value(T, name) const T name = GKI_VALUE_OF(T, gki_arg); ++gki_arg;
#define GKI_BEFORE_sum(T, name) T *const gki_out_##name = (gki_arg++)->ptr; T gki_sum_##name[GKI_LANES + 1] = {0};
#define GKI_ACTUAL_sum(T, name) &gki_sum_##name[gki_lane],
#define GKI_AFTER_sum(T, name) \
  for (int gki_lane = 1; gki_lane <= GKI_LANES; ++gki_lane) gki_sum_##name[0] += gki_sum_##name[gki_lane]; \
  gki_out_##name[0] += gki_sum_##name[0];
#define GKI_IS_SUM(p) GKI_WITH(GKI_IS_SUM_, p)
#define GKI_IS_SUM_in(T, name)
#define GKI_IS_SUM_out(T, name)
#define GKI_IS_SUM_inout(T, name)
#define GKI_IS_SUM_atomic(T, name)
#define GKI_IS_SUM_value(T, name)
#define GKI_IS_SUM_sum(T, name) +1
/* Number of private sums per call, so that the compiler can use vectors without changing the order of a sum. The rest
 * of a row has one more sum: adding it to the first would write a number that the next row reads as part of a vector,
 * and processors wait for such a write. */
#define GKI_LANES 32
#define GKI_FEW_LANES 8 /* in rows of fewer items than GKI_LONG_ROW: more sums would be read and written per item */
#define GKI_LONG_ROW 64

#define GKI_ATOMIC(type, suffix, op, expression) \
  GKI_INLINE type gki_##op##_##suffix(type *at, type v) { \
    type old, next; \
    __atomic_load(at, &old, __ATOMIC_RELAXED); \
    do next = (expression); \
    while (!__atomic_compare_exchange(at, &old, &next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    return old; \
  }
GKI_ATOMIC(float, f32, add, old + v)
GKI_ATOMIC(double, f64, add, old + v)
GKI_ATOMIC(int, i32, min, old < v ? old : v)
GKI_ATOMIC(unsigned, u32, min, old < v ? old : v)
GKI_ATOMIC(int, i32, max, old > v ? old : v)
GKI_ATOMIC(unsigned, u32, max, old > v ? old : v)
#define GKI_LOAD(type, suffix) \
  GKI_INLINE type gki_load_##suffix(type *at) { type v; __atomic_load(at, &v, __ATOMIC_RELAXED); return v; }
GKI_LOAD(int, i32)
GKI_LOAD(unsigned, u32)
GKI_LOAD(float, f32)
GKI_LOAD(double, f64)
GKI_INLINE int gki_add_i32(int *at, int v) { return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }
GKI_INLINE unsigned gki_add_u32(unsigned *at, unsigned v) { return __atomic_fetch_add(at, v, __ATOMIC_RELAXED); }
GKI_INLINE int gki_or_i32(int *at, int v) { return __atomic_fetch_or(at, v, __ATOMIC_RELAXED); }
GKI_INLINE unsigned gki_or_u32(unsigned *at, unsigned v) { return __atomic_fetch_or(at, v, __ATOMIC_RELAXED); }
GKI_INLINE int gki_exchange_i32(int *at, int v) { return __atomic_exchange_n(at, v, __ATOMIC_RELAXED); }
GKI_INLINE unsigned gki_exchange_u32(unsigned *at, unsigned v) { return __atomic_exchange_n(at, v, __ATOMIC_RELAXED); }
GKI_INLINE int gki_cas_i32(int *at, int expected, int v) {
  __atomic_compare_exchange_n(at, &expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
GKI_INLINE unsigned gki_cas_u32(unsigned *at, unsigned expected, unsigned v) {
  __atomic_compare_exchange_n(at, &expected, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
#endif
/** @endcond */
#endif
