/* Words for gk's own code on devices: one text for nvcc, NVRTC and hipcc, and for C compilers, with a preamble that has
 * CUDA's words for the host. */
#ifndef GKI_LOWER_DEVICE_H
#define GKI_LOWER_DEVICE_H
#ifdef __cplusplus
#define GKI_ENTRY extern "C" __global__ void
#define GKI_CALLED extern "C" __device__ __noinline__ /* not static: nvcc would name it anew each time */
#define GKI_ZERO {} /* hipcc refuses {0} for its vectors */
#else
#define GKI_ENTRY __global__ void
#define GKI_CALLED static __device__ __noinline__
#define GKI_ZERO {0}
#endif
#if defined(__CUDACC__) || defined(__HIPCC__) || defined(__HIPCC_RTC__)
#define GKI_SMALL _Pragma("unroll 1") /* code that isn't in the instruction cache has to be waited for */
#else
#define GKI_SMALL
#endif
#define GKI_INLINE static __device__ __forceinline__
#define GKI_LOOK(type, at) (*(const volatile type *)(at))
#endif
