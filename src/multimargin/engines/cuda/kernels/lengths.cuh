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

constexpr int LENGTH_STEPS = 8;

template <class Real>
struct alignas(16) Four {
  Real x[4];
};

// What is known of a row of Q.
template <class Real>
struct alignas(4 * sizeof(Real)) RowFacts {
  Real slope, bound, sum, none;  // p, sum_c |Q_bc|, sum_c Q_bc
};

template <class Real, int MOST>
struct LengthRoom {
  alignas(16) Real t[MOST], v[MOST];
  Two<Real> parts[32];
};

// A row of Q has MOST numbers, a multiple of 8; those beside the steps are 0. Two threads have it in their registers.
template <class Real, int MOST>
__device__ __forceinline__ void lengths(const Real* Q, const RowFacts<Real>* facts, int count, LengthRoom<Real, MOST>& room) {
  constexpr int PARTS = MOST / 8;
  const int row = threadIdx.x >> 1, half = threadIdx.x & 1;
  const bool mine = row < count, first = mine && !half;
  Four<Real> q[PARTS];
  RowFacts<Real> known{};
#pragma unroll
  for (int k = 0; k < PARTS; ++k) q[k] = Four<Real>{};
  if (mine) {
    known = fresh(facts + row);
#pragma unroll
    for (int k = 0; k < PARTS; ++k)
      if (8 * k < count) q[k] = fresh((const Four<Real>*)(Q + row * MOST) + 2 * k + half);
  }
  const Real p = known.slope;
  const Two<Real> all = sums_of_block(first ? Two<Real>{known.sum, p} : Two<Real>{}, room.parts);
  const Real curvature = all.one, total = all.other;
  const Real common = curvature > total ? total / curvature : Real(1);
  const Real rate = known.bound > Real(0) ? Real(1) / known.bound : Real(0);
  Real t = common, before = common, v = common, product = Real(0);
  for (int step = 0;; ++step) {
    if (!half && row < MOST) room.v[row] = mine ? v : Real(0);
    __syncthreads();
    product = Real(0);
    if (mine) {
#pragma unroll
      for (int k = 0; k < PARTS; ++k) {
        const Four<Real> b = ((const Four<Real>*)room.v)[2 * k + half];
        product += q[k].x[0] * b.x[0] + q[k].x[1] * b.x[1] + q[k].x[2] * b.x[2] + q[k].x[3] * b.x[3];
      }
    }
    product += __shfl_xor_sync(~0u, product, 1);
    __syncthreads();
    if (step == LENGTH_STEPS) break;
    t = v + (p - product) * rate;
    t = t < Real(0) ? Real(0) : t > Real(1) ? Real(1) : t;
    v = step + 1 < LENGTH_STEPS ? t + Real(step) / Real(step + 3) * (t - before) : t;
    before = t;
  }
  const Real value = sums_of_block(Two<Real>{first ? t * (Real(0.5) * product - p) : Real(0), Real(0)}, room.parts).one;
  const bool better = value <= common * (Real(0.5) * common * curvature - total);
  if (first) room.t[row] = better ? t : common;
  __syncthreads();
}

}  // namespace multimargin
