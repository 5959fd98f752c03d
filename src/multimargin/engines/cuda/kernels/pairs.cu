// Batched greedy descent of c-svc, whose samples move in pairs so that the sum of alpha stays.
//
//     minimise  1/2 <d, K d> + <G, d>  over d = alpha - alpha_old,  0 <= Y_i alpha_i <= C_i,  sum_i d_i = 0
//
// An iteration: each block takes two samples among its rows: the one with the largest -G that can grow, and the one
// with the largest G that can shrink. The k-th largest of the one kind and the k-th largest of the other are a pair,
// as long as the dual falls along it (Serafini, Zanghirati & Zanni's (5)). Each pair would go to its own minimum within
// its bounds; all pairs go as far along that as is best for all together (lengths.cuh).
//
// Compiled with REAL (of alpha and G), VALUE (of K), THREADS and BLOCKS (at most; a multiple of 8).
#include "gradient.cuh"
#include "lengths.cuh"

namespace multimargin {

using Real = REAL;
using Value = VALUE;
using Best = Ranked<Real>;

constexpr int MOST_BLOCKS = BLOCKS, NEXT = 4, ROWS_AT_ONCE = 8;
enum Side { UP, DOWN };

struct alignas(4 * sizeof(Real)) Candidate {
  Real pull, room;
  int at;
};

struct Shared {
  Best best[32];
  Candidate side[2][MOST_BLOCKS];  // as the blocks have told them
  int order[2][MOST_BLOCKS];       // the strongest first
  int own[2];                      // places of this block's candidates
  int count;                       // pairs
  int at[2 * MOST_BLOCKS];         // samples of the pairs: up, down, up, ...
  Real step[2 * MOST_BLOCKS];      // their changes, for length 1 and then for the lengths found
  LengthRoom<Real, MOST_BLOCKS> lengths;
  Real sums[THREADS * NEXT];
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

  __device__ __forceinline__ Real kernel(int i, int j) const {
    return i == j ? diagonal[i] : Real(as_number(K[i * row + j]));
  }
  __device__ __forceinline__ Real room(int i, int side) const {
    const Real a = alpha[i], high = y[i] == 1 ? C[i] : Real(0);
    return side == UP ? high - a : a - (high - C[i]);
  }
};

// This block's candidates, told to all.
__device__ __forceinline__ void choose(const Problem& p, Shared& S, int first, int last, Candidate* told) {
  Best best[2] = {{Real(NOBODY), 0x7fffffff}, {Real(NOBODY), 0x7fffffff}};
  for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
    const Real G = p.G[i], least = p.margin * p.C[i];
    if (p.room(i, UP) > least) best[UP] = better(best[UP], Best{-G, i});
    if (p.room(i, DOWN) > least) best[DOWN] = better(best[DOWN], Best{G, i});
  }
  for (int side = 0; side < 2; ++side) {
    const Best found = best_of_block(best[side], S.best);
    const bool any = found.rank > Real(0.5 * NOBODY);
    if (threadIdx.x == 0)
      told[side * gridDim.x + blockIdx.x] = {found.rank, any ? p.room(found.at, side) : Real(0), any ? found.at : -1};
  }
}

// Every block sorts the candidates of all by counting.
__device__ __forceinline__ void listen(Shared& S, const Candidate* told) {
  const int blocks = gridDim.x, t = threadIdx.x, side = t / blocks, c = t % blocks;
  if (side < 2) S.side[side][c] = fresh(told + t);
  __syncthreads();
  if (side < 2) {
    const Real pull = S.side[side][c].pull;
    int before = 0;
    for (int k = 0; k < blocks; ++k) {
      const Real other = S.side[side][k].pull;
      before += other > pull || (other == pull && k < c);
    }
    S.order[side][before] = c;
    if (c == blockIdx.x) S.own[side] = before;
  }
  if (t == 0) S.count = 0;
  __syncthreads();
}

// The pairs, and the minimum of each within its bounds.
__device__ __forceinline__ void match(const Problem& p, Shared& S, Real tol) {
  const int k = threadIdx.x;
  if (k < gridDim.x) {
    const Candidate up = S.side[UP][S.order[UP][k]], down = S.side[DOWN][S.order[DOWN][k]];
    const bool moves = up.at >= 0 && down.at >= 0 && up.at != down.at && up.pull + down.pull > Real(2) * tol;
    Real step = Real(0);
    if (moves) {
      const Real bend = p.diagonal[up.at] + p.diagonal[down.at] - Real(2) * p.kernel(up.at, down.at);
      const Real least = Real(1e-12) * p.diagonal[up.at], room = up.room < down.room ? up.room : down.room;
      step = (up.pull + down.pull) / (bend > least ? bend : least);
      step = step < room ? step : room;
      atomicMax(&S.count, k + 1);
    }
    S.at[2 * k] = up.at, S.at[2 * k + 1] = down.at;
    S.step[2 * k] = step, S.step[2 * k + 1] = -step;
  }
  __syncthreads();
}

