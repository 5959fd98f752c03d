// The machines' formulas for one sample. Compiled for the device, and for the host by the tests.
//
// Every machine has one dual variable v_r >= 0 per class: z_r of Crammer & Singer's simplex, beta_r of the others.
//
//     crammer-singer    alpha_r = C e_y - z_r                    z >= 0, sum_r z_r = C
//     weston-watkins    alpha_r = -beta_r, alpha_y = sum beta    0 <= beta_r <= C for r != y
//     lee-lin-wahba     alpha_r = mean(beta) - beta_r            0 <= beta_r <= C for r != y
//     msvm2             the same                                 0 <= beta_r for r != y; G has the ridge
//     one-vs-rest       alpha_r = Y_r beta_r                     0 <= beta_r <= C
//     c-svc             the same, with one column                0 <= beta <= C
//
// problems/*.py have the derivations; names are theirs.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define MM_INLINE __device__ __forceinline__
#define MM_UNROLL _Pragma("unroll ENTRIES_AT_ONCE")
#else
#include <cmath>
#define MM_INLINE inline
#define MM_UNROLL
#endif

#ifndef CLASSES
#define CLASSES 1000000  // not known when this is compiled
#endif

namespace multimargin {

constexpr int ENTRIES_AT_ONCE = CLASSES <= 32 ? 32 : 4;  // of a sample, that a thread reads at the same time

enum Machine { CRAMMER_SINGER, WESTON_WATKINS, LEE_LIN_WAHBA, MSVM2, ONE_VS_REST, C_SVC };

constexpr double ON_BOUND = 1e-8;  // as in problems/base.py
constexpr int MOST_ROOT_STEPS = 60;

template <class T>
MM_INLINE T larger(T a, T b) { return a > b ? a : b; }
template <class T>
MM_INLINE T smaller(T a, T b) { return a < b ? a : b; }
template <class T>
MM_INLINE T positive(T a) { return a > T(0) ? a : T(0); }

template <int machine>
struct Traits {
  static constexpr bool simplex = machine == CRAMMER_SINGER;
  static constexpr bool shifted = machine == LEE_LIN_WAHBA || machine == MSVM2;
  static constexpr bool binary = machine == C_SVC;
  static constexpr bool coupled = machine != ONE_VS_REST && machine != C_SVC;  // rows of alpha sum to zero
  static constexpr bool ridge = machine == MSVM2;
  static constexpr bool own = !(machine == WESTON_WATKINS || shifted);  // whether the label has a variable
  static constexpr bool bounded = machine != CRAMMER_SINGER && machine != MSVM2;  // by C, each by itself
};

// One sample of class-major arrays: entry r of `v` and of `G` is `stride` after entry r - 1.
template <int machine, class T>
struct Sample {
  const T* v;
  const T* G;
  long long stride;
  int m, y;
  T C;

  MM_INLINE T value(int r) const { return v[r * stride]; }
  MM_INLINE T gradient(int r) const { return G[r * stride]; }
};

// The same read from alpha in float64.
template <int machine>
struct AlphaSample {
  const double* alpha;
  const double* G;
  long long stride;
  int m, y;
  double C;

