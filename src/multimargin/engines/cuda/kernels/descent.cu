// Batched greedy descent on one working set, for every machine but c-svc.
//
//     minimise  1/2 <D, (K + R) D> + <G, D>  over D = alpha - alpha_old,  every alpha_i feasible
//
// An iteration: each block takes the sample among its rows with which the dual would fall most by one move of one
// variable, and solves that sample exactly (machines.cuh). All blocks together then go the step D of these samples
// times t, the exact minimiser along it, but no more than 1:
//
//     t = min(1, -<G, D> / <D, (K + R) D>)
//
// Variables v, G and K are those of the working set; V and G are changed in place. The kernel ends if no violation is
// above `tol`, or after `most` iterations, so that the host can look at its clock and its signals.
//
// Compiled with MACHINE, CLASSES, REAL (of V and G), VALUE (of K), CHUNK (classes at a time, a multiple of 4) and UNROLL
// (rows of K that a thread reads at the same time).
#include "grid.cuh"
#include "machines.cuh"

namespace multimargin {

using Real = REAL;
using Value = VALUE;
using Kind = Traits<MACHINE>;

constexpr int MOST_BLOCKS = 256, ROWS_AT_ONCE = UNROLL, WIDE = (CLASSES + CHUNK - 1) / CHUNK * CHUNK;
using Best = Ranked<Real>;

// What a block tells the others: the head of its step. The changes of alpha stand apart.
struct Head {
  Real slope, curvature;  // -<G_i, D_i>; K_ii |D_i|^2, 0 if the sample does not move
  Real psi;
  int at;
};

struct Shared {
  Best best[32];
  Real parts[32];
  int at[MOST_BLOCKS];         // the samples that move
  int active[MOST_BLOCKS];     // their blocks
  int own;                     // the place of this block among them, or -1
  alignas(16) Real steps[MOST_BLOCKS * CHUNK];
  alignas(16) Real sums[1];    // of the threads of one block: see ``update``
};

struct Problem {
  const Value* K;
  long long row;  // values per row of K
  Real offset;    // added to every kernel value
  const Real* diagonal;  // of K + R, offset included
  const Real* ridge;     // R, or null
  const int* y;
  const Real* C;
  long long stride;  // between classes of V and G
  Real* V;
  Real* G;
  Real margin;  // share of C below which a variable is zero
};

// What all warps know of an iteration, each by itself.
struct Round {
  int count;  // samples that move
  Real slope, worst;
};

__device__ __forceinline__ Sample<MACHINE, Real> sample_of(const Problem& p, int i) {
  return {p.V + i, p.G + i, p.stride, CLASSES, p.y[i], p.C[i]};
}

// The row with the largest gain among the own ones that violate; else one with a negative rank.
__device__ __forceinline__ Best choose(const Problem& p, int first, int last, Real tol) {
  Best best{Real(NOBODY), 0x7fffffff};
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
    const Look<Real> seen = look(sample_of(p, i), p.diagonal[i], p.margin, OneLane{});
    const Real rank = seen.psi > tol ? seen.gain : Real(-1) / (Real(1) + seen.psi);
    best = better(best, Best{rank, i});
  }
  return best;
}

// One warp solves the sample, and tells all blocks the change of alpha and of v.
__device__ __forceinline__ void solve(const Problem& p, int i, Real tol, Real* steps, Real* own, Head* head) {
  const Warp warp{(int)threadIdx.x};
  const Sample<MACHINE, Real> s = sample_of(p, i);
  const Real K = p.diagonal[i];
  const Look<Real> seen = look(s, K, p.margin, warp);
  const bool moves = seen.psi > tol;
  const Solver<MACHINE, Real, Warp> solver(s, K, warp);
  Real sum = Real(0), reference = s.gradient(s.y);
  MM_UNROLL
  for (int r = warp.lane; r < CLASSES; r += 32) {
    const Real change = moves ? solver.solution(r) - s.value(r) : Real(0);
    own[r] = change;
    sum += change;
    reference = larger(reference, s.gradient(r));
  }
  sum = Kind::simplex ? Real(0) : warp.sum(sum);
  // Rows of D sum to zero, so any reference gives the same slope. The best one for rounding is close to the others.
  reference = Kind::simplex ? warp.max(reference) : Kind::coupled ? s.gradient(s.y) : Real(0);
  Real slope = Real(0), square = Real(0);
  MM_UNROLL
  for (int r = warp.lane; r < WIDE; r += 32) {
    const Real change = r < CLASSES ? coefficient_change<MACHINE>(own[r], sum, r, s.y, CLASSES) : Real(0);
    steps[r] = change;
    if (r < CLASSES) slope -= (s.gradient(r) - reference) * change, square += change * change;
  }
  slope = warp.sum(slope), square = warp.sum(square);
  if (warp.lane == 0) *head = Head{slope, slope > Real(0) ? K * square : Real(0), seen.psi, i};
}

