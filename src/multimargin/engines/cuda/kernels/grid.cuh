// What all blocks of a persistent kernel share: they run at the same time, one per multiprocessor.
#pragma once

namespace multimargin {

// A barrier of all blocks in two halves: what a block does between `arrive` and `wait` it does while others come.
// `arrived` starts at 0; `target` is this block's count of arrivals so far.
__device__ __forceinline__ void arrive(unsigned* arrived, unsigned& target) {
  target += gridDim.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
  }
}

__device__ __forceinline__ void wait(unsigned* arrived, unsigned target) {
  if (threadIdx.x == 0) {
    while (*(volatile unsigned*)arrived < target) {
    }
    __threadfence();
  }
  __syncthreads();
}

__device__ __forceinline__ void meet(unsigned* arrived, unsigned& target) {
  arrive(arrived, target);
  wait(arrived, target);
}

// Reads past the first-level cache: another multiprocessor has written it.
template <class T>
__device__ __forceinline__ T fresh(const T* at) {
  T copy;
#pragma unroll
  for (int k = 0; k < (int)(sizeof(T) / sizeof(int4)); ++k) ((int4*)&copy)[k] = __ldcg((const int4*)at + k);
  return copy;
}

template <class T>
struct Ranked {
  T rank;
  int at;
};

constexpr double NOBODY = -3e38;  // a rank below all others

template <class T>
__device__ __forceinline__ Ranked<T> better(Ranked<T> a, Ranked<T> b) {
  return b.rank > a.rank || (b.rank == a.rank && b.at < a.at) ? b : a;
}

template <class T>
__device__ __forceinline__ Ranked<T> best_of_warp(Ranked<T> mine) {
  for (int o = 16; o; o >>= 1)
    mine = better(mine, Ranked<T>{__shfl_xor_sync(~0u, mine.rank, o), __shfl_xor_sync(~0u, mine.at, o)});
  return mine;
}

// The best of all threads, known to all of them. `shared` has 32 places.
template <class T>
__device__ __forceinline__ Ranked<T> best_of_block(Ranked<T> mine, Ranked<T>* shared) {
  mine = best_of_warp(mine);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = mine;
  __syncthreads();
  const int lane = threadIdx.x & 31;
  mine = best_of_warp(lane < (blockDim.x >> 5) ? shared[lane] : Ranked<T>{T(NOBODY), 0x7fffffff});
  __syncthreads();
  return mine;
}

template <class T>
struct Two {
  T one, other;
};

template <class T>
__device__ __forceinline__ Two<T> sums_of_warp(Two<T> mine) {
  for (int o = 16; o; o >>= 1) {
    mine.one += __shfl_xor_sync(~0u, mine.one, o);
    mine.other += __shfl_xor_sync(~0u, mine.other, o);
  }
  return mine;
}

// The sums over all threads, known to all of them. `shared` has 32 places.
template <class T>
__device__ __forceinline__ Two<T> sums_of_block(Two<T> mine, Two<T>* shared) {
  mine = sums_of_warp(mine);
  if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = mine;
  __syncthreads();
  const int lane = threadIdx.x & 31;
  mine = sums_of_warp(lane < (blockDim.x >> 5) ? shared[lane] : Two<T>{T(0), T(0)});
  __syncthreads();
  return mine;
}

// Kernel values as they are stored: 16-bit fixed-point numbers of [0, 1], or floating-point numbers.
// A conversion by arithmetic, which is faster than an instruction for it: 2^23 + k has k in its last bits.
__device__ __forceinline__ float as_number(unsigned short k) {
  constexpr float unit = 1.f / 65535.f;
  return fmaf(__uint_as_float(0x4B000000u | k), unit, -8388608.f * unit);
}
__device__ __forceinline__ float as_number(float k) { return k; }
__device__ __forceinline__ double as_number(double k) { return k; }

}  // namespace multimargin
