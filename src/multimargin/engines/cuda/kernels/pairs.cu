// Batched greedy descent of c-svc, whose samples move in pairs so that the sum of alpha stays.
//
//     minimise  1/2 <d, K d> + <G, d>  over d = alpha - alpha_old,  0 <= Y_i alpha_i <= C_i,  sum_i d_i = 0
//
// An iteration: each block takes two samples among its rows: the one with the largest -G that can grow, and the one
// with the largest G that can shrink. The k-th largest of the one kind and the k-th largest of the other are a pair,
// as long as the dual falls along it (Serafini, Zanghirati & Zanni's (5)). Each pair goes to its own minimum within its
// bounds, and all pairs together go t times that, as in descent.cu.
//
// Compiled with REAL (of alpha and G) and VALUE (of K).
#include "grid.cuh"

namespace multimargin {

using Real = REAL;
using Value = VALUE;

constexpr int MOST_BLOCKS = 256;
using Best = Ranked<Real>;

struct Candidate {
  Real pull;
  int at;
  Real room;
};

struct Shared {
  Best best[32];
  Real sums[32];
  Candidate side[2][MOST_BLOCKS];  // as the blocks have told them: growing, shrinking
  int at[2][MOST_BLOCKS];          // the samples of each pair
  Real step[MOST_BLOCKS];
  int count;
  Real length;
};

struct Problem {
  const Value* K;
  long long row;
  const Real* diagonal;
  const int* y;
  const Real* C;
  Real* alpha;
  Real* G;
  Real margin;

