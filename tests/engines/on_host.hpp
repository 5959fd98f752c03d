// Runs a CUDA kernel on the host: every thread is a fiber, and a barrier hands over to the next one.
//
// It knows what the kernels of engines/cuda use: barriers of a block, exchanges within a warp, atomic additions, and
// barriers of all blocks by spinning on a counter (``pause`` within the loop).
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct Place {
  int x;
};

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  Place thread, block;
  bool done;
};

struct Gathering {  // of the threads of a block, or of the lanes of a warp
  int came = 0;
  long long turns = 0;
};

inline std::vector<Fiber> fibers;
inline std::vector<Gathering> of_blocks, of_warps;
inline std::vector<std::vector<char>> shared_of_blocks;
inline std::vector<std::vector<double>> of_lanes;  // one number per lane of each warp
inline ucontext_t scheduler;
inline std::function<void()> work;
inline int current;
inline Place blockDim, gridDim;
#define threadIdx (fibers[current].thread)
#define blockIdx (fibers[current].block)

inline void pause() { swapcontext(&fibers[current].context, &scheduler); }

inline void gather(Gathering& all, int size) {
  const long long turn = all.turns;
  if (++all.came == size) {
    all.came = 0, ++all.turns;
    return;
  }
  while (all.turns == turn) pause();
}

inline void __syncthreads() { gather(of_blocks[blockIdx.x], blockDim.x); }
inline void __threadfence() {}
inline unsigned atomicAdd(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at += value;
  return before;
}
template <class T>
T __shfl_xor_sync(unsigned, T value, int with) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  of_lanes[warp][lane] = (double)value;
  gather(of_warps[warp], 32);
  const T other = (T)of_lanes[warp][lane ^ with];
  gather(of_warps[warp], 32);
  return other;
}
struct alignas(16) int4 {
  int x, y, z, w;
};
template <class T>
T __ldcg(const T* at) {
  return *at;
}
inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
using std::max;
using std::min;

inline char* shared_memory() { return shared_of_blocks[blockIdx.x].data(); }

inline void start() {
  work();
  fibers[current].done = true;
  pause();
}

// Runs ``what`` in ``blocks`` blocks of ``threads`` threads (a multiple of 32).
inline void launch(int blocks, int threads, std::size_t shared_bytes, std::function<void()> what) {
  work = what, blockDim = {threads}, gridDim = {blocks};
  of_blocks.assign(blocks, {}), of_warps.assign(blocks * threads / 32, {});
  of_lanes.assign(blocks * threads / 32, std::vector<double>(32));
  shared_of_blocks.assign(blocks, std::vector<char>(shared_bytes));
  fibers = std::vector<Fiber>(blocks * threads);
  for (int k = 0; k < blocks * threads; ++k) {
    Fiber& fiber = fibers[k];
    fiber.thread = {k % threads}, fiber.block = {k / threads}, fiber.done = false, fiber.stack.resize(1 << 16);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data(), fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
  }
  for (bool left = true; left;) {
    left = false;
    for (current = 0; current < (int)fibers.size(); ++current)
      if (!fibers[current].done) swapcontext(&scheduler, &fibers[current].context), left = true;
  }
}
