// Loops over one row.
#pragma once

#include "base/fixed16.hpp"
#include "base/platform.hpp"

namespace multimargin::inline base {

// out[j] = row[columns[j]].
template <class T, class I, class S>
MULTIMARGIN_CLONES void gather_row(const T* row, const I* columns, Index count, S* out) {
  for (Index j = 0; j < count; ++j) out[j] = to_stored<S>(row[columns[j]]);
}

// out[j] = row[j], in the type of the output.
template <class T, class S>
MULTIMARGIN_CLONES void store_row(const T* row, Index count, S* out) {
  for (Index j = 0; j < count; ++j) out[j] = to_stored<S>(row[j]);
}

// sum[j] += factor row[j], in the precision of the sum.
template <class T, class S>
MULTIMARGIN_CLONES void add_scaled(const T* __restrict row, Index n, double factor, S* __restrict sum) {
  const S by = static_cast<S>(factor * kStoredUnit<T>);
  for (Index j = 0; j < n; ++j) sum[j] += by * stored_value<S>(row[j]);
}

// sum[j] += a0 row0[j] + a1 row1[j], in the precision of the sum.
template <class T, class S>
MULTIMARGIN_CLONES void add_two_rows(const T* __restrict row0, const T* __restrict row1, double a0, double a1, Index n,
                                     S* __restrict sum) {
  const S b0 = static_cast<S>(a0 * kStoredUnit<T>), b1 = static_cast<S>(a1 * kStoredUnit<T>);
  for (Index j = 0; j < n; ++j) sum[j] += b0 * stored_value<S>(row0[j]) + b1 * stored_value<S>(row1[j]);
}

// sum[j] += a0 row0[j] + ... + a3 row3[j], in double.
template <class T>
MULTIMARGIN_CLONES void add_four_rows(const T* __restrict row0, const T* __restrict row1, const T* __restrict row2,
                                      const T* __restrict row3, double a0, double a1, double a2, double a3, Index n,
                                      double* __restrict sum) {
  a0 *= kStoredUnit<T>, a1 *= kStoredUnit<T>, a2 *= kStoredUnit<T>, a3 *= kStoredUnit<T>;
  for (Index j = 0; j < n; ++j)
    sum[j] += (a0 * stored_value<double>(row0[j]) + a1 * stored_value<double>(row1[j])) +
              (a2 * stored_value<double>(row2[j]) + a3 * stored_value<double>(row3[j]));
}

}  // namespace multimargin::base
