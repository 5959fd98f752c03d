// Floating-point values that are small integers times one scale: check and conversion.
#pragma once

#include <bit>

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

// The largest integer of a grid.
inline constexpr double kLargestInteger = 32767;

// The scale that was meant: the inverse of a whole number, if that is what it is but for the rounding of values.
template <class T>
double rounded_scale(double scale) {
  const double inverse = std::nearbyint(1 / scale);
  return inverse > 0 && std::fabs(scale * inverse - 1) < grid_tolerance<T> ? 1 / inverse : scale;
}

// The largest scale that fits a sample of values: 1 for whole numbers, or a part of the smallest; nothing if there is
// none. A candidate must fit some of the values before it is compared with all.
template <class T>
std::optional<double> grid_scale(const T* x, Index count) {
  constexpr double tiny = 1e-15;  // with its inverse: the sizes of values whose squares stay within float32
  constexpr Index some = 64, divisors = 64;  // the smallest value of the sample is at most so many scales
  std::vector<T> sizes;
  for (Index i = 0; i < count; ++i)
    if (x[i] != 0) sizes.push_back(std::fabs(x[i]));
  const auto total = std::ssize(sizes);
  if (grid_range(sizes.data(), total, 1.0)) return 1.0;
  const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
  const double smallest = *low, largest = *high;
  if (smallest < tiny || largest > 1 / tiny) return std::nullopt;
  std::vector<T> probe;
  for (Index i = 0; i < total; i += std::max<Index>(1, total / some)) probe.push_back(sizes[i]);
  for (Index divisor = 1; divisor <= divisors; ++divisor) {
    const double scale = rounded_scale<T>(smallest / static_cast<double>(divisor));
    if (largest > scale * kLargestInteger) return std::nullopt;
    if (grid_range(probe.data(), std::ssize(probe), scale) && grid_range(sizes.data(), total, scale)) return scale;
  }
  return std::nullopt;
}

// out[i] = round(x[i] / scale); the range must have been checked. The sum with `shift` has the whole number in its last
// bits; a conversion of a double would be undefined for numbers out of range.
template <class T, class S>
MULTIMARGIN_CLONES void to_grid(const T* x, Index count, double scale, S* out) {
  const double inverse = 1 / scale;
  constexpr double shift = 0x1.8p52;
#pragma omp simd
  for (Index i = 0; i < count; ++i)
    out[i] = static_cast<S>(std::bit_cast<std::int64_t>(static_cast<double>(x[i]) * inverse + shift));
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
