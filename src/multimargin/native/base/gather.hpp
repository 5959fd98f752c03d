// Values of a row picked by position.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

// out[j] = row[columns[j]].
template <class T, class I>
MULTIMARGIN_CLONES void gather_row(const T* row, const I* columns, Index count, T* out) {
  for (Index j = 0; j < count; ++j) out[j] = row[columns[j]];
}

}  // namespace multimargin::base
