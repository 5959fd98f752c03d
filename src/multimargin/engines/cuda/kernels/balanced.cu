// Descent of c-svc, whose alphas keep their sum.
//
//     minimise  1/2 <d, K d> + <G, d>  over d = alpha - alpha_old,  0 <= Y_i alpha_i <= C_i,  sum_i d_i = 0
//
// An iteration solves a subproblem. Of its rows, each block takes those with the largest -G that can grow and those with
// the largest G that can shrink, EACH of either kind. With Q the kernel among all of these, g their G, and [low, high]
// the room that they have, accelerated projected gradient steps follow (Nesterov; momentum begins anew when it points
// uphill: O'Donoghue & Candes):
//
//     x' = P(z - (Q z + g) / L),   z = x' + momentum (x' - x)      P: onto low <= x <= high, sum_i x_i = 0
//
// All points are in the plane sum_i x_i = 0. So L need only bound the curvature there, and that is much smaller than the
// curvature along (1, ..., 1) if all kernel values are large. Then alpha goes along x as far as is best, and G follows.
// Each block has its rows of Q in shared memory, and the blocks tell each other their parts of every product Q z.
// Where rounding keeps the violation from falling, the descent ends after PATIENCE iterations.
//
// Compiled with REAL (of alpha and G), VALUE (of K), THREADS, BLOCKS (at most) and EACH.
#include "gradient.cuh"

namespace multimargin {

using Real = REAL;
using Value = VALUE;
using Best = Ranked<Real>;

constexpr int OWN = 2 * EACH, MOST = BLOCKS * OWN, PER_THREAD = (MOST + THREADS - 1) / THREADS;
constexpr int NEXT = 4, ROWS_AT_ONCE = 8, POWER_STEPS = 12, STEPS = 80, SHIFTS = 40, PATIENCE = 200;
constexpr double NOISE = 4 * (sizeof(Real) == 4 ? 1.2e-7 : 2.3e-16);  // of a sum, in units of its terms
constexpr double SAFETY = 1.1, FLAT = 1e-3;  // of L over its estimate; the least L, in units of K_ii
constexpr double FALLS = 0.99;  // a violation up to this share of the least one before is progress
enum Side { UP, DOWN };

// A sample of the subproblem, as its block tells it; all zeros and at = -1 if there is none.
struct alignas(4 * sizeof(Real)) Pick {
  Real G, low, high;
  int at;
};

struct Shared {
  Best best[32];
  Two<Real> parts[32];
  int own[OWN];   // this block's samples
  int at[MOST];   // those of all blocks
  Real z[MOST];   // what is multiplied, and in the end the steps
  Real sums[THREADS * NEXT];
  Real Q[OWN * MOST];
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
  // How far a sample can move to a side; 0 if what is left is rounding.
  __device__ __forceinline__ Real room(int i, int side) const {
    const Real a = alpha[i], high = y[i] == 1 ? C[i] : Real(0);
    const Real left = side == UP ? high - a : a - (high - C[i]);
    return left > margin * C[i] ? left : Real(0);
  }
};

// How the blocks exchange the parts of a product. Two buffers are used in turn: a fast block may write the next product
// while a slow one reads this.
struct Exchange {
  Real* products;
  unsigned* arrived;
  unsigned target;
  int turn, size;  // size: samples of the subproblem, missing ones included
};

// A vector of the subproblem: each thread has some entries in registers, and every block has all of them.
using Vector = Real[PER_THREAD];
#define ENTRIES(n, e) for (int n = 0, e = threadIdx.x; n < PER_THREAD; ++n, e += THREADS)

__device__ __forceinline__ Pick pick_of(const Problem& p, int i) {
  if (i < 0) return {Real(0), Real(0), Real(0), -1};
  return {p.G[i], -p.room(i, DOWN), p.room(i, UP), i};
}

// This block's samples: the steepest that can grow, then the steepest others that can shrink.
__device__ __forceinline__ void choose(const Problem& p, Shared& S, int first, int last, Pick* told) {
  for (int k = 0; k < OWN; ++k) {
    const int side = k < EACH ? UP : DOWN;
    Best best{Real(NOBODY), 0x7fffffff};
    for (int i = first + threadIdx.x; i < last; i += THREADS) {
      bool is_new = true;
      for (int j = 0; j < k; ++j) is_new &= S.own[j] != i;
      if (is_new && p.room(i, side) > Real(0)) best = better(best, Best{side == UP ? -p.G[i] : p.G[i], i});
    }
    best = best_of_block(best, S.best);
    if (threadIdx.x == 0) {
      S.own[k] = best.rank > Real(0.5 * NOBODY) ? best.at : -1;
      told[blockIdx.x * OWN + k] = pick_of(p, S.own[k]);
    }
    __syncthreads();
  }
}

// The samples of all blocks, and half of the largest difference of slopes between two that can move.
__device__ __forceinline__ Real listen(Shared& S, const Pick* told, int size, Vector& g, Vector& low, Vector& high) {
  Best up{Real(NOBODY), 0}, down{Real(NOBODY), 0};
  ENTRIES(n, e) {
    const Pick pick = e < size ? fresh(told + e) : Pick{Real(0), Real(0), Real(0), -1};
    g[n] = pick.G, low[n] = pick.low, high[n] = pick.high;
    if (e < size) S.at[e] = pick.at < 0 ? 0 : pick.at;  // a row that exists, times 0
    if (high[n] > Real(0)) up = better(up, Best{-g[n], e});
    if (low[n] < Real(0)) down = better(down, Best{g[n], e});
  }
  return Real(0.5) * (best_of_block(up, S.best).rank + best_of_block(down, S.best).rank);
}

// This block's rows of Q.
__device__ __forceinline__ void load(const Problem& p, Shared& S, int size) {
  for (int s = 0; s < OWN; ++s)
    for (int c = threadIdx.x; c < size; c += THREADS) S.Q[s * MOST + c] = S.own[s] < 0 ? Real(0) : p.kernel(S.own[s], S.at[c]);
}

// y = Q z; a warp multiplies a row.
__device__ __forceinline__ void multiply(Shared& S, Exchange& x, const Vector& z, Vector& y) {
  ENTRIES(n, e)
    if (e < x.size) S.z[e] = z[n];
  __syncthreads();
  Real* out = x.products + (x.turn++ & 1) * MOST;
  const int lane = threadIdx.x & 31;
  for (int s = threadIdx.x >> 5; s < OWN; s += THREADS >> 5) {
    Real sum = Real(0);
    for (int c = lane; c < x.size; c += 32) sum += S.Q[s * MOST + c] * S.z[c];
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) out[blockIdx.x * OWN + s] = sum;
  }
  meet(x.arrived, x.target);
  ENTRIES(n, e) y[n] = e < x.size ? __ldcg(out + e) : Real(0);
}

