// How far to go along each of some steps:
//
//     minimise  1/2 <t, Q t> - <p, t>  over 0 <= t <= 1,    Q_bc = <D_b, (K + R) D_c>,  p_b = -<G, D_b>
//
// Points between a sample's old and new row are feasible, so every t is. Q is positive semidefinite, and diag(sum_c |Q_bc|)
// bounds it from above. So accelerated projected gradient steps of that scale descend (Nesterov). A few of them do: the
// answer need not be exact. If it is worse than the best common length of all steps, that is taken.
#pragma once
#include "grid.cuh"

namespace multimargin {

constexpr int LENGTH_STEPS = 10;

// Numbers in shared memory that `lengths` needs beside Q.
template <class Real, int MOST>
struct LengthRoom {
  alignas(16) Real t[MOST], v[MOST];
  Real parts[32];
};

template <class Real>
struct alignas(16) Four {
  Real x[4];
};

// Values per row of Q: a multiple of 4, but not of 8, so that rows begin in different banks.
__device__ __forceinline__ int pitch_of(int count) { return 4 * ((count + 3) / 4 | 1); }

// Entries beside the first `count` of a row of Q are 0. Two threads have a row; `slope` is p of the thread's row.
template <class Real, int MOST>
__device__ __forceinline__ void lengths(const Real* Q, int count, Real slope, LengthRoom<Real, MOST>& room) {
  const int pitch = pitch_of(count), row = threadIdx.x >> 1, half = threadIdx.x & 1;
  const bool mine = row < count, first = mine && !half;
  const Real* q = Q + row * pitch;
  Real bound = Real(0), sum = Real(0);
  if (mine)
    for (int c = half; c < count; c += 2) bound += q[c] < Real(0) ? -q[c] : q[c], sum += q[c];
  bound += __shfl_xor_sync(~0u, bound, 1);
  const Real p = mine ? slope : Real(0);
  const Real curvature = sum_of_block(sum, room.parts), total = sum_of_block(first ? p : Real(0), room.parts);
  const Real common = curvature > total ? total / curvature : Real(1);
  const Real rate = bound > Real(0) ? Real(1) / bound : Real(0);
  Real t = common, before = common, v = common, product = Real(0);
  for (int step = 0;; ++step) {
    if (first) room.v[row] = v;
    if (!mine && !half && row < MOST) room.v[row] = Real(0);
    __syncthreads();
    product = Real(0);
    if (mine)
#pragma unroll 4
      for (int c = 4 * half; c < count; c += 8) {
        const Four<Real> a = *(const Four<Real>*)(q + c), b = *(const Four<Real>*)(room.v + c);
        product += a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2] + a.x[3] * b.x[3];
      }
    product += __shfl_xor_sync(~0u, product, 1);
    __syncthreads();
    if (step == LENGTH_STEPS) break;
    t = v + (p - product) * rate;
    t = t < Real(0) ? Real(0) : t > Real(1) ? Real(1) : t;
    v = step + 1 < LENGTH_STEPS ? t + Real(step) / Real(step + 3) * (t - before) : t;
    before = t;
  }
  const Real value = sum_of_block(first ? t * (Real(0.5) * product - p) : Real(0), room.parts);
  const bool better = value <= common * (Real(0.5) * common * curvature - total);
  if (first) room.t[row] = better ? t : common;
  __syncthreads();
}

}  // namespace multimargin