  MM_INLINE double coefficient(int r) const { return alpha[r * stride]; }
  MM_INLINE double gradient(int r) const { return G[r * stride]; }
  MM_INLINE double value(int r) const {
    using M = Traits<machine>;
    const double a = coefficient(r);
    if (M::simplex) return (r == y ? C : 0.0) - a;
    if (M::binary) return positive(y == 1 ? a : -a);
    if (M::shifted) return positive(coefficient(y) - a);
    if (machine == ONE_VS_REST) return positive(r == y ? a : -a);
    return r == y ? 0.0 : positive(-a);
  }
};

// Whether class r has a variable, and the derivative of the dual in it.
template <int machine>
MM_INLINE bool has_variable(int r, int y) { return Traits<machine>::own || r != y; }

template <int machine, class S>
MM_INLINE auto slope(const S& s, int r) -> decltype(s.gradient(r)) {
  if (machine == WESTON_WATKINS) return s.gradient(s.y) - s.gradient(r);
  if (Traits<machine>::shifted) return -s.gradient(r);
  if (Traits<machine>::binary) return s.y == 1 ? s.gradient(0) : -s.gradient(0);
  return r == s.y ? s.gradient(r) : -s.gradient(r);
}

// Curvature of the dual along one variable, for a diagonal entry K of the Hessian in alpha.
template <int machine, class T>
MM_INLINE T curvature(T K, int m) {
  if (machine == WESTON_WATKINS) return T(2) * K;
  return Traits<machine>::shifted ? K * (T(1) - T(1) / T(m)) : K;
}

// Lanes share the classes of one sample: lane l has classes l, l + width, ...
struct OneLane {
  int lane = 0, width = 1;
  template <class T> MM_INLINE T sum(T x) const { return x; }
  template <class T> MM_INLINE T max(T x) const { return x; }
  MM_INLINE int count(int x) const { return x; }
};

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
struct Warp {
  int lane, width = 32;
  template <class T> MM_INLINE T sum(T x) const {
    for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
    return x;
  }
  template <class T> MM_INLINE T max(T x) const {
    for (int o = 16; o; o >>= 1) x = larger(x, __shfl_xor_sync(~0u, x, o));
    return x;
  }
  MM_INLINE int count(int x) const {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(~0u, x);
#else
    return sum(x);
#endif
  }
};
#endif

// What a sample may gain by the best move of one variable (a pair of classes for the simplex), and its violation.
template <class T>
struct Look { T psi, gain; };

template <int machine, class T, class Lanes>
MM_INLINE Look<T> look(const Sample<machine, T>& s, T K, T margin, Lanes lanes) {
  constexpr bool simplex = Traits<machine>::simplex;
  const T least = margin * s.C, bend = curvature<machine>(simplex ? T(2) * K : K, s.m), inverse = T(1) / bend;
  T top = T(-1e30);
  if (simplex) {
    MM_UNROLL
    for (int r = lanes.lane; r < s.m; r += lanes.width) top = larger(top, s.gradient(r));
    top = lanes.max(top);
  }
  Look<T> found{T(0), T(0)};
  MM_UNROLL
  for (int r = lanes.lane; r < s.m; r += lanes.width) {  // no branches: entries are read at the same time
    const T v = s.value(r), g = simplex ? top - s.gradient(r) : slope<machine>(s, r);
    const T room = g > T(0) ? v : (Traits<machine>::bounded ? s.C - v : T(1e30));
    const bool counts = has_variable<machine>(r, s.y) && room > least;
    const T psi = counts ? (g > T(0) ? g : -g) : T(0);
    const T step = smaller(room, psi * inverse), gain = counts ? step * (psi - T(0.5) * bend * step) : T(0);
    found.psi = larger(found.psi, psi);
    found.gain = larger(found.gain, gain);
  }
  found.psi = lanes.max(found.psi);
  found.gain = lanes.max(found.gain);
  return found;
}

// The exact problem of one sample: the projection of alpha - G / K on its feasible set. It needs the root t of
//
//     F(t) = sum_r clip(a_r + sign t, 0, bound) - left - slope t,
//
// which falls in t (problems/box.py, solve_clipped; for the simplex the threshold theta). Newton steps are kept inside
// an interval that has the root.
template <int machine, class T, class Lanes>
struct Solver {
  using M = Traits<machine>;
  const Sample<machine, T>& s;
  const T K;
  const Lanes lanes;
  T shift = T(0);  // mean of w (shifted), or the largest entry (simplex)
  T t = T(0);

  MM_INLINE Solver(const Sample<machine, T>& sample, T diagonal, Lanes l) : s(sample), K(diagonal), lanes(l) {
    if (M::coupled) find();
  }

  // w = alpha - G / K in terms of the variables: a_r of F, without the root.
  MM_INLINE T start(int r) const {
    if (M::simplex) return s.value(r) + s.gradient(r) / K - shift;
    if (machine == WESTON_WATKINS) return s.value(r) + s.gradient(r) / K;
    if (M::shifted) return s.value(r) + (s.gradient(r) - s.gradient(s.y)) / K + shift;
    return s.value(r) - slope<machine>(s, r) / K;
  }

