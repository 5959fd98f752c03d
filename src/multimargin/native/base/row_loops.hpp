// Loops over one row.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

// out[j] = row[columns[j]].
template <class T, class I>
MULTIMARGIN_CLONES void gather_row(const T* row, const I* columns, Index count, T* out) {
  for (Index j = 0; j < count; ++j) out[j] = row[columns[j]];
}

// sum[j] += factor row[j], in the precision of the sum.
template <class T, class S>
MULTIMARGIN_CLONES void add_scaled(const T* __restrict row, Index n, double factor, S* __restrict sum) {
  const S by = static_cast<S>(factor);
  for (Index j = 0; j < n; ++j) sum[j] += by * static_cast<S>(row[j]);
}

// sum[j] += a0 row0[j] + ... + a3 row3[j], in double.
template <class T>
MULTIMARGIN_CLONES void add_four_rows(const T* __restrict row0, const T* __restrict row1, const T* __restrict row2,
                                      const T* __restrict row3, double a0, double a1, double a2, double a3, Index n,
                                      double* __restrict sum) {
  for (Index j = 0; j < n; ++j)
    sum[j] += (a0 * static_cast<double>(row0[j]) + a1 * static_cast<double>(row1[j])) +
              (a2 * static_cast<double>(row2[j]) + a3 * static_cast<double>(row3[j]));
}

}  // namespace multimargin::base
