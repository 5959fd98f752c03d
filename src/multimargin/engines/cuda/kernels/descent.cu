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
struct alignas(4 * sizeof(Real)) Head {
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
  int count;                   // of those that move
  Real slope, worst, curvature;
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

// A head, past the first-level cache: another multiprocessor has written it.
__device__ __forceinline__ Head read(const Head* head) {
  Head copy;
  const int4* from = (const int4*)head;
  int4* to = (int4*)&copy;
#pragma unroll
  for (int k = 0; k < (int)(sizeof(Head) / sizeof(int4)); ++k) to[k] = __ldcg(from + k);
  return copy;
}

// The first warp reads the heads of all blocks, and lists those that move.
__device__ __forceinline__ void listen(Shared& S, const Head* heads) {
  const int lane = threadIdx.x, blocks = gridDim.x;
  if (lane < 32) {
    int own = -1, count = 0;
    Real slope = Real(0), worst = Real(0);
    Head head[MOST_BLOCKS / 32];
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS / 32; ++k) head[k] = 32 * k + lane < blocks ? read(heads + 32 * k + lane) : Head{};
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS / 32; ++k) {
      const int c = 32 * k + lane;
      const bool moves = head[k].curvature != Real(0);
      const unsigned who = __ballot_sync(~0u, moves);
      const int place = count + __popc(who & ((1u << lane) - 1));
      if (moves) S.active[place] = c, S.at[place] = head[k].at;
      if (moves && c == blockIdx.x) own = place;
      count += __popc(who);
      slope += moves ? head[k].slope : Real(0);
      worst = larger(worst, head[k].psi);
    }
    const Warp warp{lane};
    slope = warp.sum(slope), worst = warp.max(worst), own = warp.max(own);
    if (lane == 0) S.own = own, S.count = count, S.slope = slope, S.worst = worst;
  }
  __syncthreads();
}

// The curvature along all steps together: the sum of what the blocks have told.
__device__ __forceinline__ void add_up(Shared& S, const Real* bends) {
  const int lane = threadIdx.x, blocks = gridDim.x;
  if (lane < 32) {
    Real sum = Real(0);
#pragma unroll
    for (int k = 0; k < MOST_BLOCKS / 32; ++k) sum += 32 * k + lane < blocks ? __ldcg(bends + 32 * k + lane) : Real(0);
    sum = Warp{lane}.sum(sum);
    if (lane == 0) S.curvature = sum;
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

constexpr int NEXT = CHUNK <= 16 && sizeof(Real) == 4 ? 4 : 2;  // rows next to each other, of one thread

struct alignas(NEXT * sizeof(Value)) Values {
  Value k[NEXT];
};

// Part of the own rows and of the classes: what threads add up at a time. If there are more threads than rows need,
// they share the steps, and their sums meet in S.sums.
struct Tile {
  int first, last;  // rows of the block
  int group, groups, part, row;

  __device__ __forceinline__ Tile(int from, int to) : first(from), last(to) {
    const int items = (to - from + NEXT - 1) / NEXT;
    group = min((int)blockDim.x, max(32, (items + 31) / 32 * 32)), groups = blockDim.x / group, part = threadIdx.x / group;
    row = from + NEXT * (threadIdx.x - part * group);
  }
  __device__ __forceinline__ bool mine() const { return part < groups && row < last; }
  __device__ __forceinline__ void next() { first += NEXT * group, row += NEXT * group; }
};

// sum_c K[at_c] D_c over this thread's share of the steps, for its rows.
__device__ __forceinline__ void accumulate(const Problem& p, const Shared& S, int count, const Tile& tile, Real (&sums)[NEXT][CHUNK]) {
#pragma unroll
  for (int n = 0; n < NEXT; ++n)
#pragma unroll
    for (int r = 0; r < CHUNK; ++r) sums[n][r] = Real(0);
  if (!tile.mine()) return;
  const int low = count * tile.part / tile.groups, high = count * (tile.part + 1) / tile.groups;
#pragma unroll ROWS_AT_ONCE
  for (int c = low; c < high; ++c) {
    const Values k = *(const Values*)(p.K + S.at[c] * p.row + tile.row);
    const Real* d = S.steps + c * CHUNK;
#pragma unroll
    for (int n = 0; n < NEXT; ++n) {
      const Real value = Real(as_number(k.k[n])) + p.offset;
#pragma unroll
      for (int r = 0; r < CHUNK; ++r) sums[n][r] += value * d[r];
    }
  }
}

// G += t times these sums, for the classes from `from` on.
__device__ __forceinline__ void apply(const Problem& p, Shared& S, const Tile& tile, Real (&sums)[NEXT][CHUNK], Real t, int from) {
  if (tile.first >= tile.last) return;
  const int many = min(CHUNK, CLASSES - from);
  Real* G = p.G + (long long)from * p.stride;
  if (tile.groups == 1) {
    if (!tile.mine()) return;
#pragma unroll
    for (int r = 0; r < CHUNK; ++r)
#pragma unroll
      for (int n = 0; n < NEXT; ++n)
        if (r < many && tile.row + n < tile.last) G[r * p.stride + tile.row + n] += t * sums[n][r];
    return;
  }
  const int wide = NEXT * tile.group, rows = min(wide, tile.last - tile.first);  // S.sums[part][r][row]
  if (tile.mine()) {
#pragma unroll
    for (int r = 0; r < CHUNK; ++r)
#pragma unroll
      for (int n = 0; n < NEXT; ++n) S.sums[(tile.part * CHUNK + r) * wide + tile.row - tile.first + n] = sums[n][r];
  }
  __syncthreads();
  const int step = max(1, (int)blockDim.x / rows);  // classes at a time, if there are more threads than rows
  for (int at = threadIdx.x; at < rows * step; at += blockDim.x) {
    const int row = at % rows;
    for (int r = at / rows; r < many; r += step) {
      Real sum = Real(0);
      for (int g = 0; g < tile.groups; ++g) sum += S.sums[(g * CHUNK + r) * wide + row];
      G[r * p.stride + tile.first + row] += t * sum;
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
    listen(S, head);
    if (!(S.worst > tol) || !S.count || done >= most) break;  // nobody moves: rounding hides the descent
    const int count = S.count;
    const Real mine = bend(p, S, all, head, count);
    if (threadIdx.x == 0) bent[b] = mine;
    arrive(arrived, target);
    Tile tile(first, last);
    Real sums[NEXT][CHUNK];
    accumulate(p, S, count, tile, sums);
    wait(arrived, target);
    add_up(S, bent);
    const Real t = S.curvature > S.slope ? S.slope / S.curvature : Real(1);
    apply(p, S, tile, sums, t, 0);
    for (int from = 0; from < WIDE; from += CHUNK) {  // what did not fit the first time: more rows, more classes
      if (from) {
        __syncthreads();
        load(S, all, count, from);
        tile = Tile(first, last);
      }
      for (bool begun = from == 0; tile.first < last; tile.next()) {
        if (!begun) {
          accumulate(p, S, count, tile, sums);
          apply(p, S, tile, sums, t, from);
        }
        begun = false;
      }
    }
    __syncthreads();
    take(p, S, all, own, t);
    __syncthreads();
  }
  if (b == 0 && threadIdx.x == 0) told[0] = done, told[1] = S.worst;
}

}  // namespace multimargin
