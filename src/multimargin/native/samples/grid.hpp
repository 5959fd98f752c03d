// Floating-point values that are small integers times one scale: check and conversion.
#pragma once

#include "base/platform.hpp"

namespace multimargin::samples {

// The relative error up to which a stored value counts as its integer times the scale: the scale, the product that made
// the value and our own product are each rounded.
template <class T>
inline constexpr double grid_tolerance = 4 * std::numeric_limits<T>::epsilon();

// For k_i = round(x_i / scale): the excess of |x_i - k_i scale| over its tolerance (if not positive, all values are on
// the grid), the smallest and the largest k_i.
struct GridPart {
  double excess, low, high;
};

template <class T>
MULTIMARGIN_CLONES GridPart grid_part(const T* x, Index count, double scale) {
  constexpr double shift = 0x1.8p52;  // adding and subtracting it rounds to an integer
  const double inverse = 1 / scale;
  double excess = -1, low = std::numeric_limits<double>::infinity(), high = -low;
#pragma omp simd reduction(max : excess, high) reduction(min : low)
  for (Index i = 0; i < count; ++i) {
    const double value = static_cast<double>(x[i]);
    const double k = (value * inverse + shift) - shift;
    const double off = std::fabs(value - k * scale) - grid_tolerance<T> * std::fabs(value);
    excess = off > excess ? off : excess;
    low = k < low ? k : low;
    high = k > high ? k : high;
  }
  return {excess, low, high};
}

// The smallest and the largest integer of the values and 0, or nothing if a value is not on the grid.
template <class T>
std::optional<std::pair<double, double>> grid_range(const T* x, Index count, double scale) {
  constexpr Index block = 8192;
  double low = 0, high = 0;
  for (Index first = 0; first < count; first += block) {
    const GridPart part = grid_part(x + first, std::min(block, count - first), scale);
    if (!(part.excess <= 0)) return std::nullopt;
    low = std::min(low, part.low), high = std::max(high, part.high);
  }
  return std::pair{low, high};
}

// out[i] = round(x[i] / scale); the range must have been checked.
template <class T, class S>
MULTIMARGIN_CLONES void to_grid(const T* x, Index count, double scale, S* out) {
  const double inverse = 1 / scale;
  constexpr double shift = 0x1.8p52;
#pragma omp simd
  for (Index i = 0; i < count; ++i)
    out[i] = static_cast<S>(static_cast<std::int32_t>((static_cast<double>(x[i]) * inverse + shift) - shift));
}

// The way back: out[i] = whole[i] * by, or whole[i] / by, in double and then rounded to T.
template <class S, class T>
MULTIMARGIN_CLONES void from_grid(const S* whole, Index count, double by, bool divides, T* out) {
  if (divides) {
#pragma omp simd
    for (Index i = 0; i < count; ++i) out[i] = static_cast<T>(static_cast<double>(whole[i]) / by);
  } else {
#pragma omp simd
    for (Index i = 0; i < count; ++i) out[i] = static_cast<T>(static_cast<double>(whole[i]) * by);
  }
}

}  // namespace multimargin::samples
