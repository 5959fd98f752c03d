// The one equation behind the projections onto boxes whose classes are coupled by their sum.
#pragma once

#include "base/reduce.hpp"

namespace multimargin::machines {

// The root sigma of
//
//     sum_{r < n} clip(a(r) + c sigma, 0, u)  =  before + sigma,
//
// where left minus right decreases everywhere: c < 0, or 0 < c < 1/n. u may be infinite; a(r) = -infinity removes a
// class.
//
// Newton's method from 0, inside a bracket that shrinks with every step. A step that ends on the piece of the broken
// line where it began is exact. If a step leaves the bracket, the bracket is halved instead. So no piece is used twice.
template <class Value>
MULTIMARGIN_INLINE double clipped_sum_root(Index n, Value a, double c, double u, double before) {
  double low = -kInfinity, high = kInfinity, sigma = 0.0;
  Index free_then = -1, upper_then = -1;  // at the point the last Newton step came from
  for (;;) {
    Index free = 0, upper = 0;
    double sum = 0.0;
    for (Index r = 0; r < n; ++r) {
      const double value = a(r) + c * sigma;
      const bool inside = value > 0.0 && value < u;
      free += inside;
      upper += value >= u;
      sum += inside ? a(r) : 0.0;
    }
    if (upper > 0) sum += static_cast<double>(upper) * u;
    const double root = (sum - before) / (1.0 - c * static_cast<double>(free));
    // Both counts are monotone in sigma, so equal counts are equal sets.
    if ((free == free_then && upper == upper_then) || root == sigma) return root;
    (root > sigma ? low : high) = sigma;
    if (root > low && root < high) {
      free_then = free, upper_then = upper;
      sigma = root;
    } else {
      const double middle = low + 0.5 * (high - low);
      if (!(middle > low && middle < high)) return sigma;
      free_then = -1;
      sigma = middle;
    }
  }
}

}  // namespace multimargin::machines