// The largest curvature in the plane sum_i x_i = 0, by power steps.
__device__ __forceinline__ Real curvature(Shared& S, Exchange& x, const Vector& low, const Vector& high) {
  Vector v, y;
  Real size = Real(0), norm = Real(0);
  ENTRIES(n, e) y[n] = (e & 1 ? Real(1) : Real(-1)) * Real(1 + e % 7);
  for (int step = 0;; ++step) {
    Two<Real> sums{Real(0), Real(0)};
    ENTRIES(n, e) {
      if (!(high[n] > low[n])) y[n] = Real(0);
      sums.one += y[n], sums.other += high[n] > low[n] ? Real(1) : Real(0);
    }
    sums = sums_of_block(sums, S.parts);
    size = sums.other;
    Two<Real> squares{Real(0), Real(0)};
    ENTRIES(n, e) {
      if (high[n] > low[n]) y[n] -= sums.one / size;
      squares.one += y[n] * y[n];
    }
    norm = sqrt(sums_of_block(squares, S.parts).one);
    if (step == POWER_STEPS || !(norm > Real(0))) break;
    ENTRIES(n, e) v[n] = y[n] / norm;
    multiply(S, x, v, y);
  }
  return norm * Real(SAFETY);
}

// x = P(t): the entries of t, less a common shift, within their bounds. The sum falls as the shift grows, and is linear
// as long as the same entries are between their bounds. `shift` is where the search starts, and what it found; a sum
// up to `noise` is zero.
__device__ __forceinline__ void project(Shared& S, const Vector& t, const Vector& low, const Vector& high, Real noise,
                                        Vector& x, Real& shift) {
  Real least = Real(NOBODY), most = Real(-NOBODY);
  for (int k = 0;; ++k) {
    Two<Real> sums{Real(0), Real(0)};
    ENTRIES(n, e) {
      const Real value = t[n] - shift;
      x[n] = value < low[n] ? low[n] : value > high[n] ? high[n] : value;
      sums.one += x[n], sums.other += value > low[n] && value < high[n] ? Real(1) : Real(0);
    }
    sums = sums_of_block(sums, S.parts);
    if (k == SHIFTS || (sums.one <= noise && sums.one >= -noise)) break;
    (sums.one > Real(0) ? least : most) = shift;
    if (!(sums.other > Real(0)) && (least <= Real(NOBODY) || most >= Real(-NOBODY))) {  // all are at their bounds
      Best lowest{Real(NOBODY), 0}, highest{Real(NOBODY), 0};
      ENTRIES(n, e) {
        if (!(high[n] > low[n])) continue;
        lowest = better(lowest, Best{high[n] - t[n], e}), highest = better(highest, Best{t[n] - low[n], e});
      }
      const Real from = -best_of_block(lowest, S.best).rank, to = best_of_block(highest, S.best).rank;
      least = from > least ? from : least, most = to < most ? to : most;
    }
    const Real middle = Real(0.5) * (least + most);
    const Real next = sums.other > Real(0) ? shift + sums.one / sums.other : middle;
    if (next == shift) break;
    shift = next > least && next < most ? next : middle;
  }
}

