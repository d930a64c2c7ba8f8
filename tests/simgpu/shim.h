// CUDA C as C++ for the host: what a source needs that real compilers have built in. It stands before the source, and
// sources that come without headers get none. sim_services does what needs more than one thread; what a kernel's name
// and parameters are is written behind the source by translate.c, which also takes sim_kernel_, sim_shared_ and
// sim_bounds_ away.
#define __CUDACC__ 1
#define __CUDA_ARCH__ SIM_ARCH
#define __global__ sim_kernel_
#define __shared__ sim_shared_
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...) sim_bounds_(__VA_ARGS__)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

typedef __SIZE_TYPE__ size_t;
typedef unsigned long long cudaGraphConditionalHandle;
#ifndef NULL
#define NULL 0
#endif

#define SIM_INLINE static inline __attribute__((unused))
typedef sim_index uint3;
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
#define SIM_VECTOR_BUT_3(type, name, align2, align4) \
  struct name##1 { type x; }; \
  struct alignas(align2) name##2 { type x, y; }; \
  struct alignas(align4) name##4 { type x, y, z, w; }; \
  SIM_INLINE name##1 make_##name##1(type x) { return {x}; } \
  SIM_INLINE name##2 make_##name##2(type x, type y) { return {x, y}; } \
  SIM_INLINE name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  SIM_INLINE name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
#define SIM_VECTOR(type, name, align2, align4) \
  struct name##3 { type x, y, z; }; \
  SIM_VECTOR_BUT_3(type, name, align2, align4)
SIM_VECTOR(signed char, char, 2, 4) SIM_VECTOR(unsigned char, uchar, 2, 4) SIM_VECTOR(short, short, 4, 8)
SIM_VECTOR(unsigned short, ushort, 4, 8) SIM_VECTOR(int, int, 8, 16) SIM_VECTOR_BUT_3(unsigned, uint, 8, 16)
SIM_VECTOR(long long, longlong, 16, 16) SIM_VECTOR(unsigned long long, ulonglong, 16, 16)
SIM_VECTOR(float, float, 8, 16) SIM_VECTOR(double, double, 16, 16)

// ---- where a thread is ---------------------------------------------------------------------------------------------

#define SIM_OWN __attribute__((visibility("hidden")))
extern "C" {
SIM_OWN sim_index threadIdx, blockIdx, blockDim, gridDim;
SIM_OWN const sim_services *sim_services_at;
SIM_OWN __attribute__((aligned(128))) unsigned char sim_dynamic_shared[232448];
}
static const int warpSize = 32;
SIM_INLINE unsigned sim_lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32u;
}

// What kernels are compiled with calls one of these before each load and store (-fsanitize=kernel-address). Variables
// of the module, and the stack, aren't looked at.
#define SIM_UNSEEN __attribute__((no_sanitize("kernel-address")))
extern "C" SIM_OWN char __ehdr_start[], _end[];
SIM_UNSEEN SIM_INLINE void sim_touch(size_t at, size_t bytes) {
  enum { NEAR = 256 * 1024 };
  const size_t stack = (size_t)__builtin_frame_address(0);
  if (at - (size_t)__ehdr_start < (size_t)(_end - __ehdr_start) || at - stack + NEAR / 4 < NEAR) return;
  sim_services_at->touch(at, bytes);
}
#define SIM_TOUCH(name) \
  extern "C" SIM_OWN void sim_##name(size_t at, size_t bytes) __asm__("__asan_" #name "N_noabort"); \
  SIM_UNSEEN void sim_##name(size_t at, size_t bytes) { sim_touch(at, bytes); } \
  SIM_TOUCH_OF(name, 1) SIM_TOUCH_OF(name, 2) SIM_TOUCH_OF(name, 4) SIM_TOUCH_OF(name, 8) SIM_TOUCH_OF(name, 16)
