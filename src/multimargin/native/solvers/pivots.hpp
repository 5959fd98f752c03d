// Pivots of a small symmetric matrix: the part of a pivoted Cholesky factorisation that goes column by column.
#pragma once

#include "base/platform.hpp"

namespace multimargin::solvers {

// The largest rest of the diagonal is the next pivot, while it is at least `least` > 0. A (c, c) becomes what the
// pivots leave of it. Column k of factor (c, c) is that of pivot k. Returns the number of pivots.
inline Index find_pivots(double* A, Index c, double least, std::int64_t* pivots, double* factor) {
  for (Index k = 0; k < c; ++k) {
    Index pivot = 0;
    for (Index i = 1; i < c; ++i)
      if (A[i * c + i] > A[pivot * c + pivot]) pivot = i;
    const double rest = A[pivot * c + pivot];
    if (!(rest >= least)) return k;
    for (Index i = 0; i < c; ++i) factor[i * c + k] = A[i * c + pivot] / std::sqrt(rest);
    for (Index i = 0; i < c; ++i)
      for (Index j = 0; j < c; ++j) A[i * c + j] -= factor[i * c + k] * factor[j * c + k];
    pivots[k] = pivot;
  }
  return c;
}

}  // namespace multimargin::solvers
