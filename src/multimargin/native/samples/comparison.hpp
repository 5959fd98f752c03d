// How two rows are compared: by the one number that a kernel is a function of.
#pragma once

#include "base/platform.hpp"

namespace multimargin::samples {

enum class Comparison { product, squared_distance, l1_distance };

// What one feature adds to it.
template <Comparison comparison, class T>
MULTIMARGIN_INLINE T comparison_term(T a, T b) {
  if constexpr (comparison == Comparison::product) return a * b;
  const T difference = a - b;
  return comparison == Comparison::squared_distance ? difference * difference : std::fabs(difference);
}

}  // namespace multimargin::samples
