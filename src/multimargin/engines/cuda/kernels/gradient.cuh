// The gradient of a block's own rows: G += sum_c K[at_c] D_c over the steps D of listed samples.
//
// A thread has `NEXT` rows next to each other, so that it reads several kernel values at a time. If there are more
// threads than rows need, they share the steps, and their sums meet in shared memory.
#pragma once
#include "grid.cuh"

namespace multimargin {

template <class Value, int NEXT>
struct alignas(NEXT * sizeof(Value)) Values {
  Value k[NEXT];
};

// Some of the rows from `first` to `last`, as many as the threads can take at a time.
template <int NEXT>
struct Tile {
  int first, last;
  int group, groups, part, row;

  __device__ __forceinline__ Tile(int from, int to) : first(from), last(to) {
    const int items = (to - from + NEXT - 1) / NEXT;
    group = min((int)blockDim.x, max(32, (items + 31) / 32 * 32)), groups = blockDim.x / group, part = threadIdx.x / group;
    row = from + NEXT * (threadIdx.x - part * group);
  }
  __device__ __forceinline__ bool mine() const { return part < groups && row < last; }
  __device__ __forceinline__ void next() { first += NEXT * group, row += NEXT * group; }
};

// sums[n][r] = sum_c (K[at_c][row + n] + offset) steps[c][r] over this thread's share of the `count` steps.
template <int ROWS_AT_ONCE, class Value, class Real, int NEXT, int WIDTH>
__device__ __forceinline__ void accumulate(const Value* K, long long row, Real offset, const int* at, const Real* steps,
                                           int count, const Tile<NEXT>& tile, Real (&sums)[NEXT][WIDTH]) {
#pragma unroll
  for (int n = 0; n < NEXT; ++n)
#pragma unroll
    for (int r = 0; r < WIDTH; ++r) sums[n][r] = Real(0);
  if (!tile.mine()) return;
  const int low = count * tile.part / tile.groups, high = count * (tile.part + 1) / tile.groups;
#pragma unroll ROWS_AT_ONCE
  for (int c = low; c < high; ++c) {
    const auto k = *(const Values<Value, NEXT>*)(K + at[c] * row + tile.row);
    const Real* d = steps + c * WIDTH;
#pragma unroll
    for (int n = 0; n < NEXT; ++n) {
      const Real value = Real(as_number(k.k[n])) + offset;
#pragma unroll
      for (int r = 0; r < WIDTH; ++r) sums[n][r] += value * d[r];
    }
  }
}

// G[r][row] += these sums, for the first `many` classes. `shared` has blockDim * NEXT * WIDTH numbers.
template <class Real, int NEXT, int WIDTH>
__device__ __forceinline__ void apply(Real* G, long long stride, const Tile<NEXT>& tile, Real (&sums)[NEXT][WIDTH], int many,
                                      Real* shared) {
  if (tile.first >= tile.last) return;
  if (tile.groups == 1) {
    if (!tile.mine()) return;
#pragma unroll
    for (int r = 0; r < WIDTH; ++r)
#pragma unroll
      for (int n = 0; n < NEXT; ++n)
        if (r < many && tile.row + n < tile.last) G[r * stride + tile.row + n] += sums[n][r];
    return;
  }
  const int wide = NEXT * tile.group, rows = min(wide, tile.last - tile.first);  // shared[part][r][row]
  if (tile.mine()) {
#pragma unroll
    for (int r = 0; r < WIDTH; ++r) {
      Values<Real, NEXT> together;
#pragma unroll
      for (int n = 0; n < NEXT; ++n) together.k[n] = sums[n][r];
      *(Values<Real, NEXT>*)(shared + (tile.part * WIDTH + r) * wide + tile.row - tile.first) = together;
    }
  }
  __syncthreads();
  const int step = max(1, (int)blockDim.x / rows);  // classes at a time, if there are more threads than rows
  for (int at = threadIdx.x; at < rows * step; at += blockDim.x) {
    const int row = at % rows, begin = at / rows;
    Real* here = G + tile.first + row;
#pragma unroll 4
    for (int r = begin; r < many; r += step) {
      Real sum = here[r * stride];
      for (int g = 0; g < tile.groups; ++g) sum += shared[(g * WIDTH + r) * wide + row];
      here[r * stride] = sum;
    }
  }
}

}  // namespace multimargin
