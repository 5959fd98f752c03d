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

}  // namespace multimargin::base
