// Sums, maxima and minima over a short row, with several partial results in one register. (Float64 semantics forbid the
// compiler to reorder a single running sum.)
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

constexpr int kLanes = 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// sum over r in 0..n-1 of term(r).
template <class Term>
MULTIMARGIN_INLINE double sum_over(Index n, Term term) {
  double part[kLanes] = {};
  Index r = 0;
  for (; r + kLanes <= n; r += kLanes)
    for (int l = 0; l < kLanes; ++l) part[l] += term(r + l);
  double total = (part[0] + part[1]) + (part[2] + part[3]);
  for (; r < n; ++r) total += term(r);
  return total;
}

// max over r of term(r); -infinity for an empty row.
template <class Term>
MULTIMARGIN_INLINE double max_over(Index n, Term term) {
  double part[kLanes] = {-kInfinity, -kInfinity, -kInfinity, -kInfinity};
  Index r = 0;
  for (; r + kLanes <= n; r += kLanes)
    for (int l = 0; l < kLanes; ++l) {
      const double value = term(r + l);
      part[l] = value > part[l] ? value : part[l];
    }
  double best = -kInfinity;
  for (int l = 0; l < kLanes; ++l) best = part[l] > best ? part[l] : best;
  for (; r < n; ++r) {
    const double value = term(r);
    best = value > best ? value : best;
  }
  return best;
}

// min over r of term(r); +infinity for an empty row.
template <class Term>
MULTIMARGIN_INLINE double min_over(Index n, Term term) {
  return -max_over(n, [&](Index r) { return -term(r); });
}

MULTIMARGIN_INLINE double sum_of(const double* x, Index n) {
  return sum_over(n, [x](Index r) { return x[r]; });
}

MULTIMARGIN_INLINE double max_of(const double* x, Index n) {
  return max_over(n, [x](Index r) { return x[r]; });
}

// The larger of the two, or NaN if one of them is NaN: a broken gradient must not look optimal.
inline double worse_of(double worst, double value) { return value > worst || value != value ? value : worst; }

// The first r with the largest x[r].
inline Index argmax_of(const double* x, Index n) {
  Index best = 0;
  for (Index r = 1; r < n; ++r)
    if (x[r] > x[best]) best = r;
  return best;
}

}  // namespace multimargin::base
