// Which of some values reach a floor, as bits: branch-free, several comparisons at a time.
#pragma once

#include "base/platform.hpp"

namespace multimargin::linear {

// Bit k is set if x[k] >= floor, for k in [0, count); count is at most 64 and a multiple of 8.
template <class W>
MULTIMARGIN_INLINE std::uint64_t at_least(const W* x, Index count, W floor) {
  std::uint64_t bits = 0;
  for (Index k = 0; k < count; ++k) bits |= std::uint64_t{x[k] >= floor} << k;
  return bits;
}

#if MULTIMARGIN_X86  // SSE2, which every x86-64 machine has
template <>
MULTIMARGIN_INLINE std::uint64_t at_least(const float* x, Index count, float floor) {
  const __m128 floors = _mm_set1_ps(floor);
  std::uint64_t bits = 0;
  for (Index k = 0; k < count; k += 4) {
    const int four = _mm_movemask_ps(_mm_cmpge_ps(_mm_loadu_ps(x + k), floors));
    bits |= static_cast<std::uint64_t>(four) << k;
  }
  return bits;
}

template <>
MULTIMARGIN_INLINE std::uint64_t at_least(const double* x, Index count, double floor) {
  const __m128d floors = _mm_set1_pd(floor);
  std::uint64_t bits = 0;
  for (Index k = 0; k < count; k += 2) {
    const int two = _mm_movemask_pd(_mm_cmpge_pd(_mm_loadu_pd(x + k), floors));
    bits |= static_cast<std::uint64_t>(two) << k;
  }
  return bits;
}
#endif

}  // namespace multimargin::linear