  MM_INLINE T inside(T x) const {
    x = positive(x);
    return M::bounded ? smaller(x, s.C) : x;
  }

  static constexpr int sign = M::shifted ? 1 : -1;

  // The solution's variable of class r.
  MM_INLINE T solution(int r) const {
    if (!has_variable<machine>(r, s.y)) return T(0);
    return M::coupled ? inside(start(r) + T(sign) * t) : inside(start(r));
  }

  MM_INLINE void find() {
    T left = T(0), fall = T(0), low = T(0), high = T(0);
    if (M::simplex) {
      T top = T(-3e38);
      for (int r = lanes.lane; r < s.m; r += lanes.width) top = larger(top, start(r));
      shift = lanes.max(top);
      left = s.C, low = -s.C, high = T(0);
    } else if (machine == WESTON_WATKINS) {
      T sum = T(0);  // of beta: alpha_y
      for (int r = lanes.lane; r < s.m; r += lanes.width) sum += r == s.y ? T(0) : s.value(r);
      left = lanes.sum(sum) - s.gradient(s.y) / K, fall = T(1);
      low = -left, high = -left + T(s.m - 1) * s.C;
    } else {
      // a_r = mean(w) - w_r with w_r = mean(beta) - beta_r - G_r / K. The start above lacks what is the same for
      // all classes: mean(w) - mean(beta) + G_y / K, where mean(w) = -mean(G) / K.
      T sum = T(0), total = T(0), most = T(0);
      for (int r = lanes.lane; r < s.m; r += lanes.width) {
        sum += r == s.y ? T(0) : s.value(r);
        total += s.gradient(r) - s.gradient(s.y);
      }
      shift = -(lanes.sum(sum) + lanes.sum(total) / K) / T(s.m);
      for (int r = lanes.lane; r < s.m; r += lanes.width) most += r == s.y ? T(0) : positive(start(r));
      fall = T(s.m), high = lanes.sum(most);
    }
    root(left, fall, low, high);
  }

  MM_INLINE void root(T left, T fall, T low, T high) {
    t = low;
    for (int step = 0; step < MOST_ROOT_STEPS; ++step) {
      T sum = T(0);
      int free = 0;
      MM_UNROLL
      for (int r = lanes.lane; r < s.m; r += lanes.width) {
        const T x = start(r) + T(sign) * t, in = inside(x);
        const bool counts = has_variable<machine>(r, s.y);
        sum += counts ? in : T(0);
        free += counts && x == in;
      }
      const T excess = lanes.sum(sum) - left - fall * t, rate = fall - T(sign) * T(lanes.count(free));
      if (larger(excess, -excess) <= ROUNDING * s.C) break;
      if (excess > T(0)) low = t; else high = t;
      T next = rate > T(0) ? t + excess / rate : T(0.5) * (low + high);
      if (!(next > low && next < high)) next = next == t || !(high > low) ? t : T(0.5) * (low + high);
      if (next == t) break;
      t = next;
    }
  }