#define SIM_TOUCH_OF(name, bytes) \
  extern "C" SIM_OWN void sim_##name##bytes(size_t at) __asm__("__asan_" #name #bytes "_noabort"); \
  SIM_UNSEEN void sim_##name##bytes(size_t at) { sim_touch(at, bytes); }
SIM_TOUCH(load) SIM_TOUCH(store)
#ifdef SIM_WITHOUT_ASAN
#define SIM_NOTHING(name) \
  extern "C" SIM_OWN void sim_##name() __asm__("__asan_" #name); \
  void sim_##name() {}
SIM_NOTHING(handle_no_return) SIM_NOTHING(before_dynamic_init) SIM_NOTHING(after_dynamic_init)
#endif

// Where kernels that wait for each other look, or do what others may see: there those of parallel branches go on.
SIM_INLINE void sim_pause() { sim_services_at->pause(); }

// ---- threads together ----------------------------------------------------------------------------------------------

SIM_INLINE void __syncthreads() { sim_services_at->barrier(0); }
SIM_INLINE int __syncthreads_count(int v) { return (int)sim_services_at->barrier(v != 0); }
SIM_INLINE int __syncthreads_or(int v) { return sim_services_at->barrier(v != 0) != 0; }
SIM_INLINE int __syncthreads_and(int v) { return sim_services_at->barrier(v == 0) == 0; }
SIM_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { sim_services_at->meet(SIM_MEET_WARP, mask, 0); }
SIM_INLINE unsigned __activemask() { return 1u << sim_lane(); }
SIM_INLINE unsigned __ballot_sync(unsigned mask, int v) {
  const unsigned long long *all = sim_services_at->meet(SIM_MEET_VOTE, mask, v != 0);
  unsigned bits = 0;
  for (unsigned k = 0; k < 32; ++k)
    if (mask >> k & 1) bits |= (unsigned)all[k] << k;
  return bits;
}
SIM_INLINE int __any_sync(unsigned mask, int v) { return __ballot_sync(mask, v) != 0; }
SIM_INLINE int __all_sync(unsigned mask, int v) { return __ballot_sync(mask, v) == mask; }
// A lane that isn't in the mask brings nothing: reading it is an error that the mask itself brings to light.
template <typename T> static inline T sim_shuffle(unsigned mask, T v, unsigned from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles take 4 or 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  const unsigned long long *all = sim_services_at->meet(SIM_MEET_SHUFFLE, mask, bits);
  if (!(mask >> from & 1)) sim_services_at->stop("a shuffle reads a lane that isn't in its mask");
  __builtin_memcpy(&v, &all[from], sizeof v);
  return v;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
  return sim_shuffle(mask, v, (sim_lane() & ~((unsigned)width - 1)) + ((unsigned)lane & ((unsigned)width - 1)));
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const unsigned lane = sim_lane(), place = lane & ((unsigned)width - 1);
  return sim_shuffle(mask, v, place < by ? lane : lane - by);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32) {
  const unsigned lane = sim_lane(), place = lane & ((unsigned)width - 1);
  return sim_shuffle(mask, v, by >= (unsigned)width - place ? lane : lane + by);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const unsigned lane = sim_lane(), to = lane ^ (unsigned)bits;
  return sim_shuffle(mask, v, to >= (lane & ~((unsigned)width - 1)) + (unsigned)width ? lane : to);
}
SIM_INLINE void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  sim_pause();
}
SIM_INLINE void __threadfence_block() { __threadfence(); }
SIM_INLINE void __threadfence_system() { __threadfence(); }
SIM_INLINE void __nanosleep(unsigned) { sim_pause(); }
SIM_INLINE void __trap() { sim_services_at->stop("__trap()"); }

// nvcc's headers declare it, NVRTC doesn't: there sources do, and the linker alone knows this one by its name.
#ifndef __CUDACC_RTC__
extern "C" void cudaGraphSetConditional(unsigned long long handle, unsigned value);
#endif
extern "C" SIM_OWN void sim_condition(unsigned long long handle, unsigned value) __asm__("cudaGraphSetConditional");
void sim_condition(unsigned long long handle, unsigned value) {
  sim_services_at->set_conditional(handle, value);
  sim_pause();
}