// The row of Q of this block's pair; thread c sees to the c-th pair.
__device__ __forceinline__ void tell(const Problem& p, Shared& S, Real* quadratic, RowFacts<Real>* rows) {
  const int b = blockIdx.x, c = threadIdx.x;
  if (b >= S.count) return;
  Real value = Real(0);
  if (c < S.count && S.step[2 * c] != Real(0) && S.step[2 * b] != Real(0)) {
    const int i = S.at[2 * b], j = S.at[2 * b + 1], k = S.at[2 * c], l = S.at[2 * c + 1];
    value = S.step[2 * b] * S.step[2 * c] * (p.kernel(i, k) - p.kernel(i, l) - p.kernel(j, k) + p.kernel(j, l));
  }
  if (c < MOST_BLOCKS) quadratic[b * MOST_BLOCKS + c] = value;
  const Two<Real> sums = sums_of_block(Two<Real>{value, value < Real(0) ? -value : value}, S.lengths.parts);
  const Real pull = S.side[UP][S.order[UP][b]].pull + S.side[DOWN][S.order[DOWN][b]].pull;
  if (c == 0) rows[b] = {S.step[2 * b] != Real(0) ? S.step[2 * b] * pull : Real(0), sums.other, sums.one, Real(0)};
}

// The own candidates take their steps; what is left to a bound by rounding alone is removed.
__device__ __forceinline__ void take(const Problem& p, const Shared& S) {
  if (threadIdx.x != 0) return;
  for (int side = 0; side < 2; ++side) {
    if (S.own[side] >= S.count) continue;
    const int entry = 2 * S.own[side] + side, i = S.at[entry];
    if (S.step[entry] == Real(0)) continue;
    const Real high = p.y[i] == 1 ? p.C[i] : Real(0), low = high - p.C[i], least = p.margin * p.C[i];
    const Real a = p.alpha[i] + S.step[entry];
    p.alpha[i] = a < low + least ? low : a > high - least ? high : a;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    descend(const Value* K, long long row, const Real* diagonal, const int* y, const Real* C, int q, Real* alpha, Real* G,
            double margin, int rows, Candidate* candidates, Real* products, unsigned* arrived, double tolerance, int most,
            double* told) {
  extern __shared__ __align__(16) char raw[];
  Shared& S = *(Shared*)raw;
  const Problem p{K, row, diagonal, y, C, alpha, G, (Real)margin};
  const int b = blockIdx.x, blocks = gridDim.x, first = min(q, b * rows), last = min(q, first + rows);
  const Real tol = (Real)tolerance;
  unsigned target = 0;
  int done = 0;
  Real worst = Real(0);
  for (;; ++done) {
    // Buffers are used in turn: a fast block may write its next candidates while a slow one reads these.
    Candidate* said = candidates + (done & 1) * 2 * blocks;
    Real* quadratic = products + (done & 1) * MOST_BLOCKS * (MOST_BLOCKS + 4);
    RowFacts<Real>* facts = (RowFacts<Real>*)(quadratic + MOST_BLOCKS * MOST_BLOCKS);
    choose(p, S, first, last, said);
    meet(arrived, target);
    listen(S, said);
    worst = Real(0.5) * (S.side[UP][S.order[UP][0]].pull + S.side[DOWN][S.order[DOWN][0]].pull);
    if (!(worst > tol) || done >= most) break;
    match(p, S, tol);
    const int count = S.count;
    if (!count) break;  // only a sample with itself is left
    tell(p, S, quadratic, facts);
    meet(arrived, target);
    lengths(quadratic, facts, count, S.lengths);
    for (int e = threadIdx.x; e < 2 * count; e += blockDim.x) {
      S.step[e] *= S.lengths.t[e / 2];
      if (S.step[e] == Real(0)) S.at[e] = max(S.at[e], 0);  // a row that exists, times 0
    }
    __syncthreads();
    for (Tile<NEXT> tile(first, last); tile.first < last; tile.next()) {
      Real sums[NEXT][1];
      accumulate<ROWS_AT_ONCE>(K, row, Real(0), S.at, S.step, 2 * count, tile, sums);
      apply(G, 0LL, tile, sums, 1, S.sums);
    }
    take(p, S);
    __syncthreads();
  }
  if (b == 0 && threadIdx.x == 0) told[0] = done, told[1] = worst;
}

}  // namespace multimargin
