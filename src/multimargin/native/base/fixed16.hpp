// Kernel values between 0 and 1 as 16-bit fixed-point numbers: half the memory of float, with an absolute error of at
// most 7.7e-6. For the blocks of bounded kernels, whose values serve only to find a step.
#pragma once

#include "base/platform.hpp"

namespace multimargin::inline base {

struct Fixed16 {
  static constexpr double kUnit = 1.0 / 65535.0;  // 1 is exact

  std::uint16_t raw;  // the value in units of kUnit
};

// A kernel value in the type T of a block: as it is, or made a fixed-point number. Values outside of 0..1 by rounding
// become 0 or 1. A fixed-point number may become a kernel value again.
template <class T, class S>
MULTIMARGIN_INLINE T to_stored(S value) {
  if constexpr (std::is_same_v<T, S>) {
    return value;
  } else if constexpr (std::is_same_v<S, Fixed16>) {
    return static_cast<T>(Fixed16::kUnit * value.raw);
  } else if constexpr (!std::is_same_v<T, Fixed16>) {
    return static_cast<T>(value);
  } else {
    const S scaled = value * S(65535) + S(0.5);
    const S cut = scaled > S(0) ? (scaled < S(65535) ? scaled : S(65535)) : S(0);
    return {static_cast<std::uint16_t>(static_cast<std::int32_t>(cut))};
  }
}

// A stored kernel value as a number of type S, and what to multiply it with. Fixed-point numbers are left as integers,
// so that a loop over a row multiplies once per value.
template <class S, class T>
MULTIMARGIN_INLINE S stored_value(T x) {
  return static_cast<S>(x);
}
template <class S>
MULTIMARGIN_INLINE S stored_value(Fixed16 x) {
  return static_cast<S>(x.raw);
}
template <class T>
inline constexpr double kStoredUnit = std::is_same_v<T, Fixed16> ? Fixed16::kUnit : 1.0;

}  // namespace multimargin::base
