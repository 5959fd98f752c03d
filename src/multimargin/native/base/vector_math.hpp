// exp and tanh for float and double, branch-free and without calls, so that loops over them vectorise. Errors are
// within 2 ulp; NaN gives NaN; results below the subnormals give 0, and above the range infinity.
#pragma once

#include <bit>

#include "base/platform.hpp"

namespace multimargin::inline base::vector_math {

// exp(x) = 2^k exp(r), k = round(x / ln 2), r = x - k ln 2 in [-ln 2 / 2, ln 2 / 2], and
// exp(r) = 1 + r + r^2 q(r) with q a Chebyshev interpolant of (exp(r) - 1 - r) / r^2.
// ln 2 is split so that k times its high part is exact (Cody & Waite).
template <class T>
struct Constants;

template <>
struct Constants<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23, bias = 127;
  static constexpr float round_to_integer = 0x1.8p23f;  // adding it leaves round(x) in the low bits
  static constexpr float ln2_high = 0x1.63p-1f, ln2_low = -0x1.bd0106p-13f;
  static constexpr float lowest = -104.0f, highest = 89.0f;  // exp is 0, infinity from here on
  static constexpr float tanh_highest = 10.0f;               // tanh is 1 from here on
};

template <>
struct Constants<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
  static constexpr double round_to_integer = 0x1.8p52;
  static constexpr double ln2_high = 0x1.62e4p-1, ln2_low = 0x1.7f7d1cf79abcap-20;
  static constexpr double lowest = -746.0, highest = 710.0;
  static constexpr double tanh_highest = 20.0;
};

MULTIMARGIN_INLINE float exp_polynomial(float r) {
  float q = 0x1.6d110ap-10f;
  q = q * r + 0x1.120b6ep-7f;
  q = q * r + 0x1.55551ap-5f;
  q = q * r + 0x1.5554dcp-3f;
  return q * r + 0.5f;
}

MULTIMARGIN_INLINE double exp_polynomial(double r) {
  double q = 0x1.af38a9b0ec855p-26;
  q = q * r + 0x1.289185613a3d6p-22;
  q = q * r + 0x1.71de0dae63bb3p-19;
  q = q * r + 0x1.a019b90d2ae7ap-16;
  q = q * r + 0x1.a01a01a7c41d5p-13;
  q = q * r + 0x1.6c16c1788bd90p-10;
  q = q * r + 0x1.11111111109b3p-7;
  q = q * r + 0x1.5555555553d63p-5;
  q = q * r + 0x1.5555555555556p-3;
  return q * r + 0x1.0000000000001p-1;
}

// 2^k for k in the normal range, given in two's complement.
template <class T>
MULTIMARGIN_INLINE T power_of_two(typename Constants<T>::Bits k) {
  using P = Constants<T>;
  return std::bit_cast<T>((k + P::bias) << P::mantissa);
}

template <class T>
MULTIMARGIN_INLINE T exp(T x) {
  using P = Constants<T>;
  using Bits = typename P::Bits;
  x = x < P::lowest ? P::lowest : x;  // a NaN fails both comparisons and stays
  x = x > P::highest ? P::highest : x;
  const T shifted = x * static_cast<T>(1.44269504088896340736) + P::round_to_integer;
  const T k = shifted - P::round_to_integer;
  const T r = (x - k * P::ln2_high) - k * P::ln2_low;
  const T e = T(1) + (r + (r * r) * exp_polynomial(r));
  // Two factors: 2^k alone leaves the normal range if the result is subnormal or near the largest number.
  const Bits bits = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(P::round_to_integer);
  const Bits half = ((bits + 2 * P::bias) >> 1) - P::bias;
  return (e * power_of_two<T>(half)) * power_of_two<T>(bits - half);
}

// (2^f - 1) / f for |f| <= 1/2, a Chebyshev interpolant.
MULTIMARGIN_INLINE float exp2_polynomial(float f) {
  float q = 0x1.44138ap-13f;
  q = q * f + 0x1.5f0890p-10f;
  q = q * f + 0x1.3b2a54p-7f;
  q = q * f + 0x1.c6af6cp-5f;
  q = q * f + 0x1.ebfbe0p-3f;
  return q * f + 0x1.62e430p-1f;
}

MULTIMARGIN_INLINE double exp2_polynomial(double f) {
  double q = 0x1.c4a29324a1038p-36;
  q = q * f + 0x1.e9ec1fcb69a7fp-32;
  q = q * f + 0x1.e4cf10dec0f59p-28;
  q = q * f + 0x1.b524ebd13a55fp-24;
  q = q * f + 0x1.62c02242b879cp-20;
  q = q * f + 0x1.ffcbfc6da6ed1p-17;
  q = q * f + 0x1.430912f86b7dbp-13;
  q = q * f + 0x1.5d87fe78a3f9cp-10;
  q = q * f + 0x1.3b2ab6fba4e79p-7;
  q = q * f + 0x1.c6b08d704a0c6p-5;
  q = q * f + 0x1.ebfbdff82c58fp-3;
  return q * f + 0x1.62e42fefa39efp-1;
}

inline constexpr double kLog2OfE = 1.44269504088896340736;  // exp(x) = 2^(x log2(e))

// 2^t for t <= 0, with fewer operations than exp; 0 where the result would be subnormal.
template <class T>
MULTIMARGIN_INLINE T exp2_of_negative(T t) {
  using P = Constants<T>;
  constexpr T round = P::round_to_integer + P::bias;  // leaves the exponent of 2^round(t) in the low bits
  const bool vanishes = t < T(1 - P::bias);           // never if t is a NaN
  const T shifted = t + round;
  const T f = t - (shifted - round);
  const T power = std::bit_cast<T>(std::bit_cast<typename P::Bits>(shifted) << P::mantissa);
  const T e = T(1) + f * exp2_polynomial(f);
  return vanishes ? T(0) : e * power;
}

// tanh a for a = |x| < 0.625: the eighth convergent of Lambert's continued fraction
// a / (1 + z / (3 + z / (5 + ...))), z = a^2, written a + a z p(z) / q(z); above: 1 - 2 / (exp(2a) + 1).
template <class T>
MULTIMARGIN_INLINE T tanh(T x) {
  T a = std::fabs(x);
  a = a > Constants<T>::tanh_highest ? Constants<T>::tanh_highest : a;
  const T z = a * a;
  const T p = -(((z + 594) * z + 45045) * z + 675675);
  const T q = (((z + 630) * z + 51975) * z + 945945) * z + 2027025;
  const bool small = a < T(0.625);
  const T numerator = small ? a * z * p : T(-2);
  const T denominator = small ? q : exp(2 * a) + 1;
  return std::copysign((small ? a : T(1)) + numerator / denominator, x);
}

}  // namespace multimargin::base::vector_math
