// Numbers in text, read exactly: the float64 nearest to the decimal number, as Python's float() gives it.
#pragma once

#include <charconv>

#include "base/platform.hpp"

#if !defined(__cpp_lib_to_chars)
#include <nanobind/nanobind.h>
#endif

namespace multimargin::files {

enum class Number { good, malformed, not_finite };

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// What has been read of a decimal number: mantissa · 10^exponent, if `kept` digits say it all.
struct Decimal {
  static constexpr int kMost = 19;  // decimal digits that an unsigned 64-bit integer holds
  static constexpr int kLargestExponent = 100000;  // far beyond the range of float64

  std::uint64_t mantissa = 0;
  std::int64_t exponent = 0;
  int kept = 0;        // digits of the mantissa, without leading zeros
  bool whole = true;   // whether no digit was left out
  bool any = false;    // whether there was a digit

  // Reads digits; each changes the exponent by `kept_step` if it is kept, and by `dropped_step` if not.
  MULTIMARGIN_INLINE const char* digits(const char* p, const char* end, int kept_step, int dropped_step) {
    const char* const first = p;
    for (; p < end && is_digit(*p); ++p) {
      if (kept < kMost) {
        mantissa = 10 * mantissa + static_cast<std::uint64_t>(*p - '0');
        kept += mantissa != 0;
        exponent += kept_step;
      } else {
        exponent += dropped_step;
        whole = whole && *p == '0';
      }
    }
    any = any || p > first;
    return p;
  }

  // Reads "e-12" and the like; stays if there is no exponent.
  const char* power(const char* p, const char* end) {
    const char* at = p + 1;
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    if (at >= end || !is_digit(*at)) return p;
    std::int64_t size = 0;
    for (; at < end && is_digit(*at); ++at) size = std::min<std::int64_t>(10 * size + (*at - '0'), kLargestExponent);
    exponent += negative ? -size : size;
    return at;
  }
};

inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The nearest float64 of the text [first, last), which is a decimal number without a leading plus.
inline double nearest(const char* first, const char* last, const Decimal& number) {
  double value = 0.0;
#if defined(__cpp_lib_to_chars)
  const auto [rest, error] = std::from_chars(first, last, value);
  (void)rest;
  if (error == std::errc::result_out_of_range) {
    const bool large = number.exponent + number.kept > 0;
    value = large ? std::numeric_limits<double>::infinity() : 0.0;
    if (*first == '-') value = -value;
  }
#else  // the standard library has no such function
  (void)number;
  const std::string text(first, last);
  nanobind::gil_scoped_acquire gil;
  value = PyOS_string_to_double(text.c_str(), nullptr, nullptr);
#endif
  return value;
}

// Whether the text at p is "nan", "inf" or "infinity" in any case; p then moves behind it.
inline bool skip_not_finite(const char*& p, const char* end) {
  for (const std::string_view word : {"infinity", "inf", "nan"}) {
    if (end - p < static_cast<std::ptrdiff_t>(word.size())) continue;
    if (std::equal(word.begin(), word.end(), p, [](char a, char b) { return a == (b | 0x20); })) {
      p += word.size();
      return true;
    }
  }
  return false;
}

// Reads a number at p and moves p behind it. A number is written as in Python, without underscores. Numbers beyond the
// range of float64 are not finite; smaller ones than it can hold are 0.
MULTIMARGIN_INLINE Number read_number(const char*& p, const char* end, double& value) {
  const char* const start = p;
  const bool negative = p < end && *p == '-';
  const char* at = p + (p < end && (*p == '-' || *p == '+'));
  Decimal number;
  at = number.digits(at, end, 0, 1);
  if (at < end && *at == '.') at = number.digits(at + 1, end, -1, 0);
  if (!number.any) {
    p = start + (start < end && (*start == '-' || *start == '+'));
    if (skip_not_finite(p, end)) return Number::not_finite;
    p = start;
    return Number::malformed;
  }
  if (at < end && (*at | 0x20) == 'e') at = number.power(at, end);
  p = at;
  // Clinger: integers up to 2^53 and powers of ten up to 10^22 are exact, so one rounding is all.
  if (number.whole && number.mantissa <= (1ull << 53) && -22 <= number.exponent && number.exponent <= 22) {
    const double size = static_cast<double>(number.mantissa);
    const double found =
        number.exponent < 0 ? size / powers_of_ten[-number.exponent] : size * powers_of_ten[number.exponent];
    value = negative ? -found : found;
    return Number::good;
  }
  value = nearest(*start == '+' ? start + 1 : start, at, number);
  return std::isfinite(value) ? Number::good : Number::not_finite;
}

}  // namespace multimargin::files