  __device__ Real kernel(int i, int j) const { return Real(as_number(K[(long long)i * row + j])); }
  __device__ Real room(int i, bool grows) const {
    const Real a = alpha[i], high = y[i] == 1 ? C[i] : Real(0), low = y[i] == 1 ? Real(0) : -C[i];
    return grows ? high - a : a - low;
  }
};

__device__ Best strongest(const Problem& p, int first, int last, bool grows) {
  Best best{Real(NOBODY), 0x7fffffff};
  for (int i = first + threadIdx.x; i < last; i += blockDim.x)
    if (p.room(i, grows) > p.margin * p.C[i]) best = better(best, Best{grows ? -p.G[i] : p.G[i], i});
  return best;
}

// The place of candidate c among those of its side, the strongest first.
__device__ int place(const Candidate* side, int c, int blocks) {
  int before = 0;
  for (int k = 0; k < blocks; ++k)
    before += side[k].pull > side[c].pull || (side[k].pull == side[c].pull && k < c);
  return before;
}

// The minimum of pair k within its bounds.
__device__ Real minimum(const Problem& p, const Candidate& up, const Candidate& down, Real tol) {
  const Real pull = up.pull + down.pull;
  if (up.at < 0 || down.at < 0 || up.at == down.at || !(pull > Real(2) * tol)) return 0;
  const Real bend = p.diagonal[up.at] + p.diagonal[down.at] - Real(2) * p.kernel(up.at, down.at);
  const Real room = up.room < down.room ? up.room : down.room, least = Real(1e-12) * p.diagonal[up.at];
  const Real step = pull / (bend > least ? bend : least);
  return step < room ? step : room;
}

extern "C" __global__ void descend(const Value* K, long long row, const Real* diagonal, const int* y, const Real* C, int q,
                                   Real* alpha, Real* G, double margin, int rows, Candidate* candidates, Real* bends,
                                   unsigned* arrived, double tolerance, int most, double* told) {
  __shared__ Shared S;
  const Problem p{K, row, diagonal, y, C, alpha, G, (Real)margin};
  const int b = blockIdx.x, blocks = gridDim.x, t = threadIdx.x;
  const int first = min(q, b * rows), last = min(q, first + rows);
  unsigned target = 0;
  int done = 0;
  const Real tol = (Real)tolerance;
  Real worst = Real(0);
  for (;; ++done) {
    Candidate* told_by = candidates + (done & 1) * 2 * blocks;
    Real* bent = bends + (done & 1) * blocks;
    for (int side = 0; side < 2; ++side) {
      const Best best = best_of_block(strongest(p, first, last, side == 0), S.best);
      const bool any = best.rank > Real(0.5 * NOBODY);
      if (t == 0) told_by[side * blocks + b] = {best.rank, any ? best.at : -1, any ? p.room(best.at, side == 0) : Real(0)};
    }
    meet(arrived, target);
    for (int c = t; c < 2 * blocks; c += blockDim.x) {
      Candidate& mine = S.side[c / blocks][c % blocks];
      mine.pull = __ldcg(&told_by[c].pull), mine.at = __ldcg(&told_by[c].at), mine.room = __ldcg(&told_by[c].room);
    }
    __syncthreads();
    int of[2] = {-1, -1};  // the candidates' places in the order of their sides
    if (t < blocks)
      for (int side = 0; side < 2; ++side) of[side] = place(S.side[side], t, blocks);
    __syncthreads();
    if (t < blocks)
      for (int side = 0; side < 2; ++side) S.at[side][of[side]] = t;
    __syncthreads();
    worst = Real(0.5) * (S.side[0][S.at[0][0]].pull + S.side[1][S.at[1][0]].pull);
    if (!(worst > tol) || done >= most) break;
    Candidate up{}, down{};
    if (t < blocks) {
      up = S.side[0][S.at[0][t]], down = S.side[1][S.at[1][t]];
      S.step[t] = minimum(p, up, down, tol);
    }
    __syncthreads();
    if (t < blocks) S.at[0][t] = up.at, S.at[1][t] = down.at;
    Real slope = t < blocks && S.step[t] != Real(0) ? S.step[t] * (up.pull + down.pull) : Real(0);
    slope = sum_of_block(slope, S.sums);
    if (!(slope > Real(0))) break;  // only a sample with itself is left
    Real bend = Real(0);
    if (t < blocks && S.step[t] != Real(0) && S.step[b] != Real(0)) {
      const int i = S.at[0][b], j = S.at[1][b], k = S.at[0][t], l = S.at[1][t];
      auto value = [&](int one, int other) { return one == other ? p.diagonal[one] : p.kernel(one, other); };
      bend = S.step[b] * S.step[t] * (value(i, k) - value(i, l) - value(j, k) + value(j, l));
    }
    bend = sum_of_block(bend, S.sums);
    if (t == 0) {
      bent[b] = bend;
      int count = 0;  // pairs that move come first: pulls fall, and so do none after the first that is too weak
      for (int c = 0; c < blocks; ++c)
        if (S.step[c] != Real(0)) count = c + 1;
      S.count = count;
    }
    meet(arrived, target);
    Real curvature = Real(0);
    for (int c = t; c < blocks; c += blockDim.x) curvature += __ldcg(bent + c);
    curvature = sum_of_block(curvature, S.sums);
    const Real length = curvature > slope ? slope / curvature : Real(1);
    for (int i = first + t; i < last; i += blockDim.x) {
      Real change = Real(0);
#pragma unroll 8
      for (int c = 0; c < S.count; ++c)
        if (S.at[0][c] >= 0 && S.at[1][c] >= 0) change += S.step[c] * (p.kernel(S.at[0][c], i) - p.kernel(S.at[1][c], i));
      p.G[i] += length * change;
    }
    if (t == 0) {
      for (int c = 0; c < S.count; ++c) {
        const Real step = length * S.step[c];
        if (step == Real(0)) continue;
        for (int side = 0; side < 2; ++side) {
          const int i = S.at[side][c];
          if (i < first || i >= last) continue;
          const Real high = y[i] == 1 ? C[i] : Real(0), low = high - C[i];
          Real a = alpha[i] + (side ? -step : step);
          if (a < low + p.margin * C[i]) a = low;
          if (a > high - p.margin * C[i]) a = high;
          alpha[i] = a;
        }
      }
    }
    __syncthreads();
  }
  if (b == 0 && t == 0) told[0] = done, told[1] = worst;
}

}  // namespace multimargin
