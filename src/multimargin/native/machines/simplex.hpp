// The six single-sample updates, side by side on one interface.
//
//     minimise  1/2 |z - D|^2   subject to  z >= 0,  sum_r z_r = C          (Blondel et al., Eq. 7)
//
// This is the dual of one Crammer-Singer sample with K_ii > 0 in the variables z = C e_y - alpha and
// D = z_old + G / K_ii (crammer_singer.hpp makes D), and, with 1/K_ii replaced by a step length, the
// projection of the projected gradient method (Niu & Yuan, Eq. 3.3). Its solution is
//
//     z_r = [D_r - theta]_+   with theta the root of  phi(theta) = sum_r [D_r - theta]_+ - C.
//
// Every update is a function (problem, z): z holds a feasible point on entry and a feasible point with a smaller or
// equal objective on return. sort, pivot, bisection and fixed-point return the exact minimiser (to rounding) for any z;
// smo returns it in the limit of its own iteration; frank-wolfe makes one step. Each z_r of at most kSmallest * C is
// set to exactly 0.
#pragma once

#include "base/counts.hpp"
#include "base/random.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"

namespace multimargin::machines {

template <class Count>  // Index, or Fixed<2>, Fixed<3>, Fixed<4> (base/counts.hpp)
struct SimplexProblem {
  const double* D;  // m values, finite
  Count m;
  double C;      // > 0
  double* work;  // scratch of m values
  Random* random;
  double tau = 0.0;  // bisection may leave |phi| <= tau C, smo two classes tau C apart; 0 is exact
};

namespace simplex {

// Whether the number of classes is known to the compiler only at run time.
template <class Count>
inline constexpr bool kAnyCount = std::is_same_v<Count, Index>;

// z_r = value(r), with rounding noise set to 0; the largest entry takes up the rounding error of the sum.
template <class Count, class Value>
MULTIMARGIN_INLINE void close_sum(const SimplexProblem<Count>& p, Value value, double* z) {
  const double noise = kSmallest * p.C;
  for (Index r = 0; r < p.m; ++r) {
    const double raw = value(r);
    z[r] = raw > noise ? raw : 0.0;
  }
  const Index largest = argmax_of(z, p.m);
  z[largest] += p.C - sum_of(z, p.m);
}

template <class Count>
MULTIMARGIN_INLINE void threshold(const SimplexProblem<Count>& p, double theta, double* z) {
  close_sum(p, [&](Index r) { return p.D[r] - theta; }, z);
}

// The classes that can be active: theta >= max D - C, because no term of phi alone exceeds C. Copies their D to work
// and returns their number. Of a few classes all are taken, because leaving some out saves nothing.
template <class Count>
MULTIMARGIN_INLINE Count candidates(const SimplexProblem<Count>& p) {
  if constexpr (kAnyCount<Count>) {
    const double floor = max_of(p.D, p.m) - p.C;
    Index count = 0;
    for (Index r = 0; r < p.m; ++r) {
      p.work[count] = p.D[r];
      count += p.D[r] >= floor;
    }
    return count;
  } else {
    std::copy(p.D, p.D + p.m, p.work);
    return {};
  }
}

template <class Count>
MULTIMARGIN_INLINE void sort_descending(double* x, Count count) {
  if constexpr (kAnyCount<Count>) {
    std::sort(x, x + count, std::greater<double>());
  } else {  // a sorting network
    for (Index end = count - 1; end > 0; --end)
      for (Index k = 0; k < end; ++k) {
        const double a = x[k], b = x[k + 1];
        x[k] = a > b ? a : b;
        x[k + 1] = a > b ? b : a;
      }
  }
}

// Exact finish of the iterative root finders: Newton's method on the convex, piecewise linear phi from a point theta at
// or below the root,
//     theta <- (sum_{D_r > theta} D_r - C) / |{D_r > theta}|.                 (CS01, Eq. 42)
// theta grows and the set shrinks; once the set repeats, theta is exact.
template <class Count>
double finish_exactly(const SimplexProblem<Count>& p, double theta) {
  double active = static_cast<double>(p.m) + 1.0;
  for (;;) {
    const double count = sum_over(p.m, [&](auto r) { return p.D[r] > theta ? 1.0 : 0.0; });
    if (count == 0.0) return max_of(p.D, p.m) - p.C;  // theta was rounded up onto max D
    const double sum = sum_over(p.m, [&](auto r) { return p.D[r] > theta ? p.D[r] : 0.0; });
    const double next = (sum - p.C) / count;
    if (count >= active || next <= theta) return next;
    active = count;
    theta = next;
  }
}

// A point at or below theta: max D - C, and the root if every class were active.
template <class Count>
double lower_bound(const SimplexProblem<Count>& p) {
  return std::max(max_of(p.D, p.m) - p.C, (sum_of(p.D, p.m) - p.C) / static_cast<double>(p.m));
}

// Newton's method from the classes that z has active. For any set S of classes, phi is at least
// sum_{r in S} (D_r - theta) - C, whose root is therefore at or below theta. If few classes change, one or two steps
// suffice: for projections of rows that take many small steps.
template <class Count>
void update_from_active(const SimplexProblem<Count>& p, double* z) {
  const double count = sum_over(p.m, [&](auto r) { return z[r] > 0.0 ? 1.0 : 0.0; });
  const double sum = sum_over(p.m, [&](auto r) { return z[r] > 0.0 ? p.D[r] : 0.0; });
  const double root = (sum - p.C) / std::max(count, 1.0);
  threshold(p, finish_exactly(p, std::max(max_of(p.D, p.m) - p.C, root)), z);
}

// Sort (Blondel et al., Algorithm 2): with mu = D descending and
// pi(k) = (sum_{l<=k} mu_l - C) / k, theta = pi(rho), rho = max{k : mu_k > pi(k)}. O(m log m).
template <class Count>
void update_sort(const SimplexProblem<Count>& p, double* z) {
  const auto count = candidates(p);
  sort_descending(p.work, count);
  double sum = 0.0;
  double theta = 0.0;
  for (Index k = 0; k < count; ++k) {
    sum += p.work[k];
    const double next = (sum - p.C) / static_cast<double>(k + 1);
    if (p.work[k] <= next) break;
    theta = next;
  }
  threshold(p, theta, z);
}

// Randomised pivot (Duchi et al. 2008, Figure 2): as sort, but partitions around random elements only.
// U = work[first, last) is undecided; sum and rho belong to the classes found active. Expected O(m).
template <class Count>
void update_pivot(const SimplexProblem<Count>& p, double* z) {
  double* u = p.work;
  Index first = 0;
  Index last = candidates(p);
  double sum = 0.0;
  Index rho = 0;
  while (first < last) {
    std::swap(u[first], u[first + p.random->below(last - first)]);
    const double pivot = u[first];
    double above_sum = pivot;
    Index above = first + 1;  // U's part with D_j >= pivot is [first, above)
    for (Index j = first + 1; j < last; ++j)
      if (u[j] >= pivot) {
        above_sum += u[j];
        std::swap(u[j], u[above++]);
      }
    const Index size = above - first;
    if (sum + above_sum - static_cast<double>(rho + size) * pivot < p.C) {
      sum += above_sum;
      rho += size;
      first = above;
    } else {
      ++first;  // all of the pivot's side but the pivot itself
      last = above;
    }
  }
  threshold(p, (sum - p.C) / static_cast<double>(rho), z);
}

// Bisection (Blondel et al., Algorithm 3) on phi, in the bracket [lower_bound, max D], until |phi| <= tau C (at most 60
// halvings). Without a tau, until |phi| <= 1e-6 C, then finish_exactly from the lower end: the result is exact.
template <class Count>
void update_bisection(const SimplexProblem<Count>& p, double* z) {
  double low = lower_bound(p);
  double high = max_of(p.D, p.m);
  double theta = low;
  for (int step = 0; step < 60; ++step) {
    theta = low + 0.5 * (high - low);
    const double phi = sum_over(p.m, [&](auto r) { return std::max(p.D[r] - theta, 0.0); }) - p.C;
    (phi < 0.0 ? high : low) = theta;
    if (std::abs(phi) <= (p.tau > 0.0 ? p.tau : 1e-6) * p.C) break;
  }
  threshold(p, p.tau > 0.0 ? theta : finish_exactly(p, low), z);
}

// Fixed point (CS01, Eq. 38-40): theta <- (sum_r max(theta, D_r) - C) / m. From below it converges to the root with
// factor 1 - u/m, u = |{D_r > theta}|. Stops when a step is under 1e-9 C or after 100 steps; then finish_exactly, so
// that slow cases (m large, u small) are exact too.
template <class Count>
void update_fixed_point(const SimplexProblem<Count>& p, double* z) {
  double theta = lower_bound(p);
  for (int step = 0; step < 100; ++step) {
    const double sum = sum_over(p.m, [&](auto r) { return std::max(theta, p.D[r]); });
    const double next = (sum - p.C) / static_cast<double>(p.m);
    const bool small = next - theta <= 1e-9 * p.C;
    theta = std::max(theta, next);
    if (small) break;
  }
  threshold(p, finish_exactly(p, theta), z);
}

// SMO (Blondel et al., supplement A): exact steps on two classes a, b, with u = D - z (the gradient over K_ii), u_a the
// largest and u_b the smallest among z_b > 0: lambda = min((u_a - u_b) / 2, z_b), z_a += lambda, z_b -= lambda. Ends
// when u_a - u_b <= tau C, which bounds the error of every z_r, or after 50 m steps. Without a tau it ends at 1e-3 C,
// and finish_exactly continues from u_b, because the steps alone are exact only in the limit. u_b is at or below theta,
// because D_r - u_b >= z_r for all z_r > 0.
template <class Count>
void update_smo(const SimplexProblem<Count>& p, double* z) {
  double* u = p.work;
  for (Index r = 0; r < p.m; ++r) u[r] = p.D[r] - z[r];
  double low = lower_bound(p);
  for (Index step = 0; step < 50 * p.m; ++step) {
    Index a = 0;
    Index b = -1;
    for (Index r = 0; r < p.m; ++r) {
      if (u[r] > u[a]) a = r;
      if (z[r] > 0.0 && (b < 0 || u[r] < u[b])) b = r;
    }
    if (b < 0) break;
    low = u[b];
    if (u[a] - u[b] <= (p.tau > 0.0 ? p.tau : 1e-3) * p.C) break;
    const double half = 0.5 * (u[a] - u[b]);
    z[a] += std::min(half, z[b]);
    z[b] = half < z[b] ? z[b] - half : 0.0;
    u[a] = p.D[a] - z[a];
    u[b] = p.D[b] - z[b];
  }
  if (p.tau > 0.0)
    close_sum(p, [z](Index r) { return z[r]; }, z);
  else
    threshold(p, finish_exactly(p, low), z);
}

// Frank-Wolfe (Blondel et al., supplement B, Eq. 8): one exact line search from z towards the vertex C e_a with the
// largest u_a, u = D - z:  t = min(1, sum_r z_r (u_a - u_r) / |C e_a - z|^2).
template <class Count>
void update_frank_wolfe(const SimplexProblem<Count>& p, double* z) {
  double* u = p.work;
  for (Index r = 0; r < p.m; ++r) u[r] = p.D[r] - z[r];
  const Index a = argmax_of(u, p.m);
  const double slope = sum_over(p.m, [&](auto r) { return z[r] * (u[a] - u[r]); });
  const double rest = p.C - z[a];
  const double length = rest * rest + sum_over(p.m, [&](auto r) { return r == a ? 0.0 : z[r] * z[r]; });
  if (!(slope > 0.0) || !(length > 0.0)) return;
  const double t = std::min(1.0, slope / length);
  for (Index r = 0; r < p.m; ++r) z[r] *= 1.0 - t;
  z[a] += t * p.C;
  close_sum(p, [z](Index r) { return z[r]; }, z);
}

// The minimiser for four classes, without a branch: theta = max_k pi(k), because no set S of classes has a larger
// (sum_S D - C) / |S| than those with weight.
MULTIMARGIN_INLINE void solve_four(const double* D, double C, double* z) {
  double mu[4] = {D[0], D[1], D[2], D[3]};
  const auto order = [&](Index a, Index b) MULTIMARGIN_INLINE_LAMBDA {
    const double x = mu[a], y = mu[b];
    mu[a] = x > y ? x : y;
    mu[b] = x > y ? y : x;
  };
  order(0, 1), order(2, 3), order(0, 2), order(1, 3), order(1, 2);
  const double one = mu[0] - C, two = one + mu[1], three = two + mu[2], four = three + mu[3];
  const double theta = std::max(std::max(one, two * 0.5), std::max(three * (1.0 / 3.0), four * 0.25));
  const double noise = kSmallest * C;
  double sum = 0.0;
  for (Index r = 0; r < 4; ++r) {
    const double raw = D[r] - theta;
    z[r] = raw > noise ? raw : 0.0;
    sum += z[r];
  }
  const double rest = C - sum;  // rounding, for the first of the largest
  bool open = true;
  for (Index r = 0; r < 4; ++r) {
    const bool takes = open & (D[r] == mu[0]);
    z[r] += takes ? rest : 0.0;
    open &= !takes;
  }
}

}  // namespace simplex

enum class SimplexUpdate { sort, pivot, bisection, fixed_point, smo, frank_wolfe };

template <class Count>
void update_simplex(SimplexUpdate update, const SimplexProblem<Count>& p, double* z) {
  switch (update) {
    case SimplexUpdate::sort: return simplex::update_sort(p, z);
    case SimplexUpdate::pivot: return simplex::update_pivot(p, z);
    case SimplexUpdate::bisection: return simplex::update_bisection(p, z);
    case SimplexUpdate::fixed_point: return simplex::update_fixed_point(p, z);
    case SimplexUpdate::smo: return simplex::update_smo(p, z);
    case SimplexUpdate::frank_wolfe: return simplex::update_frank_wolfe(p, z);
  }
}

inline SimplexUpdate find_simplex_update(std::string_view name) {
  static constexpr std::array<Choice<SimplexUpdate>, 6> updates = {{{"sort", SimplexUpdate::sort},
                                                                    {"pivot", SimplexUpdate::pivot},
                                                                    {"bisection", SimplexUpdate::bisection},
                                                                    {"fixed-point", SimplexUpdate::fixed_point},
                                                                    {"smo", SimplexUpdate::smo},
                                                                    {"frank-wolfe", SimplexUpdate::frank_wolfe}}};
  return find_choice("update", name, updates).value;
}

}  // namespace multimargin::machines
