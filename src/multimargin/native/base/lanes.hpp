// Sums side by side that stay in a register over a loop of any length. (Compilers keep arrays in memory there.)
#pragma once

#include "base/fixed16.hpp"
#include "base/platform.hpp"

namespace multimargin::inline base {

// 64 bytes of numbers of type T: one, two or four registers, depending on the instruction set.
template <class T>
class Lanes {
 public:
  static constexpr Index count = 64 / sizeof(T);

  // Adds factor * values[l].
  template <class S>
  MULTIMARGIN_INLINE void add_product(T factor, const S* values) {
#if defined(__GNUC__)
    typedef S Source __attribute__((vector_size(count * sizeof(S))));
    Source source;
    std::memcpy(&source, values, sizeof(source));
    sums_ += factor * __builtin_convertvector(source, Vector);
#else
    for (Index l = 0; l < count; ++l) sums_[l] += factor * static_cast<T>(values[l]);
#endif
  }

  // The same of fixed-point numbers, as integers.
  MULTIMARGIN_INLINE void add_product(T factor, const Fixed16* values) { add_product(factor, &values->raw); }

  // totals[l] += the sums.
  MULTIMARGIN_INLINE void add_to(double* totals) const {
    for (Index l = 0; l < count; ++l) totals[l] += static_cast<double>(sums_[l]);
  }

 private:
#if defined(__GNUC__)
  typedef T Vector __attribute__((vector_size(64)));
  Vector sums_ = {};
#else
  T sums_[count] = {};
#endif
};

}  // namespace multimargin::base
