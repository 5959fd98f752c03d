// Batched greedy descent on one working set, for every machine but c-svc.
//
//     minimise  1/2 <D, (K + R) D> + <G, D>  over D = alpha - alpha_old,  every alpha_i feasible
//
// An iteration: each block takes the sample among its rows with which the dual would fall most by one move of one
// variable, and solves that sample exactly (machines.cuh). All blocks then go their steps at the same time, each as far
// as is best for all together (lengths.cuh).
//
// Variables v, G and K are those of the working set; V and G are changed in place. The kernel ends if no violation is
// above `tol`, or after `most` iterations, so that the host can look at its clock and its signals.
//
// Compiled with MACHINE, CLASSES, REAL (of V and G), VALUE (of K), CHUNK (classes at a time, a multiple of 4), UNROLL (rows
// of K that a thread reads at the same time), THREADS and BLOCKS (at most;
// a multiple of 8).
#include "gradient.cuh"
#include "lengths.cuh"
#include "machines.cuh"

namespace multimargin {

using Real = REAL;
using Value = VALUE;
using Kind = Traits<MACHINE>;

constexpr int MOST_BLOCKS = BLOCKS, WARPS_OF_BLOCKS = (BLOCKS + 31) / 32, ROWS_AT_ONCE = UNROLL, WIDE = (CLASSES + CHUNK - 1) / CHUNK * CHUNK;
using Best = Ranked<Real>;

// What a block tells the others: the head of its step. The changes of alpha stand apart.
struct alignas(4 * sizeof(Real)) Head {
  Real slope, curvature;  // -<G_i, D_i>; K_ii |D_i|^2, 0 if the sample does not move
  Real psi;
  int at;
};

struct Shared {
  Best best[32];
  int at[MOST_BLOCKS];         // the samples that move
  int active[MOST_BLOCKS];     // their blocks
  int own;                     // the place of this block among them, or -1
  int count;                   // of those that move
  Real worst;
  Real slope[MOST_BLOCKS];     // p of the steps
  LengthRoom<Real, MOST_BLOCKS> lengths;
  alignas(16) Real steps[MOST_BLOCKS * CHUNK];
  alignas(16) Real sums[1];    // what the threads add up
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

// The first warp reads the heads of all blocks, and lists those that move.
__device__ __forceinline__ void listen(Shared& S, const Head* heads) {
  const int lane = threadIdx.x, blocks = gridDim.x;
  if (lane < 32) {
    int own = -1, count = 0;
    Real worst = Real(0);
    Head head[WARPS_OF_BLOCKS];
#pragma unroll
    for (int k = 0; k < WARPS_OF_BLOCKS; ++k) head[k] = 32 * k + lane < blocks ? fresh(heads + 32 * k + lane) : Head{};
#pragma unroll
    for (int k = 0; k < WARPS_OF_BLOCKS; ++k) {
      const int c = 32 * k + lane;
      const bool moves = head[k].curvature != Real(0);
      const unsigned who = __ballot_sync(~0u, moves);
      const int place = count + __popc(who & ((1u << lane) - 1));
      if (moves) S.active[place] = c, S.at[place] = head[k].at, S.slope[place] = head[k].slope;
      if (moves && c == blockIdx.x) own = place;
      count += __popc(who);
      worst = larger(worst, head[k].psi);
    }
    const Warp warp{lane};
    worst = warp.max(worst), own = warp.max(own);
    if (lane == 0) S.own = own, S.count = count, S.worst = worst;
  }
  __syncthreads();
}

// The steps of all that move, for the classes from `from` on.
__device__ __forceinline__ void load(Shared& S, const Real* steps, int count, int from) {
  constexpr int PARTS = CHUNK * sizeof(Real) / sizeof(int4);
  const int4* all = (const int4*)(steps + from);
  int4* here = (int4*)S.steps;
#pragma unroll 4
  for (int k = threadIdx.x; k < count * PARTS; k += blockDim.x)
    here[k] = __ldcg(all + S.active[k / PARTS] * (WIDE * sizeof(Real) / sizeof(int4)) + k % PARTS);
  __syncthreads();
}

// Q of this block's step with those of all, into its row of `quadratic`; thread c sees to the c-th.
__device__ __forceinline__ void tell(const Problem& p, Shared& S, const Real* steps, const Head* heads, Real* quadratic,
                                     RowFacts<Real>* rows, int count) {
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
  const Real value = !mine ? Real(0) : c == own ? __ldcg(&heads[blockIdx.x].curvature) : k * dot;
  if (own >= 0 && c < MOST_BLOCKS) quadratic[own * MOST_BLOCKS + c] = value;
  const Two<Real> sums = sums_of_block(Two<Real>{value, value < Real(0) ? -value : value}, S.lengths.parts);
  if (c == 0 && own >= 0) rows[own] = RowFacts<Real>{S.slope[own], sums.other, sums.one, Real(0)};
}

// Each of the steps at hand times its length.
__device__ __forceinline__ void shorten(Shared& S, int count) {
  for (int k = threadIdx.x; k < count * CHUNK; k += blockDim.x) S.steps[k] *= S.lengths.t[k / CHUNK];
  __syncthreads();
}

constexpr int NEXT = CHUNK <= 16 && sizeof(Real) == 4 ? 4 : 2;

// The own sample goes its share of the step; what is left of a variable by rounding alone is removed.
__device__ __forceinline__ void take(const Problem& p, Shared& S, const Real* steps, const Real* own) {
  if (S.own < 0) return;
  const int i = S.at[S.own], y = p.y[i];
  const Real C = p.C[i], t = S.lengths.t[S.own];
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
            Head* heads, Real* products, unsigned* arrived, double tolerance, int most, double* told) {
  extern __shared__ __align__(16) char raw[];
  Shared& S = *(Shared*)raw;
  const Problem p{K, row, (Real)offset, diagonal, ridge, y, C, stride, V, G, (Real)margin};
  const int b = blockIdx.x, blocks = gridDim.x, first = min(q, b * rows), last = min(q, first + rows);
  const Real tol = (Real)tolerance;
  unsigned target = 0;
  int done = 0;
  own += b * CLASSES;
  for (;; ++done) {
    // Buffers are used in turn: a fast block may write its next step while a slow one reads this one.
    Real* all = steps + (long long)(done & 1) * blocks * WIDE;
    Head* head = heads + (done & 1) * blocks;
    Real* quadratic = products + (done & 1) * MOST_BLOCKS * (MOST_BLOCKS + 4);
    RowFacts<Real>* facts = (RowFacts<Real>*)(quadratic + MOST_BLOCKS * MOST_BLOCKS);
    const Best best = best_of_block(choose(p, first, last, tol), S.best);
    if (threadIdx.x < 32) {
      if (first < last)
        solve(p, best.at, tol, all + b * WIDE, own, head + b);
      else if (threadIdx.x == 0)
        head[b] = Head{Real(0), Real(0), Real(0), 0};
    }
    meet(arrived, target);
    listen(S, head);
    if (!(S.worst > tol) || !S.count || done >= most) break;  // nobody moves: rounding hides the descent
    const int count = S.count;
    tell(p, S, all, head, quadratic, facts, count);
    meet(arrived, target);
    lengths(quadratic, facts, count, S.lengths);
    for (int from = 0; from < WIDE; from += CHUNK) {
      if (WIDE > CHUNK) load(S, all, count, from);  // else they are there
      shorten(S, count);
      for (Tile<NEXT> tile(first, last); tile.first < last; tile.next()) {
        Real sums[NEXT][CHUNK];
        accumulate<ROWS_AT_ONCE>(K, row, p.offset, S.at, S.steps, count, tile, sums);
        apply(G + from * stride, stride, tile, sums, min(CHUNK, CLASSES - from), S.sums);
      }
      __syncthreads();
    }
    take(p, S, all, own);
    __syncthreads();
  }
  if (b == 0 && threadIdx.x == 0) told[0] = done, told[1] = S.worst;
}

}  // namespace multimargin
