// Rows of the Crammer-Singer machine, several at a time: one row per lane.
//
// A row has few classes, so loops over them are short and full of branches. Loops over the lanes are neither. Sums go
// over the classes in their order.
#pragma once

#include "base/eight.hpp"
#include "base/reduce.hpp"
#include "machines/machine.hpp"

namespace multimargin::machines::lanes {

inline constexpr Index kRows = Eight::count;
inline constexpr double kFarAway = -1e150;  // keeps D finite; no class so low is ever active

// Numbers of kRows rows, one class after the other, in memory that is not aligned.
class Classes {
 public:
  MULTIMARGIN_INLINE explicit Classes(double* values) : values_(values) {}

  // From rows one after the other.
  MULTIMARGIN_INLINE void take(const double* rows, Index m) const {
    for (Index r = 0; r < m; ++r)
      for (Index l = 0; l < kRows; ++l) values_[r * kRows + l] = rows[l * m + r];
  }
  MULTIMARGIN_INLINE Eight operator[](Index r) const { return Eight(values_ + r * kRows); }
  MULTIMARGIN_INLINE void set(Index r, const Eight& x) const { x.store(values_ + r * kRows); }
  MULTIMARGIN_INLINE double& at(Index r, Index lane) const { return values_[r * kRows + lane]; }

  MULTIMARGIN_INLINE Eight largest(Index m) const {
    Eight top(-kInfinity);
    for (Index r = 0; r < m; ++r) top = larger((*this)[r], top);
    return top;
  }

 private:
  double* values_;
};

// theta of simplex.hpp in each lane: Newton's method from a point at or below the root (simplex::finish_exactly).
MULTIMARGIN_INLINE Eight exact_root(const Classes& D, const Eight& C, const Eight& peak, Index m, const Eight& start) {
  const Eight zero(0.0), one(1.0);
  Eight theta = start, going(1.0), active(static_cast<double>(m) + 1.0);
  for (bool more = true; more;) {
    Eight count, sum;
    for (Index r = 0; r < m; ++r) {
      const Eight x = D[r];
      count += if_above(x, theta, one, zero);
      sum += if_above(x, theta, x, zero);
    }
    const Eight next = if_above(count, zero, (sum - C) / larger(count, one), peak - C);
    // A lane goes on if its set has shrunk and is not empty, and theta grew.
    Eight goes_on = if_above(active, count, going, zero);
    goes_on = if_above(next, theta, goes_on, zero);
    goes_on = if_above(count, zero, goes_on, zero);
    theta.set_if_above(going, zero, next);
    active = count;
    going = goes_on;
    more = false;
    for (Index l = 0; l < kRows; ++l) more = more || going[l] > 0.0;
  }
  return theta;
}

// CrammerSinger::project for kRows rows, each with its own step. `work` has room for 2 m kRows values. (A template,
// because clones are.)
template <class Real>
MULTIMARGIN_CLONES void project(const Real* G, const Real* step, const std::int32_t* y, const Real* C_of_rows, Index m,
                                Real* alpha, Real* work) {
  const Eight C(C_of_rows), steps(step), zero(0.0), one(1.0), low(kFarAway), noise = Eight(kSmallest) * C;
  const Classes D(work), z(work + m * kRows);
  D.take(G, m);
  z.take(alpha, m);
  for (Index l = 0; l < kRows; ++l) z.at(y[l], l) = -std::max(C_of_rows[l] - alpha[l * m + y[l]], 0.0);
  const Eight top = D.largest(m);
  Eight peak(-kInfinity), count, sum;
  for (Index r = 0; r < m; ++r) {
    const Eight weight = larger(zero - z[r], zero), x = weight + larger((D[r] - top) * steps, low);
    D.set(r, x);
    peak = larger(x, peak);
    count += if_above(weight, zero, one, zero);
    sum += if_above(weight, zero, x, zero);
  }
  const Eight theta = exact_root(D, C, peak, m, larger(peak - C, (sum - C) / larger(count, one)));

  // simplex::threshold
  Eight total, best, where;
  for (Index r = 0; r < m; ++r) {
    const Eight raw = D[r] - theta, kept = if_above(raw, noise, raw, zero);
    z.set(r, kept);
    total += kept;
    where.set_if_above(kept, best, Eight(static_cast<double>(r)));
    best = larger(kept, best);
  }
  double own[kRows];
  for (Index l = 0; l < kRows; ++l) {
    z.at(static_cast<Index>(where[l]), l) += C_of_rows[l] - total[l];
    own[l] = std::exchange(z.at(y[l], l), 0.0);
  }
  // CrammerSinger::store
  Eight others;
  for (Index r = 0; r < m; ++r) others += z[r];
  for (Index l = 0; l < kRows; ++l) {
    for (Index r = 0; r < m; ++r) alpha[l * m + r] = 0.0 - z.at(r, l);
    alpha[l * m + y[l]] = own[l] == 0.0 ? C_of_rows[l] : std::min(others[l], C_of_rows[l]);
  }
}

// The gains g of kRows rows, as CrammerSinger::measure has them.
template <class Real>
MULTIMARGIN_CLONES void gains(const Real* G, const Real* alpha, const std::int32_t* y, const Real* C, Index m,
                              Real* gain, Real* work) {
  const Classes g(work), a(work + m * kRows);
  g.take(G, m);
  a.take(alpha, m);
  const Eight top = g.largest(m), zero(0.0);
  Eight total;
  for (Index l = 0; l < kRows; ++l) total.set(l, (C[l] - alpha[l * m + y[l]]) * (top[l] - G[l * m + y[l]]));
  for (Index r = 0; r < m; ++r) total += larger(zero - a[r], zero) * (top - g[r]);
  total.store(gain);
}

}  // namespace multimargin::machines::lanes