// Every warp reads the heads of all blocks; the first one writes the list of those that move.
__device__ __forceinline__ Round listen(Shared& S, const Head* heads) {
  const int lane = threadIdx.x & 31, blocks = gridDim.x;
  const bool writes = threadIdx.x < 32;
  Round round{0, Real(0), Real(0)};
  int own = -1;
  for (int base = 0; base < blocks; base += 32) {
    const int c = base + lane;
    Head head{Real(0), Real(0), Real(0), 0};
    if (c < blocks) {
      head.slope = __ldcg(&heads[c].slope), head.curvature = __ldcg(&heads[c].curvature);
      head.psi = __ldcg(&heads[c].psi), head.at = __ldcg(&heads[c].at);
    }
    const bool moves = head.curvature != Real(0);
    const unsigned who = __ballot_sync(~0u, moves);
    const int place = round.count + __popc(who & ((1u << lane) - 1));
    if (moves && writes) S.active[place] = c, S.at[place] = head.at;
    if (moves && c == blockIdx.x) own = place;
    round.count += __popc(who);
    round.slope += moves ? head.slope : Real(0);
    round.worst = larger(round.worst, head.psi);
  }
  const Warp warp{lane};
  round.slope = warp.sum(round.slope), round.worst = warp.max(round.worst), own = warp.max(own);
  if (threadIdx.x == 0) S.own = own;
  __syncthreads();
  return round;
}

// The steps of all that move, for the classes from `from` on.
__device__ __forceinline__ void load(Shared& S, const Real* steps, int count, int from) {
  for (int k = threadIdx.x; k < count * CHUNK; k += blockDim.x)
    S.steps[k] = __ldcg(steps + S.active[k / CHUNK] * WIDE + from + k % CHUNK);
  __syncthreads();
}

// <D_b, (K + R) D> of this block's own step, from the steps of all; thread c sees to the c-th of these. Thread 0 has it.
__device__ __forceinline__ Real bend(const Problem& p, Shared& S, const Real* steps, const Head* heads, int count) {
  const int c = threadIdx.x, own = S.own;
  const bool mine = own >= 0 && c < count;
  Real k = Real(0), dot = Real(0);
  if (mine && c != own) k = Real(as_number(p.K[S.at[own] * p.row + S.at[c]])) + p.offset;
  for (int from = 0; from < WIDE; from += CHUNK) {
    if (from) __syncthreads();
    load(S, steps, count, from);
    if (!mine) continue;
#pragma unroll
    for (int r = 0; r < CHUNK; ++r) dot += S.steps[c * CHUNK + r] * S.steps[own * CHUNK + r];
  }
  Real sum = mine && c == own ? __ldcg(&heads[blockIdx.x].curvature) : k * dot;
  sum = Warp{c & 31}.sum(sum);
  if ((c & 31) == 0) S.parts[c >> 5] = sum;
  __syncthreads();
  if (c < 32) sum = Warp{c}.sum(c < (blockDim.x >> 5) ? S.parts[c] : Real(0));
  return sum;
}

struct alignas(2 * sizeof(Value)) Two {
  Value first, second;
};