// ---- atomics -------------------------------------------------------------------------------------------------------

#define SIM_ATOMIC(type, name, expression) \
  SIM_INLINE type name(type *at, type v) { \
    type old, next; \
    __atomic_load(at, &old, __ATOMIC_RELAXED); \
    do next = (expression); \
    while (!__atomic_compare_exchange(at, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
    sim_pause(); \
    return old; \
  } \
  SIM_INLINE type name##_system(type *at, type v) { return name(at, v); } \
  SIM_INLINE type name##_block(type *at, type v) { return name(at, v); }
#define SIM_ATOMIC_CAS(type) \
  SIM_INLINE type atomicCAS(type *at, type expected, type v) { \
    __atomic_compare_exchange(at, &expected, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    sim_pause(); \
    return expected; \
  } \
  SIM_INLINE type atomicCAS_system(type *at, type expected, type v) { return atomicCAS(at, expected, v); } \
  SIM_INLINE type atomicCAS_block(type *at, type expected, type v) { return atomicCAS(at, expected, v); }
#define SIM_ATOMICS(type) \
  SIM_ATOMIC(type, atomicExch, v) SIM_ATOMIC(type, atomicMin, old < v ? old : v) \
  SIM_ATOMIC(type, atomicMax, old > v ? old : v) SIM_ATOMIC(type, atomicAnd, old & v) \
  SIM_ATOMIC(type, atomicOr, old | v) SIM_ATOMIC(type, atomicXor, old ^ v) SIM_ATOMIC_CAS(type)
SIM_ATOMICS(int) SIM_ATOMICS(unsigned) SIM_ATOMICS(unsigned long long)
SIM_ATOMIC(long long, atomicMin, old < v ? old : v) SIM_ATOMIC(long long, atomicMax, old > v ? old : v)
SIM_ATOMIC_CAS(unsigned short)
SIM_ATOMIC(float, atomicExch, v)
SIM_ATOMIC(int, atomicAdd, (int)((unsigned)old + (unsigned)v))
SIM_ATOMIC(int, atomicSub, (int)((unsigned)old - (unsigned)v))
SIM_ATOMIC(unsigned, atomicAdd, old + v) SIM_ATOMIC(unsigned, atomicSub, old - v)
SIM_ATOMIC(unsigned, atomicInc, old >= v ? 0 : old + 1)
SIM_ATOMIC(unsigned, atomicDec, old == 0 || old > v ? v : old - 1)
SIM_ATOMIC(unsigned long long, atomicAdd, old + v)
SIM_ATOMIC(float, atomicAdd, old + v) SIM_ATOMIC(double, atomicAdd, old + v)

// ---- bits, loads ---------------------------------------------------------------------------------------------------

#define SIM_BITS(to, name, from) \
  SIM_INLINE to name(from v) { to u; __builtin_memcpy(&u, &v, sizeof u); return u; }
SIM_BITS(unsigned, __float_as_uint, float) SIM_BITS(int, __float_as_int, float)
SIM_BITS(float, __uint_as_float, unsigned) SIM_BITS(float, __int_as_float, int)
SIM_BITS(long long, __double_as_longlong, double) SIM_BITS(double, __longlong_as_double, long long)
#define SIM_OF_ONE(to, name, from, expression) \
  SIM_INLINE to name(from v) { return expression; }
#define SIM_OF_TWO(type, name, expression) \
  SIM_INLINE type name(type a, type b) { return expression; }
SIM_OF_ONE(int, __popc, unsigned, __builtin_popcount(v))
SIM_OF_ONE(int, __popcll, unsigned long long, __builtin_popcountll(v))
SIM_OF_ONE(int, __clz, int, v == 0 ? 32 : __builtin_clz((unsigned)v))
SIM_OF_ONE(int, __clzll, long long, v == 0 ? 64 : __builtin_clzll((unsigned long long)v))
SIM_OF_ONE(int, __ffs, int, __builtin_ffs(v)) SIM_OF_ONE(int, __ffsll, long long, __builtin_ffsll(v))
SIM_OF_TWO(unsigned, __umulhi, (unsigned)((unsigned long long)a * b >> 32))
SIM_INLINE unsigned __brev(unsigned v) {
  unsigned to = 0;
  for (int k = 0; k < 32; ++k) to |= (v >> k & 1) << (31 - k);
  return to;
}
#define SIM_LOAD(name) \
  template <typename T> static inline T name(const T *at) { return *at; }
SIM_LOAD(__ldg) SIM_LOAD(__ldcg) SIM_LOAD(__ldca) SIM_LOAD(__ldcs) SIM_LOAD(__ldlu)
template <typename T> static inline T __ldcv(const T *at) {
  sim_pause();
  return *at;
}
#define SIM_STORE(name) \
  template <typename T> static inline void name(T *at, T v) { *at = v; }
SIM_STORE(__stwb) SIM_STORE(__stcg) SIM_STORE(__stcs) SIM_STORE(__stwt)
SIM_INLINE long long sim_ticks() {
  static long long ticks;
  sim_pause();
  return ++ticks;
}
SIM_INLINE long long clock64() { return sim_ticks(); }
SIM_INLINE long clock() { return (long)clock64(); }

// ---- mathematics ---------------------------------------------------------------------------------------------------
// As the C library declares it, so that a source may include <math.h>; without headers also the names of C++.

#define SIM_MATH_1(X) \
  X(sqrt) X(cbrt) X(fabs) X(floor) X(ceil) X(trunc) X(round) X(rint) X(nearbyint) X(exp) X(exp2) X(expm1) X(log) \
  X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) \
  X(atanh) X(erf) X(erfc) X(lgamma) X(tgamma)
#define SIM_MATH_2(X) X(pow) X(fmod) X(atan2) X(hypot) X(fmin) X(fmax) X(copysign) X(remainder) X(fdim) X(nextafter)
extern "C" {
#define SIM_DECLARE_1(name) double name(double) noexcept; float name##f(float) noexcept;
#define SIM_DECLARE_2(name) double name(double, double) noexcept; float name##f(float, float) noexcept;
SIM_MATH_1(SIM_DECLARE_1)
SIM_MATH_2(SIM_DECLARE_2)
double fma(double, double, double) noexcept, ldexp(double, int) noexcept, frexp(double, int *) noexcept;
float fmaf(float, float, float) noexcept, ldexpf(float, int) noexcept, frexpf(float, int *) noexcept;
double modf(double, double *) noexcept;
float modff(float, float *) noexcept;
long lrint(double) noexcept, lrintf(float) noexcept, labs(long) noexcept;
int abs(int) noexcept;
long long llabs(long long) noexcept;
int printf(const char *, ...);
void *memcpy(void *__restrict__, const void *__restrict__, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
}
SIM_OF_ONE(float, rsqrtf, float, 1.0f / __builtin_sqrtf(v)) SIM_OF_ONE(double, rsqrt, double, 1.0 / __builtin_sqrt(v))
SIM_OF_ONE(float, __saturatef, float, v >= 1.0f ? 1.0f : v > 0.0f ? v : 0.0f)
SIM_OF_ONE(float, __fsqrt_rn, float, __builtin_sqrtf(v)) SIM_OF_ONE(float, __frcp_rn, float, 1.0f / v)
SIM_OF_ONE(float, __expf, float, __builtin_expf(v)) SIM_OF_ONE(float, __logf, float, __builtin_logf(v))
SIM_OF_ONE(float, __sinf, float, __builtin_sinf(v)) SIM_OF_ONE(float, __cosf, float, __builtin_cosf(v))
SIM_OF_ONE(int, __float2int_rn, float, (int)__builtin_lrintf(v)) SIM_OF_ONE(float, __int2float_rn, int, (float)v)
SIM_OF_TWO(float, __fadd_rn, a + b) SIM_OF_TWO(float, __fsub_rn, a - b) SIM_OF_TWO(float, __fmul_rn, a * b)
SIM_OF_TWO(float, __fdiv_rn, a / b) SIM_OF_TWO(float, __fdividef, a / b)
SIM_OF_TWO(float, __powf, __builtin_powf(a, b))
SIM_OF_TWO(double, __dadd_rn, a + b) SIM_OF_TWO(double, __dmul_rn, a * b)
SIM_INLINE float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#ifdef __CUDACC_RTC__
#define SIM_OVERLOAD_1(name) SIM_OF_ONE(float, name, float, name##f(v))
#define SIM_OVERLOAD_2(name) SIM_OF_TWO(float, name, name##f(a, b))
SIM_MATH_1(SIM_OVERLOAD_1)
SIM_MATH_2(SIM_OVERLOAD_2)
SIM_INLINE float fma(float a, float b, float c) { return fmaf(a, b, c); }
SIM_OF_ONE(long, abs, long, labs(v)) SIM_OF_ONE(long long, abs, long long, llabs(v))
SIM_OF_ONE(float, abs, float, fabsf(v)) SIM_OF_ONE(double, abs, double, fabs(v))
#define SIM_IS(name) \
  SIM_OF_ONE(bool, name, float, __builtin_##name(v)) SIM_OF_ONE(bool, name, double, __builtin_##name(v))
SIM_IS(isnan) SIM_IS(isinf) SIM_IS(isfinite) SIM_IS(signbit)
#define SIM_MIN_MAX(type) SIM_OF_TWO(type, min, a < b ? a : b) SIM_OF_TWO(type, max, a > b ? a : b)
SIM_MIN_MAX(int) SIM_MIN_MAX(unsigned) SIM_MIN_MAX(long) SIM_MIN_MAX(unsigned long) SIM_MIN_MAX(long long)
SIM_MIN_MAX(unsigned long long) SIM_MIN_MAX(float) SIM_MIN_MAX(double)
#define assert(condition) ((condition) ? (void)0 : sim_services_at->stop("assert(" #condition ")"))
#endif

// ---- kernels, for what translate.c writes -------------------------------------------------------------------------

// A parameter stands at the first place behind the one before it that suits it.
template <typename... T> struct sim_layout {
  static constexpr unsigned count = sizeof...(T);
  unsigned offsets[count + 1] = {}, bytes[count + 1] = {};
  constexpr sim_layout() {
    const unsigned sizes[] = {(unsigned)sizeof(T)..., 0}, alignments[] = {(unsigned)alignof(T)..., 1};
    unsigned at = 0;
    for (unsigned k = 0; k < count; ++k) {
      at = (at + alignments[k] - 1) / alignments[k] * alignments[k];
      offsets[k] = at;
      bytes[k] = sizes[k];
      at += sizes[k];
    }
  }
};
template <unsigned... K> struct sim_numbers {};
template <unsigned N, unsigned... K> struct sim_up_to : sim_up_to<N - 1, N - 1, K...> {};
template <unsigned... K> struct sim_up_to<0, K...> { typedef sim_numbers<K...> numbers; };

template <auto Function> struct sim_caller;
template <typename... T, void (*Function)(T...)> struct sim_caller<Function> {
  static constexpr sim_layout<T...> layout{};
  template <unsigned... K> SIM_UNSEEN static void spread(const char *at, sim_numbers<K...>) {
    Function(*reinterpret_cast<const T *>(at + layout.offsets[K])...);
  }
  static void call(const void *at) {
    spread(static_cast<const char *>(at), typename sim_up_to<sizeof...(T)>::numbers{});
  }
  static sim_code_kernel kernel(const char *name, unsigned threads = 1024, ...) {
    return {name, reinterpret_cast<void (*)()>(Function), call, sizeof...(T), layout.offsets, layout.bytes, threads};
  }
};