// Steps for all samples of the subproblem, written to S.z; false if nothing is gained.
__device__ __forceinline__ bool solve(Shared& S, Exchange& exchange, const Vector& g, const Vector& low, const Vector& high,
                                      Real least) {
  const Real L = curvature(S, exchange, low, high), rate = Real(1) / (L > least ? L : least);
  Vector x, z, y, t, before;
  Real momentum = Real(1), shift = Real(0), noise = Real(0);
  ENTRIES(n, e) x[n] = z[n] = y[n] = Real(0);
  for (int step = 0; step < STEPS; ++step) {
    if (step) multiply(S, exchange, z, y);
    ENTRIES(n, e) t[n] = z[n] - (y[n] + g[n]) * rate, before[n] = x[n];
    project(S, t, low, high, noise, x, shift);
    Two<Real> sums{Real(0), Real(0)};
    ENTRIES(n, e) {
      sums.one += (x[n] - before[n]) * (x[n] - z[n]);
      sums.other += x[n] < Real(0) ? -x[n] : x[n];
    }
    sums = sums_of_block(sums, S.parts);
    if (sums.one < Real(0)) momentum = Real(1);
    noise = Real(NOISE) * sums.other;
    const Real next = Real(0.5) * (Real(1) + sqrt(Real(1) + Real(4) * momentum * momentum));
    ENTRIES(n, e) z[n] = x[n] + (momentum - Real(1)) / next * (x[n] - before[n]);
    momentum = next;
  }
  multiply(S, exchange, x, y);
  Two<Real> sums{Real(0), Real(0)};
  ENTRIES(n, e) sums.one += x[n] * y[n], sums.other -= x[n] * g[n];
  sums = sums_of_block(sums, S.parts);
  const Real length = sums.one > sums.other ? sums.other / sums.one : Real(1);
  ENTRIES(n, e)
    if (e < exchange.size) S.z[e] = length * x[n];
  __syncthreads();
  return sums.other > Real(0);
}

// The own samples take their steps; what is left to a bound by rounding alone is removed.
__device__ __forceinline__ void take(const Problem& p, const Shared& S) {
  const int k = threadIdx.x;
  if (k >= OWN || S.own[k] < 0) return;
  const int i = S.own[k];
  const Real step = S.z[blockIdx.x * OWN + k];
  if (step == Real(0)) return;
  const Real high = p.y[i] == 1 ? p.C[i] : Real(0), low = high - p.C[i], least = p.margin * p.C[i];
  const Real a = p.alpha[i] + step;
  p.alpha[i] = a < low + least ? low : a > high - least ? high : a;
}

// `found` is what a run tells the host, and the next run of the same descent goes on with: iterations, the violation at
// the end, the least violation so far, and the iterations since it fell.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    descend(const Value* K, long long row, const Real* diagonal, const int* y, const Real* C, int q, Real* alpha, Real* G,
            double margin, int rows, Pick* told, Real* products, unsigned* arrived, double tolerance, int most,
            double* found) {
  extern __shared__ __align__(16) char raw[];
  Shared& S = *(Shared*)raw;
  const Problem p{K, row, diagonal, y, C, alpha, G, (Real)margin};
  const int b = blockIdx.x, first = min(q, b * rows), last = min(q, first + rows);
  Exchange exchange{products, arrived, 0, 0, (int)gridDim.x * OWN};
  int done = 0, idle = (int)found[3];
  Real worst = Real(0), least = (Real)found[2];
  for (;; ++done) {
    Vector g, low, high;
    choose(p, S, first, last, told);
    meet(arrived, exchange.target);
    worst = listen(S, told, exchange.size, g, low, high);
    if (!(worst > (Real)tolerance) || done >= most || idle >= PATIENCE) break;
    idle = worst < Real(FALLS) * least ? 0 : idle + 1;
    least = worst < least ? worst : least;
    __syncthreads();
    load(p, S, exchange.size);
    if (!solve(S, exchange, g, low, high, Real(FLAT) * diagonal[S.at[0]])) break;
    for (Tile<NEXT> tile(first, last); tile.first < last; tile.next()) {
      Real sums[NEXT][1];
      accumulate<ROWS_AT_ONCE>(K, row, Real(0), S.at, S.z, exchange.size, tile, sums);
      apply(G, 0LL, tile, sums, 1, S.sums);
      __syncthreads();
    }
    take(p, S);
    __syncthreads();
  }
  if (b == 0 && threadIdx.x == 0) found[0] = done, found[1] = worst, found[2] = least, found[3] = idle;
}

}  // namespace multimargin