  static constexpr T ROUNDING = sizeof(T) == 4 ? T(1e-7) : T(1e-17);  // of C
};

// The change of alpha_r that belongs to changes of the variables; `sum` is their sum.
template <int machine, class T>
MM_INLINE T coefficient_change(T change, T sum, int r, int y, int m) {
  if (Traits<machine>::simplex) return -change;
  if (machine == WESTON_WATKINS) return r == y ? sum : -change;
  if (Traits<machine>::shifted) return sum / T(m) - (r == y ? T(0) : change);
  return (Traits<machine>::binary ? y == 1 : r == y) ? change : -change;
}

// -- certificates, in float64, one thread per sample ---------------------------------------------------------------

template <int machine>
MM_INLINE double target(int r, int y, int m) {
  if (machine == CRAMMER_SINGER || machine == WESTON_WATKINS) return r == y ? 1.0 : 0.0;
  if (Traits<machine>::shifted) return r == y ? 1.0 : -1.0 / (m - 1);
  if (Traits<machine>::binary) return y == 1 ? 1.0 : -1.0;
  return r == y ? 1.0 : -1.0;
}

struct Facts {
  double psi, gain, loss;             // violation, part of the gap, loss
  double score, linear, square;       // <alpha, S + b>, <T, alpha>, |alpha|^2
};

// The loss of M-SVM^2: slopes [t_r + mu]_+ with m mu = their sum, t_r = 2 C (s_r + kappa).
template <class S>
MM_INLINE double squared_loss(const S& s, double ridge) {
  const double kappa = 1.0 / (s.m - 1);
  double high = 0.0, low = 0.0, mu = 0.0;
  auto at = [&](int r) {
    return 2.0 * s.C * (s.gradient(r) + target<MSVM2>(r, s.y, s.m) - ridge * s.coefficient(r) + kappa);
  };
  for (int r = 0; r < s.m; ++r) high += r == s.y ? 0.0 : positive(at(r));
  mu = low;
  double total = 0.0, squares = 0.0;
  for (int step = 0; step < 2 * MOST_ROOT_STEPS; ++step) {
    double sum = 0.0, free = 0.0;
    for (int r = 0; r < s.m; ++r) {
      const double x = at(r) + mu;
      if (r != s.y && x > 0.0) sum += x, free += 1.0;
    }
    const double excess = sum - s.m * mu;
    if (excess > 0.0) low = mu; else high = mu;
    double next = mu + excess / (s.m - free);
    if (!(next > low && next < high)) next = next == mu || !(high > low) ? mu : 0.5 * (low + high);
    if (next == mu) break;
    mu = next;
  }
  for (int r = 0; r < s.m; ++r) {
    if (r == s.y) continue;
    const double u = positive(at(r) + mu) / (2.0 * s.C);
    total += u, squares += u * u;
  }
  return s.C * (squares - total * total / s.m);
}

template <int machine>
MM_INLINE Facts facts(const AlphaSample<machine>& s, double ridge) {
  using M = Traits<machine>;
  Facts f{0, 0, 0, 0, 0, 0};
  const int columns = M::binary ? 1 : s.m;
  double top = s.gradient(0);
  for (int r = 1; r < columns; ++r) top = larger(top, s.gradient(r));
  const double kappa = M::shifted ? 1.0 / (s.m - 1) : 1.0, least = ON_BOUND * s.C;
  double products = 0.0;  // of beta and the margins of M-SVM^2
  for (int r = 0; r < columns; ++r) {
    const double a = s.coefficient(r), T = target<machine>(r, s.y, s.m), v = s.value(r);
    const double score = s.gradient(r) + T - ridge * a;
    f.score += a * score, f.linear += a * T, f.square += a * a;
    if (M::simplex) {
      const double below = top - s.gradient(r);
      f.gain += v * below;
      if (v > least) f.psi = larger(f.psi, below);
      if (r == s.y) f.loss = s.C * below;
      continue;
    }
    if (!has_variable<machine>(r, s.y)) continue;
    const double g = slope<machine>(s, r);
    const bool can_grow = !M::bounded || v < s.C - least;
    f.psi = larger(f.psi, larger(can_grow ? -g : 0.0, v > least ? g : 0.0));
    if (machine == MSVM2) {
      products += v * (score + kappa);
      continue;
    }
    f.gain += positive(s.C - v) * positive(-g) + v * positive(g);
    if (machine == WESTON_WATKINS)  // 1 - s_y + s_r
      f.loss += s.C * positive(s.gradient(r) - s.gradient(s.y));
    else if (machine == LEE_LIN_WAHBA)
      f.loss += s.C * positive(score + kappa);
    else
      f.loss += s.C * positive(1.0 - T * score);
  }
  if (machine == MSVM2) {
    f.loss = squared_loss(s, ridge);
    f.gain = positive(f.loss + f.square / (4.0 * s.C) - products);
  }
  return f;
}

}  // namespace multimargin