// G += t sum_c K[at_c] D_c for the own rows, two at a time: rows of K have an even number of values. If there are more
// threads than pairs of rows, these share the steps, and their sums meet in S.sums.
__device__ __forceinline__ void update(const Problem& p, Shared& S, const Real* steps, int count, Real t, int first, int last) {
  const int pairs = (last - first + 1) / 2, group = min(blockDim.x, (pairs + 31) / 32 * 32), groups = blockDim.x / max(group, 32);
  const int part = threadIdx.x / max(group, 32), low = count * part / groups, high = part < groups ? count * (part + 1) / groups : 0;
  for (int from = 0; from < WIDE; from += CHUNK) {
    if (WIDE > CHUNK) {  // else they are there
      __syncthreads();
      load(S, steps, count, from);
    }
    const int many = min(CHUNK, CLASSES - from);
    for (int base = 0; base < pairs; base += group) {
      const int pair = base + threadIdx.x - part * group, i = first + 2 * pair;
      const bool mine = part < groups && pair < pairs;
      Real a[CHUNK], b[CHUNK];
#pragma unroll
      for (int r = 0; r < CHUNK; ++r) a[r] = b[r] = Real(0);
      if (mine) {
#pragma unroll ROWS_AT_ONCE
        for (int c = low; c < high; ++c) {
          const Two k = *(const Two*)(p.K + S.at[c] * p.row + i);
          const Real k0 = Real(as_number(k.first)) + p.offset, k1 = Real(as_number(k.second)) + p.offset;
          const Real* d = S.steps + c * CHUNK;
#pragma unroll
          for (int r = 0; r < CHUNK; ++r) a[r] += k0 * d[r], b[r] += k1 * d[r];
        }
      }
      if (groups == 1) {
        if (!mine) continue;
#pragma unroll
        for (int r = 0; r < CHUNK; ++r) {
          if (r >= many) break;
          Real* G = p.G + (long long)(from + r) * p.stride + i;
          G[0] += t * a[r];
          if (i + 1 < last) G[1] += t * b[r];
        }
        continue;
      }
      // sums[part][r][row of the block]
      const int wide = 2 * group;
      if (mine) {
#pragma unroll
        for (int r = 0; r < CHUNK; ++r) {
          S.sums[(part * CHUNK + r) * wide + 2 * pair] = a[r];
          S.sums[(part * CHUNK + r) * wide + 2 * pair + 1] = b[r];
        }
      }
      __syncthreads();
      for (int e = threadIdx.x; e < many * (last - first); e += blockDim.x) {
        const int r = e / (last - first), at = e % (last - first);
        Real sum = Real(0);
        for (int g = 0; g < groups; ++g) sum += S.sums[(g * CHUNK + r) * wide + at];
        p.G[(long long)(from + r) * p.stride + first + at] += t * sum;
      }
    }
  }
}

// The own sample goes its share of the step; what is left of a variable by rounding alone is removed.
__device__ __forceinline__ void take(const Problem& p, Shared& S, const Real* steps, const Real* own, Real t) {
  if (S.own < 0) return;
  const int i = S.at[S.own], y = p.y[i];
  const Real C = p.C[i];
  for (int r = threadIdx.x; r < CLASSES; r += blockDim.x) {
    if (Kind::ridge) p.G[r * p.stride + i] += t * p.ridge[i] * __ldcg(steps + blockIdx.x * WIDE + r);
    if (!has_variable<MACHINE>(r, y)) continue;
    Real v = p.V[r * p.stride + i] + t * own[r];
    if (v < p.margin * C) v = Real(0);
    if (Kind::bounded && v > C - p.margin * C) v = C;
    p.V[r * p.stride + i] = v;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    descend(const Value* K, long long row, double offset, const Real* diagonal, const Real* ridge, const int* y,
            const Real* C, int q, long long stride, Real* V, Real* G, double margin, int rows, Real* steps, Real* own,
            Head* heads, Real* bends, unsigned* arrived, double tolerance, int most, double* told) {
  extern __shared__ __align__(16) char raw[];
  Shared& S = *(Shared*)raw;
  const Problem p{K, row, (Real)offset, diagonal, ridge, y, C, stride, V, G, (Real)margin};
  const int b = blockIdx.x, blocks = gridDim.x, first = min(q, b * rows), last = min(q, first + rows);
  const Real tol = (Real)tolerance;
  unsigned target = 0;
  int done = 0;
  Round round{};
  own += b * CLASSES;
  for (;; ++done) {
    // Buffers are used in turn: a fast block may write its next step while a slow one reads this one.
    Real* all = steps + (long long)(done & 1) * blocks * WIDE;
    Head* head = heads + (done & 1) * blocks;
    Real* bent = bends + (done & 1) * blocks;
    const Best best = best_of_block(choose(p, first, last, tol), S.best);
    if (threadIdx.x < 32) {
      if (first < last)
        solve(p, best.at, tol, all + b * WIDE, own, head + b);
      else if (threadIdx.x == 0)
        head[b] = Head{Real(0), Real(0), Real(0), 0};
    }
    meet(arrived, target);
    round = listen(S, head);
    if (!(round.worst > tol) || !round.count || done >= most) break;  // nobody moves: rounding hides the descent
    const Real mine = bend(p, S, all, head, round.count);
    if (threadIdx.x == 0) bent[b] = mine;
    meet(arrived, target);
    Real curvature = Real(0);
    for (int c = threadIdx.x & 31; c < blocks; c += 32) curvature += __ldcg(bent + c);
    curvature = Warp{(int)threadIdx.x & 31}.sum(curvature);
    const Real t = curvature > round.slope ? round.slope / curvature : Real(1);
    if (first < last) update(p, S, all, round.count, t, first, last);
    __syncthreads();
    take(p, S, all, own, t);
    __syncthreads();
  }
  if (b == 0 && threadIdx.x == 0) told[0] = done, told[1] = round.worst;
}

}  // namespace multimargin
