// Short rows with a length that the compiler knows: their loops are unrolled, so no branch at the end of a loop is
// mispredicted. Most rows that a descent solves have two to four classes.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

template <Index N>
using Fixed = std::integral_constant<Index, N>;

// use(count), with the count as a type if it is small.
template <class Use>
MULTIMARGIN_INLINE auto with_count(Index count, Use use) {
  switch (count) {
    case 2: return use(Fixed<2>{});
    case 3: return use(Fixed<3>{});
    case 4: return use(Fixed<4>{});
    default: return use(count);
  }
}

}  // namespace multimargin::base
